"""The questions of a run, read anew in each iteration, so that they need not fit in memory; and predictions for them
that were made elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b, file_digest
from pathlib import Path
from random import Random
from typing import Any

import dspy

from ..data.benchmarks import PREFIX, SAMPLE, Setting, find_benchmark, load_questions, recognize_file
from ..data.errors import PolyhopError, Problem
from ..data.importing import import_named
from ..data.passages import Evidence, Passage, Place
from ..data.records import read_records
from ..data.text import plain
from ..engines.costs import record_incident
from ..programs.tunable import choice
from .metrics import METRICS

_KEPT = 5  # problems, to show


_MOST_SENTENCES, _MOST_RANKED = 100_000, 1_000  # of a passage; of a ranking that is scored


def is_code(source: str | None) -> bool:
    """Whether questions are named as ``FILE.py:NAME``."""
    return source is not None and ".py:" in source


def as_questions(examples: Iterable[dspy.Example]) -> Iterable[dspy.Example]:
    """Examples of any DSPy program, each with a ``question`` (by default its first input) and with texts for answers.

    Those without an answer get no ``answers`` if there is a metric of the user's own, which may read other fields.
    """
    return examples if isinstance(examples, Questions) else [_as_question(example) for example in examples]


def _as_question(example: dspy.Example) -> dspy.Example:
    more: dict[str, Any] = {}
    if not isinstance(example, dspy.Example) or example.get("answers") is not None:
        return example
    if example.get("question") is None:
        with suppress(ValueError):  # nobody said what the inputs are
            more["question"] = str(next(iter(example.inputs().values()), ""))
    answer = example.get("answer")
    if isinstance(answer, int | float):
        more["answer"] = str(answer)
    elif not isinstance(answer, str) and any(metric.wrapped for metric in METRICS.values()):
        more["answers"] = ()
    return example.copy(**more) if more else example


@dataclass(eq=False)
class Questions:
    """The questions of a benchmark; the arguments are those of `load_questions`. ``Questions("q.jsonl")`` are those of
    a file, whose format is recognized; ``Questions("own", "FILE.py:NAME")`` are the examples in a list of Python.

    Attributes:
        dataset: The benchmark's name.
        skipped: How many records the last iteration skipped.
        problems: The first few of them.
    """

    dataset: str
    source: str | None = None
    _: KW_ONLY
    split: str | None = None
    setting: Setting | None = None
    limit: int | None = None
    seed: int | None = None
    aliases: Path | None = None
    skipped: int = field(default=0, init=False)
    problems: list[Problem] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.source is None and Path(self.dataset).suffix:  # no benchmark has a dot in its name
            self.dataset, self.source = recognize_file(self.dataset), self.dataset
        self.dataset = SAMPLE if self.dataset.casefold() == SAMPLE else find_benchmark(self.dataset).name

    @property
    def file(self) -> Path | None:
        """Their file; None for a dataset on the hub."""
        return None if self.source is None or self.source.startswith(PREFIX) else Path(self.source)

    @property
    def have_contexts(self) -> bool:
        """Whether they have passages of their own."""
        return self.dataset != SAMPLE and find_benchmark(self.dataset).has_contexts

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments, for the manifest; a file by its name only."""
        source = self.file.name if self.file else self.source or (SAMPLE if self.dataset == SAMPLE else "hub")
        choice = {name: getattr(self, name) for name in ("split", "setting", "limit", "seed")}
        return {"source": source, **choice, **({"aliases": self.aliases.name} if self.aliases else {})}

    def __iter__(self) -> Iterator[dspy.Example]:
        self.skipped, self.problems = 0, []
        if is_code(self.source):
            return iter(self._examples())
        named = {name: getattr(self, name) for name in ("split", "setting", "limit", "seed", "aliases")}
        return load_questions(self.dataset, self.source, **named, on_problem=self._note)

    def _examples(self) -> list[dspy.Example]:
        """Those of a list that the user's code has, or of a function that makes it."""
        listed = import_named(str(self.source), "questions")
        listed = listed() if callable(listed) else listed
        if not isinstance(listed, Iterable):
            raise PolyhopError(f"{self.source} is no list of dspy.Example, but {type(listed).__name__}")
        examples = list(as_questions(listed))
        if self.seed is not None and self.limit is not None and self.limit < len(examples):
            return Random(self.seed).sample(examples, self.limit)
        return examples[: self.limit]

    def _note(self, problem: Problem) -> None:
        self.skipped += 1
        if len(self.problems) < _KEPT:
            self.problems.append(problem)


