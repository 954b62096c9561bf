"""The registry of benchmarks: each is a function from a `Record` to a `QuestionRecord`, with `register` above it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import DataError, Problem
from ..records import LONGEST_ID, Malformed, Record
from .question import QuestionRecord

SAMPLE = "sample"
LONGEST_QUESTION = 20_000  # characters

Format = Callable[[Record], QuestionRecord]


@dataclass(frozen=True)
class Benchmark:
    """A registered benchmark."""

    name: str  # on the command line and in results
    title: str  # as its authors write it
    question: Format = field(repr=False)  # of a record
    knows: Callable[[Record], bool] = field(repr=False)  # whether a record may be of it, judged by its fields
    unnest: Callable[[Iterable[Record]], Iterable[Record | Problem]] = field(
        default=lambda records: records, repr=False
    )
    """One record per question, for benchmarks that nest several in one."""
    aliases: tuple[str, ...] = ()  # other names
    hub: str | None = None  # `OWNER/NAME[:CONFIG]` on the Hugging Face hub, if it is there
    has_contexts: bool = False  # its questions have passages of their own, so the setting `distractor` exists
    split: str = "validation"  # the hub's split to evaluate on

    def read(
        self, records: Iterable[Record | Problem], on_problem: Callable[[Problem], None]
    ) -> Iterator[QuestionRecord]:
        """The questions of some records, with distinct ids. What is malformed is reported."""
        seen: set[int] = set()  # hashes need a few bytes per question
        for record in self.unnest(sound(records, on_problem)):
            if isinstance(record, Problem):
                on_problem(record)
                continue
            try:
                question = self.question(record)
                for name, most in (("question", LONGEST_QUESTION), ("id", LONGEST_ID)):
                    if (length := len(getattr(question, name))) > most:
                        raise Malformed(f"{name} has {length:,} characters, more than {most:,}")
                if hash(question.id) in seen:
                    raise Malformed(f"an earlier question has the same id {question.id!r}")
            except Malformed as error:
                on_problem(Problem(record.where, str(error)))
                continue
            seen.add(hash(question.id))
            yield replace(question, where=f"{record.where}, {record.path}" if record.path else record.where)


def sound(records: Iterable[Record | Problem], on_problem: Callable[[Problem], None]) -> Iterator[Record]:
    """The records; problems are reported."""
    for record in records:
        if isinstance(record, Problem):
            on_problem(record)
        else:
            yield record


BENCHMARKS: dict[str, Benchmark] = {}


def register(name: str, title: str, **settings: Any) -> Callable[[Format], Format]:
    """Register a function as the format of a benchmark; the settings are the attributes of `Benchmark`."""

    def add(question: Format) -> Format:
        BENCHMARKS[name] = Benchmark(name, title, question, **settings)
        return question

    return add


def find_benchmark(name: str) -> Benchmark:
    """The benchmark with a name or alias; case, spaces, hyphens and underscores are ignored."""
    for benchmark in BENCHMARKS.values():
        if _folded(name) in map(_folded, (benchmark.name, benchmark.title, *benchmark.aliases)):
            return benchmark
    raise DataError(f"There is no benchmark {name!r}. Known are {', '.join(BENCHMARKS)} and {SAMPLE}.")


def recognize(record: Record) -> list[Benchmark]:
    """The benchmarks that a record may be of, judged by its fields; a plain question may also be the user's own."""
    likely = [each for each in BENCHMARKS.values() if each.knows(record)]
    plain = all(each.name in ("nq", "own") for each in likely)
    return [each for each in likely if plain or each.name != "own"]


def _folded(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
