"""The way of a user: texts of one's own, an index, questions of one's own, and all that can be done with them."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from polyhop.data.lucene.index import build_index

from ..faults.server import Server
from .cli import done, of_run, polyhop, records, refused, written

TEXTS = {
    "kestrel.md": "# Kestrel Mill\n\nKestrel Mill is a mill on the river Ull. It is owned by [Ada Berg](ada.md).",
    "ada.md": "# Ada Berg\n\nAda Berg is a baker who was born in Tarnwick.",
    "Tarnwick.txt": "Tarnwick is a fishing town. Its mayor is Jonas Frey.",
    "sub/frey.md": "# Jonas Frey\n\nJonas Frey is a politician who was born in Orrin.",
}
QUESTIONS: list[dict[str, Any]] = [
    {"question": "Where was the owner of Kestrel Mill born?", "answer": "Tarnwick", "gold": ["kestrel.md", "ada berg"]},
    {"question": "Who is the mayor of Tarnwick?", "answer": ["Jonas Frey", "Frey"], "gold": "tarnwick"},
    {"question": "Where was the mayor of Tarnwick born?", "answer": "Orrin", "gold": ["Tarnwick.txt", "sub/frey.md"]},
    {"question": "Who owns Kestrel Mill?", "answer": "Ada Berg", "gold": [{"title": "Kestrel Mill", "sentence": 1}]},
    {"question": "Where was Jonas Frey born?", "answer": "Orrin", "gold": ["notes/sub/frey.md"]},
    {"question": "What is the mother of Ada Berg called?", "answerable": False},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "notes"
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    build_index([folder], folder.parent / "idx")
    return folder.parent / "idx"


def test_the_whole_way(tmp_path: Path, index: Path) -> None:
    asked = ("--index", index, "--program", "naive")
    questions = written(tmp_path / "q.jsonl", QUESTIONS)

    first = done("evaluate", "--dataset", "own", "--questions", questions, *asked, "--out", tmp_path / "a")
    assert "own, open: 6 questions" in first.stdout
    assert not first.stderr
    summary = of_run(tmp_path / "a")
    assert summary["counts"] == {"questions": 6, "answered": 6, "failed": 0, "skipped": 0, "gold_not_found": 0}
    assert summary["metrics"]["evidence_recall"] == 1.0
    gold = {line["question"]: line["gold"] for line in records(tmp_path / "a" / "predictions.jsonl")}
    assert gold[QUESTIONS[0]["question"]] == ["notes/kestrel.md", "notes/ada.md"]
    assert gold[QUESTIONS[2]["question"]] == ["notes/Tarnwick.txt", "notes/sub/frey.md"]

    (tmp_path / "gold.csv").write_text("question,answer,gold\nWho?,Orrin,ada.md\nWhere?,Orrin,sub/frey.md")
    table = done("evaluate", "--questions", tmp_path / "gold.csv", *asked)
    assert ("own, open: 2 questions" in table.stdout, table.stderr) == (True, "")


def test_a_run_whose_gold_is_all_elsewhere_is_refused(tmp_path: Path, index: Path) -> None:
    gold: list[Any] = [["kestral.md", "sub/ada.md"], "freya.md", {"title": "Kestral Mill", "text": "mill"}]
    elsewhere = [record | {"gold": names} for record, names in zip(QUESTIONS, gold, strict=False)]
    questions = written(tmp_path / "q.jsonl", [*elsewhere, QUESTIONS[-1]])
    made = {"question": QUESTIONS[0]["question"], "answer": "Tarnwick"}
    predictions = written(tmp_path / "theirs.jsonl", [made])
    for command in (
        ("evaluate", "--questions", questions, "--index", index, "--program", "naive", "--out", tmp_path / "out"),
        ("table", "--on", f"own:{questions}:{index}", "--program", "naive", "--out", tmp_path / "out"),
        ("score", predictions, "--questions", questions, "--index", index, "--out", tmp_path / "out"),
    ):
        told = refused(*command)
        assert f"no gold passage is in {index}: is it the right --index? Gold is 'kestral.md', " in told
        assert not list((tmp_path / "out").glob("**/predictions.jsonl"))
    written(questions, [*elsewhere, QUESTIONS[4]])
    some = done("evaluate", "--questions", questions, "--index", index, "--program", "naive")
    assert "'freya.md' names no passage" in some.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "name the file of the questions: --out FILE.jsonl"),
        ("--review q.jsonl --count 3 --no-cache", "leave --count, --no-cache out"),
        ("--out q.jsonl --port 0", "--port is that of a --review"),
        ("--out q.jsonl --retriever bm25", "No such option: --retriever"),  # pairs are not searched for
    ],
)
def test_options_of_draft_that_do_not_go_together(options: str, message: str) -> None:
    assert message in refused("draft", *options.split(), status=2)


def test_pairs_become_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, terminal = tmp_path / "drafts.jsonl", StringIO()
    monkeypatch.setattr(
        "polyhop.scripts.terminal.new_console", lambda err: Console(file=terminal, force_terminal=True, width=100)
    )
    said = done("draft", "--index", "sample", "--count", "3", "--seed", "1", "--out", str(out)).stdout
    assert f"{out}: 3 pairs of passages" in said
    assert "looking for pairs" in terminal.getvalue()
    drafts = records(out)
    assert len({draft["id"] for draft in drafts}) == 3
    for draft in drafts:
        assert draft["question"] == draft["answer"] == ""
        assert len(set(draft["gold"])) == 2
        assert draft["type"] != "bridge" or " mentions " in draft["tie"]
        assert len(draft["read"]) == 2
    assert "there already" in refused("draft", "--index", "sample", "--out", str(out))
    asked = ("--dataset", "own", "--questions", out, "--index", "sample")
    assert "question" in refused("evaluate", *asked)
    written(out, (draft | {"question": f"Which one is {n}?", "answer": "Tarn"} for n, draft in enumerate(drafts)))
    run = tmp_path / "run"
    done("evaluate", *asked, "--program", "naive", "--out", run)
    assert [row["scores"]["answer_em"] for row in records(run / "predictions.jsonl")] == [0.0] * 3


def test_the_doctor_says_how_documents_are_tied_and_what_each_retriever_finds(tmp_path: Path, index: Path) -> None:
    questions = written(tmp_path / "q.jsonl", [*QUESTIONS, {"question": "", "answer": "x"}])
    command = ("doctor", "--index", index, "--questions", questions)
    printed = done(*command).stdout
    assert printed.count("95% interval") == 2  # of BM25 and the chain: the index has no vectors
    assert "--retriever " in printed
    assert "1 cannot be read" in printed
    links = "25% of the documents link to others, 25% are linked by others"  # the mill links to Ada Berg
    assert f"{links}, 75% are mentioned by others, by title or alias" in printed  # all but the mill
    assert "chain, because 100% of the documents are tied" in printed
    written(questions, [{"question": "Who?", "answer": "Orrin", "gold": "nowhere.md"}])
    assert "no gold passage is in" in polyhop(*command).stderr
    written(questions, [{"question": "Who?", "answer": "Orrin"}])
    assert "none of them names its gold" in done(*command).stdout


REPLY = "[[ ## question ## ]]\nWhich is older?\n[[ ## answer ## ]]\n42\n[[ ## attribution ## ]]\nattributable"


def test_a_model_drafts_and_what_one_page_answers_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "q.jsonl"
    with Server(canned=REPLY) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        command = "draft", "--index", "sample", "--count", "3", "--out", out, "--lm", "openai/drafts", "--no-cache"
        spent = polyhop(*command, "--budget-calls", "3")
        assert (spent.exit_code, "the budget (3 LM calls) is spent" in spent.stderr) == (1, True)
        said = done(*command).stderr
        assert f"{out}: 1 question of 3 drafts (2 the first is enough; 1 needs both)" in said
        asked = model.requests
        done(*command)
        assert model.requests == asked  # the run is complete
    [draft] = records(out)
    assert (draft["question"], draft["answer"], draft["type"]) == ("Which is older?", "42", "comparison")
    out.write_text("mine")
    assert "not as this command wrote it" in refused(*command)
    assert out.read_text() == "mine"
