"""Drafted questions on the page: reading, editing and deciding with keys, and what is on disk afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from polyhop.data.chain.pairs import Pair
from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Passage
from polyhop.eval import drafts as writing
from polyhop.serve.review import Decision, Review, create_review

from ..scripts.cli import records, written
from .conftest import faults, listening


def drafts(file: Path, count: int = 3) -> Path:
    lines = list[Any]()
    for n in range(count):
        mill = Passage.of(f"Mill {n}", sentences=["A mill.", f"Its owner is <b>Ada {n}</b>."], id=f"mill{n}")
        owner = Passage.of(f"Ada {n}", sentences=["A baker from Tarn."], id=f"ada{n}")
        pair = Pair("bridge", mill, owner, f"Mill {n} mentions Ada {n}: ada {n}", f"ada {n}", 1)
        lines.append(writing.written(pair, f"Where is the owner of Mill {n} from?", "Tarn", ["Who owns it?"]))
    return written(file, lines)


def test_questions_are_read_with_keys_and_the_accepted_ones_are_split(
    tmp_path: Path, visit: Callable[..., Any]
) -> None:
    file = drafts(tmp_path / "q.jsonl")
    with listening(create_review(Review(file))) as address:
        page = visit(address)
        page.wait_for_selector("#passages mark")
        assert page.inner_text("#passages mark") == "Its owner is <b>Ada 0</b>."
        assert page.input_value("#answer") == "Tarn"
        assert not faults(page)
        page.keyboard.press("a")
        page.locator("#index", has_text="2 of 3, 2 to read").wait_for()
        page.keyboard.press("e")
        page.keyboard.press("End")
        page.keyboard.type("? aar")  # letters are keys only outside of the text
        page.keyboard.press("Control+Enter")
        page.locator("#index", has_text="3 of 3, 1 to read").wait_for()
        page.keyboard.press("k")
        page.locator("#state", has_text="accepted").wait_for()
        page.fill("#answer", "Tarnwick")  # what is typed is kept, whatever comes next
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.locator("#index", has_text="3 of 3").wait_for()
        page.fill("#answer", "")
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        assert page.inner_text("#notice") == "A question and an answer are needed."
        page.keyboard.press("r")
        page.locator("#index", has_text="0 to read; accepted: ").wait_for()
    train, test = (records(tmp_path / f"q.{name}.jsonl") for name in ("train", "test"))
    questions = {question["question"]: question["gold"] for question in (*train, *test)}
    assert list(questions.values()) in ([["mill0", "ada0"], ["mill1", "ada1"]], [["mill1", "ada1"], ["mill0", "ada0"]])
    assert set(questions) == {"Where is the owner of Mill 0 from?", "Where is the owner of Mill 1 from?? aar"}
    assert {question["answer"] for question in (*train, *test)} == {"Tarn", "Tarnwick"}
    again = Review(file)  # goes on where it was
    assert [again.decisions[draft["id"]].decision for draft in again.drafts] == ["accepted", "accepted", "rejected"]


def test_no_question_changes_sides_while_others_are_accepted(tmp_path: Path) -> None:
    review = Review(drafts(tmp_path / "q.jsonl", 6))
    sides = dict[str, str]()
    for draft in review.drafts:
        review.decide(Decision(id=draft["id"], decision="accepted", question="Who?", answer="Ada"))
        for side in ("train", "test"):
            for question in records(tmp_path / f"q.{side}.jsonl"):
                assert sides.setdefault(question["id"], side) == side
    assert sorted(sides.values()) == ["test"] * 3 + ["train"] * 3


def test_another_site_may_not_decide_and_a_wrong_file_is_told(tmp_path: Path) -> None:
    file = drafts(tmp_path / "q.jsonl", 1)
    decision = {"id": "x", "decision": "accepted", "question": "Who?", "answer": "Ada"}
    with listening(create_review(Review(file))) as address:
        foreign = {"origin": "http://elsewhere.example"}
        assert httpx.post(f"{address}/drafts", json=decision, headers=foreign).status_code == 403
        assert httpx.post(f"{address}/drafts", json=decision | {"decision": "perhaps"}).status_code == 422
        assert httpx.post(f"{address}/drafts", json=decision).status_code == 404
    assert not (tmp_path / "q.reviewed.jsonl").exists()
    for text, message in (
        ('{"question": "Who?"}', "no drafts as 'polyhop draft' writes them"),
        ('{"id": "a"}\n{"id": "a"}', "each with an id of its own"),
        ('{"id": "a"}\nno json', r"q.jsonl:2: not JSON"),
    ):
        file.write_text(text)
        with pytest.raises(PolyhopError, match=message):
            Review(file)
    with pytest.raises(PolyhopError, match="no file .*none.jsonl"):
        Review(tmp_path / "none.jsonl")
