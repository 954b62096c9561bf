"""Questions of any benchmark, from a file or the Hugging Face hub, as a stream of DSPy examples."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from ..errors import DatasetError, Problem
from ..sample import Split, load_sample, sample_passages
from .files import PREFIX, hub_records, read_records
from .question import GoldFact, QuestionRecord, distinct
from .rows import BENCHMARKS, SAMPLE, Benchmark, Malformed, Record, find_benchmark, recognize

if TYPE_CHECKING:
    import dspy

Setting = Literal["distractor", "open"]
T = TypeVar("T")


def load_questions(
    dataset: str,
    source: str | Path | None = None,
    *,
    split: str | None = None,
    setting: Setting | None = None,
    limit: int | None = None,
    seed: int | None = None,
    strict: bool = False,
    aliases: str | Path | None = None,
    on_problem: Callable[[Problem], None] = lambda problem: None,
) -> Iterator[dspy.Example]:
    """The questions of a benchmark, one by one, with the attributes of `QuestionRecord`.

    Args:
        dataset: hotpotqa, 2wiki, musique, multihoprag, nq, squad, triviaqa, hover, frames, bamboogle, popqa,
            browsecomp-plus or one of their aliases; own, for your own questions (see `own`); or sample.
        source: A file in one of the benchmark's formats (JSON, JSON Lines or a table, plain or gzip), or
            ``hub:OWNER/NAME[:CONFIG]``; by default the benchmark's dataset on the hub. The sample has none.
        split: Of a dataset on the hub, by default the one to evaluate on; or of the sample, by default all of it.
        setting: ``distractor`` requires the questions' own contexts as ``pool``, ``open`` drops them; None keeps them.
        limit: The number of questions: the first ones, or with a ``seed`` a random sample, for which all are read.
        seed: Of the sample, which is the same on every machine and part of any larger sample with that seed.
        strict: Raise at the first malformed record instead of skipping it.
        aliases: 2WikiMultihopQA: the official ``id_aliases.json``, whose names of an answer count as the answer.
        on_problem: Called with each skipped record: malformed, or with the id of an earlier one.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be positive, got {limit}")
    if setting not in (None, "distractor", "open"):
        raise DatasetError(f"There is no setting {setting!r}: choose distractor or open.")
    if dataset.casefold() == SAMPLE:
        if source is not None or aliases is not None:
            raise DatasetError("The sample ships with polyhop: name no file for it.")
        title, has_contexts, questions = "the sample", False, sample_questions(split)
    else:
        benchmark = find_benchmark(dataset)
        title, has_contexts = benchmark.title, benchmark.has_contexts
        questions = read_questions(benchmark, _records(benchmark, source, split), ProblemReport(strict, on_problem))
        if aliases is not None and benchmark.name != "2wiki":
            raise DatasetError(f"The questions of {title} name no entities: --aliases is for 2WikiMultihopQA.")
        if aliases is not None:
            names = read_aliases(Path(aliases))
            questions = (
                replace(question, answers=distinct(*question.answers, *names.get(question.answer_id or "", ())))
                for question in questions
            )
    if setting == "distractor" and not has_contexts:
        raise DatasetError(
            f"The questions of {title} have no contexts of their own: use the setting open, with an index."
        )
    return _examples(_in_setting(questions, setting), limit, seed)


def read_questions(
    benchmark: Benchmark, records: Iterable[Record | Problem], report: ProblemReport
) -> Iterator[QuestionRecord]:
    """The questions of a benchmark's records, with distinct ids."""
    seen: set[int] = set()  # hashes need a few bytes per question
    for question in benchmark.read(_checked(benchmark, records, report)):
        if isinstance(question, Problem):
            report(question)
        elif hash(question.id) in seen:
            report(Problem(question.where, f"an earlier question has the same id {question.id!r}"))
        else:
            seen.add(hash(question.id))
            yield question
    if not seen:
        reason = f" The first problem is {report.first.reason!r} ({report.first.where})." if report.first else ""
        raise DatasetError(f"No question can be read as {benchmark.title}.{reason}")


class ProblemReport:
    """Passes problems on, or raises the first one if strict."""

    def __init__(self, strict: bool, on_problem: Callable[[Problem], None]) -> None:
        self._strict = strict
        self._on_problem = on_problem
        self.first: Problem | None = None

    def __call__(self, problem: Problem) -> None:
        if self._strict:
            raise DatasetError(f"{problem.where}: {problem.reason}.")
        self.first = self.first or problem
        self._on_problem(problem)


def recognize_file(source: str | Path) -> str:
    """The name of a file's dataset, judged by its first record; a plain question is the user's own."""
    if str(source).startswith(PREFIX):
        raise DatasetError(f"Name the --dataset that {source} is.")
    first = next((record for record in read_records(Path(source)) if isinstance(record, Record)), None)
    likely = [benchmark.name for benchmark in recognize(first)] if first else []
    if "own" in likely:
        return "own"
    if len(likely) == 1:
        return likely[0]
    looks = f"may be of {' or '.join(likely)}" if likely else f"looks like none of {', '.join(BENCHMARKS)}"
    raise DatasetError(f"{first.where if first else source} {looks}: name the --dataset.")


