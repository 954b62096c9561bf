"""What the tests of the lexical engine share."""

from __future__ import annotations

from collections.abc import Iterator

import dspy
import pytest

from polyhop.engines.lexical import LexicalEngine


@pytest.fixture
def lexical() -> Iterator[None]:
    """The engine as DSPy's language model."""
    with dspy.context(lm=dspy.LM("lexical", engine=LexicalEngine(), cache=False)):
        yield
