"""What a solved question teaches: plans of unusual forms are carried over, and nothing that a plan makes up."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyhop
from polyhop.engines.lexical.analogy import learn
from polyhop.engines.lexical.decompose import decompose
from polyhop.programs.exemplars import Exemplar, ExemplarMemory, as_demos
from polyhop.signatures import AnalyzeQuestion

WHOEVER = ("How tall is whoever painted the Mona Lisa?", ("Who painted the Mona Lisa?", "How tall is #1?"))
LIES = (
    "Which sea does the port that Ann Lee sailed from lie on?",
    ("Which port did Ann Lee sail from?", "Which sea does #1 lie on?"),
)
AGES = (
    "Of Ann Lee and Bob Ray, whose life was of greater length?",
    ("What length was the life of Ann Lee?", "What length was the life of Bob Ray?"),
)
NESTED = (
    "What is the motto of the school whoever painted the Mona Lisa went to?",
    ("Who painted the Mona Lisa?", "What school went #1 to?", "What is the motto of #2?"),
)


@pytest.mark.parametrize(
    ("solved", "question", "plan"),
    [
        # the whole question, with other names and words
        (WHOEVER, "How old is whoever wrote Moby Dick?", ["Who wrote Moby Dick?", "How old is #1?"]),
        (
            AGES,
            "Of Kant and Hegel, whose life was of greater length?",
            ["What length was the life of Kant?", "What length was the life of Hegel?"],
        ),
        # a stretch of it, in another question
        (
            WHOEVER,
            "In which year did whoever composed Aida first visit Paris?",
            ["Who composed Aida?", "In which year did #1 first visit Paris?"],
        ),
        # a stretch within a stretch
        (
            NESTED,
            "Who led the school whoever wrote Moby Dick went to?",
            ["Who wrote Moby Dick?", "What school went #1 to?", "Who led #2?"],
        ),
    ],
)
def test_a_new_question_is_planned_like_the_solved_one(solved: Any, question: str, plan: list[str]) -> None:
    assert decompose(question) != plan
    assert decompose(question, [solved]) == plan


def test_the_most_similar_demo_comes_last_and_goes_first() -> None:
    other = (WHOEVER[0], ("Who painted the Mona Lisa?", "How is #1 tall?"))
    question = "How old is whoever wrote Moby Dick?"
    assert decompose(question, [other, WHOEVER])[-1] == "How old is #1?"
    assert decompose(question, [WHOEVER, other])[-1] == "How is #1 old?"


@pytest.mark.parametrize(
    "question",
    [
        "Where was the director of Solaris born?",
        "Which film came out first, Solaris or Stalker?",
        "Who is whoever?",
        "How tall is whoever?",
    ],
)
def test_a_question_of_another_form_is_left_to_the_rules(question: str) -> None:
    assert decompose(question, [WHOEVER, LIES, AGES, NESTED]) == decompose(question)


@pytest.mark.parametrize(
    "plan",
    [
        ("Who painted the Mona Lisa?", "How many metres is #1?"),  # metres are not in the question
        ("Who painted the Mona Lisa?", "How tall is Leonardo da Vinci?"),  # nor is Leonardo
    ],
)
def test_a_plan_that_makes_something_up_does_not_carry_it_over(plan: tuple[str, ...]) -> None:
    steps = decompose("How tall is whoever painted Guernica?", [(WHOEVER[0], plan)])
    assert not [step for step in steps if "metres" in step or "Leonardo" in step]


def test_a_name_is_never_lost() -> None:
    dropped = ("Is Ann taller than Bob of Ely?", ("How tall is Ann?",))
    assert learn(*dropped).whole is None


def test_who_and_what_stay_with_their_nouns() -> None:
    """ "Who is the chef of" does not teach "Who is the height of"."""
    solved = ("How old is the chef at Noma?", ("Who is the chef at Noma?", "How old is #1?"))
    question = "How precise is the height at Noma?"
    assert not [step for step in decompose(question, [solved]) if step.startswith("Who is the height")]


def test_what_the_rules_would_do_anyway_teaches_nothing() -> None:
    question, plan = "Where was the director of Solaris born?", ("Who directed Solaris?", "Where was #1 born?")
    asked = "Where was the director of Stalker born?"
    assert (
        decompose(asked, [(question, plan)])
        == decompose(asked)
        == ["Who is the director of Stalker?", "Where was #1 born?"]
    )


@given(st.text(), st.text(), st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_any_text_can_stand_in_a_demo(question: str, solved: str, plan: list[str]) -> None:
    steps = decompose(question, [(solved, tuple(plan)), WHOEVER])
    assert steps
    assert all(isinstance(step, str) for step in steps)


def test_the_shipped_exemplars_change_no_question_of_a_plain_form() -> None:
    shipped = [(each.question, each.sub_questions) for each in ExemplarMemory().exemplars]
    for question in (
        "Who is the spouse of the director of film West Of Shanghai?",
        "Which film was released first, Solaris or Stalker?",
        "Are Lake Como and Lake Garda in the same country?",
        "When did Kafka's sister die?",
    ):
        assert decompose(question, shipped) == decompose(question)


# --- through the prompt ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()], ids=["chat", "json"])
@pytest.mark.parametrize("wrap", [dspy.Predict, dspy.ChainOfThought])
def test_demos_in_the_prompt_shape_the_analyzer(adapter: Any, wrap: Any) -> None:
    demos = as_demos([Exemplar(*WHOEVER, hops=2)])
    analyzer = wrap(AnalyzeQuestion)  # of a chain of thought the demos are incomplete: they have no reasoning
    with dspy.context(lm=polyhop.lm("lexical"), adapter=adapter):
        question = "How old was whoever wrote Moby Dick?"
        assert analyzer(question=question).sub_questions == [question]
        assert analyzer(question=question, demos=demos).sub_questions == ["Who wrote Moby Dick?", "How old was #1?"]
