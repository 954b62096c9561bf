"""Every format of a reply, changed POLYHOP_FUZZ_CASES times: it is read, or an error of a model, and soon."""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Iterator
from time import monotonic
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import LMError
from hypothesis import given

from polyhop.engines.costs import Ledger
from polyhop.engines.limits import LimitedLM, Limits, RateLimit
from polyhop.signatures import answers, evidence, planning

from ..faults.completions import completion_of
from ..faults.exchange import response
from ..faults.listening import Listening, says
from .mutants import CASES, LONGEST, changed, is_sound, scrambled

pytestmark = pytest.mark.slow

SIGNATURES: list[Any] = [
    each
    for module in (answers, evidence, planning)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, dspy.Signature) and each.__module__ == module.__name__
]
COMPLETION = completion_of("m", "[[ ## answer ## ]]\nAda\n\n[[ ## completed ## ]]", 7, 3)


@pytest.fixture(scope="module")
def server() -> Iterator[Listening]:
    with Listening(says("")) as server:
        yield server


@pytest.fixture
def silence() -> Iterator[None]:
    """No log and no warning: they quote replies, and a worker of xdist cannot report surrogates."""
    logging.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("silence")
@pytest.mark.parametrize("engine", ["lm15", "litellm"])
def test_a_body(engine: str, server: Listening) -> None:
    """What a server sends as the JSON of a completion, and what it sends as HTTP."""
    lm = dspy.LM("openai/m", api_base=server.url, api_key="any", cache=False, engine=engine)
    lm = LimitedLM(lm, RateLimit(Limits(retries=0, timeout=LONGEST)))

    def http(body: bytes) -> bytes:
        chance = random.Random(body)
        return scrambled(response(body), chance) if chance.random() < 0.2 else response(body)

    @CASES
    @given(changed(COMPLETION).map(http))
    def fuzz(data: bytes) -> None:
        def act(exchange: Any) -> None:
            exchange.send(data)
            exchange.close()

        server.act = act
        server.seen.clear()
        ledger, started, replied = Ledger(), monotonic(), ""
        try:
            with dspy.context(usage_tracker=ledger, disable_history=True):
                (replied,) = lm("Who?")
        except LMError as error:
            assert len(str(error)) < 2_000  # noqa: PT017
        assert is_sound(replied)
        assert all(0 <= cost < 1e12 for cost in ledger.costs().values())
        assert monotonic() - started < 2 * LONGEST

    fuzz()
