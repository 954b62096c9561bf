"""Worker processes that measure many weights, each on its share of the questions."""

from __future__ import annotations

import hashlib
import math
import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import takewhile
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ....data.chain.weights import ChainWeights
from ....data.errors import PolyhopError

if TYPE_CHECKING:
    from ....data.chain import ChainRetriever

_DEPTH = 5  # passages of a ranking
_LONGEST = 6  # passages of a chain; no adaptive one is longer
RECALL, ALL_GOLD = f"passage_recall@{_DEPTH}", f"all_gold@{_DEPTH}"
_T = TypeVar("_T")

Scores = dict[str, dict[str, float]]  # means by set: the number of "questions", and metrics


@dataclass(frozen=True)
class QuestionSet:
    """Questions, where their passages are searched, and how much they count.

    Attributes:
        dataset: The benchmark's name, or sample.
        questions: Their file; None for the sample.
        index: The folder of the index.
        weight: Of the set's scores in the objective; 0 for questions that are only scored.
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


Chains = dict[str, list[Chain]]  # by set


class Workers:
    """Processes with a share of the questions each; use it in a ``with`` block.

    Args:
        sets: The questions.
        jobs: The number of processes.
        folds: The number of parts that the questions are split into, by their ids.
        limit: Questions of each set, a random sample; None for all.
        seed: Of sample and folds.

    Attributes:
        report: Questions, and those with missing gold passages, by set.

    Raises:
        PolyhopError: a file or an index cannot be read, a set's gold passages are not in its index, or a fold is empty.
    """

    def __init__(self, sets: Sequence[QuestionSet], jobs: int, folds: int, limit: int | None, seed: int) -> None:
        if len({each.name for each in sets}) < len(sets):
            raise PolyhopError("two of the sets have the same name: a set is named after its file")
        # Java does not survive a fork. One process per pool, so that a question stays in its process.
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
            # fsum: does not depend on the number of workers.
            | {metric: math.fsum(one[metric] for one in each) / len(each) for metric in (RECALL, ALL_GOLD)}
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
            raise PolyhopError("a worker was killed: if memory ran out, use a smaller --limit") from error

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
    """The share of a worker: the questions of each set, and how many of them miss a gold passage."""

    questions: dict[str, int]
    missing: dict[str, int]
    folds: set[int]


@dataclass(frozen=True)
class _Held:
    """A question in its worker."""

    set: str
    fold: int
    gold: frozenset[str]
    text: str
    retriever: ChainRetriever

    def chain(self, weights: ChainWeights, most: int, *, adaptive: bool = False) -> list[tuple[float, bool, str]]:
        """Gain, whether it is gold, and id of each passage. The graph is new: how many passages share a name depends on
        those that were found, and so on weights."""
        from ....data.chain.retriever import follow

        graph = self.retriever.graph(self.text)
        steps = follow(graph, weights, most, adaptive=adaptive)
        ids = [graph.passage(step.node).id for step in steps]
        return [(step.gain, id in self.gold, id) for step, id in zip(steps, ids, strict=True)]


_held: list[_Held] = []  # of this worker


def _hold(sets: Sequence[QuestionSet], folds: int, limit: int | None, seed: int, job: int, jobs: int) -> _Share:
    """In a worker: take every ``jobs``-th question that has gold passages."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to every process; the first one ends the others
    from ....data.chain import ChainRetriever
    from ....data.lucene.bm25 import BM25Index
    from ....eval.gold import gold_of
    from ....eval.questions import Questions

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
            if each.weight:
                share.folds.add(fold)
            _held.append(_Held(each.name, fold, gold, example.question, retriever))
        share.questions[each.name], share.missing[each.name] = count, missing
    return share


def _fold(id: str, folds: int, seed: int) -> int:
    """The same on every machine, in any order of the questions."""
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
    from ....eval.scoring import ranking_scores

    found = []
    for held in _held:
        if held.fold in folds and held.set in sets:
            ranking = [id for _, _, id in held.chain(weights, _DEPTH)]
            found.append((held.set, ranking_scores(ranking, held.gold, (_DEPTH,))))
    return found


def _chains(weights: ChainWeights, folds: frozenset[int]) -> list[tuple[str, Chain]]:
    endless = replace(weights, enough=0.0)  # where a chain stops does not change its passages
    found = []
    for held in _held:
        if held.fold in folds:
            steps = held.chain(endless, _LONGEST, adaptive=True)
            gains, right = tuple(gain for gain, _, _ in steps), tuple(right for _, right, _ in steps)
            found.append((held.set, Chain(gains, right, len(held.gold))))
    return found
