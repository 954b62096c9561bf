"""The registry of retrievers: built by name, recognized, and extended from outside the package."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Hit, Passage, Place, one_a_document
from polyhop.data.pool import PassagePool
from polyhop.data.retrievers import (
    OTHER,
    build_retriever,
    describe_retriever,
    retriever_name,
)

POOL = PassagePool([Passage.of("Rome", "A city.")])

OWN = """
class Reversed:
    def __init__(self, source):
        self.source = source
    def search(self, query, k, offset=0):
        return self.source.search(query, k, offset)[::-1]

def number(source):
    return 1

class Shallow(Reversed):
    def search(self, query, k):
        return []
"""


def test_an_own_retriever_is_a_function_of_what_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_retriever_for_tests.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    retriever = build_retriever("own_retriever_for_tests:Reversed", POOL)
    assert retriever is not None
    assert retriever.search("Rome", 1)[0].passage.title == "Rome"
    assert (retriever_name(retriever), describe_retriever(retriever)) == (OTHER, "Reversed")
    for name, told in (("number", "got int"), ("Shallow", "too many positional arguments")):
        with pytest.raises(PolyhopError, match=rf"{name}: a retriever has a method search\(query, k, off.*{told}"):
            build_retriever(f"own_retriever_for_tests:{name}", POOL)
    with pytest.raises(PolyhopError, match="os:getcwd: TypeError: "):
        build_retriever("os:getcwd", POOL)
    with pytest.raises(PolyhopError, match="Reversed needs an --index: only chain and bm25 search questions'"):
        build_retriever("own_retriever_for_tests:Reversed", None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bm52", "no retriever 'bm52': choose chain, chain-bm25, bm25, dense, fused, or your own as FILE.py:NAME"),
        ("no_such_module_here:build", "cannot import the retriever 'no_such_module_here:build': No module named"),
        ("json:no_such_function", "cannot import the retriever 'json:no_such_function': module 'json' has no"),
        *((name, "needs an --index with vectors") for name in ("dense", "fused")),
    ],
)
def test_a_name_that_cannot_be_built(name: str, message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        build_retriever(name, POOL)


@pytest.mark.parametrize("name", ["bm25", "chain"])
def test_one_hit_a_document(name: str) -> None:
    """One long document has the best 40 passages, so ten documents are found only far down."""
    long = [
        replace(Passage.of("River", f"The river bends {n} times. A river."), place=Place("river", n)) for n in range(40)
    ]
    short = [Passage.of(f"Mill {n}", f"A mill {'by' * n} at the river.", id=f"mill-{n}") for n in range(12)]
    retriever = build_retriever(name, PassagePool([*long, *short, Passage.of("Alp", "A meadow.", id="alp")]))
    assert retriever is not None
    every = retriever.search("river", 53)
    assert [hit.passage.document for hit in every[:2]] == ["river", "river"] or name == "chain"
    first: dict[str, Hit] = {}
    for hit in every:
        first.setdefault(hit.passage.document, hit)
    assert len(first) == 14
    found = one_a_document(retriever.search, "river", 10)
    assert [(hit.passage, hit.score) for hit in found] == [(hit.passage, hit.score) for hit in first.values()][:10]
    assert [hit.rank for hit in found] == list(range(1, 11))
    assert one_a_document(retriever.search, "river", 4, 3) == found[3:7]
    assert len(one_a_document(retriever.search, "river", 100)) == 14
    with pytest.raises(ValueError, match="k must be positive"):
        one_a_document(retriever.search, "river", 0)
