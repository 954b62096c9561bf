"""From a run to the official evaluators: prediction files and official numbers, one `Submission` per benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from ...programs.prediction import UNKNOWN
from ..gold import ABSTENTIONS, ProgramOutput
from . import Pairs, hotpotqa, mean_of, multihop_rag, musique, squad

Write = Callable[[Path, Pairs], None]


@dataclass(frozen=True)
class Submission:
    """The official evaluation of one benchmark.

    Attributes:
        predict: Makes the official prediction of a question; an output of None is a failure.
        prediction: The type of the prediction.
        gold: Makes the official gold of a question.
        evaluate: Computes the official numbers.
        files: The official prediction files, each with the function that writes it from pairs.
    """

    predict: Callable[[dspy.Example, ProgramOutput | None], Any]
    prediction: type[Any]
    gold: Callable[[dspy.Example], Any]
    evaluate: Callable[[Pairs], Mapping[str, Any]]
    files: Mapping[str, Write]


def _predictions(write: Callable[[Path, Iterable[Any]], None]) -> Write:
    return lambda path, pairs: write(path, (prediction for prediction, _ in pairs))


# --- HotpotQA, 2WikiMultihopQA and HoVer -----------------------------------------------------------------------------


def _hotpotqa(example: dspy.Example, output: ProgramOutput | None) -> hotpotqa.Prediction:
    if output is None:
        return hotpotqa.Prediction(example.official_id)
    return hotpotqa.Prediction(example.official_id, output.answer, hotpotqa.supporting_facts(output.evidence))


def _hotpotqa_gold(example: dspy.Example) -> hotpotqa.Gold:
    facts = [(fact.title, fact.sentence) for fact in example.gold if fact.sentence is not None]
    return hotpotqa.Gold(example.answers[:1], facts)


def _two_wiki_gold(example: dspy.Example) -> hotpotqa.Gold:
    triples = [[triple] for triple in example.evidences]
    return _hotpotqa_gold(example)._replace(answers=example.answers, evidences=triples)


def _two_wiki_numbers(pairs: Pairs) -> dict[str, Any]:
    """All numbers; for the open set, where most questions have no gold sentences, those of the answer. Those of
    triples, and of everything jointly, do not apply, since no program makes triples: the script gives 0."""
    complete = True

    def checked() -> Pairs:
        nonlocal complete
        for prediction, gold in pairs:
            complete = complete and bool(gold.supporting_facts)
            yield prediction, gold

    numbers: dict[str, Any] = mean_of(hotpotqa.score_two_wiki, 100, digits=2)(checked())
    if not complete:
        return {name: value for name, value in numbers.items() if "_" not in name}
    return {k: "not applicable" if k.startswith(("evi_", "joint_")) else value for k, value in numbers.items()}


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


def _nq_open(example: dspy.Example, output: ProgramOutput | None) -> squad.Prediction:
    return squad.Prediction(example.question, output.answer if output else None)


def _answers(example: dspy.Example) -> tuple[str, ...]:
    return tuple(example.answers)


_of_squad = partial(Submission, _squad, squad.Prediction, _answers)
_of_hotpotqa = partial(Submission, _hotpotqa, hotpotqa.Prediction)

SUBMISSIONS = {
    "hotpotqa": _of_hotpotqa(
        _hotpotqa_gold, mean_of(hotpotqa.score), {"hotpotqa_predictions.json": _predictions(hotpotqa.write)}
    ),
    "2wiki": _of_hotpotqa(
        _two_wiki_gold,
        _two_wiki_numbers,
        {"2wiki_predictions.json": _predictions(partial(hotpotqa.write, names=("answer", "sp", "evidence")))},
    ),
    "hover": _of_hotpotqa(_hotpotqa_gold, mean_of(hotpotqa.score_hover), {}),  # no format is published
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
        mean_of(multihop_rag.score),
        {
            "multihoprag_answers.json": multihop_rag.write_answers,
            "multihoprag_retrieval.json": multihop_rag.write_retrieval,
        },
    ),
    "squad": _of_squad(mean_of(squad.score, 100), {"squad_predictions.json": _predictions(squad.write)}),
    "triviaqa": _of_squad(mean_of(squad.score_triviaqa, 100), {"triviaqa_predictions.json": _predictions(squad.write)}),
    "nq": Submission(
        _nq_open,
        squad.Prediction,
        _answers,
        mean_of(squad.score_nq_open),
        {"nq_predictions.jsonl": _predictions(squad.write_nq_open)},
    ),
    "bamboogle": _of_squad(mean_of(squad.score, 100), {}),
    "popqa": _of_squad(mean_of(squad.score_popqa), {}),
}
"""By the names of `polyhop.data.benchmarks.BENCHMARKS`; your own questions have no official evaluator,
and FRAMES and BrowseComp-Plus have a language model as judge."""
