"""What is right about a question, whatever its benchmark calls it."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pytest

from polyhop.data.benchmarks import GoldFact, QuestionRecord
from polyhop.data.documents.split import Document, split
from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Evidence, Fact, Passage
from polyhop.eval.gold import Gold, ProgramOutput, gold_evidence, gold_in_passages, gold_of, gold_with_texts
from polyhop.eval.metrics import METRICS, score
from polyhop.eval.official import supporting_facts
from polyhop.eval.run import evaluate

PARIS = Passage.of("Paris", sentences=["Paris is a city.", "It is in France."])


def example(*gold: GoldFact, **more: object) -> dspy.Example:
    return QuestionRecord("q", "Where?", ("France",), gold, **more).to_example()  # type: ignore[arg-type]


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
        assert score(example(answerable=False), ProgramOutput(answer))[1]["answer_em"] == 1.0
    assert score(example(answerable=False), ProgramOutput("France"))[1]["answer_em"] == 0.0


def test_the_texts_of_gold_passages_never_depend_on_what_a_program_found() -> None:
    asked = example(GoldFact("Paris", unique_title=True))
    output = ProgramOutput("x", (Evidence(PARIS),), (PARIS,))
    assert "token_f1" not in score(asked, output)[1]
    library = {"Paris": [PARIS]}
    assert score(asked, output, lambda title: library.get(title, []))[1]["token_f1"] == 1.0
    assert score(asked, ProgramOutput("x"), lambda title: library.get(title, []))[1]["token_f1"] == 0.0


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


WHOLE = Passage.of("Paris", sentences=["Paris is a city.", "It is in France.", "It lies on a river.", "It is old."])
PIECES = split(Document.of(WHOLE), 8)
ROME = Passage.of("Rome", "Rome is a city.")
FACTS = (GoldFact("Paris", 1, unique_title=True), GoldFact("Paris", 2, unique_title=True))
BY_ID = GoldFact("Paris", passage_id=WHOLE.id)


@pytest.mark.parametrize("gold", [FACTS, (BY_ID,)])
def test_any_passage_of_the_document_counts(gold: tuple[GoldFact, ...]) -> None:
    asked = example(*gold)
    assert gold_of(asked, PIECES).passages == (WHOLE.id,)
    for piece in PIECES:
        scores = score(asked, ProgramOutput("", (Evidence(piece),), (ROME, piece)))[1]
        assert scores["evidence_f1"] == scores["passage_recall@2"] == 1.0


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


def test_gold_evidence_is_in_the_passages_with_the_sentences() -> None:
    first, second = PIECES
    assert gold_evidence(example(*FACTS), lambda title: PIECES) == [Evidence(first, 1), Evidence(second, 0)]
    gold = gold_in_passages(example(*FACTS), PIECES)
    assert (gold.passages, gold.facts) == ((first.id, second.id), (Fact(first.id, 1), Fact(second.id, 0)))
    for answer, piece in (("France", first), ("a river", second), ("nothing of it", first)):  # the one with the answer
        asked = QuestionRecord("q", "Where?", (answer,), (BY_ID,)).to_example()
        assert gold_in_passages(asked, PIECES[::-1]).passages == (piece.id,)


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
    scores = evaluate(Fixed(), [asked])["metrics"]
    assert (scores["answer_em"], scores["passage_recall@2"], scores["passage_mrr"]) == (1.0, 1.0, 0.5)
    assert dspy.Evaluate(devset=[asked], metric=METRICS["passage_recall@2"])(Fixed()).score == 100.0


def test_a_file_counts_once_whatever_passages_are_found() -> None:
    """Five passages of one file are one of the first five files."""
    long = Passage.of("Long", sentences=[f"Sentence {n} is here." for n in range(40)], id="docs/long.md")
    pieces = split(Document.of(long), 8)
    others = [Passage.of(f"Other {n}", f"Text {n}.", id=f"docs/{n}.md") for n in range(5)]
    asked = dspy.Example(question="What?", answer="x", gold=["3.md", "docs/long.md"])
    ranking = (*pieces[:8], *others)
    scores = score(asked, ProgramOutput("", (), ranking))[1]
    assert (scores["passage_recall@5"], scores["all_gold@5"], scores["passage_recall@2"]) == (1.0, 1.0, 0.5)
    # Of a passage that is gold itself, the number counts.
    of_a_passage = dspy.Example(question="What?", answer="x", gold=["long.md#2"])
    assert score(of_a_passage, ProgramOutput("", (), ranking))[1]["passage_mrr"] == 0.5
