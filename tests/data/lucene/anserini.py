"""Indexes as `python -m pyserini.index.lucene` makes them, by the Java class that it calls; the manifest of any."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.jvm import autoclass, call
from polyhop.data.lucene.layout import IndexManifest


def anserini_index(folder: Path, records: Iterable[Mapping[str, Any]], **options: Any) -> Path:
    """Index some records as a `JsonCollection`; the options are those of Anserini's `IndexCollection`."""
    corpus = folder.with_name(f"{folder.name}-corpus")
    corpus.mkdir(parents=True)
    (corpus / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    arguments = autoclass("io.anserini.index.IndexCollection$Args")()
    settings = {"collectionClass": "JsonCollection", "input": str(corpus), "index": str(folder), "threads": 1}
    for name, value in {**settings, "quiet": True, **options}.items():
        setattr(arguments, name, value)
    call(autoclass("io.anserini.index.IndexCollection")(arguments), "run")
    return folder


def manifest_of(index: Path) -> IndexManifest:
    with BM25Index(index) as opened:
        return opened.manifest
