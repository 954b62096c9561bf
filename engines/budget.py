"""Budgets that language models cannot exceed: ``Budget(calls=2_000, usd=5.0).meter(dspy.LM("openai/gpt-4o-mini"))``.

A metered model pays before each request; cached replies are free, repeated requests are not. The most that a request
can cost is reserved before it and corrected after it. A file shares the budget between processes and keeps it when a
run is interrupted; a killed process has paid for the requests it had begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import mkdtemp
from threading import RLock
from time import monotonic
from typing import Annotated, Any

import dspy
from dspy import lm15
from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field

from ..data.errors import PolyhopError
from ..data.files import read_bytes
from .costs import longest_reply, price
from .limits import LimitedLM
from .replies import prompt_text


class BudgetSpent(BaseException):
    """The budget allows no further request. Not an `Exception`: programs would record a failed question."""


_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=-1e-3, allow_inf_nan=False)]  # sums of what is reserved and given back are rounded


class Spent(BaseModel):
    """What was spent. ``seconds`` count while a process has the budget open."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    calls: _Count = 0
    tokens_in: _Count = 0
    tokens_out: _Count = 0
    usd: _Amount = 0.0
    seconds: _Amount = 0.0

    def plus(self, **more: float) -> Spent:
        return self.model_copy(update={name: getattr(self, name) + value for name, value in more.items()})


