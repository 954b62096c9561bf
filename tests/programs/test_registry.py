"""The programs by name."""

from __future__ import annotations

import dspy
import pytest

from polyhop.data.pool import PassagePool
from polyhop.programs import PROGRAMS, Prism, name_of, new_program, retriever_of
from polyhop.programs.search import retriever_kind

POOL = PassagePool([])


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_its_name(name: str) -> None:
    program = new_program(name, POOL)
    assert type(program) is PROGRAMS[name]
    assert name_of(program) == name
    searches = name not in ("direct", "oracle")
    assert retriever_of(program) is (POOL if searches else None)
    assert retriever_kind(program) == ("bm25" if searches else "none")


def test_others_have_none() -> None:
    class Special(Prism):
        pass

    assert name_of(Special()) is None
    assert name_of(dspy.Predict("question -> answer")) is None
    with pytest.raises(KeyError):
        new_program("special")
