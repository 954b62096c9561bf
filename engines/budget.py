"""A budget that language models cannot exceed: calls, dollars, minutes.

    budget = Budget(calls=2_000, usd=5.0, file=Path("runs/x/spent.json"))
    lm = budget.meter(dspy.LM("openai/gpt-4o-mini"))

A metered model asks before every request that would reach the real one: replies from DSPy's cache are free, a request
that is repeated after an error counts again. Who asks too much gets `BudgetSpent`. Dollars are set aside at the most
that a request can cost before it is made, and what it did not need is given back after it.

With a file, the account is kept there by every process that names it, so that a budget holds for a run that is stopped
and continued, and for several workers. A process that is killed has paid for what it had asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import dspy
from dspy import lm15

from ..data.errors import PolyhopError
from .connection import Connection, InFront, connected
from .endpoint import GuardedLM
from .prices import longest_reply, price


class BudgetSpent(BaseException):
    """No further request is allowed. Not an `Exception`: DSPy and programs would take it for a failed question."""


@dataclass(frozen=True)
class Spent:
    """What was spent. ``seconds`` are those in which some process had the account open."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    seconds: float = 0.0

    def plus(self, **more: float) -> Spent:
        return replace(self, **{name: getattr(self, name) + value for name, value in more.items()})


class Budget:
    """An account with limits. One object serves all threads; a file joins those of several processes.

    Args:
        calls, usd, minutes: The limits; None for no limit.
        file: Where the account is kept.

    Raises:
        PolyhopError: the file holds something else.
    """

    def __init__(
        self,
        calls: int | None = None,
        usd: float | None = None,
        minutes: float | None = None,
        file: Path | None = None,
    ) -> None:
        from filelock import FileLock

        self.calls, self.usd, self.minutes, self.file = calls, usd, minutes, file
        self._spent = Spent()
        self._owed = Spent()  # what is to be added to the account with the next request
        self._kept_back = Spent()
        self._models: set[str] = set()
        self._lock = threading.Lock()
        self._file_lock = FileLock(file.with_suffix(".lock")) if file else None
        self._opened = monotonic()
        self._before = _read(file).seconds if file else 0.0

    @property
    def spent(self) -> Spent:
        with self._lock, self._file_lock or nullcontext():
            known = _read(self.file) if self.file else self._spent
            return replace(known.plus(**asdict(self._owed)), seconds=self._seconds())

    def _seconds(self) -> float:
        return self._before + monotonic() - self._opened

    @contextmanager
    def keeping_back(self, calls: int = 0, usd: float = 0.0, seconds: float = 0.0) -> Iterator[None]:
        """Inside, so much less may be spent: it is kept for what comes after."""
        before, self._kept_back = self._kept_back, self._kept_back.plus(calls=calls, usd=usd, seconds=seconds)
        try:
            yield
        finally:
            self._kept_back = before

    @property
    def usd_a_call(self) -> float:
        """What a call has cost on the average; before the first one a guess: 2,000 tokens in and 400 out."""
        spent = self.spent
        guesses = (price(model, 2_000, 400) or 0.0 for model in self._models)
        return spent.usd / spent.calls if spent.calls else max(guesses, default=0.0)

    def meter(self, lm: dspy.LM) -> dspy.LM:
        """The same model, on this account. Its cache, its sampling and its retries stay what they are.

        Raises:
            PolyhopError: dollars are limited and nobody knows the model's prices.
        """
        guarded = isinstance(lm, GuardedLM)
        engine = lm.engine.engine if guarded else lm.engine
        if isinstance(engine, _Metered):
            if engine.budget is self:
                return lm
            raise PolyhopError(f"{lm.model} is on another account already")
        if self.usd is not None and price(lm.model, 1, 1) is None:
            raise PolyhopError(
                f"no price is known for {lm.model}: give a budget of calls or minutes instead of dollars"
            )
        self._models.add(lm.model)
        if guarded:  # behind the endpoint, so that every attempt is paid
            return lm.with_engine(_Metered(self, engine, lm.model))
        if isinstance(engine, str):
            return connected(lm, _Metered(self, Connection(lm), lm.model))
        return lm.copy(engine=_Metered(self, engine, lm.model))

    def meter_program(self, program: dspy.Module) -> None:
        """Put every model that a program's agents have on this account, in place; one account entry a request."""
        metered: dict[int, dspy.LM] = {}
        for predictor in program.predictors():
            if predictor.lm is not None:
                predictor.lm = metered.setdefault(id(predictor.lm), self.meter(predictor.lm))

    def pay(self, usd: float = 0.0) -> None:
        """Book a request and set aside what it may cost.

        Raises:
            BudgetSpent: it would exceed a limit; nothing is booked.
        """
        with self._account():
            after = self._spent.plus(calls=1, usd=usd)
            kept = self._kept_back
            if self.calls is not None and after.calls > self.calls - kept.calls:
                raise BudgetSpent(f"{self.calls:,} LM calls")
            if self.usd is not None and after.usd > self.usd - kept.usd:
                raise BudgetSpent(f"${self.usd:,g}")
            if self.minutes is not None and self._seconds() > 60 * self.minutes - kept.seconds:
                raise BudgetSpent(f"{self.minutes:g} minutes")
            self._spent = after

    def owe(self, **more: float) -> None:
        """Book what became known after a request: tokens, and dollars that were set aside and not needed (negative)."""
        with self._lock:
            self._owed = self._owed.plus(**more)

    def close(self) -> None:
        """Write down what is not in the file yet."""
        with self._account():
            pass

    @contextmanager
    def _account(self) -> Iterator[None]:
        """The account as all processes know it; what is changed inside is written back."""
        with self._lock:
            if self._file_lock is None or self.file is None:
                self._spent, self._owed = self._spent.plus(**asdict(self._owed)), Spent()
                yield
                return
            with self._file_lock:
                known = _read(self.file)
                self._spent, self._owed = known.plus(**asdict(self._owed)), Spent()
                try:
                    yield
                finally:
                    _write(self.file, replace(self._spent, seconds=max(known.seconds, self._seconds())))

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        return self

    def __reduce__(self) -> Any:
        """In another process: the same limits, less what is kept back here and now, on the same file."""
        return _reopened, (self.calls, self.usd, self.minutes, self.file, self._kept_back)


