"""Tunes the weights of `ChainRetriever` on benchmark questions, as a run that is recorded and can be continued.

    python -m polyhop.optimizers.chain_weights --out runs/weights \\
        --on 2wiki:2wiki_dev.json.gz:indexes/2wiki --on musique:musique_dev.jsonl.gz:indexes/musique:0.5

CMA-ES (Hansen, arXiv 1604.00772) moves all weights at once, by factors, from the shipped ones. What it maximises is
Recall@5 + all-gold@5 / 2, less a little for every weight that leaves its place: the sets are small, and what is only
luck shows on questions kept apart. So what is reported is cross-validated: every question is scored by weights that
were tuned without it. The stop threshold follows, by a sweep over chains of up to 10 passages.

A question's graph does not depend on weights. Worker processes build each once, and a trial only chooses anew.

    DIR/settings.json    what the run is
    DIR/trials.jsonl     one line a set of weights on a set of questions: what a continued run need not measure again
    DIR/tuning.json      the result, written last
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from itertools import takewhile
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from ..data.chain.weights import ChainWeights
from ..data.errors import PolyhopError

if TYPE_CHECKING:
    from ..data.chain.graph import Graph

SETTINGS, TRIALS, RESULT = "settings.json", "trials.jsonl", "tuning.json"

_SWEPT = "enough"  # shapes no ranking: has a sweep of its own
_NEEDS_VECTORS = "similarity"  # to be tuned where the graphs have similarities; none has yet
_PENALTY = 0.002  # where all weights are at the end of their reach
_DEPTH = 5  # passages of a ranking
_RECALL, _ALL_GOLD, _F1 = f"passage_recall@{_DEPTH}", f"all_gold@{_DEPTH}", "evidence_f1"
_LONGEST = 10  # passages of a chain
_STEP = 0.02  # of the sweep
_BEST = 10  # trials that are averaged
_KEEPABLE = ("start", "centre", "best")  # outcomes that are no single lucky trial; of equals the first
_T = TypeVar("_T")


@dataclass(frozen=True)
class QuestionSet:
    """Questions, where their passages are searched, and how much they count.

    Attributes:
        dataset: The benchmark's name, or sample.
        questions: Their file; None for the sample.
        index: The folder of the index.
        weight: Of the set's scores in the objective; 0 for questions that are scored and never tuned on.
    """

    dataset: str
    questions: Path | None
    index: Path
    weight: float = 1.0

    @classmethod
    def parse(cls, text: str) -> QuestionSet:
        """
        Raises:
            ValueError: it is not DATASET:QUESTIONS:INDEX or DATASET:QUESTIONS:INDEX:WEIGHT.
        """
        dataset, questions, index, weight, *more = *text.split(":"), *[""] * (3 - text.count(":"))
        if more or not dataset or not index or bool(questions) == (dataset == "sample"):
            raise ValueError(f"{text!r} is not DATASET:QUESTIONS:INDEX[:WEIGHT] (sample::INDEX for the sample)")
        value = float(weight or 1)
        if not 0 <= value < math.inf:
            raise ValueError(f"a weight must be 0 or more, got {weight} in {text!r}")
        return cls(dataset, Path(questions) if questions else None, Path(index), value)

    @property
    def name(self) -> str:
        """The file's name without its endings."""
        return self.questions.name.partition(".")[0] if self.questions else self.dataset


class Chain(NamedTuple):
    """A question's longest chain: the gain of each passage and whether it is gold, and the number of gold passages."""

    gains: tuple[float, ...]
    right: tuple[bool, ...]
    wanted: int

    def f1(self, enough: float) -> float:
        """Passage F1 of the chain that stops at the first gain below ``enough``, though not before one passage."""
        length = 1 + sum(1 for _ in takewhile(lambda gain: gain >= enough, self.gains[1:]))
        return 2 * sum(self.right[:length]) / (length + self.wanted)


