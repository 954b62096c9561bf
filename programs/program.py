"""The base class of programs, and the programs by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

import dspy

from ..data.passages import Retriever
from ..engines.costs import FREE
from .agent import Part
from .prediction import check_question
from .run import ABSTAIN_BELOW, PROMPT_TOKENS, Pool, Run, running
from .tunable import conditions_of, integer, real

__all__ = ["PROGRAMS", "Program", "conditions_of", "name_of", "new_program", "register"]

P = TypeVar("P", bound="type[Program]")

PROGRAMS: dict[str, type[Program]] = {}
"""The registered programs by name; `polyhop.programs` imports all of them."""


class Program(Part):
    """A `dspy.Module` that answers questions: ``forward(question)`` runs inside a `Run` of that question.

    ``prompt_tokens`` is what one call of an agent may show, ``abstain_below`` the least confidence of an answer; with
    a lower one it is "unknown".
    """

    searches: ClassVar[bool] = True  # whether the program takes a retriever
    reads_gold: ClassVar[bool] = False  # whether an evaluation passes it a question's gold evidence, as ``gold``
    shown_exemplars: ClassVar[tuple[str, ...]] = ()  # the agents that get exemplars as additional demos at each call
    role_groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # agents that ``--lm GROUP=SPEC`` gives a model together

    def __init__(self, abstain_below: float = ABSTAIN_BELOW) -> None:
        super().__init__()
        # Optimizers leave the budget as it is unless they are given a range.
        usual = (PROMPT_TOKENS, PROMPT_TOKENS)
        self.prompt_tokens = integer(PROMPT_TOKENS, 1_000, 1_000_000, log=True, usual=usual)
        self.abstain_below = real(abstain_below, 0.0, 1.0)

    @classmethod
    def over(cls, retriever: Retriever | None = None, sparse: Retriever | None = None) -> Self:
        """The untuned program over a retriever; ``sparse`` is its BM25 source, for programs that use both."""
        kind: Any = cls
        program: Self = kind(retriever) if cls.searches else kind()
        return program

    def __call__(self, question: str, pool: Pool = None, **given: Any) -> Any:
        models = {each.lm or dspy.settings.lm for each in self.predictors()}
        asks_models = any(lm is not None and lm.model not in FREE for lm in models)
        run = Run(check_question(question), pool, self.prompt_tokens.value, self.abstain_below.value, asks_models)
        given |= {} if pool is None else {"pool": pool}
        with running(run):
            return super().__call__(question=run.question, **given)

    def answer(self, question: str) -> dspy.Prediction:
        """Answer a question whose evidence is spread over several documents, with the sentences that support it."""
        return self(question)


def register(name: str) -> Callable[[P], P]:
    """Class decorator: make a program available by name, on the command line and in artifacts."""

    def add(kind: P) -> P:
        PROGRAMS[name] = kind
        return kind

    return add


def new_program(name: str, retriever: Retriever | None = None, sparse: Retriever | None = None) -> Program:
    """An untuned program by name.

    Args:
        retriever: Where it searches; None if every question brings its own passages.
        sparse: BM25, for a program that also uses a sparse retriever; by default taken from the retriever.
    """
    return PROGRAMS[name].over(retriever, sparse)


def name_of(program: dspy.Module) -> str | None:
    """The registered name of a program; None for any other module, including subclasses of programs."""
    return next((name for name, kind in PROGRAMS.items() if type(program) is kind), None)
