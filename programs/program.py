"""The base class of programs and their parts, and the programs by name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, Self, TypeVar

import dspy

from ..data.errors import PolyhopError
from ..data.passages import Retriever
from .agent import Agent, guarded
from .scope import running
from .tunable import Tunable, tunables

P = TypeVar("P", bound="type[Program]")

Conditions = Mapping[str, tuple[str, tuple[Any, ...]]]

PROGRAMS: dict[str, type[Program]] = {}
"""The registered programs by name; `polyhop.programs` imports all of them."""


class Program(dspy.Module):
    """A `dspy.Module` that refuses ``program.rounds = 4``, which would replace the tunable by a plain number."""

    searches: ClassVar[bool] = True  # whether the program takes a retriever
    reads_gold: ClassVar[bool] = False  # whether an evaluation passes it a question's gold evidence, as ``gold``
    shown_exemplars: ClassVar[tuple[str, ...]] = ()  # the agents that get exemplars as additional demos at each call
    shared: ClassVar[tuple[str, ...]] = ()  # attributes that copies share: a retriever is a resource, not state
    role_groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # agents that ``--lm GROUP=SPEC`` gives a model together
    conditions: ClassVar[Conditions] = {}
    """Own tunables and those of parts, by name or glob, that matter only while another one, which matters too, has one
    of some values. Of several patterns that match a name the last one applies, and one of a part before those of the
    whole (`conditions_of`)."""
    paper_retriever: ClassVar[str] = ""  # of the published system, a name of `polyhop.data.retrievers`; "" for none
    paper_values: ClassVar[Mapping[str, Any]] = {}  # tunables with a published value that is not the default

    @classmethod
    def over(cls, retriever: Retriever | None = None, sparse: Retriever | None = None) -> Self:
        """The untuned program over a retriever; ``sparse`` is its BM25 source, for programs that use both."""
        return cls(retriever) if cls.searches else cls()

    @classmethod
    def paper(cls, retriever: Retriever | None = None, sparse: Retriever | None = None) -> Self:
        """The program as published; ``retriever`` should be of the kind ``paper_retriever``, as of `over`.

        Raises:
            PolyhopError: the program is not that of a paper.
        """
        if not cls.paper_retriever:
            raise PolyhopError(f"{cls.__name__} has no preset: it is not the program of a paper")
        program = cls.over(retriever, sparse)
        known = tunables(program)
        for name, value in (*cls.paper_values.items(), ("abstain_below", 0.0)):
            known[name].value = value
        return program

    def sent_signature(self, agent: str) -> type[dspy.Signature]:
        """The signature that an agent is called with under the current tunables."""
        signature: type[dspy.Signature] = dict(self.named_predictors())[agent].signature
        return signature

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        forward = getattr(cls, "forward", None)  # a class of a script is unpickled before its methods
        if forward and cls.__call__ is Program.__call__ and "question" in signature(forward).parameters:
            cls.__call__ = _as_tool(cls.__call__)  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        program: Self = super().__new__(cls)
        if cls.__call__.__doc__:  # what `dspy.Tool` describes a program with
            program.__doc__ = cls.__call__.__doc__
        return program

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(self.__dict__.get(name), Tunable) and not isinstance(value, Tunable):
            raise TypeError(f"{name} is a tunable: set its value with .{name}.value = {value!r}")
        if isinstance(value, Agent):
            value.role = name
        super().__setattr__(name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo |= {id(value): value for name in self.shared if (value := getattr(self, name)) is not None}
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with dspy.context(adapter=guarded(dspy.settings.adapter)), running(self):
            return super().__call__(*args, **kwargs)

    async def aforward(self, *args: Any, **kwargs: Any) -> Any:
        """``await program.acall(question=...)`` runs `forward` in a thread."""
        with dspy.context(adapter=guarded(dspy.settings.adapter)), running(self):
            return await dspy.asyncify(type(self).forward)(self, *args, **kwargs)


def _as_tool(call: Any) -> Any:
    """The same method with the one argument that `dspy.Tool` should know."""

    def answer(self: Program, question: str) -> dspy.Prediction:
        """Answer a question whose evidence is spread over several documents, with the sentences that support it."""

    @wraps(answer)
    def tool(self: Program, *args: Any, **kwargs: Any) -> Any:
        return call(self, *args, **kwargs)

    return tool


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


def conditions_of(program: dspy.Module) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Of each tunable that does not always matter, the one on which it depends, and the values for which it matters."""
    known, found = tunables(program), dict[str, tuple[str, tuple[Any, ...]]]()
    for path, part in program.named_sub_modules(Program):  # the whole before its parts
        prefix = "" if path == "self" else f"{path.removeprefix('self.')}."
        for pattern, (other, values) in part.conditions.items():
            for name in known:
                if name == prefix + pattern or fnmatchcase(name, prefix + pattern):
                    found[name] = prefix + other, values
    return found


def name_of(program: dspy.Module) -> str | None:
    """The registered name of a program; None for any other module, including subclasses of programs."""
    return next((name for name, kind in PROGRAMS.items() if type(program) is kind), None)
