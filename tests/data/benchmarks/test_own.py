"""Questions of one's own: what may be written, how passages are named, and what is said of what is wrong."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.benchmarks import load_questions, recognize_file
from polyhop.data.benchmarks.own import NamedFact
from polyhop.data.errors import DataError, Problem
from polyhop.data.passages import Passage

from . import records as r

ASKED = {"question": "Who owns it?", "answer": "Ada"}


def load(path: Path, **options: Any) -> list[Any]:
    return list(load_questions("own", path, **options))


def read(folder: Path, **fields: Any) -> Any:
    """The question of one record, which must be sound."""
    (question,) = load(r.write(folder / "q.jsonl", r.lines([ASKED | fields])), strict=True)
    return question


def test_gold_can_be_a_sentence_an_id_or_words(tmp_path: Path) -> None:
    gold = [{"title": "A", "sentence": 0}, {"id": 5}, {"title": "B", "text": "a mill"}]
    question = read(tmp_path, gold=gold)
    assert question.gold == (NamedFact("A", 0), NamedFact("5"), NamedFact("B", text="a mill"))
    assert read(tmp_path, gold="A; b.md").gold == (NamedFact("A"), NamedFact("b.md"))


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("Kestrel Mill", None, True),
        (" kestrel mill", None, True),
        ("notes/old/kestrel.md", None, True),
        ("kestrel.md", None, True),
        ("old/kestrel.md", None, True),
        ("kestrel", None, False),
        ("trel.md", None, False),
        ("Kestrel", None, False),
        ("", None, False),
        ("Kestrel Mill", "grinds  oats", True),
        ("Kestrel Mill", "grinds barley", False),
        ("Other", "grinds oats", False),
    ],
)
def test_names(name: str, text: str | None, named: bool) -> None:
    passage = Passage.of("Kestrel Mill", "It grinds oats.", id="notes/old/kestrel.md")
    assert NamedFact(name, text=text).matches(passage) == named


# --- files -----------------------------------------------------------------------------------------------------------

TABLE = """Question, Answer ,gold,answerable,hops
Who owns it?,Ada,a.md; B,,2
"Who, then?","Ada ""Bo"" Berg",A,yes,

"What
is it?",,,no,
Why?,Ada,,,
"""


@pytest.mark.parametrize("name", ["q.csv", "q.tsv", "q.csv.gz"])
def test_tables(tmp_path: Path, name: str) -> None:
    text = TABLE if ".csv" in name else TABLE.replace("Who, then", "Who then").replace(",", "\t")
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    first, second, third, last = load(tmp_path / name, strict=True)
    assert (first.answers, first.gold, first.hops) == (("Ada",), (NamedFact("a.md"), NamedFact("B")), 2)
    assert second.answers == ('Ada "Bo" Berg',)
    assert (third.question, third.answerable) == ("What\nis it?", False)
    assert [question.where for question in (first, second, third, last)] == [f"{name}:{line}" for line in (2, 3, 5, 7)]


def test_a_row_with_too_many_cells(tmp_path: Path) -> None:
    path = r.write(tmp_path / "q.csv", "question,answer\nHow many?,4,200\nWho?,Ada\nWhat?\n")
    problems: list[Problem] = []
    assert [question.question for question in load(path, on_problem=problems.append)] == ["Who?"]
    assert [problem.where for problem in problems] == ["q.csv:2", "q.csv:4"]
    assert "put quotes around" in problems[0].reason


# --- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"question": None}, "question "),
        ({"question": " "}, "question "),
        ({"answer": None}, 'answer is missing; if the passages do not contain it, set "answerable": false'),
        ({"answer": True}, "answer "),
        ({"answer": ["a", None]}, "answer "),
        ({"answer": {"text": "a"}}, "answer "),
        ({"answerable": "perhaps"}, "answerable "),
        ({"gold": ["A", ""]}, "title "),
        ({"gold": [["A", 0]]}, "gold "),
        ({"gold": [{"title": "A", "sentence": -1}]}, "a gold sentence "),
        ({"gold": ["B"], "passages": [{"title": "A", "text": "x"}]}, "gold names 'B', which is none of the passages"),
        ({"passages": [{"title": "A"}]}, "neither 'text' nor 'sentences'"),
        ({"hops": 0}, "hops "),
        ({"hops": 1_001}, "hops "),
        ({"hops": "two"}, "hops "),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    path = r.write(tmp_path / "q.jsonl", r.lines([ASKED | {"id": "sound"}, ASKED | fields]))
    with pytest.raises(DataError, match=rf"^q\.jsonl:2: {reason}"):
        load(path, strict=True)


# --- what a file looks like ------------------------------------------------------------------------------------------


def test_what_cannot_be_recognized(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl:1 looks like none of hotpotqa, .* name the --dataset"):
        recognize_file(r.write(tmp_path / "a.jsonl", '{"text": "x"}\n'))
    with pytest.raises(DataError, match=r"b\.jsonl:1 may be of nq or triviaqa: name the --dataset"):
        recognize_file(r.write(tmp_path / "b.jsonl", r.lines([r.TRIVIAQA])))
    with pytest.raises(DataError, match="Name the --dataset that hub:me/mine is"):
        recognize_file("hub:me/mine")
