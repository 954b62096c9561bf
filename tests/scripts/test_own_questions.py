"""The way of a user: texts of one's own, an index, questions of one's own, and all that can be done with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.lucene.index import build_index

from .cli import done, refused
from .cli import polyhop as run

TEXTS = {
    "kestrel.md": "# Kestrel Mill\n\nKestrel Mill is a mill on the river Ull. It is owned by Ada Berg.",
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


def written(folder: Path, records: list[dict[str, Any]]) -> Path:
    path = folder / "q.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_whole_way(tmp_path: Path, index: Path) -> None:
    asked = ("--index", index, "--program", "naive")
    questions = written(tmp_path, QUESTIONS)

    first = done("evaluate", "--dataset", "own", "--questions", questions, *asked, "--out", tmp_path / "a")
    assert "own, open: 6 questions" in first.stdout
    assert not first.stderr
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert summary["counts"] == {"questions": 6, "answered": 6, "failed": 0, "skipped": 0, "gold_not_found": 0}
    assert summary["metrics"]["evidence_recall"] == 1.0
    lines = [json.loads(line) for line in (tmp_path / "a" / "predictions.jsonl").read_text().splitlines()]
    gold = {line["question"]: line["gold"] for line in lines}
    assert gold[QUESTIONS[0]["question"]] == ["notes/kestrel.md", "notes/ada.md"]
    assert gold[QUESTIONS[2]["question"]] == ["notes/Tarnwick.txt", "notes/sub/frey.md"]

    (tmp_path / "gold.csv").write_text("question,answer,gold\nWho?,Orrin,ada.md\nWhere?,Orrin,sub/frey.md")
    table = done("evaluate", "--questions", tmp_path / "gold.csv", *asked)
    assert ("own, open: 2 questions" in table.stdout, table.stderr) == (True, "")


def test_names_that_no_passage_has_are_told(tmp_path: Path, index: Path) -> None:
    records = [QUESTIONS[0] | {"gold": ["Kestral Mill", "freya.md"]}, {"question": "Who?"}, *QUESTIONS[1:]]
    result = done("evaluate", "--questions", written(tmp_path, records), "--index", index, "--program", "direct")
    assert "q.jsonl:1: 'Kestral Mill' names no passage of the index: is it 'Kestrel Mill'?" in result.stderr
    assert "q.jsonl:1: 'freya.md' names no passage of the index" in result.stderr
    assert "skipped q.jsonl:2: answer is missing" in result.stderr
    assert "1 of 6 questions have gold passages that are not in the index" in result.stderr


def test_a_run_whose_gold_is_all_elsewhere_is_refused(tmp_path: Path, index: Path) -> None:
    gold: list[Any] = [["kestral.md", "sub/ada.md"], "freya.md", {"title": "Kestral Mill", "text": "mill"}]
    records = [record | {"gold": each} for record, each in zip(QUESTIONS, gold, strict=False)]
    questions, predictions = written(tmp_path, [*records, QUESTIONS[-1]]), tmp_path / "theirs.jsonl"
    predictions.write_text(json.dumps({"question": QUESTIONS[0]["question"], "answer": "Tarnwick"}))
    for command in (
        ("evaluate", "--questions", questions, "--index", index, "--program", "naive", "--out", tmp_path / "out"),
        ("table", "--on", f"own:{questions}:{index}", "--program", "naive", "--out", tmp_path / "out"),
        ("score", predictions, "--questions", questions, "--index", index, "--out", tmp_path / "out"),
    ):
        told = refused(*command)
        assert f"no gold passage is in {index}: is it the right --index? Gold is 'kestral.md', " in told
        assert not list((tmp_path / "out").glob("**/predictions.jsonl"))
    questions = written(tmp_path, [*records, QUESTIONS[4]])
    some = done("evaluate", "--questions", questions, "--index", index, "--program", "naive")
    assert "'freya.md' names no passage" in some.stderr


def test_the_end_of_a_path_names_a_document(tmp_path: Path) -> None:
    for n, place in enumerate(("md/redis/commands", "md/redis/old/commands", "md/argo/commands")):
        (tmp_path / "docs" / place).mkdir(parents=True)
        (tmp_path / "docs" / place / "n.md").write_text(f"# Note {n}\n\nText {n}.")
    (tmp_path / "docs" / "other.md").write_text("# Other\n\nText.")
    (tmp_path / "docs" / "same.md").write_text("# Other\n\nText.")
    build_index([tmp_path / "docs"], tmp_path / "idx")
    asked = ("evaluate", "--index", tmp_path / "idx", "--program", "naive", "-k", "4", "--questions")
    first = "docs/md/redis/commands/n.md"
    for name in ("redis/commands/n.md", f"{first}#1"):  # the second: it is not split
        questions = written(tmp_path, [{"question": "Text 0?", "answer": "Text", "gold": ["Other", name]}])
        result = run(*asked, questions, "--json")
        missing = name != "redis/commands/n.md"
        assert ("names no passage" in result.stderr) == missing, result.output
        assert json.loads(result.stdout)["metrics"]["passage_recall@5"] == (0.5 if missing else 1)
    copies = [{"question": f"Text of {name}?", "answer": "Text", "gold": [name]} for name in ("same.md", "other.md")]
    result = run(*asked, written(tmp_path, copies), "--json")
    assert "it was left out: the same text as docs/other.md; name 'docs/other.md' instead" in result.stderr
    for name, documents in (
        ("n.md", f"3 documents: docs/md/argo/commands/n.md, {first}, docs/md/redis/old/commands/n.md"),
        ("commands/n.md", "3 documents: "),
    ):
        questions = written(tmp_path, [{"question": "What?", "answer": "Text", "gold": ["Other", name]}])
        result = run(*asked, questions)
        assert result.exit_code == 1
        assert f"q.jsonl:1: '{name}' names {documents}" in " ".join(result.stderr.split())
        assert "Give its id, more of the path" in " ".join(result.stderr.split())


def test_the_index_is_found_without_an_option(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = written(tmp_path, QUESTIONS[:2])
    asked = ("evaluate", "--questions", questions, "--program", "naive")
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "has no contexts of its own" in run(*asked).stderr
    monkeypatch.setenv("POLYHOP_INDEX", str(index))
    assert "Recall@5" in run(*asked).stdout
    pool = {"passages": [{"title": "Kestrel Mill", "text": "It is owned by Ada Berg."}]}
    record = {"question": "Who owns Kestrel Mill?", "answer": "Ada Berg", "gold": "Kestrel Mill", **pool}
    own = written(tmp_path / "own", [record])
    told = run("evaluate", "--questions", own, "--program", "naive").stdout
    assert "distractor" in told  # a question's own passages go before any default
