"""TREC files: what is written is what trec_eval reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.eval import trec


def test_a_run(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    trec.write_run(path, [("q 1", ["b", "a%\tx", "b"]), ("q2", []), ("q3", ["c"])], "my run")
    assert path.read_text() == (
        "q%201 Q0 b 1 2 my%20run\n"  #
        "q%201 Q0 a%25%09x 2 1 my%20run\n"
        "q3 Q0 c 1 1 my%20run\n"
    )
    assert trec.read_run(path) == {"q 1": ["b", "a%\tx"], "q3": ["c"]}


def test_qrels(tmp_path: Path) -> None:
    path = tmp_path / "qrels.trec"
    trec.write_qrels(path, [("q 1", ["b", "a", "b"]), ("q2", ())])
    assert path.read_text() == "q%201 0 b 1\nq%201 0 a 1\n"
    path.write_text(path.read_text() + "\nq3 0 x 0\nq3 0 y 2\n")
    assert trec.read_qrels(path) == {"q 1": {"a", "b"}, "q3": {"y"}}


def test_the_scores_decide(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q Q0 a 1 0.5 other\nq Q0 b 2 7e1 other\n")
    assert trec.read_run(path) == {"q": ["b", "a"]}


def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    with pytest.raises(ValueError, match="empty id"):
        trec.write_run(path, [("q", [""])], "tag")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="no question has gold passages"):
        trec.measure({"q": ["a"]}, {"q": ()})
    path.write_text("q Q0 a 1 2 tag\nq Q0 a b 1 2 tag\n")
    with pytest.raises(ValueError, match="line 2 has 7 fields instead of 6"):
        trec.read_run(path)


def test_the_files_mean_the_same_to_the_library(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    run, qrels = tmp_path / "run", tmp_path / "qrels"
    # Ids in ascending order: a tool that sees equal scores would turn them round.
    rankings = {"1": ["a", "b", "c"], "2": ["d"]}
    gold = {"1": {"a"}, "2": {"e"}, "3": {"f"}}
    trec.write_run(run, rankings.items(), "tag")
    trec.write_qrels(qrels, gold.items())
    read = list(ir_measures.read_trec_qrels(str(qrels))), list(ir_measures.read_trec_run(str(run)))
    assert ir_measures.calc_aggregate([ir_measures.RR], *read)[ir_measures.RR] == pytest.approx(1 / 3)
    assert trec.measure(rankings, gold, ["RR", "AP"]) == pytest.approx({"RR": 1 / 3, "AP": 1 / 3})


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.dictionaries(texts, st.lists(texts, min_size=1, max_size=5, unique=True), max_size=4))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, list[str]]) -> None:
    folder = tmp_path_factory.mktemp("trec")
    trec.write_run(folder / "run", rankings.items(), "tag")
    assert trec.read_run(folder / "run") == rankings
    trec.write_qrels(folder / "qrels", rankings.items())
    assert trec.read_qrels(folder / "qrels") == {question: set(ids) for question, ids in rankings.items()}
