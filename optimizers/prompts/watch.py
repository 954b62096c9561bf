"""What is counted and seen while a teleprompter runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from ...data.errors import PolyhopError
from ...engines.costs import Ledger
from ...engines.models import explain
from .student import is_agent


class Meter(Ledger):
    """Counts calls as they are paid, and passes them on to who counted before."""

    def __init__(self, on_progress: Callable[[int], None], outer: Any) -> None:
        super().__init__()
        self._on_progress, self._outer = on_progress, outer
        self._paid, self._telling = 0, Lock()

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        super().add_usage(lm, usage_entry)
        if self._outer is not None:
            self._outer.add_usage(lm, usage_entry)
        with self._telling:
            self._paid += 1
            self._on_progress(self._paid)

    def happened(self, incident: str) -> None:
        super().happened(incident)
        if isinstance(self._outer, Ledger):
            self._outer.happened(incident)


class Watch(BaseCallback):
    """Sees whether the program runs, and whether proposals are made: DSPy takes a failed run for a bad one, and mostly
    goes on without a proposal that failed."""

    def __init__(self, kind: type[dspy.Module]) -> None:
        self._kind = kind
        self._under_way: dict[str, str] = {}
        self._begun: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._last: dict[str, BaseException] = {}
        self._lock = Lock()

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        what = "runs of the program" if isinstance(instance, self._kind) else ""
        if isinstance(instance, dspy.Predict) and not is_agent(instance):
            what = "proposals"
        with self._lock:
            if what:
                self._under_way[call_id] = what
                self._begun[what] += 1

    def on_module_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        with self._lock:
            what = self._under_way.pop(call_id, None)
            if what and exception is not None:
                self._failed[what] += 1
                self._last[what] = exception

    def check(self) -> None:
        """
        Raises:
            PolyhopError: more than half of the runs or of the proposals failed.
        """
        for what, failed in self._failed.items():
            if 2 * failed > self._begun[what]:
                raise PolyhopError(
                    f"{failed} of {self._begun[what]} {what} failed, so that nothing could be learned; the last one: "
                    f"{explain(self._last[what])}"
                ) from self._last[what]
