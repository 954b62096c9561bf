"""Questions of any benchmark, from a file or the Hugging Face hub, as a stream of DSPy examples."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from ..errors import DataError, Problem
from ..importing import installs
from ..records import Malformed, Record, read_each, read_records
from ..sample import Split, load_sample, sample_passages
from .formats import BENCHMARKS, SAMPLE, Benchmark, find_benchmark, recognize
from .question import GoldFact, QuestionRecord, distinct

if TYPE_CHECKING:
    import dspy

PREFIX = "hub:"
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
            or browsecomp-plus; own, for your own questions (see `own`); or sample.
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
        raise DataError(f"There is no setting {setting!r}: choose distractor or open.")
    if dataset.casefold() == SAMPLE:
        if source is not None or aliases is not None:
            raise DataError("The sample ships with polyhop: name no file for it.")
        title, has_contexts, questions = "the sample", False, sample_questions(split)
    else:
        benchmark = find_benchmark(dataset)
        title, has_contexts = benchmark.title, benchmark.has_contexts
        questions = _questions(benchmark, _records(benchmark, source, split), strict, on_problem)
        if aliases is not None:
            if benchmark.name != "2wiki":
                raise DataError(f"The questions of {title} name no entities: --aliases is for 2WikiMultihopQA.")
            names = read_aliases(Path(aliases))
            questions = (
                replace(question, answers=distinct(*question.answers, *names.get(question.answer_id or "", ())))
                for question in questions
            )
    if setting == "distractor" and not has_contexts:
        raise DataError(f"The questions of {title} have no contexts of their own: use the setting open, with an index.")
    return _examples(questions, setting, limit, seed)


def _examples(
    questions: Iterable[QuestionRecord], setting: Setting | None, limit: int | None, seed: int | None
) -> Iterator[dspy.Example]:
    if limit is not None:  # sampling reads all of them, but not before the first is needed
        questions = islice(questions, limit) if seed is None else sample(questions, limit, seed)
    for question in questions:
        if setting == "distractor" and question.pool is None:
            raise DataError(f"{question.where} has no contexts of its own: use the setting open, with an index.")
        yield (replace(question, pool=None) if setting == "open" else question).to_example()


def recognize_file(source: str | Path) -> str:
    """The name of a file's dataset, judged by its first record; a plain question is the user's own."""
    if str(source).startswith(PREFIX):
        raise DataError(f"Name the --dataset that {source} is.")
    first = next((record for record in read_records(Path(source)) if isinstance(record, Record)), None)
    likely = [benchmark.name for benchmark in recognize(first)] if first else []
    if "own" in likely or len(likely) == 1:
        return "own" if "own" in likely else likely[0]
    looks = f"may be of {' or '.join(likely)}" if likely else f"looks like none of {', '.join(BENCHMARKS)}"
    raise DataError(f"{first.where if first else source} {looks}: name the --dataset.")


def _records(benchmark: Benchmark, source: str | Path | None, split: str | None) -> Iterator[Record | Problem]:
    if source is None and benchmark.hub is None:
        raise DataError(f"Name the file of your {benchmark.title}: --questions FILE.")
    name = f"{PREFIX}{benchmark.hub}" if source is None else str(source)
    if name.startswith(PREFIX):
        return hub_records(name.removeprefix(PREFIX), split or benchmark.split)
    if split is not None:
        raise DataError(f"A file has no splits: name the file that holds {split!r} instead of {name}.")
    return read_records(Path(name))


def _questions(
    benchmark: Benchmark, records: Iterator[Record | Problem], strict: bool, on_problem: Callable[[Problem], None]
) -> Iterator[QuestionRecord]:
    """The questions; the first record shows whether the file is of another benchmark."""
    problem = ""

    def report(skipped: Problem) -> None:
        nonlocal problem
        if strict:
            raise DataError(f"{skipped.where}: {skipped.reason}.")
        problem = problem or f" The first problem is {skipped.reason!r} ({skipped.where})."
        on_problem(skipped)

    sound, question = read_each(lambda record: (record,), records, report), None
    for first in islice(sound, 1):
        likely = recognize(first)
        if [other.name for other in likely] not in ([], ["own"]) and benchmark not in likely:
            names = " or ".join(other.title for other in likely)
            raise DataError(f"{first.where} looks like {names}, not like {benchmark.title}.")
        for question in benchmark.read(chain([first], sound), report):
            yield question
    if question is None:
        raise DataError(f"No question can be read as {benchmark.title}.{problem}")


def hub_records(name: str, split: str) -> Iterator[Record | Problem]:
    """The records of one split of a Hugging Face dataset, or of a local folder that `datasets` can read.

    Args:
        name: ``OWNER/NAME`` or ``OWNER/NAME:CONFIG``, or a folder of Parquet or JSON files named after the splits.
        split: As `datasets.load_dataset` takes it: ``validation``, ``train[:500]``, ...
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise DataError(f"{PREFIX}{name} needs the package datasets: run `{installs('hub')}`.") from error

    path, _, config = name.partition(":")
    try:
        rows = iter(load_dataset(path, config or None, split=split))
    except Exception as error:  # the library and its downloads raise errors of many families
        raise DataError(
            f"The split {split!r} of the dataset {name!r} cannot be loaded: {type(error).__name__}: {error} "
            f"A hub name is written {PREFIX}OWNER/NAME[:CONFIG]."
        ) from error
    return (Record(row, f"{name}:{split}:{number}") for number, row in enumerate(rows, 1))


def sample_questions(split: str | None) -> Iterator[QuestionRecord]:
    """The questions of a split of the sample (train, dev, test), or all of them."""
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
        for example in load_sample(cast(Split, split))
    )


def read_aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """Other names of answers, by Wikidata id, which version 1.1 of 2WikiMultihopQA's official script accepts.

    The file ``id_aliases.json`` of github.com/Alab-NII/2wikimultihop has a line for each entity: ``{"Q_id": ...,
    "aliases": [...], "demonyms": [...]}``. The script also accepts them in evidence triples, which no program here
    makes.
    """
    names_of: dict[str, tuple[str, ...]] = {}
    for record in read_records(path):
        try:
            if isinstance(record, Problem):
                raise Malformed(record.reason)
            names = (*record.texts("aliases", default=()), *record.texts("demonyms", default=()))
            entity = record.id("Q_id")
        except Malformed as error:
            raise DataError(f"{record.where} is not a line of id_aliases.json: {error}.") from None
        names_of[entity] = distinct(*names_of.get(entity, ()), *names)
    return names_of


# --- samples ---------------------------------------------------------------------------------------------------------


def sample(examples: Iterable[T], size: int, seed: int) -> list[T]:
    """``size`` examples (or all, if fewer) without replacement, in the given order; holds only those in memory.

    A question's id and the seed give a number in [0, 1), on every machine and in any order. The smallest numbers are
    the sample, so a sample of 50 is part of the sample of 100. Both questions of a MuSiQue-Full pair have the same
    number.
    """
    numbered = enumerate(examples)
    kept = heapq.nsmallest(size, numbered, key=lambda item: _number(item[1], seed))
    return [example for _, example in sorted(kept, key=lambda item: item[0])]


def _number(example: Any, seed: int) -> float:
    id = example if isinstance(example, str) else getattr(example, "official_id", None) or example.id
    return int.from_bytes(blake2b(f"sample {seed}\n{id}".encode(), digest_size=8).digest()) / 2**64
