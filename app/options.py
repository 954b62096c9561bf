"""How a program is built, as a model: the command line makes an option of each field.

Nothing here imports DSPy, which takes a second that ``polyhop --help`` has no use for.
"""

from __future__ import annotations

from pathlib import Path

from ..data.retrievers import RETRIEVERS
from ..optimizers.settings import Options, option


class ModelOptions(Options):
    """The models of a program."""

    lm: tuple[str, ...] = option(
        (),
        "Language model of the program, of one ROLE, or of a group of roles (c3po: proxy): a LiteLLM name such as "
        "openai/gpt-4o-mini, a profile (FILE.toml), recorded:FILE, or 'lexical' (none: quotes and guesses). May be "
        "repeated.  [default: $POLYHOP_LM or lexical]",
        "[ROLE=]SPEC",
    )
    no_cache: bool = option(False, "Neither read nor keep replies in DSPy's cache.")
    record: Path | None = option(None, "Keep the model's replies, for --lm recorded:FILE.", "FILE")


class ProgramOptions(ModelOptions):
    """How a program is built."""

    k: int | None = option(None, "Passages per search.", flag="-k", ge=1, le=1000)
    retriever: str | None = option(
        None,
        "; ".join(f"{name}: {entry.summary}" for name, entry in RETRIEVERS.items())
        + "; or a class or function of your own that takes the opened index. Vectors need "
        "'polyhop index --dense'.  [default: chain, or as the program was saved]",
        "NAME|FILE.py:NAME",
    )
    set: tuple[str, ...] = option((), "Set a tunable, e.g. rounds=1. May be repeated.", "NAME=VALUE")
