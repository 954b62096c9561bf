"""The words of a collection, in memory and on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.data.chain.store import Store, StoreWriter, hashes_of
from polyhop.data.chain.words import (
    FORM_BITS,
    LINK_KINDS,
    anchor_number,
    document_number,
    folded,
    number,
    place_numbers,
    record_of,
    texts_of,
    without_flags,
)
from polyhop.data.links import address
from polyhop.data.passages import Link, Passage, Place

PASSAGES = [
    Passage.of("Help! (film)", "Help! is a film with the Beatles."),
    Passage.of("Help!", "Help is assistance to others."),
    Passage.of("The Beatles", "They made films, and a film about films."),
    Passage.of("", "A text without a title."),
]


def hashed(*folders: Path) -> dict[Path, dict[str, str]]:
    return {folder: hashes_of(folder) for folder in folders}


def write(folder: Path, *batches: list[Passage], before: Sequence[Path] = (), live: Any = None) -> Path:
    writer = StoreWriter(folder)
    if live is not None:
        writer.copy(hashed(*before), live)
    for passages in batches:
        writer.add(passages)
    assert writer.finish() == hashes_of(folder)
    return folder


def test_damaged_tables_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "store", PASSAGES)
    hashes = hashed(folder)
    counts = (folder / "counts.npy").read_bytes()
    (folder / "counts.npy").write_bytes(counts[:-4] + bytes([counts[-4] ^ 1]) + counts[-3:])
    with pytest.raises(ValueError, match="has changed"):
        Store.open(hashes)
    (folder / "counts.npy").write_bytes(counts)
    for name, table in (
        ("documents", np.zeros(3, np.uint64)),
        ("rows", np.zeros(2, np.uint32)),
        ("keys", np.load(folder / "keys.npy").astype(np.int64)),
        ("starts", np.load(folder / "starts.npy") + np.array([0, 0, 0, 0, 1])),
        ("counts", np.array([{}])),
    ):
        before = (folder / f"{name}.npy").read_bytes()
        np.save(folder / f"{name}.npy", table)
        with pytest.raises(ValueError, match=r"do not fit together|allow_pickle"):
            Store.open(hashed(folder))  # as in an index that somebody made so
        (folder / f"{name}.npy").write_bytes(before)
    with pytest.raises(ValueError, match="other passages"):
        Store.open(hashed(folder), np.ones(5, bool))
    (folder / "words").write_bytes((folder / "words").read_bytes()[:-4])
    with pytest.raises(ValueError, match="do not fit together"):
        Store.open(hashed(folder))


# --- what a record keeps ---------------------------------------------------------------------------------------------

SENTENCES = st.lists(
    st.lists(st.sampled_from("Anna Berg met os.urandom in Paris, (1999) the é 東京 x".split()), min_size=1, max_size=6),
    max_size=4,
).map(lambda sentences: [f"{' '.join(words)}." for words in sentences])
PAGES = [f"docs/{name}" for name in ("a.html", "b/index.md", "c#.md", "Anna Berg.md")] + ["q1"]
TARGETS = st.sampled_from([*(page.replace("#", "%23") for page in PAGES), "[[Moons]]"])
FRAGMENTS = ["", "x", "y z", "#"]


@st.composite
def passages_with_links(draw: st.DrawFn) -> Passage:
    title = draw(st.sampled_from(["", "Help! (film)", "2.1 Moons: a list", "Paris, Texas", "word " * 130]))
    sentences = draw(SENTENCES)
    links = st.builds(
        Link,
        target=st.tuples(TARGETS, st.sampled_from(FRAGMENTS)).map(lambda parts: "#".join(filter(None, parts))),
        text=st.sampled_from(["Anna Berg", "met os.urandom in", "missing", "", "é"]),
        sentence=st.integers(0, max(len(sentences) - 1, 0)),
        kind=st.sampled_from(["text", "contents", "see"]),
    )
    return replace(
        Passage.of(title, sentences=sentences),
        place=Place(draw(st.sampled_from(PAGES)), draw(st.sampled_from([0, 7]))),
        links=tuple(draw(st.lists(links, max_size=4))) if sentences else (),
        anchors=tuple(draw(st.lists(st.sampled_from(FRAGMENTS[1:]), max_size=2))),
    )


def check_record(store: Store, row: int, passage: Passage) -> None:
    """What is stored against the passage: words, links and their words, document."""
    record, texts = store.records([row]), [folded(text) for text in texts_of(passage)]
    words = without_flags(record.words).tolist()
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    assert words == [number(form) >> FORM_BITS if form else 0 for text in texts for form in (*text, "")]
    assert record.heads[0, 0] == min(len(texts[0]), 255)
    assert record.heads[0, -1] == bool(passage.place and passage.place.sentence)
    assert record.documents.tolist() == [document_number(passage.document.replace("#", "%23"))]
    own = address(passage.document.replace("#", "%23"))
    links = [link for link in passage.links if address(link.target) != own]
    assert record.linked.tolist() == [len(links)]
    for link, found in zip(links, record.links, strict=True):
        assert found["document"] == document_number(link.target)
        assert found["anchor"] == anchor_number(link.target)
        assert LINK_KINDS[found["kind"]] == link.kind
        at = link.sentence + len(texts) - len(passage.sentences)
        wanted, start, end = folded(link.text), int(found["start"]), int(found["end"])
        stands = any(texts[at][first : first + len(wanted)] == wanted for first in range(len(texts[at])))
        forms = [form for text in texts for form in (*text, "")]
        assert forms[start:end] == (wanted if stands else [])
        assert starts[at] <= start < starts[at + 1]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(passages_with_links(), st.booleans()), min_size=1, max_size=5))
def test_what_is_read_back_is_what_the_passages_say(drawn: list[tuple[Passage, bool]]) -> None:
    """In memory, on disk, in parts, with deleted passages, and after these were dropped."""
    passages, alive = [passage for passage, _ in drawn], np.array([live for _, live in drawn])
    with TemporaryDirectory() as folder:
        root = Path(folder)
        half = len(passages) // 2
        whole, parts = (
            write(root / "whole", passages),
            [
                write(root / "first", passages[:half]),
                write(root / "others", passages[half:]),
            ],
        )
        more = write(root / "more", passages[:1])
        dropped = write(root / "dropped", passages[:1], before=parts, live=alive)
        left = [passage for passage, live in drawn if live]
        every = [True] * len(passages)
        for store, rows, live in (
            (Store.of(map(record_of, passages)), passages, every),
            (Store.open(hashed(whole)), passages, every),
            (Store.open(hashed(*parts)), passages, every),
            (Store.open(hashed(*parts, more), np.append(alive, True)), [*passages, passages[0]], [*alive, True]),
            (Store.open(hashed(dropped)), [*left, passages[0]], [True] * (len(left) + 1)),
        ):
            assert len(store) == len(rows)
            there = [(row, passage) for row, passage in enumerate(rows) if live[row]]
            for row, passage in there:
                check_record(store, row, passage)
            opening = len({passage.document for _, passage in there})
            assert store.pages == pytest.approx(1 - opening / len(there))
            titles = [passage.title for passage in passages if store.titled(passage.title)]
            assert sorted(titles) == sorted(
                passage.title for passage in passages
                if folded(passage.title) and passage.title in {each.title for _, each in there}
            )  # fmt: skip
            for page, fragment in product(PAGES, FRAGMENTS):
                expected = [
                    row
                    for row, passage in there
                    if passage.document == page
                    and (fragment in passage.anchors if fragment else not (passage.place and passage.place.sentence))
                ]
                document, anchor = page.replace("#", "%23"), f"#{fragment}" if fragment else ""
                keys = place_numbers([document_number(document)], [anchor_number(anchor)])
                assert store.find(keys)[0].tolist() == expected


def test_site_generators_agree_in_the_letters_of_a_fragment() -> None:
    assert anchor_number("a.md#max-backlog-n") == anchor_number("#--max-backlogn") == anchor_number("#Max backlog=N")
    assert len({anchor_number(target) for target in ("a.md", "#max", "#backlog", "#--", "#-", "#日本")}) == 6
