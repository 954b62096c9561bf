"""From the records of a run to ``summary.json``, the TREC files and the official prediction files.

Everything is computed in the order of the questions: the numbers do not depend on interruptions or threads.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dspy
import numpy as np
import numpy.typing as npt

from ..data.errors import PolyhopError
from ..engines.costs import sum_costs
from .folder import DELETE, SCHEMA, SUMMARY, RunError, RunManifest, RunRecord, read_records, replacing, write_json
from .gold import asked_hash, gold_of
from .metrics import COSTS, METRICS
from .official import Submission
from .official.scores import Prediction
from .statistics import Floats, intervals

_LISTED = 20  # kinds of failure
_TELLING = {"answer": "answer_em", "evidence": "evidence_f1", "ranking": "passage_mrr"}


def finish(
    path: Path, manifest: RunManifest, questions: Iterable[dspy.Example], submission: Submission | None
) -> dict[str, Any]:
    """Write everything that is derived from the records; the summary last, since it marks the run as finished.

    Raises:
        RunError: a record is of another question.
    """
    official, pairs = None, list[tuple[Prediction, tuple[Any, ...]]]()
    with replacing(path / "run.trec") as ranked, replacing(path / "qrels.trec") as gold:
        for example, record in zip(questions, read_records(path), strict=True):
            asked = str(example.get("id") or record.n), example.question, gold_of(example).answers, asked_hash(example)
            if (record.id, record.question, record.gold_answers, record.asked) != asked:
                raise RunError(
                    f"{path}: the record of question {record.n} is not of {example.question[:80]!r}. {DELETE}"
                )
            ranked.writelines(run_lines(record.id, record.counted(record.ranking)))
            gold.writelines(f"{_safe(record.id)} 0 {_safe(id)} 1\n" for id in dict.fromkeys(record.gold))
            if submission is not None:
                pairs.append((record.official or {}, submission.gold(example)))
    if submission is not None:
        submission.write(path, pairs)
        try:
            official = submission.evaluate(pairs)
        except ValueError as error:  # an incomplete MuSiQue-Full pair, for example, which the official script rejects
            official = {"none": str(error)}
    summary = summarize(read_records(path), manifest.questions.skipped) | {"official": official}
    write_json(path / SUMMARY, summary)
    return summary


def summarize(records: Iterable[RunRecord], skipped: int = 0) -> dict[str, Any]:
    """The numbers of a run.

    ``metrics`` has the means over all questions with such a value, a failure as 0; ``scored`` the number of these
    questions; ``intervals`` their 95% bootstrap intervals; ``by_hops`` and ``by_kind`` have the same for groups of
    questions. ``not_returned`` are the parts of a prediction that the program leaves out although there is gold for
    them, so that they are not scored. ``by_agent`` has the total costs of each agent, ``incidents`` the number of
    retried and shortened requests by cause. Only ``timing``, ``incidents`` and the metrics that begin with ``seconds``
    differ when a run is repeated.
    """
    values: dict[str, array[float]] = defaultdict(lambda: array("d"))
    failed, hops, kinds = list[bool](), list[str](), list[str]()
    failures, incidents = Counter[tuple[str, str]](), Counter[str]()
    agents = defaultdict[str, list[Mapping[str, float]]](list)
    not_found, gold = 0, set[str]()
    for row, record in enumerate(records):
        for name, value in (record.scores | record.costs).items():
            values[name].extend([nan] * (row - len(values[name])))
            values[name].append(value)
        failed.append(record.error is not None)
        if record.error:
            failures[record.error.cause, record.error.message] += 1
        incidents.update(record.incidents)
        for agent, costs in record.costs_by_agent.items():
            agents[agent] = [sum_costs([*agents[agent], costs])]
        not_found += record.gold_not_found
        gold |= ({"answer"} if record.gold_answers else set()) | ({"evidence", "ranking"} if record.gold else set())
        hops.append("unknown" if record.hops is None else str(record.hops))
        kinds.append(record.kind or "unknown")
    if not failed:
        return {"metrics": {}, "intervals": {}, "counts": {"questions": 0, "answered": 0, "failed": 0}}
    order = dict.fromkeys(name for name in (*METRICS, *COSTS, *values) if name in values)  # the user's own come last
    columns = {name: np.array([*values[name], *[nan] * (len(failed) - len(values[name]))]) for name in order}
    seconds = columns.pop("seconds", np.array([]))  # predictions that were made elsewhere have none
    columns = _comparable(columns, np.array(failed))

    def by(groups: Sequence[str]) -> dict[str, Any]:
        names = sorted(set(groups))
        rows = {name: np.array(groups) == name for name in names if names != ["unknown"]}
        return {name: _numbers(columns, np.array(failed), chosen) for name, chosen in rows.items()}

    total = _numbers(columns, np.array(failed), np.ones(len(failed), bool))
    total["counts"] |= {"skipped": skipped, "gold_not_found": not_found}
    if seconds.size:
        total["metrics"] |= {f"seconds_p{rank}": float(np.percentile(seconds, rank)) for rank in (50, 95)}
    return {
        "schema": SCHEMA,
        **total,
        "not_returned": [part for part, name in _TELLING.items() if name not in columns and part in gold],
        "failures": [
            {"cause": cause, "message": message, "count": number}
            for (cause, message), number in sorted(failures.items(), key=lambda item: (-item[1], item[0]))[:_LISTED]
        ],
        "incidents": dict(sorted(incidents.items())),
        "by_agent": {agent: dict(costs) for agent, (costs,) in sorted(agents.items())},
        "by_hops": by(hops),
        "by_kind": by(kinds),
        "totals": {name: float(np.nansum(columns[name])) for name in COSTS if name in columns},
        "timing": {"seconds_mean": float(seconds.sum() / len(failed)), "seconds_total": float(seconds.sum())},
    }


def _comparable(columns: Mapping[str, Floats], failed: npt.NDArray[np.bool_]) -> dict[str, Floats]:
    """Those that have a mean. What no prediction has is not scored: a failure alone does not show that it should."""
    kept = {name: column for name, column in columns.items() if failed.all() or not np.isnan(column[~failed]).all()}
    if "cost_usd" in kept and np.isnan(kept["cost_usd"]).any():  # a sum of some prices is not the cost
        del kept["cost_usd"]
    if {"joint_f1", "fact_f1"} <= kept.keys():
        scored = ~np.isnan(kept["joint_f1"])
        if np.isnan(kept["fact_f1"][scored]).any():  # sentences here, passages there: no mean
            del kept["joint_f1"]
    return kept


def _numbers(
    columns: Mapping[str, Floats], failed: npt.NDArray[np.bool_], rows: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    """The numbers of some questions."""
    parts = {name: column[rows] for name, column in columns.items() if not np.isnan(column[rows]).all()}
    means, lost = intervals(parts, resamples=2_000), int(failed[rows].sum())
    return {
        "counts": {"questions": int(rows.sum()), "answered": int(rows.sum()) - lost, "failed": lost},
        "metrics": {name: value.mean for name, value in means.items()},
        "scored": {name: int((~np.isnan(parts[name])).sum()) for name in means},
        "intervals": {name: [value.low, value.high] for name, value in means.items()},
    }


def run_lines(question: str, ranking: Sequence[str]) -> Iterator[str]:
    """``question Q0 passage rank score polyhop`` lines.

    trec_eval ignores the order of the lines and the rank, and breaks ties by passage id; so the score counts down to 1.
    A repeated passage keeps its first rank.
    """
    passages = dict.fromkeys(ranking)
    for rank, passage in enumerate(passages, 1):
        yield f"{_safe(question)} Q0 {_safe(passage)} {rank} {len(passages) - rank + 1} polyhop\n"


def _safe(id: str) -> str:
    """An id of a TREC file: percent-encoded are ``%``, white space, which separates fields, and lone surrogates, which
    UTF-8 cannot encode."""
    if not id:
        raise PolyhopError("A question or a passage of the run has an empty id, which TREC files cannot have.")
    return re.sub(r"[\s%\ud800-\udfff]", lambda match: quote(match.group(), errors="surrogatepass"), id)
