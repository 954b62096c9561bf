"""Gold and scores where documents were split into passages."""

from __future__ import annotations

import dspy
import pytest

from polyhop.data.benchmarks import GoldFact, QuestionRecord
from polyhop.data.passages import Evidence, Fact, Passage
from polyhop.data.splitting import Document, split
from polyhop.eval.feedback import explain
from polyhop.eval.gold import ProgramOutput, gold_evidence, gold_in_passages, gold_of, gold_with_texts
from polyhop.eval.metrics import score
from polyhop.eval.official.hotpotqa import supporting_facts

WHOLE = Passage.of("Paris", sentences=["Paris is a city.", "It is in France.", "It lies on a river.", "It is old."])
PIECES = split(Document.of(WHOLE), 8)
ROME = Passage.of("Rome", "Rome is a city.")
FACTS = (GoldFact("Paris", 1, unique_title=True), GoldFact("Paris", 2, unique_title=True))
BY_ID = GoldFact("Paris", passage_id=WHOLE.id)


def example(*gold: GoldFact) -> dspy.Example:
    return QuestionRecord("q", "Where?", ("France",), gold).to_example()


def test_two_passages() -> None:
    assert [passage.text for passage in PIECES] == [
        "Paris is a city. It is in France.",
        "It lies on a river. It is old.",
    ]


@pytest.mark.parametrize("gold", [FACTS, (BY_ID,)])
def test_any_passage_of_the_document_counts(gold: tuple[GoldFact, ...]) -> None:
    asked = example(*gold)
    assert gold_of(asked, PIECES).passages == (WHOLE.id,)
    for piece in PIECES:
        found = score(asked, ProgramOutput("", (Evidence(piece),), (ROME, piece)))[1]
        assert found["evidence_f1"] == found["passage_recall@2"] == 1.0


def test_scores_are_those_of_the_whole_document() -> None:
    asked, (first, second) = example(*FACTS), PIECES
    whole = ProgramOutput("", (Evidence(WHOLE, 1), Evidence(WHOLE, 3), Evidence(ROME)), (ROME, WHOLE))
    pieces = ProgramOutput("", (Evidence(first, 1), Evidence(second, 1), Evidence(ROME)), (ROME, second, first))
    look_up = {"Paris": PIECES}.__getitem__
    assert score(asked, pieces, look_up)[1] == score(asked, whole, lambda title: [WHOLE])[1]
    assert (
        supporting_facts(pieces.evidence)
        == supporting_facts(whole.evidence)
        == [("Paris", 1), ("Paris", 3), ("Rome", 0)]
    )
    assert gold_with_texts(asked, pieces, look_up).texts == (WHOLE.text,)


def test_a_quotation_names_its_passage_alone() -> None:
    asked = example(GoldFact("Paris", text="on a river"))
    assert gold_of(asked, PIECES).passages == (PIECES[1].id,)
    assert score(asked, ProgramOutput("", (Evidence(PIECES[0]),)))[1]["evidence_f1"] == 0.0


def test_gold_evidence_is_in_the_passages_with_the_sentences() -> None:
    first, second = PIECES
    assert gold_evidence(example(*FACTS), lambda title: PIECES) == [Evidence(first, 1), Evidence(second, 0)]
    gold = gold_in_passages(example(*FACTS), PIECES)
    assert (gold.passages, gold.facts) == ((first.id, second.id), (Fact(first.id, 1), Fact(second.id, 0)))
    assert gold_in_passages(example(BY_ID), PIECES[::-1]).passages == (first.id,)  # the one with the answer


def test_feedback_quotes_the_sentences() -> None:
    prediction = dspy.Prediction(answer="France", evidence=(Evidence(PIECES[0], 1),), ranking=tuple(PIECES))
    told = explain(example(*FACTS), prediction)
    assert 'misses "Paris" (It lies on a river.)' in told
    assert "irrelevant" not in told
