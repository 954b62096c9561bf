"""TREC run and qrels files, and the rank metrics of whole runs through ir-measures.

Fields are separated by white space, so white space in an id is written as ``%20`` and the like, and ``%`` as ``%25``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from .official.files import replacing

MEASURES = ("R@2", "R@5", "R@10", "R@20", "RR", "nDCG@10")
"""What `measure` computes unless asked for others, as ir-measures names them."""


def write_run(path: Path, rankings: Iterable[tuple[str, Sequence[str]]], tag: str) -> None:
    """Write ``question Q0 passage rank score tag`` lines from (question id, passage ids best first).

    trec_eval looks at neither the order of the lines nor the rank and breaks ties by passage id: the score counts down
    to 1, so that every tool reads the ranking that was meant. A repeated passage counts where it stands first.

    Raises:
        ValueError: an id or the tag is empty.
    """
    with replacing(path) as file:
        tag = _safe(tag)
        for question, ranking in rankings:
            passages = dict.fromkeys(ranking)
            for rank, passage in enumerate(passages, 1):
                file.write(f"{_safe(question)} Q0 {_safe(passage)} {rank} {len(passages) - rank + 1} {tag}\n")


def read_run(path: Path) -> dict[str, list[str]]:
    """Question id -> passage ids, best score first.

    Raises:
        ValueError: a line does not have six fields.
    """
    scored: dict[str, list[tuple[float, str]]] = {}
    for question, _, passage, _, score, _ in _rows(path, 6):
        scored.setdefault(unquote(question), []).append((float(score), unquote(passage)))
    return {question: [id for _, id in sorted(found, key=lambda hit: -hit[0])] for question, found in scored.items()}


def write_qrels(path: Path, gold: Iterable[tuple[str, Collection[str]]]) -> None:
    """Write ``question 0 passage 1`` lines from (question id, ids of its gold passages).

    Raises:
        ValueError: an id is empty.
    """
    with replacing(path) as file:
        for question, passages in gold:
            file.writelines(f"{_safe(question)} 0 {_safe(passage)} 1\n" for passage in dict.fromkeys(passages))


def read_qrels(path: Path) -> dict[str, set[str]]:
    """Question id -> ids of its gold passages; lines that judge a passage as not relevant are passed over.

    Raises:
        ValueError: a line does not have four fields.
    """
    gold: dict[str, set[str]] = {}
    for question, _, passage, relevance in _rows(path, 4):
        if int(relevance) > 0:
            gold.setdefault(unquote(question), set()).add(unquote(passage))
    return gold


def measure(
    rankings: Mapping[str, Sequence[str]], gold: Mapping[str, Collection[str]], measures: Sequence[str] = MEASURES
) -> dict[str, float]:
    """The means of rank metrics over all questions with gold passages; a question without ranking scores 0.

    Args:
        rankings: Question id -> passage ids, best first.
        gold: Question id -> ids of its gold passages.
        measures: What ir-measures knows: "AP", "P@5", "nDCG@20", ...

    Raises:
        ValueError: no question has gold passages.
    """
    import ir_measures

    qrels = {question: dict.fromkeys(passages, 1) for question, passages in gold.items() if passages}
    if not qrels:
        raise ValueError("no question has gold passages: there is nothing to measure")
    run = {
        question: {id: float(-rank) for rank, id in enumerate(dict.fromkeys(rankings.get(question, ())))}
        for question in qrels
    }
    wanted = {name: ir_measures.parse_measure(name) for name in measures}
    means = ir_measures.calc_aggregate(list(wanted.values()), qrels, run)
    return {name: float(means[parsed]) for name, parsed in wanted.items()}


def _safe(id: str) -> str:
    if not id:
        raise ValueError("an empty id cannot be written to a TREC file")
    return re.sub(r"[\s%]", lambda match: quote(match.group()), id)


def _rows(path: Path, fields: int) -> Iterator[list[str]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            row = line.split()
            if row and len(row) != fields:
                raise ValueError(f"{path}, line {number} has {len(row)} fields instead of {fields}")
            if row:
                yield row
