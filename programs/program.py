"""What every program and part of a program is: a DSPy module whose tunables cannot be lost by accident."""

from __future__ import annotations

from typing import Any

import dspy

from .adapter import ADAPTER
from .tunables import Tunable


class Program(dspy.Module):
    """A `dspy.Module` that refuses ``program.rounds = 4``, which would replace the tunable by a plain number."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(self.__dict__.get(name), Tunable) and not isinstance(value, Tunable):
            raise TypeError(f"{name} is a tunable: set its value with .{name}.value = {value!r}")
        super().__setattr__(name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if dspy.settings.adapter is not None:
            return super().__call__(*args, **kwargs)
        with dspy.context(adapter=ADAPTER):
            return super().__call__(*args, **kwargs)

    async def aforward(self, *args: Any, **kwargs: Any) -> Any:
        """``await program.acall(question=...)``: the same, in a thread, so that an event loop can go on."""
        forward = object.__getattribute__(self, "forward")  # dspy warns whoever else reads it outside a call
        return await dspy.asyncify(forward)(*args, **kwargs)
