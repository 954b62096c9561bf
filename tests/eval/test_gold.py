"""What is right about a question, whatever its benchmark calls it."""

from __future__ import annotations

import dspy
import pytest

from polyhop.data.benchmarks import GoldFact, QuestionRecord
from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Evidence, Fact, Passage
from polyhop.eval.gold import Gold, LookUp, ProgramOutput, gold_evidence, gold_of
from polyhop.eval.metrics import score

PARIS = Passage.of("Paris", sentences=["Paris is a city.", "It is in France."])
ROME = Passage.of("Rome", "Rome is a city.")


def example(*gold: GoldFact, **more: object) -> dspy.Example:
    return QuestionRecord("q", "Where?", ("France",), gold, **more).to_example()  # type: ignore[arg-type]


def scores(asked: dspy.Example, output: ProgramOutput, look_up: LookUp | None = None) -> dict[str, float]:
    return score(asked, output, look_up)[1]


def test_unique_titles_are_found_in_whatever_was_seen() -> None:
    asked = example(GoldFact("Paris", 1, unique_title=True), GoldFact("Paris", 0, unique_title=True))
    gold = gold_of(asked, [ROME, PARIS])
    assert gold == Gold(("France",), (PARIS.id,), (Fact(PARIS.id, 1), Fact(PARIS.id, 0)))
    assert gold_of(asked).passages == ("title:Paris",)


def test_quoted_facts_name_the_passages_that_they_stand_in() -> None:
    asked = example(GoldFact("News", text="in  France."), GoldFact("News", text="is a city."), GoldFact("No", text="x"))
    assert gold_of(asked, [PARIS]).passages == (PARIS.id, "title:No")


def test_an_unanswerable_question_is_answered_by_saying_so() -> None:
    for answer in ("unknown", "Insufficient information"):
        assert scores(example(answerable=False), ProgramOutput(answer))["answer_em"] == 1.0
    assert scores(example(answerable=False), ProgramOutput("France"))["answer_em"] == 0.0


def test_the_texts_of_gold_passages_never_depend_on_what_a_program_found() -> None:
    asked = example(GoldFact("Paris", unique_title=True))
    found = ProgramOutput("x", (Evidence(PARIS),), (PARIS,))
    assert "token_f1" not in scores(asked, found)
    library = {"Paris": [PARIS]}
    assert scores(asked, found, lambda title: library.get(title, []))["token_f1"] == 1.0
    assert scores(asked, ProgramOutput("x"), lambda title: library.get(title, []))["token_f1"] == 0.0


def test_the_gold_evidence_is_sentences_where_they_are_known_and_else_passages() -> None:
    gold = (GoldFact("Paris", 1, unique_title=True), GoldFact("Rome", unique_title=True))
    assert gold_evidence(example(*gold, pool=(ROME, PARIS))) == [Evidence(PARIS, 1), Evidence(ROME)]
    asked = example(*gold)
    library = {"Paris": [PARIS], "Rome": [ROME]}
    assert gold_evidence(asked, lambda title: library[title]) == [Evidence(PARIS, 1), Evidence(ROME)]


def test_an_oracle_needs_all_gold_passages() -> None:
    asked = example(GoldFact("Paris", unique_title=True), GoldFact("Rome", unique_title=True))
    for look_up in (None, lambda title: [PARIS]):
        with pytest.raises(PolyhopError, match="lack one of them"):
            gold_evidence(asked, look_up)
    with pytest.raises(PolyhopError, match="no gold passages"):
        gold_evidence(example())
