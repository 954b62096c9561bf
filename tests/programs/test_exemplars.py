"""Exemplars: which are shown for a question, and that the memory survives what programs go through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.programs.agent import Agent
from polyhop.programs.complexity import Complexity
from polyhop.programs.exemplars import Exemplar, ExemplarMemory, Exemplars, dependence, plan_like
from polyhop.programs.run import Run, running
from polyhop.programs.trace import Recalled
from polyhop.signatures import PlanSteps

from .scripted import playing, scripted

BORN = Exemplar("Where was the author of Emma born?", ("Who is the author of Emma?", "Where was #1 born?"), 2)
OLDER = Exemplar("Who is older, Ann or Bob?", ("When was Ann born?", "When was Bob born?"), 2)
SINGLE = Exemplar("Who wrote Emma?", ("Who wrote Emma?",), 1)
DEEP = Exemplar(
    "Where was the author of the book that inspired Clueless born?",
    ("Which book inspired Clueless?", "Who is the author of #1?", "Where was #2 born?"),
    3,
    "own",
)
MEMORY = (BORN, OLDER, SINGLE, DEEP)
ASKED = "Where was the director of Solaris born?"
TWO = Complexity.of(2)


# --- which are shown -------------------------------------------------------------------------------------------------


def test_the_form_decides_and_the_most_similar_comes_last() -> None:
    exemplars = Exemplars(MEMORY, mode="similar", count=4)
    shown = exemplars(ASKED, TWO)
    assert shown[-2:] == [DEEP, BORN]
    assert set(shown) == set(MEMORY)


def test_same_complexity_shows_only_those() -> None:
    exemplars = Exemplars(MEMORY, count=4)
    assert exemplars(ASKED, TWO) == [OLDER, BORN]
    assert exemplars(ASKED, Complexity.of(3)) == [DEEP]


@pytest.mark.parametrize("mode", ["random", "similar", "same complexity"])
def test_the_question_itself_is_never_shown(mode: str) -> None:
    exemplars = Exemplars(MEMORY, count=8, mode=mode)
    assert BORN not in exemplars("where was the author of EMMA born", TWO)
    assert len(Exemplars((BORN,), mode=mode)(BORN.question, TWO)) == 0


@given(st.text(), st.sampled_from(["none", "random", "similar", "same complexity"]), st.integers(0, 8))
def test_any_question_gets_as_many_as_wanted(question: str, mode: str, count: int) -> None:
    shown = Exemplars(mode=mode, count=count)(question, TWO)
    assert len(shown) == len(set(shown))
    limit = {"none": 0, "same complexity": 6}.get(mode, 24)
    assert len(shown) == min(count, limit)


@pytest.mark.parametrize(
    ("sub_questions", "thought"),
    [
        (("Who wrote Emma?",), "One step."),
        (("When was Ann born?", "When was Bob born?"), "2 steps: none needs another."),
        (DEEP.sub_questions, "3 steps: step 2 needs step 1, step 3 needs step 2."),
        (
            ("Who wrote Emma?", "Who wrote Dust?", "Did #2 know #1, and #1 know #2?"),
            "3 steps: step 3 needs step 1 and 2.",
        ),
    ],
)
def test_a_thought_says_which_steps_need_which(sub_questions: tuple[str, ...], thought: str) -> None:
    assert dependence(sub_questions) == thought


def test_a_planner_is_shown_exemplars_behind_its_own_demos() -> None:
    planner, run = Agent(PlanSteps), Run()
    planner.demos = [{"question": "Who?", "thought": "One step.", "sub_questions": ["Who?"]}]
    with playing(scripted(planner={"sub_questions": ["When?"]})) as script, running(run):
        reply = plan_like([DEEP, BORN], planner, ASKED)
    assert reply.sub_questions == ["When?"]
    assert len(planner.demos) == 1  # for the next question
    assert run.trace.steps[0] == Recalled((DEEP.question, BORN.question))
    (asked,) = script.asked("planner")
    assert asked.inputs == {"question": ASKED}
    shown = [message.text for message in asked.messages]
    assert [text for text in shown[:-1] if "author" in text or "Who?" in text] == shown[:-1]
    assert asked.demos == 3
    assert "3 steps: step 2 needs step 1, step 3 needs step 2." in shown[3]
    assert "2 steps: step 2 needs step 1." in shown[5]  # the most similar stands last


# --- an exemplar and its file ----------------------------------------------------------------------------------------


texts = st.text(min_size=1).filter(lambda text: bool(text.strip()) and "#" not in text)
exemplars_of_any_kind = st.builds(
    Exemplar, texts, st.lists(texts, min_size=1, max_size=4).map(tuple), st.integers(1, 4), st.text()
)


@settings(max_examples=20)
@given(st.lists(exemplars_of_any_kind, max_size=4))
def test_what_is_saved_is_loaded(tmp_path_factory: pytest.TempPathFactory, exemplars: list[Exemplar]) -> None:
    path = tmp_path_factory.mktemp("memories") / "memory.jsonl"
    ExemplarMemory(exemplars).save(path)
    assert ExemplarMemory.load(path).exemplars == tuple(exemplars)


WRONG: list[dict[str, Any]] = [
    {"question": " "},
    {"sub_questions": []},
    {"sub_questions": ["Who?", ""]},
    {"sub_questions": ["Who is #1?"]},
    {"sub_questions": ["Who?", "Where is #0?"]},
    {"hops": 0},
    {"hops": True},
    {"source": 3},
    {"answer": "I"},
]


@pytest.mark.parametrize("fields", WRONG)
def test_refused(fields: dict[str, Any], tmp_path: Path) -> None:
    record = {"question": "Who?", "sub_questions": ["Who?"], "hops": 1, **fields}
    with pytest.raises((ValueError, TypeError)):
        Exemplar(**record)
    path = tmp_path / "memory.jsonl"
    ExemplarMemory([SINGLE]).save(path)
    path.write_text(f"{path.read_text()}{json.dumps(record)}\n")
    with pytest.raises(ValueError, match="."):
        ExemplarMemory.load(path)
    with pytest.raises(ValueError, match="."):
        ExemplarMemory().load_state({"exemplars": [record]})
