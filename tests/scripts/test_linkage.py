"""How the documents of an index are tied, on real indexes of a few documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.scripts.doctor import linkage_of

NAMES = "Alder Birch Cedar Dogwood Elder Fir Gorse Hazel".split()
PLACES = "harbour lighthouse orchard quarry ferry bakery chapel tannery".split()
YIELDS = "herring lamps pears granite ropes loaves candles leather".split()


def index_of(folder: Path, tie: str) -> Path:
    """A page of each name says where its keeper works, a page of each place what it sells. `tie` is between them."""
    pages = folder / "pages"
    pages.mkdir(parents=True)
    for n, (name, place, sold) in enumerate(zip(NAMES, PLACES, YIELDS, strict=True)):
        told = {
            "links": f"The keeper is employed at the <a href='place{n}.html'>{place}</a> all year.",
            "names": f"The keeper is employed at {place.title()} Works all year.",
            "nothing": "The keeper is employed somewhere else all year.",
        }[tie]
        title = f"{place.title()} Works" if tie == "names" else f"Number {n}"
        (pages / f"keeper{n}.html").write_text(f"<title>{name} Cottage</title><p>{name} Cottage is old. {told}</p>")
        (pages / f"place{n}.html").write_text(f"<title>{title}</title><p>They sell {sold} at dawn.</p>")
    build_index([pages], folder / "ix")
    return folder / "ix"


@pytest.mark.parametrize(
    ("tie", "linking", "mentioned", "advice"),
    [("links", 0.5, 0.0, "chain"), ("names", 0.0, 0.5, "chain"), ("nothing", 0.0, 0.0, "bm25")],
)
def test_ties_and_what_they_speak_for(tie: str, linking: float, mentioned: float, advice: str, tmp_path: Path) -> None:
    with BM25Index(index_of(tmp_path, tie)) as index:
        found = linkage_of(index.store)
        assert (found.passages, found.documents, found.sampled) == (16, 16, 16)
        assert (found.linking, found.linked, found.mentioned) == (linking, linking, mentioned)
        assert (found.tied, found.retriever) == (1.0 if linking else mentioned, advice)
        assert 0 < linkage_of(index.store, 4).sampled < 6