Scores = dict[str, dict[str, float]]  # means by set: the number of "questions", and the metrics below
Chains = dict[str, list[Chain]]  # by set
Trial = tuple[ChainWeights, float]  # with the objective


# --- workers ---------------------------------------------------------------------------------------------------------


class Workers:
    """Processes that keep the graphs of a share of the questions each; use it in a ``with`` block.

    Args:
        sets: The questions.
        jobs: The number of processes.
        folds: The number of parts that the questions are dealt to, by their ids.
        limit: Questions of each set, a random sample; None for all.
        seed: Of sample and folds.

    Attributes:
        report: What was found of each set, for the record.

    Raises:
        PolyhopError: a file or an index cannot be read, a set's gold passages are not in its index, or a fold is empty.
    """

    def __init__(self, sets: Sequence[QuestionSet], jobs: int, folds: int, limit: int | None, seed: int) -> None:
        # Not forked: Java does not survive it. One process each: a question's graph stays where it was made.
        spawn = get_context("spawn")
        self._pools = [ProcessPoolExecutor(1, spawn) for _ in range(jobs)]
        try:
            found = self._ask(_hold, [(sets, folds, limit, seed, job, jobs) for job in range(jobs)])
            self.report = {question_set.name: _joined(question_set, found) for question_set in sets}
            if empty := set(range(folds)).difference(*(share.folds for share in found)):
                raise PolyhopError(f"{len(empty)} of {folds} folds are empty: use more questions or fewer folds")
        except BaseException:
            self.close()
            raise

    def recalls(self, weights: ChainWeights, folds: Collection[int], sets: Collection[str]) -> Scores:
        """Recall@5 and all-gold@5 on the questions of some folds and sets; sets without any are left out."""
        scored = _by_set(self._ask(_recalls, [(weights, frozenset(folds), frozenset(sets))] * len(self._pools)))
        return {
            name: {"questions": len(each)}
            # fsum: the same whatever the number of workers.
            | {metric: math.fsum(one[metric] for one in each) / len(each) for metric in (_RECALL, _ALL_GOLD)}
            for name, each in scored.items()
        }

    def chains(self, weights: ChainWeights, folds: Collection[int]) -> Chains:
        """The longest chains of the questions of some folds."""
        return _by_set(self._ask(_chains, [(weights, frozenset(folds))] * len(self._pools)))

    def _ask(self, function: Callable[..., _T], arguments: Sequence[tuple[Any, ...]]) -> list[_T]:
        try:
            pending = [pool.submit(function, *each) for pool, each in zip(self._pools, arguments, strict=True)]
            return [future.result() for future in pending]
        except BrokenProcessPool as error:
            raise PolyhopError("a worker was ended from outside: if memory ran out, use a smaller --limit") from error

    def close(self) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _by_set(answers: Iterable[list[tuple[str, _T]]]) -> dict[str, list[_T]]:
    found: dict[str, list[_T]] = {}
    for answer in answers:
        for name, value in answer:
            found.setdefault(name, []).append(value)
    return found


class _Share(NamedTuple):
    """What a worker holds: how many questions of each set, and of how many of those some gold passage is missing."""

    questions: dict[str, int]
    missing: dict[str, int]
    folds: set[int]


@dataclass(frozen=True)
class _Held:
    """A question in its worker."""

    set: str
    fold: int
    gold: frozenset[str]
    graph: Graph


_held: list[_Held] = []  # of this worker


