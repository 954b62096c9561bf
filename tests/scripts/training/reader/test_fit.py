"""Fitting the reader: to made-up towns and people, small enough to see through."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from polyhop.data.benchmarks import QuestionRecord
from polyhop.data.sample import SubQuestion
from polyhop.engines.lexical.prompt import parse_passages
from polyhop.engines.lexical.reader import read_with
from polyhop.engines.lexical.span_table import span_table
from polyhop.scripts.training.command import QuestionFile
from polyhop.scripts.training.reader.examples import (
    EVIDENCE,
    GOLD,
    MIXED,
    AnnotatedHop,
    Example,
    annotated_hops,
    examples,
)
from polyhop.scripts.training.reader.fit import STEP, ReaderFit, hop_tasks, read_all, report, scored
from polyhop.scripts.training.reader.network import Recipe

NAMES = ("Ada Brook", "Ben Carr", "Cy Dunn", "Dora Eck", "Eli Fenn", "Fay Gold", "Gus Holt", "Ida Jans", "Kay Lind")
TOWNS = ("Ghent", "Brno", "Cork", "Leith", "Turku", "Arles", "Varna", "Split", "Ulm")


def example(number: int) -> Example:
    name, town = NAMES[number], TOWNS[number]
    page = f"[1] {name}\n1s1 {name} is a Danish painter.\n1s2 {name} was born in {town} and lives in Odense."
    question = f"Where was {name} born?"
    return Example("people", name, question, (town,), (question,), (), {GOLD: page})


@pytest.fixture(scope="module")
def fit() -> ReaderFit:
    recipe = Recipe(units=8, epochs=60, rate=0.01)
    return ReaderFit([example(number) for number in range(len(NAMES))], folds=3, recipes=(recipe, recipe, recipe))


def test_what_was_learned_answers_new_questions(fit: ReaderFit) -> None:
    page = "[1] Lee Moss\n1s1 Lee Moss is a Danish painter.\n1s2 Lee Moss was born in Rouen and lives in Odense."
    question = "Where was Lee Moss born?"
    assert read_with(fit.models, question, [question], span_table(parse_passages(page)))[0].text == "Rouen"


def test_the_report_tells_held_out_from_in_sample(fit: ReaderFit) -> None:
    figures = report(fit)
    assert figures["answers"]["people gold"]["questions"] == len(NAMES)
    assert figures["answers"]["people gold"]["cross-validated"]["f1"] >= 80
    assert set(figures["probabilities"]) == {"ece", "auc"}


def test_a_country_is_right_under_every_name() -> None:
    book = span_table(parse_passages("[1] A\n1s1 A is a Danish film made in Denmark by Ada Brook."))
    scores = dict(zip(book.texts, scored(book, ["Denmark"], is_country=True), strict=True))
    assert (scores["Danish"], scores["Denmark"], scores["Ada Brook"]) == (1, 1, 0)


def test_sub_questions_get_their_answers_put_in() -> None:
    steps = (SubQuestion("Slow Glass >> director", "Ann Lee", None), SubQuestion("Where was #1 born?", "Leith", None))
    triples = (("Slow Glass", "director", "Ann Lee"), ("Slow Glass", "never heard of", "X"))
    question = QuestionRecord("q", "Where ...?", ("Leith", "Leith, Scotland"), sub_questions=steps, evidences=triples)
    first, second, third = annotated_hops(question, Random(0))
    assert "Slow Glass" in first.question
    assert "director" in first.question
    assert first.answers == ("Ann Lee",)
    assert (second.question, second.bound, second.answers) == (
        "Where was Ann Lee born?", ("Ann Lee",), ("Leith", "Leith, Scotland"),
    )  # fmt: skip
    assert third.bound == ("Slow Glass",)
    assert third.answers == ("Ann Lee",)


def test_examples_of_a_file(tmp_path: Path) -> None:
    context = [
        ["Ada Brook", ["Ada Brook is a painter.", "Ada Brook was born in Ghent."]],
        ["Ghent", ["Ghent is a town."]],
        ["Ben Carr", ["Ben Carr sings."]],
    ]
    record = {
        "_id": "1", "question": "Where was Ada Brook born?", "answer": "Ghent", "type": "bridge", "level": "easy",
        "supporting_facts": [["Ada Brook", 1], ["Ghent", 0]], "context": context,
    }  # fmt: skip
    file = tmp_path / "made.json"
    file.write_text(json.dumps([record]))
    (made,) = examples(QuestionFile.parse(f"hotpotqa:{file}"))
    assert set(made.passages) == {GOLD, EVIDENCE}
    assert made.gold == "Ada Brook | Ghent"
    assert "Ben Carr" not in made.passages[GOLD]
    assert "1s2 Ada Brook was born in Ghent." in made.passages[EVIDENCE]
    assert Example.from_record(json.loads(json.dumps(made.to_record()))) == made


def test_sub_questions_are_learned_and_read_as_steps_over_mixed_pages(fit: ReaderFit) -> None:
    gold = example(0).passages[GOLD]
    mixed = f"{gold}\n[2] Ben Carr\n2s1 Ben Carr was born in Brno."
    asked = AnnotatedHop("Where was Ada Brook born?", ("Ada Brook",), ("Ghent",))
    question, steps = "Where was the painter born?", ("Who is the painter?", "Where was #1 born?")
    made = Example("people", "Ada Brook", question, ("Ghent",), steps, (asked,), {GOLD: gold, MIXED: mixed})
    over_mixed, over_gold = (len(task.features) for task in hop_tasks(made))
    assert over_mixed > over_gold
    read = read_all(fit.models.hop, [(0, made)])
    assert [(each.asked.question, each.condition) for each in read] == [(question, GOLD), (asked.question, STEP)]
    assert read[1].passages == mixed
