"""What every program and part of a program is: a DSPy module whose tunables cannot be lost by accident."""

from __future__ import annotations

from typing import Any, ClassVar

import dspy

from .adapter import guarded
from .agent import Agent
from .tunables import Tunable


class Program(dspy.Module):
    """A `dspy.Module` that refuses ``program.rounds = 4``, which would replace the tunable by a plain number.

    Attributes:
        shown_exemplars: The agents that are shown exemplars at each call, as demos after their own.
    """

    shown_exemplars: ClassVar[tuple[str, ...]] = ()

    def sent_signature(self, agent: str) -> type[dspy.Signature]:
        """What an agent is sent, as the tunables are now; its own signature unless a program says otherwise."""
        signature: type[dspy.Signature] = dict(self.named_predictors())[agent].signature
        return signature

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(self.__dict__.get(name), Tunable) and not isinstance(value, Tunable):
            raise TypeError(f"{name} is a tunable: set its value with .{name}.value = {value!r}")
        if isinstance(value, Agent):
            value.role = name
        super().__setattr__(name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with dspy.context(adapter=guarded(dspy.settings.adapter)):
            return super().__call__(*args, **kwargs)

    async def aforward(self, *args: Any, **kwargs: Any) -> Any:
        """``await program.acall(question=...)``: the same, in a thread, so that an event loop can go on."""
        forward = object.__getattribute__(self, "forward")  # dspy warns whoever else reads it outside a call
        with dspy.context(adapter=guarded(dspy.settings.adapter)):
            return await dspy.asyncify(forward)(*args, **kwargs)
