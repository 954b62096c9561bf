"""A cross-validated tuning run that can be resumed.

DIR/settings.json    the settings
DIR/trials.jsonl     one line per measurement, which a resumed run does not repeat
DIR/tuning.json      the result, written last
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from ....data.chain.weights import ChainWeights
from ....data.errors import PolyhopError
from ....eval.folder import LockedFolder, write_json
from .search import PENALTY, f1, objective, outcomes, penalty, search, sweep, tuned_names
from .workers import ALL_GOLD, RECALL, QuestionSet, Scores, Workers

SETTINGS, TRIALS, RESULT = "settings.json", "trials.jsonl", "tuning.json"
F1 = "evidence_f1"
_KEEPABLE = ("start", "centre", "best")  # outcomes that do not rest on a single trial; of equal ones the first


@dataclass(frozen=True)
class Settings:
    """The settings of a run. A run can be resumed with more trials; the number of workers does not change the result.

    Raises:
        PolyhopError: two sets have the same name, every set or every weight is 0, or the reach is too small.
    """

    sets: tuple[QuestionSet, ...]
    start: ChainWeights
    folds: int = 2
    seed: int = 0
    limit: int | None = None
    reach: float = 2.5  # the factor by which a weight may leave its place

    def __post_init__(self) -> None:
        if len(self.shares) < len(self.sets):
            raise PolyhopError("two of the sets have the same name: a set is named after its file")
        if not any(self.shares.values()):
            raise PolyhopError("every set has weight 0: there is nothing to tune on")
        if self.reach <= 1:
            raise PolyhopError(f"the reach must be greater than 1, got {self.reach}")
        if not tuned_names(self.start):
            raise PolyhopError("every weight is 0: there is nothing to tune")

    @property
    def shares(self) -> dict[str, float]:
        return {each.name: each.weight for each in self.sets}

    def describe(self) -> dict[str, Any]:
        """For the record; files and indexes by their hashes."""
        from ....data.lucene.layout import IndexManifest

        sets = {
            each.name: {
                "dataset": each.dataset,
                "sha256": _sha256(each.questions) if each.questions else None,
                "index": IndexManifest.read(each.index).corpus_hash,
                "weight": each.weight,
            }
            for each in self.sets
        }
        return {
            "polyhop": version("polyhop"),
            "folds": self.folds,
            "seed": self.seed,
            "limit": self.limit,
            "reach": self.reach,
            "penalty": PENALTY,
            "start": asdict(self.start),
            "sets": sets,
        }


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise PolyhopError(f"cannot read {file}: {error.strerror}") from error


class Journal(LockedFolder):
    """The measurements of a run, so that none is repeated; use it in a ``with`` block.

    Raises:
        RunError: the folder contains a run with other settings or other files, or is in use.
    """

    manifest_name = SETTINGS

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(folder, settings, TRIALS)

    def _take_up(self) -> None:
        self._file.seek(0)
        lines = map(json.loads, self._file)
        self._known: dict[str, Scores] = {_key(line["weights"], line["folds"]): line["scores"] for line in lines}

    def get(self, weights: ChainWeights, folds: Collection[int]) -> Scores | None:
        return self._known.get(_key(asdict(weights), folds))

    def add(self, weights: ChainWeights, folds: Collection[int], scores: Scores) -> Scores:
        self._known[_key(asdict(weights), folds)] = scores
        line = {"folds": sorted(folds), "scores": scores, "weights": asdict(weights)}
        self._file.write(json.dumps(line).encode() + b"\n")
        return scores


def _key(weights: Mapping[str, float], folds: Iterable[int]) -> str:
    return json.dumps([dict(weights), sorted(folds)], sort_keys=True)


def tune(
    settings: Settings,
    out: Path,
    trials: int = 200,
    jobs: int = 1,
    on_trial: Callable[[str, float], None] = lambda part, value: None,
) -> dict[str, Any]:
    """Tune, cross-validate, and write and return the record. An interrupted run resumes.

    Args:
        trials: Per search; there is one search for each fold and one for all questions.
        on_trial: Called with the part ("fold 1", "all") and the objective of each trial.

    Raises:
        PolyhopError: see `Settings`, `Workers` and `Journal`; or the retriever has changed since the run started.
    """
    started = monotonic()
    described = settings.describe()
    with (
        Journal(out, described) as journal,
        Workers(settings.sets, jobs, settings.folds, settings.limit, settings.seed) as workers,
    ):
        run = _Run(settings, trials, journal, workers, on_trial)
        run.check(out)
        everywhere = frozenset(range(settings.folds))
        folds = [run.validate(fold, everywhere - {fold}) for fold in sorted(everywhere)]
        validated = {name: _pooled([fold[name]["scores"] for fold in folds]) for name in folds[0]}
        objectives = {name: objective(scores, settings.shares) for name, scores in validated.items()}
        kept = max(_KEEPABLE, key=lambda name: objectives[name])
        found = run.tuned("all", everywhere, settings.seed)[kept]
        record = {
            "settings": described | {"trials": trials, "jobs": jobs},
            "files": {each.name: each.questions.name if each.questions else None for each in settings.sets},
            "questions": workers.report,
            "cross_validation": {"objective": objectives, "scores": validated, "folds": folds},
            "kept": kept,
            "weights": asdict(found),
            "scores": {"before": run.scores(settings.start, everywhere), "after": run.scores(found, everywhere)},
            "seconds": round(monotonic() - started, 1),
        }
        write_json(out / RESULT, record)
    return record


class _Run:
    """The parts of `tune`."""

    def __init__(
        self,
        settings: Settings,
        trials: int,
        journal: Journal,
        workers: Workers,
        on_trial: Callable[[str, float], None],
    ) -> None:
        self._settings, self._trials, self._journal = settings, trials, journal
        self._workers, self._on_trial = workers, on_trial
        self._counting = {name for name, share in settings.shares.items() if share}

    def check(self, out: Path) -> None:
        """
        Raises:
            PolyhopError: the start has other scores than recorded.
        """
        start, everywhere = self._settings.start, range(self._settings.folds)
        before, now = self._journal.get(start, everywhere), self._workers.recalls(start, everywhere, self._counting)
        if before is None:
            self._journal.add(start, everywhere, now)
        elif before != now:
            raise PolyhopError(f"the retriever has changed since {out} was started: choose another --out")

    def tuned(self, part: str, folds: Collection[int], seed: int) -> dict[str, ChainWeights]:
        """The outcomes of a search on the questions of some folds, each with its own threshold."""
        start, shares = self._settings.start, self._settings.shares

        def score(weights: ChainWeights) -> float:
            if (scores := self._journal.get(weights, folds)) is None:
                scores = self._journal.add(weights, folds, self._workers.recalls(weights, folds, self._counting))
            value = objective(scores, shares) - penalty(weights, start, self._settings.reach)
            self._on_trial(part, value)
            return value

        trials = search(score, start, self._settings.reach, self._trials, seed)
        return {
            name: replace(weights, enough=sweep(self._workers.chains(weights, folds), shares))
            for name, weights in outcomes(trials).items()
        }

    def validate(self, fold: int, others: Collection[int]) -> dict[str, dict[str, Any]]:
        """The start and the outcomes of a search on the other folds, measured on one fold."""
        found = {"before": self._settings.start} | self.tuned(
            f"fold {fold + 1}", others, self._settings.seed + fold + 1
        )
        return {
            name: {"weights": asdict(weights), "scores": self.scores(weights, {fold})}
            for name, weights in found.items()
        }

    def scores(self, weights: ChainWeights, folds: Collection[int]) -> Scores:
        """All scores, for the record."""
        recalls = self._workers.recalls(weights, folds, self._settings.shares)
        chains = f1(self._workers.chains(weights, folds), weights.enough)
        return {name: recalls[name] | {F1: chains[name]} for name in self._settings.shares if name in recalls}


def _pooled(parts: Sequence[Scores]) -> Scores:
    """The means over the questions of several folds together."""
    pooled: Scores = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        each = [part[name] for part in parts if name in part]
        count = sum(part["questions"] for part in each)
        means = {
            metric: math.fsum(part[metric] * part["questions"] for part in each) / count
            for metric in (RECALL, ALL_GOLD, F1)
        }
        pooled[name] = {"questions": count} | means
    return pooled
