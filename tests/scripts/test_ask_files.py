"""`polyhop ask --file`, `polyhop search`, and the index that both find without an option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import Result

from polyhop.eval.run import evaluate

from .cli import done, of_run, polyhop, records, refused, written

FIRM = "In what year was the firm that built the Tyne Bridge founded?"
FILM = "Who directed Stalker?"
ANY = ("--set", "abstain_below=0")  # answers however unlikely


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return polyhop(*arguments, "--index", "sample", stdin=stdin)


def test_questions_of_a_file_are_answered_in_their_order_and_once(tmp_path: Path) -> None:
    questions, out = tmp_path / "q.txt", tmp_path / "a.jsonl"
    questions.write_text(f"{FIRM}\n\n!!!\n{FILM}\n", "utf-8")
    command = ("ask", "--index", "sample", "--file", questions, "--out", out, "--budget-calls", "100", *ANY)
    assert "line 3: a question is a text with words, got '!!!'" in done(*command).stderr
    answers = records(out)
    assert [(answer["id"], answer["question"], answer["answer"]) for answer in answers] == [
        ("1", FIRM, "1875"),
        ("4", FILM, "Andrei Tarkovsky"),
    ]
    assert all(answer["status"] and answer["evidence"] and answer["costs"]["lm_calls"] for answer in answers)
    out.unlink()
    done(*command)
    assert records(out) == answers
    assert "answer_f1" not in of_run(tmp_path / "a.jsonl.run")["metrics"]
    shown = run("ask", "--file", "-", "--json", *ANY, stdin=f"{FILM}\n\n?\n{FIRM}\n")
    assert [each["answer"] for each in records(shown.stdout)] == ["Andrei Tarkovsky", "1875"]
    assert "a text with words" in shown.stderr


def test_a_spent_budget_keeps_what_is_done_and_the_run_resumes(tmp_path: Path) -> None:
    questions, out = tmp_path / "q.jsonl", tmp_path / "a.jsonl"
    written(questions, [{"id": "x", "question": FILM}, {"id": "y", "question": FIRM}])
    command = ("ask", "--file", questions, "--out", out, "--program", "naive")
    stopped = run(*command, "--budget-calls", "1")
    assert stopped.exit_code == 1
    assert f"is spent; what is done is in {out}.run: resume" in stopped.stderr
    assert [each["id"] for each in records(out)] == ["x"]
    assert run(*command, "--budget-calls", "1").exit_code == 1  # it is that of the run, not of the command
    assert run(*command, "--budget-calls", "2").exit_code == 0
    assert [each["id"] for each in records(out)] == ["x", "y"]


def test_failed_questions_have_an_error(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    command = ("ask", "--file", "-", "--out", out, "--lm", "openai/none", "--timeout", "0.001")
    assert run(*command, stdin=FILM).exit_code == 0
    (found,) = records(out)
    assert "no answer after" in found["error"]
    assert "answer" not in found


def test_lines_of_json_are_records_whatever_the_file_is_called(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": "f", "question": FILM}),
        json.dumps({"q": FILM}),
        "1875",
        "[1] is what?",
        '{"q',
    ]
    (tmp_path / "q.txt").write_text("\n".join(lines))
    for file in ("-", tmp_path / "q.txt"):
        shown = run("ask", "--file", file, "--json", "--program", "naive", stdin="\n".join(lines))
        assert [each["question"] for each in records(shown.stdout)] == [FILM, *lines[2:4]]
        assert "line 2: no object with a question" in shown.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "has no questions"),
        (b'{"question": 1}\n[]\nnot json\n' + b"[" * 100_000 + b"\n", "has no questions"),
        (b"\xff\xfe\n", "has no questions"),
        (b'{"id": "a", "question": "Who?"}\n{"id": "a", "question": "Who?"}\n', "line 2: repeats the id 'a'"),
    ],
)
def test_odd_files_are_refused_or_skipped_in_one_line(content: bytes, told: str, tmp_path: Path) -> None:
    for name in ("q.jsonl", "q.json"):
        (tmp_path / name).write_bytes(content)
        result = run("ask", "--file", tmp_path / name, "--out", tmp_path / f"{name}.out.jsonl")
        assert told in result.stderr
        assert "Traceback" not in result.output


def test_only_answers_that_this_command_wrote_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text(f"{FILM}\n{FIRM}\n", "utf-8")
    out = tmp_path / "a.jsonl"
    command = ("ask", "--file", tmp_path / "q.txt", "--index", "sample", "--program", "naive", "--out", out)
    assert "is a folder: name a file" in refused(*command[:-1], ".")
    out.write_text("mine")
    assert "is not as this command wrote it: move it away" in refused(*command)
    assert out.read_text() == "mine"
    out.unlink()
    assert polyhop(*command, "--budget-calls", "1").exit_code == 1
    part = out.read_bytes()
    for changed in (part.replace(b"Tarkovsky", b"T."), b""):
        out.write_bytes(changed)
        assert "move it away" in refused(*command)
        assert out.read_bytes() == changed
    out.write_bytes(part)
    done(*command)
    assert [record["id"] for record in records(out)] == ["1", "2"]
    out.write_bytes(part)  # as a kill leaves it before the new content is in its place
    done(*command)
    out.unlink()
    done(*command)
    assert [record["id"] for record in records(out)] == ["1", "2"]
    out.unlink()
    out.mkdir()
    assert "move it away" in refused(*command)


def test_answers_that_come_while_the_command_runs_are_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a.jsonl"
    monkeypatch.setattr(
        "polyhop.scripts.results.evaluate", lambda *given, **more: (evaluate(*given, **more), out.write_text("mine"))
    )
    refused("ask", "--file", "-", "--out", out, "--index", "sample", "--program", "naive", stdin=FILM)
    assert out.read_text() == "mine"


# --- search -----------------------------------------------------------------------------------------------------------


def test_the_chain_between_two_documents() -> None:
    shown = done("search", "Stalker (1979 film)", "--to", "Solaris (1972 film)", "--index", "sample").stdout
    assert [line.partition(" mentions ")[2] for line in shown.splitlines()[::2]] == [
        "Andrei Tarkovsky (andrei-tarkovsky): andrei tarkovsky",
        "Andrei Tarkovsky (andrei-tarkovsky): andrei tarkovsky",
    ]
    assert "name the same document" in refused("search", "Apollo 11", "--to", "Apollo 11", "--index", "sample")
    assert "'Nobody' names no document" in refused("search", "Nobody", "--to", "Apollo 11", "--index", "sample")


def test_search_shows_passages_and_reasons() -> None:
    found = run("search", "Tyne Bridge firm", "-k", "2", "--retriever", "bm25")
    assert "mentions it" not in found.stdout
    assert "Dorman Long  Tyne Bridge mentions it: dorman long" in run("search", "Tyne Bridge firm", "-k", "2").stdout
    for text in ("", "?!"):
        told = refused("search", text, "--index", "sample")
        assert (told, "a text with words" in told) == (refused("ask", text, "--index", "sample"), True)
    first = records(run("search", "Tyne Bridge firm", "-k", "2", "--json").stdout)[0]
    assert (first["rank"], first["id"], first["reason"]["via"]) == (1, "tyne-bridge", "named")


def test_search_shows_one_hit_a_document(tmp_path: Path) -> None:
    (tmp_path / "river.txt").write_text("The river bends. " * 300)
    (tmp_path / "mill.txt").write_text("A mill stands at the river, which bends there.")
    index = ["--index", str(tmp_path / "ix")]
    assert polyhop("index", tmp_path, "--out", index[1]).exit_code == 0
    for retriever in ("bm25", "chain"):
        command = ["search", "where the river bends", *index, "-k", "2", "--json", "--retriever", retriever]
        hits = records(polyhop(*command, "--by", "document").stdout)
        assert [each["rank"] for each in hits] == [1, 2]
        assert {each["title"] for each in hits} == {"river", "mill"}


# --- without an option ------------------------------------------------------------------------------------------------

QUESTION = "Who founded the company that Ada Berg works for?"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two documents."""
    (tmp_path / "kestrel.md").write_text("# Kestrel\n\nKestrel was founded by Otto Lind in 2004.\n")
    (tmp_path / "ada.md").write_text("# Ada Berg\n\nAda Berg works for Kestrel.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_index_made_without_an_option_is_found_without_one(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (("ask", QUESTION), ("search", "Kestrel"), ("ask", QUESTION, "--index", notes)):
        assert "makes an index of its documents" in refused(*command)
    done("ask", QUESTION, "--program", "direct")
    done("index")
    assert "passages  2" in polyhop("index").stdout  # the index is not a document
    assert "Otto Lind" in polyhop("ask", QUESTION).stdout
    assert "Kestrel" in polyhop("search", "Kestrel").stdout
    (notes / "eve.md").write_text("# Eve Falk\n\nEve Falk works for Kestrel, too.\n")
    assert "changed   1 " in polyhop("index", "--update").stdout
    assert "Eve Falk" in polyhop("search", "Eve Falk").stdout
    assert "is sound" in polyhop("index", "--check").stdout
    (notes / "below" / "deep").mkdir(parents=True)
    monkeypatch.chdir(notes / "below" / "deep")
    assert "Kestrel" in polyhop("search", "Kestrel").stdout  # the index of a folder above
    monkeypatch.chdir("/")
    assert "Otto Lind" in polyhop("ask", QUESTION, "--index", notes).stdout


def test_every_command_finds_the_index_of_a_folder_that_is_named(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = notes / "docs"
    docs.mkdir()
    for name in ("ada.md", "kestrel.md"):
        (notes / name).rename(docs / name)
    monkeypatch.chdir(docs)
    assert polyhop("index").exit_code == 0
    (docs / "kestrel.md").write_text("# Kestrel\n\nKestrel was founded by Eve Falk in 2004.\n")
    monkeypatch.chdir(notes)
    Path("q.jsonl").write_text(json.dumps({"question": QUESTION, "answer": "Eve Falk", "gold": ["Ada Berg"]}))
    own = ("--questions", "q.jsonl", "--index", "docs")
    for command in (
        ("index", "--update", "docs"),
        ("index", "--delete", "ada.md", "--out", "docs"),
        ("index", "--add", "docs/ada.md", "--out", "docs"),
        ("index", "--check", "docs"),
        ("doctor", "--index", "docs"),
        ("evaluate", *own, "--program", "naive"),
        ("table", "--on", "own:q.jsonl:docs", "--program", "naive", "--out", "runs"),
    ):
        assert "There is no index" not in done(*command).stdout
    Path("new").mkdir()
    Path("new/a.md").touch()
    assert "polyhop index new --out new/.polyhop" in refused("evaluate", *own[:-1], "new")
    assert "Eve Falk" in polyhop("search", "Kestrel", "--index", "docs").stdout
    assert not Path(".polyhop").exists()


@pytest.mark.parametrize("agrees", [True, False])
def test_an_index_that_is_missing_is_offered_in_a_terminal(
    agrees: bool, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyhop.scripts.ask.in_terminal", lambda: True)
    result = polyhop("ask", QUESTION, stdin="y\n" if agrees else "n\n")
    assert "has no index. Index its documents now? [Y/n]" in result.stderr
    assert (result.exit_code == 0, "Otto Lind" in result.stdout, (notes / ".polyhop").exists()) == (agrees,) * 3