class Budget:
    """Limits, and what was spent of them. Thread-safe; with a file, process-safe.

    Args:
        calls, usd, minutes: The limits; None for no limit.
        file: Where the spending is recorded.

    Raises:
        PolyhopError: the file contains something else.
    """

    def __init__(
        self,
        calls: int | None = None,
        usd: float | None = None,
        minutes: float | None = None,
        file: Path | None = None,
    ) -> None:
        self.calls, self.usd, self.minutes, self.file = calls, usd, minutes, file
        self._reserve = Spent()
        self._models: set[str] = set()
        self._lock = RLock()
        self._file_lock = FileLock(file.with_suffix(".lock")) if file else None
        self._spent = read_spent(file) if file else Spent()
        self._opened = monotonic() - self._spent.seconds

    @contextmanager
    def _account(self) -> Iterator[None]:
        """Inside, ``_spent`` is what all processes have spent; changes are written."""
        with self._lock, self._file_lock or nullcontext():
            before = read_spent(self.file) if self.file else self._spent
            self._spent = before.model_copy(update={"seconds": max(before.seconds, monotonic() - self._opened)})
            yield
            if self.file and self._spent != before:
                _write(self.file, self._spent)

    @property
    def spent(self) -> Spent:
        with self._account():
            return self._spent

    @contextmanager
    def keeping_back(self, calls: int = 0, usd: float = 0.0, seconds: float = 0.0) -> Iterator[None]:
        """Inside, so much of the budget is reserved for later."""
        before, self._reserve = self._reserve, self._reserve.plus(calls=calls, usd=usd, seconds=seconds)
        try:
            yield
        finally:
            self._reserve = before

    @property
    def usd_a_call(self) -> float:
        """Average dollars per call; before the first call, the price of 2,000 tokens in and 400 out."""
        spent = self.spent
        guesses = (price(model, 2_000, 400) or 0.0 for model in self._models)
        return spent.usd / spent.calls if spent.calls else max(guesses, default=0.0)

    def meter(self, lm: Any) -> Any:
        """The same model, paid from this budget. Cache, sampling and retries do not change.

        Raises:
            PolyhopError: the model has another budget, it is no `dspy.LM`, or its prices are unknown and dollars are
            limited.
        """
        if not isinstance(lm, dspy.LM):  # of DSPy's older interface, which has no engine
            if (self.calls, self.usd, self.minutes) != (None, None, None):
                raise PolyhopError(f"{lm.model} is no dspy.LM: a budget cannot limit it")
            return lm
        limited = lm if isinstance(lm, LimitedLM) else LimitedLM(lm)
        if limited.engine.paid == self.paid:
            return lm
        if limited.engine.paid is not None:
            raise PolyhopError(f"{lm.model} already has another budget")
        if self.usd is not None and price(lm.model, 1, 1) is None:
            raise PolyhopError(
                f"the prices of {lm.model} are unknown: set a budget of calls or minutes instead of dollars"
            )
        self._models.add(lm.model)
        return limited.paid_by(self.paid)

    def meter_program(self, program: dspy.Module) -> None:
        """Meter the models of a program's predictors, in place."""
        metered: dict[int, Any] = {}
        for predictor in program.predictors():
            if predictor.lm is not None:
                predictor.lm = metered.setdefault(id(predictor.lm), self.meter(predictor.lm))

    def paid(self, send: Callable[[lm15.Request], lm15.Response], request: lm15.Request) -> lm15.Response:
        """Send a request and pay for it, or raise `BudgetSpent` and do not send it."""
        reserved = 0.0
        if self.usd is not None:  # a token per byte, more than any tokenizer makes, and the longest reply
            longest = request.config.max_tokens or longest_reply(request.model)
            prompt = len(prompt_text(request).encode("utf-8", "replace")) + 50 * len(request.messages) + 50
            reserved = price(request.model, prompt, longest) or 0.0
        self.pay(reserved)
        try:
            response = send(request)
        except BaseException:
            self.correct(usd=-reserved)  # providers do not charge for errors
            raise
        usage = response.usage
        tokens_in, tokens_out = usage.input_tokens or 0, usage.output_tokens or 0
        paid = price(request.model, tokens_in, tokens_out, usage.cache_read_tokens or 0) or 0.0
        self.correct(tokens_in=tokens_in, tokens_out=tokens_out, usd=paid - reserved)
        return response

    def pay(self, usd: float = 0.0) -> None:
        """Record a call and reserve its dollars, or raise `BudgetSpent` and record nothing."""
        with self._account():
            after, reserve = self._spent.plus(calls=1, usd=usd), self._reserve
            if self.calls is not None and after.calls > self.calls - reserve.calls:
                raise BudgetSpent(f"{self.calls:,} LM calls")
            if self.usd is not None and after.usd > self.usd - reserve.usd:
                raise BudgetSpent(f"${self.usd:,g}")
            if self.minutes is not None and after.seconds > 60 * self.minutes - reserve.seconds:
                raise BudgetSpent(f"{self.minutes:g} minutes")
            self._spent = after

    def correct(self, **more: float) -> None:
        """Record what is known after a call: tokens, and dollars to add to those reserved."""
        with self._account():
            self._spent = self._spent.plus(**more)

    def keep_in_file(self) -> None:
        """Let other processes of this machine use the account, also if it has no file yet."""
        if self.file is None:
            with self._lock:
                file = Path(mkdtemp(prefix="polyhop-")) / "spent.json"
                _write(file, self._spent)
                self.file, self._file_lock = file, FileLock(file.with_suffix(".lock"))

    def close(self) -> None:
        """Write the seconds to the file."""
        _ = self.spent

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        return self

    def __reduce__(self) -> Any:
        """In another process: the same limits, less what is reserved now, on the same file."""
        return Budget, (self.calls, self.usd, self.minutes, self.file), {"_reserve": self._reserve}


def read_spent(file: Path) -> Spent:
    try:
        content = read_bytes(file)
        return Spent.model_validate_json(content) if content else Spent()  # empty: killed before a write
    except FileNotFoundError:
        return Spent()
    except OSError as error:
        raise PolyhopError(f"{file} is not a record of spending: {error.strerror}") from error
    except ValueError as error:
        raise PolyhopError(f"{file} is not a record of spending: its numbers are missing or impossible") from error


def _write(file: Path, spent: Spent) -> None:
    """In place, in one write of constant length, so that no old bytes are left."""
    with file.open("r+b" if file.exists() else "wb", buffering=0) as opened:
        opened.write(spent.model_dump_json().ljust(200).encode())
