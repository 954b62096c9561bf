"""The TREC files of a run, as ir-measures reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.errors import PolyhopError
from polyhop.eval.summary import run_lines

IR: Any = ir_measures  # partly untyped
texts = st.text(min_size=1, max_size=8)


def test_lines() -> None:
    assert list(run_lines("q 1", ["b", "a%\tx", "b"], "my run")) == [
        "q%201 Q0 b 1 2 my%20run\n",
        "q%201 Q0 a%25%09x 2 1 my%20run\n",
    ]
    assert list(run_lines("q", ["\ud800"], "t")) == ["q Q0 %ED%A0%80 1 1 t\n"]
    with pytest.raises(PolyhopError, match="empty id"):
        list(run_lines("q", ["a", ""], "t"))


@given(st.dictionaries(texts, st.lists(texts, min_size=1, max_size=5, unique=True), max_size=4))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, list[str]]) -> None:
    file: Path = tmp_path_factory.mktemp("trec") / "run"
    file.write_text("".join(line for item in rankings.items() for line in run_lines(*item, "tag")))
    read: dict[str, list[str]] = {}
    for hit in sorted(IR.read_trec_run(str(file)), key=lambda hit: -hit.score):
        question = unquote(hit.query_id, errors="surrogatepass")
        read.setdefault(question, []).append(unquote(hit.doc_id, errors="surrogatepass"))
    assert read == rankings