def _hold(sets: Sequence[QuestionSet], folds: int, limit: int | None, seed: int, job: int, jobs: int) -> _Share:
    """In a worker: take over every ``jobs``-th question that has gold passages."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to every process; the first one ends the others
    from ..data.bm25 import BM25Index
    from ..data.chain import ChainRetriever
    from ..eval.gold import gold_of
    from ..eval.questions import Questions

    share = _Share({}, {}, set())
    for each in sets:
        index = BM25Index(each.index)
        retriever = ChainRetriever(index)
        source = str(each.questions) if each.questions else None
        missing = count = 0
        for number, example in enumerate(Questions(each.dataset, source, setting="open", limit=limit, seed=seed)):
            if number % jobs != job or not example.gold:
                continue
            titles = dict.fromkeys(fact.title for fact in example.gold)
            known = [passage for title in titles for passage in index.titled(title)]
            gold = frozenset(gold_of(example, known).passages)
            missing += not gold <= {passage.id for passage in known}
            count += 1
            fold = _fold(example.official_id, folds, seed)
            share.folds.add(fold)
            _held.append(_Held(each.name, fold, gold, retriever.graph(example.question)))
        share.questions[each.name], share.missing[each.name] = count, missing
    return share


def _fold(id: str, folds: int, seed: int) -> int:
    """The same on every machine, and in whatever order the questions come."""
    return int.from_bytes(hashlib.blake2b(f"fold {seed}\n{id}".encode(), digest_size=8).digest()) % folds


def _joined(question_set: QuestionSet, shares: Iterable[_Share]) -> dict[str, int]:
    questions, missing = (
        sum(counts[question_set.name] for counts in each)
        for each in zip(*((share.questions, share.missing) for share in shares), strict=True)
    )
    if not questions:
        raise PolyhopError(f"no question of {question_set.name} has gold passages: there is nothing to tune on")
    if missing == questions:
        where = f"in {question_set.index}: is it the right one?"
        raise PolyhopError(f"no question of {question_set.name} has all its gold passages {where}")
    return {"questions": questions, "gold_not_found": missing}


def _recalls(weights: ChainWeights, folds: frozenset[int], sets: frozenset[str]) -> list[tuple[str, dict[str, float]]]:
    from ..data.chain.retriever import follow
    from ..eval.retrieval import ranking_scores

    found = []
    for held in _held:
        if held.fold in folds and held.set in sets:
            ranking = [choice.candidate.id for choice in follow(held.graph, weights, _DEPTH)]
            found.append((held.set, ranking_scores(ranking, held.gold, (_DEPTH,))))
    return found


def _chains(weights: ChainWeights, folds: frozenset[int]) -> list[tuple[str, Chain]]:
    from ..data.chain.retriever import follow

    endless = replace(weights, enough=0.0)  # where a chain stops does not change what comes before: sweep afterwards
    found = []
    for held in _held:
        if held.fold in folds:
            choices = follow(held.graph, endless, _LONGEST, adaptive=True)
            right = tuple(choice.candidate.id in held.gold for choice in choices)
            found.append((held.set, Chain(tuple(choice.gain for choice in choices), right, len(held.gold))))
    return found


# --- the search ------------------------------------------------------------------------------------------------------


def tuned_names(start: ChainWeights) -> list[str]:
    """The weights that are searched: all but those that are 0 at the start, which so are left out."""
    names = (weight.name for weight in fields(start))
    return [name for name in names if name not in (_SWEPT, _NEEDS_VECTORS) and getattr(start, name)]


def objective(scores: Scores, shares: Mapping[str, float]) -> float:
    """Recall@5 + all-gold@5 / 2, as the mean over sets by weight."""
    return _mean({name: found[_RECALL] + found[_ALL_GOLD] / 2 for name, found in scores.items()}, shares)


def penalty(weights: ChainWeights, start: ChainWeights, reach: float) -> float:
    """What it costs to leave the start: the mean of squares of the weights' ways, in logarithms."""
    ways = [math.log(getattr(weights, name) / getattr(start, name), reach) for name in tuned_names(start)]
    return _PENALTY * math.fsum(way * way for way in ways) / len(ways)