# --- predictions that were made elsewhere ----------------------------------------------------------------------------


class GivenPredictions(dspy.Module):
    """Answers each question with the prediction that a file has for it; a question without one fails.

        {"id": "q1", "answer": "Tarn", "evidence": ["Kestrel Mill", ["berg.md", 0]], "ranking": ["berg.md"]}

    A prediction names its question by ``id`` or by ``question``; everything but the answer is optional. Evidence is a
    title, id or file, alone or with a sentence counted from 0 in the document, or in the passage with an id; or an
    object with ``passage_id`` or ``title``, and ``sentence``, as `polyhop ask` writes. A ``confidence`` is from 0 to 1.

    Args:
        questions: Those that are asked.
        look_up: Finds passages by title, id or file: `BM25Index.named`.
    """

    def __init__(
        self,
        path: Path,
        questions: Iterable[dspy.Example],
        look_up: Callable[[str], Iterable[Passage]] | None = None,
    ) -> None:
        super().__init__()
        self._look_up = look_up
        texts, self._made = {example.get("id"): example.question for example in questions}, dict[str, dict[str, Any]]()
        for made in given_records(path):
            named = [texts.get(str(made.get("id"))), made.get("question")]
            about = {str(question) for question in named if question is not None}
            if len(about) > 1 or any(self._made.get(question, made) != made for question in about):
                name = plain(str(made.get("id", made.get("question"))))[:80]
                raise PolyhopError(f"{path}: {name!r} has two predictions, or an id and a question that do not fit")
            self._made |= dict.fromkeys(about, made)
        with path.open("rb") as file:
            digest = file_digest(file, lambda: blake2b(digest_size=8)).hexdigest()
        self.predictions = choice(digest, (digest,))  # which a run remembers: other predictions are another run

    def forward(self, question: str, pool: Any = None) -> dspy.Prediction:
        made = self._made.get(question)
        if made is None or not isinstance(made.get("answer"), str):
            raise PolyhopError("there is no prediction with an answer for this question")
        parts: dict[str, Any] = {name: made[name] for name in ("answer", "confidence") if name in made}
        if wrong := [name for name in ("evidence", "ranking") if not isinstance(made.get(name, []), list)]:
            raise PolyhopError(f"{wrong[0]} is no list")
        if "evidence" in made:
            parts["evidence"] = [self._evidence(item, pool) for item in made["evidence"]]
        if "ranking" in made:
            parts["ranking"] = [self._evidence(item, pool).passage for item in made["ranking"][:_MOST_RANKED]]
        return dspy.Prediction(**parts)

    def _evidence(self, item: Any, pool: Any) -> Evidence:
        names, sentence = [item], None
        if isinstance(item, dict):
            names, sentence = [item.get("passage_id"), item.get("title")], item.get("sentence")
        elif isinstance(item, list):
            if len(item) != 2:
                raise PolyhopError(f"{plain(str(item))[:80]} is no name with the number of a sentence")
            names, sentence = item[:1], item[1]
        if sentence is not None and (type(sentence) is not int or not 0 <= sentence < _MOST_SENTENCES):
            raise PolyhopError(f"{plain(str(sentence))[:80]} is no number of a sentence")
        names = [str(name) for name in names if name is not None] or [""]
        for name in names:
            passages = [part for part in pool or () if name in (part.title, part.id, part.document)]
            passages = passages or list(self._look_up(name) if self._look_up else ())
            parts = sorted(passages, key=lambda part: part.place or Place(""))
            if sentence is None or (parts and (parts[0].id == name or not parts[0].place)):
                within = parts[:1]
            else:  # counted in the document
                within = [part for part in parts if part.place and part.place.sentence <= sentence][-1:]
                sentence = sentence - within[0].place.sentence if within and within[0].place else sentence
            if within:
                return Evidence(within[0], sentence)
        if pool or self._look_up:
            record_incident("evidence that is no passage")
        return Evidence(Passage.of(names[-1], sentences=[names[-1]] * (1 + (sentence or 0))), sentence)


def given_records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, each with an id or a question.

    Raises:
        PolyhopError: one is malformed or has neither.
    """
    for record in read_records(path):
        if isinstance(record, Problem):
            raise PolyhopError(f"{record.where}: {record.reason}")
        if not record.has("id", "question"):
            raise PolyhopError(f"{record.where} has no id")
        yield dict(record)