def _reopened(
    calls: int | None, usd: float | None, minutes: float | None, file: Path | None, kept_back: Spent
) -> Budget:
    budget = Budget(calls, usd, minutes, file)
    budget._kept_back = kept_back
    return budget


_WIDTH = 200


def _read(file: Path) -> Spent:
    try:
        written = file.read_bytes()
        return Spent(**json.loads(written)) if written else Spent()  # empty: a process was killed before its first line
    except FileNotFoundError:
        return Spent()
    except (ValueError, TypeError) as error:
        raise PolyhopError(f"{file} is no account of what was spent: {error}") from error


def _write(file: Path, spent: Spent) -> None:
    """In place and in one step; of fixed width, so that nothing is left of what stood there."""
    with file.open("r+b" if file.exists() else "wb", buffering=0) as opened:
        opened.write(json.dumps(asdict(spent)).ljust(_WIDTH).encode())


class _Metered(InFront):
    """An engine that pays before it asks another one."""

    def __init__(self, budget: Budget, engine: Any, model: str) -> None:
        super().__init__(engine)
        self.budget, self.model = budget, model

    def complete(self, request: lm15.Request) -> lm15.Response:
        aside = self._most(request)
        self.budget.pay(usd=aside)
        try:
            response = self.engine.complete(request)
        except BaseException:
            self.budget.owe(usd=-aside)  # providers do not charge for errors
            raise
        given, taken = response.usage.input_tokens or 0, response.usage.output_tokens or 0
        paid = price(self.model, given, taken, response.usage.cache_read_tokens or 0) or 0.0
        self.budget.owe(tokens_in=given, tokens_out=taken, usd=paid - aside)
        return response

    def _most(self, request: lm15.Request) -> float:
        """Dollars: every character a token, which no prompt in any script exceeds by much, and the longest reply."""
        if self.budget.usd is None:
            return 0.0
        written = len(str(request.system or "")) + sum(len(str(message.parts)) for message in request.messages)
        return price(self.model, written, request.config.max_tokens or longest_reply(self.model)) or 0.0
