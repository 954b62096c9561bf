"""The settings of an optimization, which a run's manifest stores, and the questions that it uses.

The command line makes an option of each field (`polyhop.scripts.options`). Nothing here imports DSPy at its top, which
takes a second that ``polyhop --help`` has no use for.
"""

from __future__ import annotations

import json
import random
import tomllib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import floor, log2
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..data.errors import PolyhopError, first_error
from ..data.files import read_bytes

if TYPE_CHECKING:
    import dspy

    from ..eval.cluster import Ray

StageName = Literal["exemplars", "prompts", "tunables"]

DECIDING = frozenset("stages metric cost level optimizer auto trials freeze ranges exemplars seed".split())
"""The settings that decide the result: a run is resumed with the same ones. The others are resources."""

BEST = "best"  # the folder of the best program


def option(default: Any, description: str, metavar: str | None = None, flag: str | None = None, **limits: Any) -> Any:
    """A field that is a command-line option, by default ``--name`` with a hyphen for each underscore."""
    extra: dict[str, Any] = {"metavar": metavar, "flag": flag}
    return Field(default, description=description, json_schema_extra=extra, validate_default=True, **limits)


class Options(BaseModel):
    """Unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Limits(Options):
    """What may be spent."""

    budget_calls: int | None = option(None, "LM call limit.", "N", ge=1)
    budget_usd: float | None = option(None, "Dollar limit.", "X", ge=0)
    budget_minutes: float | None = option(None, "Time limit.", "M", ge=0)

    @property
    def budget(self) -> dict[str, Any]:
        """The arguments of a `polyhop.engines.budget.Budget`; empty without a limit."""
        limits = {"calls": self.budget_calls, "usd": self.budget_usd, "minutes": self.budget_minutes}
        return {name: limit for name, limit in limits.items() if limit is not None}


class Resources(Options):
    """Where questions are answered."""

    threads: int = option(1, "Questions executed in parallel; for remote models.", ge=1)
    workers: int | None = option(None, "Execute questions in N processes of Ray, with --threads each.", "N", ge=1)
    cluster: str | None = option(
        None, "Start the --workers on a Ray cluster: auto, HOST:PORT or ray://HOST:PORT.", "ADDRESS"
    )

    @property
    def executor(self) -> Ray | None:
        """The worker processes; None for this process."""
        from ..eval.cluster import Ray

        if self.workers is None and self.cluster is not None:
            raise PolyhopError(f"--cluster {self.cluster} needs --workers N: how many to start there")
        return None if self.workers is None else Ray(self.cluster, self.workers, self.threads)


def _metric_name(metric: Any) -> Any:
    from ..eval.metrics import metric_name

    return metric_name(metric)


def _stages(value: Any) -> Any:
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not names:
        raise ValueError("name at least one stage")
    return names


def _ranges(value: Any) -> Any:
    """Of ``rounds=1..3``, ``stop=stable,gain`` or ``search.chain*=all``."""

    def read(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    if not isinstance(value, list):
        return value
    ranges = {}
    for text in value:
        name, equals, values = text.partition("=")
        parts = [] if values == "all" else values.split(".." if ".." in values else ",")
        if not equals or not all(parts):
            raise ValueError("neither NAME=LOW..HIGH nor NAME=A,B nor NAME=all")
        ranges[name] = tuple(map(read, parts))
    return ranges


class OptimizationSettings(Limits, Resources):
    """What to tune, how, and with what resources. Unknown keys are errors."""

    stages: Annotated[tuple[StageName, ...], BeforeValidator(_stages)] = option(
        ("exemplars", "prompts", "tunables"), "Stages in their order. A stage may come again.", "LIST"
    )
    metric: Annotated[str, BeforeValidator(_metric_name)] = option(
        "joint_f1", "Metric to maximize: answer_em, answer_f1, evidence_f1, fact_f1, ..., or FILE.py:NAME.", "NAME"
    )
    cost: str | None = option(None, "Cost to minimize as well: lm_calls, searches, seconds, ...", "NAME")
    level: float = option(
        0.05, "The chance to keep a candidate that does not help: each test has a share of it.", gt=0, le=1
    )
    optimizer: str = option("credit", "Prompt optimizer: credit, gepa, or dspy:NAME for any of DSPy's.", "NAME")
    auto: Literal["light", "medium", "heavy"] = option("light", "How many calls it may make: light, medium or heavy.")
    trials: int = option(40, "Trials of the search over tunables.", ge=2)
    freeze: tuple[str, ...] = option((), "Do not tune these, such as 'search.*'. May be repeated.", "NAME")
    ranges: Annotated[dict[str, tuple[Any, ...]], BeforeValidator(_ranges)] = option(
        {},
        "A narrower range, NAME=A,B for some choices, or NAME=all for what is not searched by default, such as "
        "'search.chain*'. May be repeated.",
        "NAME=LOW..HIGH",
        "--range",
    )
    exemplars: int = option(25, "New exemplars at most for each number of hops.", ge=1)
    seed: int = option(0, "Random seed.", ge=0, lt=1 << 32)

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str = "settings") -> Self:
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise PolyhopError(f"{where}: {first_error(error)}") from error

    @property
    def scored(self) -> str:
        """The name of the metric in records, without its module."""
        return self.metric.rpartition(":")[2]

    @property
    def comparisons(self) -> int:
        """How many paired tests the run makes at most: one of each stage, two with a cost."""
        return len(self.stages) * (1 if self.cost is None else 2)

    @property
    def least_questions(self) -> int:
        """With fewer validation questions no candidate can be kept: n improvements of n have p = 2 / 2 ** n."""
        return floor(log2(2 * self.comparisons / self.level)) + 1


@dataclass(frozen=True)
class Splits:
    """Questions to tune on, to decide whether a candidate replaces the incumbent, and to measure the result on. No
    question is in two of them."""

    train: Sequence[dspy.Example]
    val: Sequence[dspy.Example]
    test: Sequence[dspy.Example]

    def __post_init__(self) -> None:
        from ..eval.questions import as_questions

        seen: dict[str, str] = {}
        for name, questions in self.named.items():
            object.__setattr__(self, name, list(as_questions(questions)))
            if not getattr(self, name):
                raise PolyhopError(f"there are no {name} questions")
            for example in getattr(self, name):
                if (other := seen.setdefault(example.question, name)) != name:
                    raise PolyhopError(f"a question is in both {other} and {name}: {example.question[:80]!r}")

    @property
    def named(self) -> dict[str, Sequence[dspy.Example]]:
        return {"train": self.train, "val": self.val, "test": self.test}


def divide(questions: Sequence[dspy.Example], shares: Sequence[float], seed: int = 0) -> list[list[dspy.Example]]:
    """Split questions at random, in shares that sum to 1; each part keeps their order, and questions with the same
    text stay together."""
    texts = sorted({example.question for example in questions})
    random.Random(seed).shuffle(texts)
    ends = [round(share * len(texts)) for share in accumulate(shares)]
    part = {text: bisect_right(ends, place) for place, text in enumerate(texts)}
    return [[example for example in questions if part[example.question] == n] for n in range(len(shares))]


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a TOML or JSON file, or in the manifest of a run."""
    try:
        text = read_bytes(path).decode()
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        return dict(values.get("settings", values))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise PolyhopError(f"{path} is not a TOML or JSON file with settings: {error}") from error
