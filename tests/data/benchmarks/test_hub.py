"""The hub's datasets come through `datasets`, here from local folders in the hub's layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polyhop.data.benchmarks import load_questions
from polyhop.data.errors import DataError

from . import records as r

datasets = pytest.importorskip("datasets")

LAYOUTS = {
    "hotpotqa": ([r.HOTPOTQA], [r.HOTPOTQA_COLUMNS]),
    "squad": ([r.SQUAD], r.SQUAD_FLAT),
}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def fields(question: Any) -> dict[str, Any]:
    return {name: value for name, value in question.items() if name != "where"}


@pytest.mark.parametrize("dataset", LAYOUTS)
def test_the_hubs_layout_is_the_same_as_the_original(dataset: str, tmp_path: Path) -> None:
    original, hub = LAYOUTS[dataset]
    folder = tmp_path / "published"
    folder.mkdir()
    datasets.Dataset.from_list(hub).to_parquet(folder / "validation-00000-of-00001.parquet")
    loaded = list(load_questions(dataset, f"hub:{folder}", split="validation"))
    expected = list(load_questions(dataset, r.write(tmp_path / "dev.jsonl", r.lines(original))))
    assert [fields(question) for question in loaded] == [fields(question) for question in expected]
    assert loaded[0].where == f"{folder}:validation:1"


def test_splits(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("published")  # the library looks for "test" in the path, too
    for split, records in {"train": [r.NQ], "validation": [{**r.NQ, "question": "who is ben"}]}.items():
        (folder / f"{split}.jsonl").write_text(r.lines(records))
    (train,) = load_questions("nq", f"hub:{folder}", split="train")
    (dev,) = load_questions("nq", f"hub:{folder}")
    assert (train.question, dev.question) == ("who founded tarn", "who is ben")
    with pytest.raises(DataError, match=r"The split 'nope' of the dataset .* cannot be loaded: .*nope"):
        load_questions("nq", f"hub:{folder}", split="nope")
