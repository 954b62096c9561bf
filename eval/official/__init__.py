"""From a run to the benchmarks' official numbers and prediction files: one `Submission` per benchmark.

Numbers have the units and the rounding of the authors' scripts (`scores` has the formulas). A missing prediction counts
in every mean, as in the scripts. Files are ASCII, since the scripts open them in the platform's encoding.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from ...data.passages import Evidence
from ...programs.prediction import UNKNOWN
from ..folder import replacing
from ..gold import ABSTENTIONS, ProgramOutput
from ..scoring import sentences_of
from . import scores
from .scores import DEPTH, Prediction, SupportingFact

Pairs = Sequence[tuple[Prediction, tuple[Any, ...]]]
"""(prediction, gold) of all questions; the gold is the other arguments of the score."""


@dataclass(frozen=True)
class Submission:
    """The official evaluation of one benchmark.

    Attributes:
        predict: Makes the official prediction of a question; an output of None is a failure.
        gold: Makes the official gold of a question.
        evaluate: Computes the official numbers.
        files: The official prediction files: an object, or a list of lines in a file ``.jsonl``.
    """

    predict: Callable[[dspy.Example, ProgramOutput | None], dict[str, Any]]
    gold: Callable[[dspy.Example], tuple[Any, ...]]
    evaluate: Callable[[Pairs], dict[str, Any]]
    files: Mapping[str, Callable[[Pairs], Any]] = field(default_factory=dict)

    def write(self, folder: Path, pairs: Pairs) -> None:
        for name, content in self.files.items():
            with replacing(folder / name) as file:
                for line in content(pairs) if name.endswith(".jsonl") else [content(pairs)]:
                    file.write(json.dumps(line) + "\n")


def means(rows: Iterable[Mapping[str, float]], unit: int = 1, digits: int | None = None) -> dict[str, float]:
    """The mean of every value over the rows that have it, in a unit (100 for percent), perhaps rounded.

    Raises:
        ValueError: there are no rows.
    """
    totals, counts = dict[str, float](), Counter[str]()
    for row in rows:
        counts.update(row.keys())
        for name, value in row.items():
            totals[name] = totals.get(name, 0.0) + value  # one after the other, as the scripts add
    if not totals:
        raise ValueError("there are no questions to evaluate")
    result = {name: unit * (total / counts[name]) for name, total in totals.items()}
    return result if digits is None else {name: round(value, digits) for name, value in result.items()}


def mean_of(
    score: Callable[..., Mapping[str, float]], unit: int = 1, digits: int | None = None
) -> Callable[[Pairs], dict[str, float]]:
    """The evaluation of all questions by the `means` of a score."""
    return lambda pairs: means((score(prediction, *gold) for prediction, gold in pairs), unit, digits)


def _hotpotqa(example: dspy.Example, output: ProgramOutput | None) -> dict[str, Any]:
    answer, facts = (output.answer, supporting_facts(output.evidence)) if output else (None, None)
    return {"id": example.official_id, "answer": answer, "sp": facts, "evidence": None}


def supporting_facts(evidence: Iterable[Evidence]) -> list[SupportingFact]:
    """Evidence as (title, number of the sentence in its document); a whole passage counts as all of its sentences."""
    facts = ((passage.title, passage.fact_of(sentence).sentence) for passage, sentence in sentences_of(evidence))
    return list(dict.fromkeys((title, number) for title, number in facts if number is not None))


def _gold_facts(example: dspy.Example) -> list[SupportingFact]:
    return [(fact.title, fact.sentence) for fact in example.gold if fact.sentence is not None]


def _two_wiki(pairs: Pairs) -> dict[str, Any]:
    """All numbers; for the open set, where most questions have no gold sentences, those of the answer. Those of
    triples, and of everything jointly, do not apply, since no program makes triples: the script gives 0."""
    numbers: dict[str, Any] = mean_of(scores.two_wiki, 100, digits=2)(pairs)
    of_answers = [name for name in numbers if not name.startswith("sp_")]
    if not all(facts for _, (_, facts) in pairs):
        return {name: numbers[name] for name in of_answers}
    return numbers | {task + name: "not applicable" for task in ("evi_", "joint_") for name in of_answers}


def sections(pairs: Pairs, names: Iterable[str] = ("answer", "sp")) -> dict[str, dict[str, Any]]:
    """``{"answer": {id: answer}, "sp": {id: [[title, number], ...]}}``; missing parts are left out. 2WikiMultihopQA's
    script needs a third section, ``"evidence"``, even if it is empty."""
    return {name: {made["id"]: made[name] for made, _ in pairs if made.get(name) is not None} for name in names}


def _musique(example: dspy.Example, output: ProgramOutput | None) -> dict[str, Any]:
    """Support is the paragraphs' ``idx``; other passages get unused numbers."""
    idx, answer = dict(example.paragraph_idx), output.answer if output else ""
    for item in output.evidence if output else ():
        idx.setdefault(item.passage.document, max(idx.values(), default=-1) + 1)
    support = [idx[id] for id in dict.fromkeys(item.passage.document for item in output.evidence)] if output else []
    return {
        "id": example.official_id,
        "predicted_answer": answer,
        "predicted_support_idxs": support,
        "predicted_answerable": answer != UNKNOWN,
    }