def search(
    score: Callable[[ChainWeights], float], start: ChainWeights, reach: float, trials: int, seed: int
) -> list[Trial]:
    """Trials of CMA-ES around the start, which is the first. The same scores and seed give the same trials."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = tuned_names(start)
    # The study itself stays in memory: a continued run goes through the same trials, whose scores are on file. So it
    # ends as it would have without the stop, which a stored study does only if its sampler is stored, too.
    sampler = optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial(dict.fromkeys(names, 0.0))
    found: list[Trial] = []

    def run(trial: optuna.Trial) -> float:
        # Ways in logarithms, with the start in the middle: that is where the sampler begins, with steps of a third.
        weights = _moved(start, {name: reach ** trial.suggest_float(name, -1.0, 1.0) for name in names})
        found.append((weights, score(weights)))
        return found[-1][1]

    study.optimize(run, n_trials=trials)
    return found


def _moved(start: ChainWeights, factors: Mapping[str, float]) -> ChainWeights:
    values = {}
    for weight in fields(start):
        if weight.name in factors:
            value = getattr(start, weight.name) * factors[weight.name]
            values[weight.name] = min(max(value, weight.metadata["low"]), weight.metadata["high"])
    return replace(start, **values)


def outcomes(trials: Sequence[Trial]) -> dict[str, ChainWeights]:
    """What may be made of a search: ``start``, nothing; ``centre``, where its last third moved about, which is the mean
    of CMA-ES's distribution; ``best``, the mean of the best 10 trials; ``luckiest``, the best trial."""
    ranked = sorted(trials, key=itemgetter(1), reverse=True)
    chosen = {"centre": trials[-max(len(trials) // 3, 1) :], "best": ranked[:_BEST], "luckiest": ranked[:1]}
    averages = {name: _average([weights for weights, _ in each]) for name, each in chosen.items()}
    return {"start": trials[0][0]} | averages


def _average(each: Sequence[ChainWeights]) -> ChainWeights:
    """The geometric mean, to three digits."""
    return replace(
        each[0],
        **{
            name: float(f"{math.exp(math.fsum(math.log(getattr(one, name)) for one in each) / len(each)):.3g}")
            for name in tuned_names(each[0])
        },
    )


def f1(chains: Chains, enough: float) -> dict[str, float]:
    """The mean passage F1 of each set's chains."""
    return {name: math.fsum(chain.f1(enough) for chain in each) / len(each) for name, each in chains.items()}


def sweep(chains: Chains, shares: Mapping[str, float]) -> float:
    """The threshold with the best passage F1: the middle of the best five of a grid, since single ones are luck."""
    high = next(weight.metadata["high"] for weight in fields(ChainWeights) if weight.name == _SWEPT)
    grid = [round(step * _STEP, 6) for step in range(round(high / _STEP) + 1)]
    found = [_mean(f1(chains, enough), shares) for enough in grid]
    return grid[max(range(2, len(grid) - 2), key=lambda at: math.fsum(found[at - 2 : at + 3]))]


def _mean(values: Mapping[str, float], shares: Mapping[str, float]) -> float:
    return math.fsum(shares[name] * value for name, value in values.items()) / math.fsum(
        shares[name] for name in values
    )


# --- the run ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What a run is, but for the number of trials and workers: with more trials it goes on, and workers change nothing.

    Raises:
        PolyhopError: no set counts, two have the same name, or no weight can move.
    """

    sets: tuple[QuestionSet, ...]
    start: ChainWeights
    folds: int = 2
    seed: int = 0
    limit: int | None = None
    reach: float = 2.5  # the factor by which a weight may leave its place

    def __post_init__(self) -> None:
        if len(self.shares) < len(self.sets):
            raise PolyhopError("two of the sets have the same name: a set is called like its file")
        if not any(self.shares.values()):
            raise PolyhopError("every set has the weight 0: there is nothing to tune on")
        if self.reach <= 1:
            raise PolyhopError(f"the reach is a factor above 1, got {self.reach}")
        if not tuned_names(self.start):
            raise PolyhopError("every weight is 0: there is nothing to tune")

    @property
    def shares(self) -> dict[str, float]:
        return {each.name: each.weight for each in self.sets}

    def describe(self) -> dict[str, Any]:
        """For the record. Files and indexes by what is in them."""
        from ..data.layout import Manifest

        sets = {
            each.name: {
                "dataset": each.dataset,
                "sha256": _sha256(each.questions) if each.questions else None,
                "index": Manifest.read(each.index).corpus_hash,
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
            "penalty": _PENALTY,
            "start": asdict(self.start),
            "sets": sets,
        }


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise PolyhopError(f"cannot read {file}: {error.strerror}") from error


class Journal:
    """The measurements of a run, so that none is made twice; use it in a ``with`` block.

    Raises:
        PolyhopError: the folder is of a run with other settings, holds something else, or is in use.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        from filelock import FileLock, Timeout

        from ..eval.folder import differences, write_json

        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PolyhopError(f"{folder} cannot be the folder of a run: {error.strerror}") from error
        self._lock = FileLock(folder / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise PolyhopError(f"another process is working in {folder}: wait for it, or name another --out") from None
        try:
            if not (folder / SETTINGS).exists():
                if strangers := sorted(file.name for file in folder.iterdir() if file.name != ".lock"):
                    raise PolyhopError(f"{folder} holds {', '.join(strangers[:3])}: name another --out")
                write_json(folder / SETTINGS, settings)
            if different := differences(json.loads((folder / SETTINGS).read_bytes()), settings):
                raise PolyhopError(
                    f"{folder} was started with other settings (name another --out):\n  " + "\n  ".join(different)
                )
            self._file = (folder / TRIALS).open("a+b", buffering=0)
        except BaseException:
            self._lock.release()
            raise
        self._file.seek(0)
        *lines, half = self._file.read().split(b"\n")
        self._file.truncate(self._file.tell() - len(half))  # what a kill left of a line
        self._known: dict[str, Scores] = {}
        for line in map(json.loads, lines):
            self._known[_key(line["weights"], line["folds"])] = line["scores"]

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._lock.release()

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
    """Tune, cross-validate and write the record, which is returned. A run that was stopped goes on.

    Args:
        trials: Of each search; there is one for each fold and one for all questions.
        on_trial: Called with the part ("fold 1", "all") and the objective of each trial.

    Raises:
        PolyhopError: what `Settings`, `Workers` and `Journal` raise, or the retriever has changed since the run was
            started.
    """
    from ..eval.folder import write_json

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
            PolyhopError: the start has other scores than on file.
        """
        start, everywhere = self._settings.start, range(self._settings.folds)
        before, now = self._journal.get(start, everywhere), self._workers.recalls(start, everywhere, self._counting)
        if before is None:
            self._journal.add(start, everywhere, now)
        elif before != now:
            raise PolyhopError(f"the retriever has changed since {out} was started: name another --out")

    def tuned(self, part: str, folds: Collection[int], seed: int) -> dict[str, ChainWeights]:
        """What is made of a search on the questions of some folds, each with its own threshold."""
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
        """What was before, and what is made of a search on the other folds, on the questions of one."""
        found = {"before": self._settings.start} | self.tuned(
            f"fold {fold + 1}", others, self._settings.seed + fold + 1
        )
        return {
            name: {"weights": asdict(weights), "scores": self.scores(weights, {fold})}
            for name, weights in found.items()
        }

    def scores(self, weights: ChainWeights, folds: Collection[int]) -> Scores:
        """Everything, for the record."""
        recalls = self._workers.recalls(weights, folds, self._settings.shares)
        chains = f1(self._workers.chains(weights, folds), weights.enough)
        return {name: recalls[name] | {_F1: chains[name]} for name in self._settings.shares if name in recalls}


def _pooled(parts: Sequence[Scores]) -> Scores:
    """The means over the questions of several folds together."""
    pooled: Scores = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        each = [part[name] for part in parts if name in part]
        count = sum(part["questions"] for part in each)
        means = {
            metric: math.fsum(part[metric] * part["questions"] for part in each) / count
            for metric in (_RECALL, _ALL_GOLD, _F1)
        }
        pooled[name] = {"questions": count} | means
    return pooled


# --- the command -----------------------------------------------------------------------------------------------------

# As the polyhop command: plain help and tracebacks, which start faster.
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def chain_weights(
    on: Annotated[
        list[str],
        typer.Option(
            metavar="DATASET:QUESTIONS:INDEX[:WEIGHT]",
            help="Tune on these questions over this index; sample::INDEX for the sample. WEIGHT says how much the set "
            "counts (1); with 0 it is only scored. May be repeated.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of the run. If it holds this run already, it is continued.")
    ],
    trials: Annotated[int, typer.Option(min=1, help="Sets of weights tried in each search.")] = 200,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 2,
    limit: Annotated[int | None, typer.Option(min=1, help="Take N random questions of each set.")] = None,
    reach: Annotated[float, typer.Option(help="The factor by which a weight may leave its place.")] = 2.5,
    seed: Annotated[int, typer.Option(help="Of sample, folds and search.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    start: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Weights to start from, as JSON; 0 leaves one out.  [default: the shipped]"),
    ] = None,
) -> None:
    """Tune the weights of the chain retriever on benchmark questions, with cross-validation.

    The result is in DIR/tuning.json. A run that was stopped goes on when the same command is started again, and ends
    as it would have without the stop.
    """
    from rich.console import Console
    from rich.progress import Progress

    try:
        sets = tuple(QuestionSet.parse(text) for text in on)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--on") from error
    settings = Settings(sets, _read_weights(start) if start else ChainWeights(), folds, seed, limit, reach)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading the questions", total=trials * (folds + 1))
        best: dict[str, float] = {}

        def show(part: str, value: float) -> None:
            best[part] = max(value, best.get(part, value))
            bar.update(task, advance=1, description=f"{part}: best {best[part]:.4f}")

        try:
            record = tune(settings, out, trials, jobs, show)
        except KeyboardInterrupt:
            typer.echo(f"{out}: the same command goes on from here", err=True)
            raise
    _print(record)
    typer.echo(f"{out / RESULT}: everything else")


def _read_weights(file: Path) -> ChainWeights:
    try:
        return ChainWeights(**json.loads(file.read_bytes()))
    except OSError as error:
        raise PolyhopError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise PolyhopError(f"{file} does not hold the weights of a chain as a JSON object: {error}") from error


def _print(record: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    kept = record["kept"]
    table = Table(title="Cross-validated, before and after", title_justify="left", header_style="bold")
    for heading in ("", "questions", "Recall@5", "all gold@5", "F1 of the chain"):
        table.add_column(heading, justify="right" if heading else "left")
    scores = record["cross_validation"]["scores"]
    for name, before in scores["before"].items():
        after = scores[kept][name]
        cells = (f"{100 * before[metric]:.1f} {100 * after[metric]:.1f}" for metric in (_RECALL, _ALL_GOLD, _F1))
        table.add_row(name, str(before["questions"]), *cells)
    Console().print(table)
    if kept == "start":
        typer.echo("No tuned weights were better on questions kept apart: only the threshold was tuned.")
    started = record["settings"]["start"]
    typer.echo("  ".join(f"{name} {started[name]:g} -> {value:g}" for name, value in record["weights"].items()))


def main() -> None:
    """``python -m polyhop.optimizers.chain_weights``"""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # as the polyhop command: nothing from the network
    try:
        app(prog_name="python -m polyhop.optimizers.chain_weights")
    except PolyhopError as error:
        typer.secho(f"error: {error}", fg=typer.colors.RED, err=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
