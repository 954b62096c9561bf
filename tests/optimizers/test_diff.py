"""What differs between two programs."""

from __future__ import annotations

from pathlib import Path

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyhop
from polyhop.optimizers.artifact import Provenance, Score, dump, read
from polyhop.optimizers.diff import Change, Difference, diff, words
from polyhop.programs import Exemplar, ExemplarMemory, PolyHop, Prism


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        ("keep all of it", "keep some of it", [("=", "keep "), ("-", "all"), ("+", "some"), ("=", " of it")]),
        ("one two three four", "one 2 3 four", [("=", "one "), ("-", "two three"), ("+", "2 3"), ("=", " four")]),
        ("one two", "one two three", [("=", "one two"), ("+", " three")]),
        ("keep all", "throw everything away", [("-", "keep all"), ("+", "throw everything away")]),
        ("", "new", [("+", "new")]),
    ],
)
def test_texts_word_by_word(before: str, after: str, pieces: list[tuple[str, str]]) -> None:
    assert [piece for piece in words(before, after) if piece[1]] == pieces


@given(st.text("ab \n", max_size=12), st.text("ab \n", max_size=12))
def test_both_texts_are_in_the_pieces(before: str, after: str) -> None:
    pieces = words(before, after)
    assert "".join(text for kind, text in pieces if kind != "+") == before
    assert "".join(text for kind, text in pieces if kind != "-") == after


def test_tuned_programs() -> None:
    after = PolyHop()
    after.rounds.value, after.rounds.high = 2, 4
    after.gatherer.signature = after.gatherer.signature.with_instructions("Keep all.")
    after.planner.demos = [dspy.Example(question="Who?", route="single", sub_questions=["Who?"])] * 2
    own = Exemplar("Who?", ("Who?",), 1)
    after.exemplars.memory = ExemplarMemory([own, *after.exemplars.memory.exemplars[2:]])
    old, new = dump(PolyHop()), dump(after)
    found = diff(old, new)
    assert set(found.changes) == {"rounds", "gatherer", "planner", "exemplars.memory"}
    assert found.changes["rounds"].values == (old["rounds"]["value"], 2)
    assert found.changes["rounds"].range.endswith(", now 1..4")
    assert found.changes["gatherer"].instructions[-1] == ("+", "Keep all.")
    planner, memory = found.changes["planner"], found.changes["exemplars.memory"]
    assert (planner.instructions, [demo["route"] for demo in planner.added]) == ((), ["single", "single"])
    assert diff(new, old).changes["planner"] == Change(removed=planner.added)
    once = {**new, "planner": {**new["planner"], "demos": new["planner"]["demos"][:1]}}
    assert diff(once, new).changes["planner"] == Change(added=planner.added[:1])  # one of two equal demos is new
    assert (len(memory.removed), [each["question"] for each in memory.added]) == (2, ["Who?"])
    assert not found.same
    assert diff(new, new) == Difference()
    assert diff(new, new).same
    assert diff({"a": {"value": 1}}, {"b": {"x": 1}}) == Difference(("a",), ("b",))
    assert diff({"a": {"x": 1}}, {"a": {"x": 2}}).changes == {"a": Change(values=({"x": 1}, {"x": 2}))}


def test_scores_and_provenance(tmp_path: Path) -> None:
    score = Score(mean=0.5, low=0.4, high=0.6)
    known = Provenance(dataset="hotpotqa", scores={"val": {"f1": score}}, spent={"lm_calls": 9})
    program = Prism(rounds=2)
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))
    paths = [polyhop.save(Prism(), tmp_path / "a"), polyhop.save(program, tmp_path / "b", provenance=known)]
    before, after = map(read, paths)
    about = diff(before.state, after.state, (before.manifest, after.manifest)).about
    assert about["provenance.scores.val.f1.mean"] == (None, 0.5)
    assert about["provenance.dataset"] == (None, "hotpotqa")
    assert about["lms.selector"] == (None, "openai/gpt-4o-mini")
    assert "program.retriever" not in about
    assert not diff(before.state, after.state, (before.manifest, None)).about
