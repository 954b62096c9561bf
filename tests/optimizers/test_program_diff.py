"""What differs between two programs."""

from __future__ import annotations

from pathlib import Path

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyhop
from polyhop.eval.statistics import Interval
from polyhop.optimizers.artifact import Provenance, read
from polyhop.optimizers.diff import Difference, Side, compare, words
from polyhop.programs import ComplexityEstimator, Exemplar, PolyHop, Prism


def side(program: dspy.Module) -> Side:
    return Side.of("it", program)


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


def test_equal_programs_have_no_difference() -> None:
    assert compare(side(PolyHop()), side(PolyHop())) == Difference()
    assert compare(side(PolyHop()), side(PolyHop())).same


def test_tuned_programs() -> None:
    after = PolyHop()
    after.rounds.value, after.sure.value = 2, 0.5
    after.rounds.high = 4
    after.gatherer.signature = after.gatherer.signature.with_instructions("Keep all.")
    after.planner.demos = [dspy.Example(question="Who?", route="single", sub_questions=["Who?"])] * 2
    own = [Exemplar("Who?", ("Who?",), 1), *after.exemplars.memory.exemplars[2:]]
    after.exemplars.memory.load_state({"exemplars": [each.to_record() for each in own]})
    found = compare(side(PolyHop()), side(after))
    assert found.tunables == {"rounds": (4, 2, "1..6, now 1..4"), "sure": (0.75, 0.5, "0.0..1.0")}
    assert list(found.agents) == ["planner", "gatherer"]
    assert found.agents["gatherer"].instructions[-1] == ("+", "Keep all.")
    assert found.agents["planner"].instructions == ()
    assert [demo["route"] for demo in found.agents["planner"].added] == ["single", "single"]
    assert compare(side(after), side(PolyHop())).agents["planner"].removed == found.agents["planner"].added
    change = found.exemplars["exemplars.memory"]
    assert (sum(change.before.values()), sum(change.after.values()), change.removed, change.added) == (24, 23, 2, 1)
    assert not found.same


def test_another_estimator_of_complexity_is_a_difference() -> None:
    head = ComplexityEstimator().head.model_copy(update={"biases": (0.0, 0.0, 0.0, 0.0)})
    found = compare(side(PolyHop()), side(PolyHop(estimator=ComplexityEstimator(head))))
    assert found == Difference(others=("estimator",))
    assert not found.same


def test_another_number_of_exemplars_for_some_hops_is_a_difference() -> None:
    after = PolyHop()
    after.exemplars.memory.most = {2: 1}
    assert compare(side(PolyHop()), side(after)) == Difference(others=("exemplars.memory: how many by hops",))
    assert compare(side(after), side(after)).same


def test_scores_and_provenance(tmp_path: Path) -> None:
    known = Provenance(
        dataset="hotpotqa", seed=1, scores={"val": {"f1": Interval(0.5, 0.4, 0.6)}}, spent={"lm_calls": 9}
    )
    program = Prism(rounds=2)
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))
    paths = [polyhop.save(Prism(), tmp_path / "a"), polyhop.save(program, tmp_path / "b", provenance=known)]
    before, after = (Side.of_artifact(path.name, read(path)) for path in paths)
    found = compare(before, after)
    assert found.scores == {"val f1": (None, {"mean": 0.5, "low": 0.4, "high": 0.6})}
    assert found.about["dataset"] == (None, "hotpotqa")
    assert found.about["spent lm_calls"] == (None, 9.0)
    assert found.about["model of selector"] == (None, "openai/gpt-4o-mini")
    assert "retriever" not in found.about
    assert compare(before, before).same