def _records(benchmark: Benchmark, source: str | Path | None, split: str | None) -> Iterator[Record | Problem]:
    if source is None and benchmark.hub is None:
        raise DatasetError(f"Name the file of your {benchmark.title}: --questions FILE.")
    name = f"{PREFIX}{benchmark.hub}" if source is None else str(source)
    if name.startswith(PREFIX):
        return hub_records(name.removeprefix(PREFIX), split or benchmark.split)
    if split is not None:
        raise DatasetError(f"A file has no splits: name the file that holds {split!r} instead of {name}.")
    return read_records(Path(name))


def _checked(benchmark: Benchmark, records: Iterable[Record | Problem], report: ProblemReport) -> Iterator[Record]:
    """The records, without problems; the first one shows whether the file is of another benchmark."""
    first = True
    for record in records:
        if isinstance(record, Problem):
            report(record)
            continue
        likely = recognize(record) if first else []
        if [each.name for each in likely] not in ([], ["own"]) and benchmark not in likely:
            names = " or ".join(other.title for other in likely)
            raise DatasetError(f"{record.where} looks like {names}, not like {benchmark.title}.")
        first = False
        yield record


def _examples(questions: Iterable[QuestionRecord], limit: int | None, seed: int | None) -> Iterator[dspy.Example]:
    chosen = (
        questions if limit is None else islice(questions, limit) if seed is None else sample(questions, limit, seed)
    )
    for question in chosen:  # sampling reads all of them, but not before the first is needed
        yield question.to_example()


def _in_setting(questions: Iterable[QuestionRecord], setting: Setting | None) -> Iterator[QuestionRecord]:
    for question in questions:
        if setting == "distractor" and question.pool is None:
            raise DatasetError(
                f"{question.where} has no contexts of its own: use the setting open, with an index (--index DIR)."
            )
        yield replace(question, pool=None) if setting == "open" else question


def sample_questions(split: str | None) -> Iterator[QuestionRecord]:
    """The questions of a split of the sample (train, dev, test), or all of them."""
    try:
        examples = load_sample(cast(Split, split))
    except ValueError as error:
        raise DatasetError(f"{error}.") from error
    titles = {passage.id: passage.title for passage in sample_passages()}
    return (
        QuestionRecord(
            id=example.id,
            question=example.question,
            answers=example.answers,
            gold=tuple(
                GoldFact(titles[fact.passage_id], fact.sentence, fact.passage_id) for fact in example.gold_facts
            ),
            hops=example.hops,
            kind=example.kind,
            answerable=example.kind != "unanswerable",
            sub_questions=example.sub_questions,
        )
        for example in examples
    )


def read_aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """Other names of answers, by Wikidata id, which version 1.1 of 2WikiMultihopQA's official script accepts.

    The file ``id_aliases.json`` of github.com/Alab-NII/2wikimultihop has a line for each entity: ``{"Q_id": ...,
    "aliases": [...], "demonyms": [...]}``. The script also accepts them in evidence triples, which no program here
    makes.
    """
    found: dict[str, tuple[str, ...]] = {}
    for record in read_records(path):
        if isinstance(record, Problem):
            raise DatasetError(f"{record.where}: {record.reason}.")
        try:
            entity = record.id("Q_id")
            names = (*record.texts("aliases", default=()), *record.texts("demonyms", default=()))
        except Malformed as error:
            raise DatasetError(f"{record.where} is not a line of id_aliases.json: {error}.") from None
        found[entity] = distinct(*found.get(entity, ()), *names)
    return found


# --- samples ---------------------------------------------------------------------------------------------------------


def sample(examples: Iterable[T], size: int, seed: int) -> list[T]:
    """``size`` examples (or all, if fewer) without replacement, in the given order; holds only those in memory.

    A question's id and the seed give a number in [0, 1), on every machine and in any order. The smallest numbers are
    the sample, so a sample of 50 is part of the sample of 100. Both questions of a MuSiQue-Full pair have the same
    number.
    """
    kept: list[tuple[float, int, T]] = []  # the largest number on top
    for position, example in enumerate(examples):
        item = (-_number(example, seed), -position, example)
        if len(kept) < size:
            heapq.heappush(kept, item)
        else:
            heapq.heappushpop(kept, item)
    return [example for _, _, example in sorted(kept, key=lambda item: -item[1])]


def _number(example: Any, seed: int) -> float:
    id = example if isinstance(example, str) else getattr(example, "official_id", None) or example.id
    return int.from_bytes(blake2b(f"sample {seed}\n{id}".encode(), digest_size=8).digest()) / 2**64
