"""From a run to the official evaluators: prediction files and official numbers, one `Submission` per benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from ...programs.prediction import UNKNOWN
from ..gold import ABSTENTIONS, ProgramOutput
from . import hotpotqa, hover, multihop_rag, musique, nq_open, popqa, squad, triviaqa, two_wiki

Pairs = Iterable[tuple[Any, Any]]
Write = Callable[[Path, Pairs], None]


@dataclass(frozen=True)
class Submission:
    """The official evaluation of one benchmark.

    Attributes:
        predict: Makes the official prediction of a question; an output of None is a failure.
        files: The official prediction files, each with the function that writes it from pairs, read several times.
    """

    predict: Callable[[dspy.Example, ProgramOutput | None], Any]
    prediction: type[Any]  # the type of the prediction
    gold: Callable[[dspy.Example], Any]  # makes the official gold of a question
    evaluate: Callable[[Pairs], Mapping[str, Any]]  # computes the official numbers of (prediction, gold) pairs
    files: Mapping[str, Write]


def _predictions(write: Callable[[Path, Any], None]) -> Write:
    return lambda path, pairs: write(path, (prediction for prediction, _ in pairs))


# --- HotpotQA, 2WikiMultihopQA and HoVer -----------------------------------------------------------------------------


def _hotpotqa(example: dspy.Example, output: ProgramOutput | None) -> hotpotqa.Prediction:
    if output is None:
        return hotpotqa.Prediction(example.official_id)
    return hotpotqa.Prediction(example.official_id, output.answer, hotpotqa.supporting_facts(output.evidence))


def _supporting_facts(example: dspy.Example) -> list[hotpotqa.SupportingFact]:
    return [(fact.title, fact.sentence) for fact in example.gold if fact.sentence is not None]


NOT_APPLICABLE = "not applicable"


def _two_wiki_numbers(pairs: Pairs) -> dict[str, Any]:
    """All numbers; for the open set, where most questions have no gold sentences, those of the answer. Without triples,
    those of triples, and of everything jointly, do not apply: the script gives 0."""
    complete, triples = True, False

    def checked() -> Pairs:
        nonlocal complete, triples
        for prediction, gold in pairs:
            complete = complete and bool(gold.supporting_facts)
            triples = triples or prediction.evidence is not None
            yield prediction, gold

    numbers: dict[str, Any] = two_wiki.evaluate(checked())
    if not complete:
        return {name: value for name, value in numbers.items() if "_" not in name}
    without = () if triples else ("evi_", "joint_")
    return {name: NOT_APPLICABLE if name.startswith(without) else value for name, value in numbers.items()}


def _hover(example: dspy.Example, output: ProgramOutput | None) -> hover.Prediction:
    if output is None:
        return hover.Prediction(example.official_id)
    facts = hotpotqa.supporting_facts(output.evidence)
    return hover.Prediction(example.official_id, hover.verdict(output.answer), facts)


# --- MuSiQue ---------------------------------------------------------------------------------------------------------


def _musique(example: dspy.Example, output: ProgramOutput | None) -> musique.Prediction:
    """Support is the paragraphs' ``idx``; other passages get unused numbers."""
    if output is None:
        return musique.Prediction(example.official_id)
    idx = dict(example.paragraph_idx)
    unused = max(idx.values(), default=-1) + 1
    support = []
    for id in dict.fromkeys(item.passage.document for item in output.evidence):
        if id not in idx:
            idx[id], unused = unused, unused + 1
        support.append(idx[id])
    return musique.Prediction(example.official_id, output.answer, support, output.answer != UNKNOWN)


def _musique_gold(example: dspy.Example) -> musique.Gold:
    support = [example.paragraph_idx[fact.passage_id] for fact in example.gold]
    return musique.Gold(example.answers, support, example.answerable)


# --- MultiHop-RAG ----------------------------------------------------------------------------------------------------


def _multihop_rag(example: dspy.Example, output: ProgramOutput | None) -> multihop_rag.Prediction:
    if output is None:
        return multihop_rag.Prediction(example.question, example.kind)
    answer = ABSTENTIONS[-1] if output.answer == UNKNOWN else output.answer
    texts = [f"{passage.title}\n{passage.text}" for passage in output.ranking[: multihop_rag.DEPTH]]
    return multihop_rag.Prediction(example.question, example.kind, answer, texts)


# --- single-hop sets -------------------------------------------------------------------------------------------------


def _squad(example: dspy.Example, output: ProgramOutput | None) -> squad.Prediction:
    return squad.Prediction(example.official_id, output.answer if output else None)


def _answers(example: dspy.Example) -> tuple[str, ...]:
    return tuple(example.answers)


SUBMISSIONS = {
    "hotpotqa": Submission(
        _hotpotqa,
        hotpotqa.Prediction,
        lambda example: hotpotqa.Gold(example.answers[0], _supporting_facts(example)),
        hotpotqa.evaluate,
        {"hotpotqa_predictions.json": _predictions(hotpotqa.write)},
    ),
    "2wiki": Submission(
        lambda example, output: two_wiki.Prediction(*_hotpotqa(example, output)),  # no program makes triples
        two_wiki.Prediction,
        lambda it: two_wiki.Gold(it.answers, _supporting_facts(it), [[triple] for triple in it.evidences]),
        _two_wiki_numbers,
        {"2wiki_predictions.json": _predictions(two_wiki.write)},
    ),
    "musique": Submission(
        _musique,
        musique.Prediction,
        _musique_gold,
        musique.evaluate,
        {"musique_predictions.jsonl": _predictions(musique.write)},
    ),
    "multihoprag": Submission(
        _multihop_rag,
        multihop_rag.Prediction,
        lambda example: multihop_rag.Gold(example.answers[0], [fact.text for fact in example.gold]),
        multihop_rag.evaluate,
        {
            "multihoprag_answers.json": multihop_rag.write_answers,
            "multihoprag_retrieval.json": multihop_rag.write_retrieval,
        },
    ),
    "squad": Submission(
        _squad, squad.Prediction, _answers, squad.evaluate, {"squad_predictions.json": _predictions(squad.write)}
    ),
    "triviaqa": Submission(
        _squad,
        squad.Prediction,
        _answers,
        triviaqa.evaluate,
        {"triviaqa_predictions.json": _predictions(triviaqa.write)},
    ),
    "nq": Submission(
        lambda example, output: nq_open.Prediction(example.question, output.answer if output else None),
        nq_open.Prediction,
        _answers,
        nq_open.evaluate,
        {"nq_predictions.jsonl": _predictions(nq_open.write)},
    ),
    "hover": Submission(
        _hover,
        hover.Prediction,
        lambda example: hover.Gold(bool(hover.verdict(example.answers[0])), _supporting_facts(example)),
        hover.evaluate,
        {},  # no format is published
    ),
    "bamboogle": Submission(_squad, squad.Prediction, _answers, squad.evaluate, {}),
    "popqa": Submission(_squad, popqa.Prediction, _answers, popqa.evaluate, {}),
}
"""By the names of `polyhop.data.benchmarks.BENCHMARKS`; your own questions have no official evaluator,
and FRAMES and BrowseComp-Plus have a language model as judge."""