def musique_numbers(pairs: Pairs) -> dict[str, Any]:
    """``answer_f1``, ``answer_em``, ``support_f1``, rounded to three decimals as in the script.

    In MuSiQue-Full every id occurs twice, once answerable and once not. Answer and support are scored on the answerable
    ones; two ``group_`` metrics give an answerable question its F1 only if both versions are classified correctly. The
    script has no missing predictions, only empty ones.

    Raises:
        ValueError: there are no answerable questions, or there are unanswerable ones and an id does not occur twice.
    """
    seen, sufficient, answerable = dict[str, int](), dict[str, bool](), dict[str, dict[str, float]]()
    rows = []
    for prediction, (answers, support, has_answer) in pairs:
        id = prediction["id"]
        seen[id] = seen.get(id, 0) + 1
        sufficient.setdefault(id, True)
        sufficient[id] &= prediction["predicted_answerable"] == has_answer
        if has_answer:
            answerable[id] = scores.musique(prediction, answers, support)
            rows.append(answerable[id])
    total = means(rows)
    result = {name: total[name] for name in ("answer_f1", "answer_em", "support_f1")}
    if len(rows) < len(pairs):
        if odd := [id for id, count in seen.items() if count != 2]:
            raise ValueError(f"with unanswerable questions every id must occur twice; {odd[0]!r} does not")
        groups = ((answerable.get(id, {}), sufficient[id]) for id in seen)
        result |= means(
            {
                "group_answer_sufficiency_f1": row.get("answer_f1", 0.0) * both,
                "group_support_sufficiency_f1": row.get("support_f1", 0.0) * both,
            }
            for row, both in groups
        )
    return {name: round(value, 3) for name, value in result.items()}


def _multihop_rag(example: dspy.Example, output: ProgramOutput | None) -> dict[str, Any]:
    answer, texts = None, list[str]()
    if output is not None:
        answer = ABSTENTIONS[-1] if output.answer == UNKNOWN else output.answer
        texts = [f"{passage.title}\n{passage.text}" for passage in output.ranking[:DEPTH]]
    return {"query": example.question, "question_type": example.kind, "answer": answer, "retrieved": texts}


def _retrieval_file(pairs: Pairs) -> list[dict[str, Any]]:
    """What ``retrieval_evaluate.py`` reads."""
    return [
        {
            "query": prediction["query"],
            "answer": answer,
            "question_type": prediction["question_type"],
            "retrieval_list": [{"text": text} for text in prediction["retrieved"]],
            "gold_list": [{"fact": fact} for fact in facts],
        }
        for prediction, (answer, facts) in pairs
    ]


def _answers_file(pairs: Pairs) -> list[dict[str, Any]]:
    """What ``qa_evaluate.py`` reads. Missing answers are empty strings."""
    return [
        {
            "query": prediction["query"],
            "model_answer": prediction["answer"] or "",
            "gold_answer": answer,
            "question_type": prediction["question_type"],
        }
        for prediction, (answer, _) in pairs
    ]


def _answer(
    example: dspy.Example, output: ProgramOutput | None, id: Callable[[dspy.Example], str] = lambda e: e.official_id
) -> dict[str, Any]:
    return {"id": id(example), "answer": output.answer if output else None}


def by_id(pairs: Pairs) -> dict[str, Any]:
    """``{id: answer}``; missing ones are left out."""
    return sections(pairs, ("answer",))["answer"]


def nq_lines(pairs: Pairs) -> list[dict[str, Any]]:
    return [{"question": made["id"], "prediction": made["answer"]} for made, _ in pairs if made["answer"] is not None]


_of_hotpotqa = partial(Submission, _hotpotqa, lambda example: (example.answers[:1], _gold_facts(example)))
_of_squad = partial(Submission, _answer, lambda example: (tuple(example.answers),))

SUBMISSIONS = {
    "hotpotqa": _of_hotpotqa(mean_of(scores.hotpotqa), {"hotpotqa_predictions.json": sections}),
    "2wiki": Submission(
        _hotpotqa,
        lambda example: (example.answers, _gold_facts(example)),
        _two_wiki,
        {"2wiki_predictions.json": partial(sections, names=("answer", "sp", "evidence"))},
    ),
    "hover": _of_hotpotqa(mean_of(scores.hover)),  # no format is published
    "musique": Submission(
        _musique,
        lambda e: (e.answers, [e.paragraph_idx[fact.passage_id] for fact in e.gold], e.answerable),
        musique_numbers,
        {"musique_predictions.jsonl": lambda pairs: [prediction for prediction, _ in pairs]},  # in gold order
    ),
    "multihoprag": Submission(
        _multihop_rag,
        lambda example: (example.answers[0], [fact.text for fact in example.gold]),
        mean_of(scores.multihop_rag),
        {"multihoprag_answers.json": _answers_file, "multihoprag_retrieval.json": _retrieval_file},
    ),
    "squad": _of_squad(mean_of(scores.squad, 100), {"squad_predictions.json": by_id}),
    "triviaqa": _of_squad(mean_of(scores.triviaqa, 100), {"triviaqa_predictions.json": by_id}),
    "nq": Submission(
        partial(_answer, id=lambda example: example.question),
        lambda example: (tuple(example.answers),),
        mean_of(scores.nq_open),
        {"nq_predictions.jsonl": nq_lines},
    ),
    "bamboogle": _of_squad(mean_of(scores.squad, 100)),
    "popqa": _of_squad(mean_of(scores.popqa)),
}
"""By the names of `polyhop.data.benchmarks.BENCHMARKS`; your own questions have no official evaluator,
and FRAMES and BrowseComp-Plus have a language model as judge."""
