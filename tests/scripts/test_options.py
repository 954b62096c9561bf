"""Programs by name and from saved states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.data.pool import PassagePool
from polyhop.data.sample import sample_passages
from polyhop.programs import Direct, Naive, Prism
from polyhop.scripts.options import build_program, open_source

POOL = PassagePool([])


@pytest.mark.parametrize(("name", "kind"), [("prism", Prism), ("naive", Naive), ("direct", Direct)])
def test_programs_have_names(name: str, kind: type) -> None:
    assert type(build_program(name, POOL)) is kind


def test_an_unknown_program_lists_the_known() -> None:
    with pytest.raises(PolyhopError, match="no program 'prsm': choose prism, naive, direct, or a saved state"):
        build_program("prsm", POOL)


def test_depth_is_set() -> None:
    assert build_program("naive", POOL, k=3).search.k.value == 3
    with pytest.raises(PolyhopError, match="direct does not search"):
        build_program("direct", POOL, k=3)


@pytest.mark.parametrize("kind", [Prism, Naive, Direct])
def test_a_saved_state_finds_its_program(kind: Callable[[], Any], tmp_path: Path) -> None:
    saved = kind()
    saved.answerer.signature = saved.answerer.signature.with_instructions("Answer in rhyme.")
    if kind is Prism:
        saved.rounds.value = 5
    saved.save(tmp_path / "x.json")
    program = build_program(str(tmp_path / "x.json"), POOL)
    assert type(program) is kind
    assert program.answerer.signature.instructions == "Answer in rhyme."
    if kind is Prism:
        assert program.rounds.value == 5


def test_models_do_not_come_from_the_state(tmp_path: Path) -> None:
    saved = Direct()
    build_program("direct", POOL)
    saved.set_lm(build_program("direct", POOL, ["openai/gpt-4o-mini"]).answerer.lm)
    saved.save(tmp_path / "x.json")
    assert build_program(str(tmp_path / "x.json"), POOL).answerer.lm.model == "lexical"


def without(state: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != name}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a program saved by"),
        ("[1, 2]", "is not a program saved by"),
        ('{"answerer": 3}', "is not a program saved by"),
        ("{}", "has the parameters of no program of this version: it names none"),
        (
            json.dumps(without(Prism().dump_state(), "adder")),
            "parameters of no program of this version: it names search.k,",
        ),
        (json.dumps({**Prism().dump_state(), "judge": {}}), "has the parameters of no program"),
        (json.dumps({**Prism().dump_state(), "rounds": {"value": 99}}), "refuses: must be an integer in 1..6, got 99"),
        (json.dumps({**Prism().dump_state(), "rounds": {}}), "refuses: 'value'"),
    ],
)
def test_what_is_no_state_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(PolyhopError, match=message):
        build_program(str(path), POOL)


def test_a_missing_state_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolyhopError, match=r"cannot read the program .*x\.json: No such file"):
        build_program(str(tmp_path / "x.json"), POOL)


def test_the_sample_is_searched_where_no_index_is_given() -> None:
    retriever = open_source(None)
    assert isinstance(retriever, PassagePool)
    assert len(retriever) == len(sample_passages())
