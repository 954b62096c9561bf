"""Settings that several commands share, as models: the command line makes an option of each field.

`polyhop.optimizers.settings.OptimizationSettings` has them, too. Nothing here imports DSPy, which takes a second that
``polyhop --help`` has no use for.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from ..data.errors import PolyhopError
from ..data.retrievers import RETRIEVERS

if TYPE_CHECKING:
    from .cluster import Ray


def option(default: Any, description: str, metavar: str | None = None, flag: str | None = None, **limits: Any) -> Any:
    """A field that is a command-line option, by default ``--name`` with a hyphen for each underscore."""
    extra: dict[str, Any] = {"metavar": metavar, "flag": flag}
    return Field(default, description=description, json_schema_extra=extra, validate_default=True, **limits)


class Options(BaseModel):
    """Unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ProgramOptions(Options):
    """How a program is built."""

    lm: tuple[str, ...] = option(
        (),
        "Language model of the program, of one ROLE, or of a group of roles (c3po: proxy): a LiteLLM name such as "
        "openai/gpt-4o-mini, a profile (FILE.toml), recorded:FILE, or 'lexical' (none: quotes and guesses). May be "
        "repeated.  [default: $POLYHOP_LM or lexical]",
        "[ROLE=]SPEC",
    )
    k: int | None = option(None, "Passages per search.", flag="-k", ge=1, le=1000)
    retriever: str | None = option(
        None,
        "; ".join(f"{name}: {entry.summary}" for name, entry in RETRIEVERS.items())
        + "; or a class or function of your own that takes the opened index. Vectors need "
        "'polyhop index --dense'.  [default: chain, or as the program was saved]",
        "NAME|FILE.py:NAME",
    )
    set: tuple[str, ...] = option((), "Set a tunable, e.g. rounds=1. May be repeated.", "NAME=VALUE")
    no_cache: bool = option(False, "Neither read nor keep replies in DSPy's cache.")
    record: Path | None = option(None, "Keep the model's replies, for --lm recorded:FILE.", "FILE")


class Limits(Options):
    """What may be spent."""

    budget_calls: int | None = option(None, "LM call limit.", "N", ge=1)
    budget_usd: float | None = option(None, "Dollar limit.", "X", ge=0)
    budget_minutes: float | None = option(None, "Time limit.", "M", ge=0)

    @property
    def budget(self) -> dict[str, Any]:
        """The arguments of a `polyhop.engines.budget.Budget`; empty without a limit."""
        known = {"calls": self.budget_calls, "usd": self.budget_usd, "minutes": self.budget_minutes}
        return {name: limit for name, limit in known.items() if limit is not None}


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
        from .cluster import Ray

        if self.workers is None and self.cluster is not None:
            raise PolyhopError(f"--cluster {self.cluster} needs --workers N: how many to start there")
        return None if self.workers is None else Ray(self.cluster, self.workers, self.threads)
