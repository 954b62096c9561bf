"""Pairs of passages to write questions from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from polyhop.data.chain.pairs import pairs, path
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool

LONG = "It was written down by people who had lived there for a long time and had seen what others only heard of."


def bridges(pool: PassagePool | BM25Index) -> set[tuple[str, str, str, int | None]]:
    return {(*pair.documents, pair.name, pair.sentence) for pair in pairs(pool) if pair.kind == "bridge"}


def test_a_rare_name_in_running_text_is_a_tie() -> None:
    pool = PassagePool(
        [
            Passage.of("Kestrel Mill", f"{LONG} The mill was bought by Ada Berg in 1870.", id="mill"),
            Passage.of("Ada Berg", f"{LONG} She was born in Tarn.", id="berg"),
            Passage.of("Short", "It was Ada Berg.", id="short"),  # too little to ask about
            Passage.of("Time", f"{LONG} A time.", id="time"),  # "time" is no name in the texts
        ]
    )
    [pair] = pairs(pool)
    assert (pair.kind, pair.documents, pair.sentence) == ("bridge", ("mill", "berg"), 1)
    assert pair.tie == "Kestrel Mill mentions Ada Berg: ada berg"


def test_two_things_of_a_kind_that_a_page_names_are_compared() -> None:
    opening = "A small town of the northern coast, founded in 180"
    towns = [Passage.of(f"Tarn{n}", f"{opening}{n}. {LONG}", id=f"t{n}") for n in (1, 2)]
    mill = Passage.of("Kestrel Mill", f"{LONG} Flour went to Tarn1 and to Tarn2.", id="mill")
    others = [Passage.of(f"Stone {n}", f"{LONG} A stone.", id=f"stone-{n}") for n in range(30)]
    found = [pair for seed in range(8) for pair in pairs(PassagePool([*towns, mill, *others]), seed)]
    compared = {(frozenset(pair.documents), pair.sentence) for pair in found if pair.kind == "comparison"}
    assert compared == {(frozenset({"t1", "t2"}), None)}


def test_a_name_of_many_pages_is_none() -> None:
    many = [Passage.of("Ada Berg", f"{LONG} She was number {n}.", id=f"berg-{n}") for n in range(4)]
    mill = Passage.of("Kestrel Mill", f"{LONG} The mill was bought by Ada Berg in 1870.", id="mill")
    others = [Passage.of(f"Stone {n}", f"{LONG} A stone.", id=f"stone-{n}") for n in range(30)]
    assert list(pairs(PassagePool([mill, *many, *others]))) == []
    assert {pair.first.id for pair in pairs(PassagePool([mill, *many[:3], *others]))} == {"mill"}


def test_links_lead_to_other_documents_and_lists_to_none(tmp_path: Path) -> None:
    notes = {
        "mill.md": f"# Kestrel Mill\n\n{LONG} See [its owner](berg.md) for more, [above](#kestrel-mill), [none](x.md).",
        "berg.md": f"# Ada Berg\n\n{LONG} She was born far away.",
        "list.md": "# All\n\n" + "".join(f"- [The page of the mill with number {n}](mill.md)\n" for n in range(30)),
    }
    (tmp_path / "notes").mkdir()
    for name, text in notes.items():
        (tmp_path / "notes" / name).write_text(text)
    build_index([tmp_path / "notes"], tmp_path / "ix")
    with BM25Index(tmp_path / "ix") as index:
        assert bridges(index) == {("notes/mill.md", "notes/berg.md", "its owner", 1)}


def test_pairs_are_spread_and_the_same_for_a_seed() -> None:
    towns = [Passage.of(f"Town{n} Hall", f"{LONG} The mayor of Town{n} Hall is old.", id=f"town{n}") for n in range(20)]
    people = [
        Passage.of(f"Person {n}", f"{LONG} He lives beside Town{n % 4} Hall all year.", id=f"p{n}") for n in range(12)
    ]
    pool = PassagePool([*towns, *people])
    found = list(pairs(pool, 3))
    assert [pair.documents for pair in found] == [pair.documents for pair in pairs(pool, 3)]
    assert [pair.documents for pair in found] != [pair.documents for pair in pairs(pool, 4)]
    uses = Counter(document for pair in found for document in pair.documents)
    assert max(uses.values()) == 2
    assert len({pair.documents for pair in found}) == len(found) == 8


def test_a_path_leads_from_one_document_to_another_or_to_what_both_lead_to() -> None:
    pool = PassagePool(
        [
            Passage.of("Kestrel Mill", f"{LONG} It was bought by Ada Berg.", id="mill"),
            Passage.of("Ada Berg", f"{LONG} She was born in Tarnwick Harbour.", id="berg"),
            Passage.of("Tarnwick Harbour", f"{LONG} A place of ships.", id="tarn"),
            Passage.of("Otto Lind", f"{LONG} He died in Tarnwick Harbour.", id="lind"),
            Passage.of("Moor Hall", f"{LONG} It stands alone.", id="moor"),
        ]
    )
    mill, _, tarn, lind, moor = pool.passages

    def documents(start: Passage, goal: Passage) -> list[tuple[str, str]] | None:
        links = path(pool, start, goal)
        return links if links is None else [(link.passage.document, link.to.document) for link in links]

    assert documents(mill, tarn) == [("mill", "berg"), ("berg", "tarn")]
    assert documents(tarn, mill) == [("berg", "tarn"), ("mill", "berg")]  # the same, from its other end
    assert documents(mill, lind) == [("mill", "berg"), ("berg", "tarn"), ("lind", "tarn")]
    assert documents(mill, moor) is None
    assert path(pool, mill, lind, most=1) is None
