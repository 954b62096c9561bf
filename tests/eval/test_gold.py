"""What is right about a question, whatever its benchmark calls it."""

from __future__ import annotations

import dspy

from polyhop.data.benchmarks import GoldFact, Question
from polyhop.data.passages import Evidence, Fact, Passage
from polyhop.eval import objectives
from polyhop.eval.feedback import explain
from polyhop.eval.gold import Gold, gold_of
from polyhop.eval.scoring import Outcome, judge

PARIS = Passage.of("Paris", sentences=["Paris is a city.", "It is in France."])
ROME = Passage.of("Rome", "Rome is a city.")


def example(*gold: GoldFact, **more: object) -> dspy.Example:
    return Question("q", "Where?", ("France",), gold, **more).to_example()  # type: ignore[arg-type]


def test_unique_titles_are_found_in_whatever_was_seen() -> None:
    asked = example(GoldFact("Paris", 1, unique_title=True), GoldFact("Paris", 0, unique_title=True))
    gold = gold_of(asked, [ROME, PARIS])
    assert gold == Gold(("France",), (PARIS.id,), (Fact(PARIS.id, 1), Fact(PARIS.id, 0)))
    assert gold_of(asked).passages == ("title:Paris",)


def test_a_passage_that_was_not_seen_keeps_its_id() -> None:
    asked = example(GoldFact("Paris", None, PARIS.id))
    assert gold_of(asked, [ROME]) == Gold(("France",), (PARIS.id,), ())


def test_quoted_facts_name_the_passages_that_they_stand_in() -> None:
    asked = example(GoldFact("News", text="in  France."), GoldFact("News", text="is a city."), GoldFact("No", text="x"))
    assert gold_of(asked, [PARIS]).passages == (PARIS.id, "title:No")


def test_an_unanswerable_question_is_answered_by_saying_so() -> None:
    for answer in ("unknown", "Insufficient information"):
        _, scores, _ = judge(example(answerable=False), Outcome(answer), None)
        assert scores["answer_em"] == 1.0
    assert judge(example(answerable=False), Outcome("France"), None)[1]["answer_em"] == 0.0


def test_the_texts_of_gold_passages_never_depend_on_what_a_program_found() -> None:
    asked = example(GoldFact("Paris", unique_title=True))
    found = Outcome("x", (Evidence(PARIS),), (PARIS,))
    assert "token_f1" not in judge(asked, found, None)[1]
    library = {"Paris": [PARIS]}
    assert judge(asked, found, lambda title: library.get(title, []))[1]["token_f1"] == 1.0
    assert judge(asked, Outcome("x"), lambda title: library.get(title, []))[1]["token_f1"] == 0.0


def test_objectives_and_feedback_understand_benchmarks() -> None:
    asked = example(GoldFact("Paris", 1, unique_title=True))
    prediction = dspy.Prediction(answer="France", evidence=(Evidence(PARIS, 1),), ranking=(PARIS, ROME))
    assert objectives.fact_f1(asked, prediction) == objectives.joint_f1(asked, prediction) == 1.0
    assert "The evidence is complete and has nothing irrelevant in it." in explain(asked, prediction)
