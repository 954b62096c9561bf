"""The TREC files, as ir-measures reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.errors import PolyhopError
from polyhop.eval import trec

IR: Any = ir_measures  # partly untyped


def test_an_empty_id_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PolyhopError, match="empty id"):
        trec.write_run(tmp_path / "run", [("q", ["a", ""])], "run")
    assert not list(tmp_path.iterdir())


def test_a_run_and_its_qrels(tmp_path: Path) -> None:
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.trec"
    trec.write_run(run, [("q 1", ["b", "a%\tx", "b"]), ("q2", []), ("q3", ["\ud800"])], "my run")
    assert run.read_text() == "q%201 Q0 b 1 2 my%20run\nq%201 Q0 a%25%09x 2 1 my%20run\nq3 Q0 %ED%A0%80 1 1 my%20run\n"
    trec.write_qrels(qrels, [("q 1", ["b", "a", "b"]), ("q2", ())])
    assert qrels.read_text() == "q%201 0 b 1\nq%201 0 a 1\n"


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.dictionaries(texts, st.lists(texts, min_size=1, max_size=5, unique=True), max_size=4))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, list[str]]) -> None:
    folder = tmp_path_factory.mktemp("trec")
    trec.write_run(folder / "run", rankings.items(), "tag")
    read: dict[str, list[str]] = {}
    for hit in sorted(IR.read_trec_run(str(folder / "run")), key=lambda hit: -hit.score):
        read.setdefault(unquote(hit.query_id), []).append(unquote(hit.doc_id))
    assert read == rankings
    trec.write_qrels(folder / "qrels", rankings.items())
    gold = {(unquote(each.query_id), unquote(each.doc_id)) for each in IR.read_trec_qrels(str(folder / "qrels"))}
    assert gold == {(question, id) for question, ids in rankings.items() for id in ids}
