"""Gold and scores where documents were split into passages."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pytest

from polyhop.data.benchmarks import GoldFact, QuestionRecord
from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Evidence, Fact, Passage
from polyhop.data.splitting import Document, split
from polyhop.eval.feedback import explain
from polyhop.eval.gold import ProgramOutput, gold_evidence, gold_in_passages, gold_of, gold_with_texts
from polyhop.eval.metrics import METRICS, attempt_of, score
from polyhop.eval.official import supporting_facts
from polyhop.eval.run import evaluate

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
    for answer, piece in (("France", first), ("a river", second), ("nothing of it", first)):  # the one with the answer
        asked = QuestionRecord("q", "Where?", (answer,), (BY_ID,)).to_example()
        assert gold_in_passages(asked, PIECES[::-1]).passages == (piece.id,)


def test_feedback_quotes_the_sentences() -> None:
    prediction = dspy.Prediction(answer="France", evidence=(Evidence(PIECES[0], 1),), ranking=tuple(PIECES))
    told = explain(attempt_of(example(*FACTS), prediction))
    assert 'misses "Paris" (It lies on a river.)' in told
    assert "Nothing in it is irrelevant" in told


@pytest.mark.parametrize(
    "gold",
    [["Paris"], ("Paris", "Paris"), "Paris", {"title": "Paris"}, [{"title": "Paris", "sentence": 2}], ["paris.md"]],
)
def test_gold_as_a_question_file_has_it(gold: object) -> None:
    """In Python as in JSON Lines, with any program."""
    pieces = split(replace(Document.of(WHOLE), id="docs/paris.md"), 8)

    class Fixed(dspy.Module):
        def forward(self, question: str) -> dspy.Prediction:
            return dspy.Prediction(answer="France", ranking=(ROME, pieces[1]), evidence=(Evidence(pieces[1], 0),))

    asked = dspy.Example(question="Where?", answer="France", gold=gold).with_inputs("question")
    found = evaluate(Fixed(), [asked])["metrics"]
    assert (found["answer_em"], found["passage_recall@2"], found["passage_mrr"]) == (1.0, 1.0, 0.5)
    assert dspy.Evaluate(devset=[asked], metric=METRICS["passage_recall@2"])(Fixed()).score == 100.0


@pytest.mark.parametrize("gold", [[1.5, None], [["Paris"]], {"sentence": 1}, [{"title": "Paris", "sentence": -1}]])
def test_gold_that_names_nothing_is_refused(gold: object) -> None:
    with pytest.raises(PolyhopError, match="gold: "):
        gold_of(dspy.Example(question="Where?", answer="France", gold=gold))


def test_a_file_counts_once_whatever_passages_are_found() -> None:
    """Five passages of one file are one of the first five files."""
    long = Passage.of("Long", sentences=[f"Sentence {n} is here." for n in range(40)], id="docs/long.md")
    pieces = split(Document.of(long), 8)
    others = [Passage.of(f"Other {n}", f"Text {n}.", id=f"docs/{n}.md") for n in range(5)]
    asked = dspy.Example(question="What?", answer="x", gold=["3.md", "docs/long.md"])
    ranking = (*pieces[:8], *others)
    found = score(asked, ProgramOutput("", (), ranking))[1]
    assert (found["passage_recall@5"], found["all_gold@5"], found["passage_recall@2"]) == (1.0, 1.0, 0.5)
    # Of a passage that is gold itself, the number counts.
    own = dspy.Example(question="What?", answer="x", gold=["long.md#2"])
    assert score(own, ProgramOutput("", (), ranking))[1]["passage_mrr"] == 0.5
