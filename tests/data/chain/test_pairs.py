"""Pairs of passages to write questions from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from polyhop.data.chain.pairs import Pair, pairs
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool

LONG = "It was written down by people who had lived there for a long time and had seen what others only heard of."


def told(found: list[Pair]) -> set[tuple[str, str, str, str, int]]:
    return {(pair.first.document, pair.second.document, pair.via, pair.name, pair.sentence) for pair in found}


def test_a_rare_name_in_running_text_is_a_tie() -> None:
    pool = PassagePool(
        [
            Passage.of("Kestrel Mill", f"{LONG} The mill was bought by Ada Berg in 1870.", id="mill"),
            Passage.of("Ada Berg", f"{LONG} She was born in Tarn.", id="berg"),
            Passage.of("Short", "It was Ada Berg.", id="short"),  # too little to ask about
            Passage.of("Time", f"{LONG} A time.", id="time"),  # "time" is no name in the texts
        ]
    )
    assert told(list(pairs(pool))) == {("mill", "berg", "link", "ada berg", 1)}


def test_a_name_of_many_pages_is_none() -> None:
    many = [Passage.of("Ada Berg", f"{LONG} She was number {n}.", id=f"berg-{n}") for n in range(4)]
    mill = Passage.of("Kestrel Mill", f"{LONG} The mill was bought by Ada Berg in 1870.", id="mill")
    others = [Passage.of(f"Stone {n}", f"{LONG} A stone.", id=f"stone-{n}") for n in range(30)]
    assert list(pairs(PassagePool([mill, *many, *others]))) == []
    assert {pair.first.id for pair in pairs(PassagePool([mill, *many[:3], *others]))} == {"mill"}


def test_links_lead_to_other_documents_and_lists_to_none(tmp_path: Path) -> None:
    notes = {
        "mill.md": f"# Kestrel Mill\n\n{LONG} See [its owner](berg.md) for more, and [above](#kestrel-mill).",
        "berg.md": f"# Ada Berg\n\n{LONG} She was born far away.",
        "list.md": "# All\n\n" + "".join(f"- [The page of the mill with number {n}](mill.md)\n" for n in range(30)),
    }
    (tmp_path / "notes").mkdir()
    for name, text in notes.items():
        (tmp_path / "notes" / name).write_text(text)
    build_index([tmp_path / "notes"], tmp_path / "ix")
    with BM25Index(tmp_path / "ix") as index:
        assert told(list(pairs(index))) == {("notes/mill.md", "notes/berg.md", "hyperlink", "its owner", 1)}


def test_pairs_are_spread_and_the_same_for_a_seed() -> None:
    towns = [Passage.of(f"Town{n} Hall", f"{LONG} The mayor of Town{n} Hall is old.", id=f"town{n}") for n in range(20)]
    people = [
        replace(Passage.of(f"Person {n}", f"{LONG} He lives beside Town{n % 4} Hall all year."), id=f"p{n}")
        for n in range(12)
    ]
    pool = PassagePool([*towns, *people])
    found = list(pairs(pool, 3))
    assert [pair.first.id for pair in found] == [pair.first.id for pair in pairs(pool, 3)]
    assert [pair.first.id for pair in found] != [pair.first.id for pair in pairs(pool, 4)]
    assert len({pair.first.id for pair in found}) == len(found) == 8  # each of four towns is twice the second one
    assert max([pair.second.id for pair in found].count(f"town{n}") for n in range(4)) == 2
