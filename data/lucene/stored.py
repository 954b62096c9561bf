"""Passages from the documents that an index stores: polyhop's own records, and those of Anserini and Pyserini.

An index of ``python -m pyserini.index.lucene`` stores, depending on its options:

    --storeRaw          the record of the corpus, mostly JSON; by Pyserini's convention "contents" is "title\\ntext"
    --storeContents     the text that was indexed
    --storeDocvectors   the stems of the text: enough to rank and to compare, but not to read
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import ujson

from ..errors import IndexFault
from ..passages import Passage
from .jvm import autoclass, call
from .layout import CONTENTS, ID, RAW

_TEXTS = ("text", "segment", "passage", "body", "contents")  # of corpora that Anserini reads: BEIR, MS MARCO, ...
_LONGEST_TITLE = 200  # characters of a first line
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_HEADER = re.compile(r"---\n(?:.*\n)*?title: *(?P<title>.*)\n(?:.*\n)*?---\n")


class StoredPassages:
    """Makes passages from stored documents; thread-safe.

    Raises:
        IndexFault: the index is not one of Anserini, or stores nothing to read.
    """

    def __init__(self, reader: Any, index: Path, *, foreign: bool) -> None:
        for returned in ("TermVectors", "Terms", "TermsEnum", "PostingsEnum"):
            autoclass(f"org.apache.lucene.index.{returned}")  # see `autoclass`
        self._foreign = foreign
        if foreign:
            _check(reader, index)

    def __call__(self, document: Any, number: int, reader: Any) -> Passage:
        """The passage of a stored document and its number in a reader."""
        raw = call(document, "get", RAW)
        if not self._foreign:
            return Passage.from_record(_unsealed(raw))
        id = call(document, "get", ID)
        found = document_passage(id, raw, call(document, "get", CONTENTS))
        return found or Passage.of("", _stems(number, reader), id=id)


def sealed(record: str) -> str:
    """A JSON object with a checksum as its last field: Lucene verifies its files when it merges them, and on --check,
    but not when it reads a document, so that a damaged one could be shown.
    """
    return f'{record[:-1]},"crc32":"{crc32(record.encode()):08x}"}}'


def _unsealed(raw: str | None) -> dict[str, Any]:
    """The object of a `sealed` record, or of one that an older polyhop has stored without a checksum.

    Raises:
        ValueError: it is damaged.
    """
    if raw is None or (raw[-20:].startswith(',"crc32":"') and sealed(f"{raw[:-20]}}}") != raw):
        raise ValueError("the stored text of a passage has changed on the disk")
    record: dict[str, Any] = ujson.loads(raw)
    return record


def document_passage(id: str, raw: str | None, text: str | None) -> Passage | None:
    """The passage of a stored document: of its record, mostly JSON, or of its text; None if it has neither."""
    if raw is not None and (record := _object(raw)) is not None:
        return passage_of(id, record)
    if raw is None and text is None:
        return None
    return passage_of(id, {CONTENTS: text if text is not None else _TAG.sub(" ", raw or "")})


def _object(raw: str) -> dict[str, Any] | None:
    """The JSON object in a text; None for other texts, such as XML."""
    with suppress(ValueError):
        record = ujson.loads(raw)
        return record if isinstance(record, dict) else None
    return None


def _check(reader: Any, index: Path) -> None:
    infos = call(autoclass("org.apache.lucene.index.FieldInfos"), "getMergedFieldInfos", reader)
    for field in (ID, CONTENTS):
        if call(infos, "fieldInfo", field) is None:
            raise IndexFault(f"{index} is not a BM25 index of Anserini or Pyserini: it has no field {field!r}.")
    document = call(call(reader, "storedFields"), "document", 0)
    stored = any(call(document, "get", field) is not None for field in (RAW, CONTENTS))
    if not stored and not call(call(infos, "fieldInfo", CONTENTS), "hasVectors"):
        raise IndexFault(
            f"The index {index} stores no text of its documents. Build it again with --storeRaw, --storeContents or "
            "--storeDocvectors."
        )


def _stems(number: int, reader: Any) -> str:
    """The stems of a document: in their order if the vector has positions, else each as often as it occurs."""
    vector = call(call(reader, "termVectors"), "get", number, CONTENTS)
    if vector is None:
        return ""
    everything = autoclass("org.apache.lucene.index.PostingsEnum").ALL
    terms, found = call(vector, "iterator"), list[tuple[int, str]]()
    positions = None
    while (term := call(terms, "next")) is not None:
        stem = call(term, "utf8ToString")
        positions = call(terms, "postings", positions, everything)
        call(positions, "nextDoc")
        found += [(call(positions, "nextPosition"), stem) for _ in range(call(positions, "freq"))]
    return " ".join(stem for _, stem in sorted(found, key=lambda pair: pair[0]))


def passage_of(id: str, record: Mapping[str, Any]) -> Passage:
    """The passage of a corpus's record, whatever its fields are called.

    A text without a title of its own is "title\\ntext" if its first line is short, or starts with a header of lines
    between "---", one of which is the title.
    """
    title, sentences = record.get("title"), record.get("sentences")
    title = title.strip() if isinstance(title, str) else ""
    if isinstance(sentences, list) and all(isinstance(sentence, str) for sentence in sentences):
        return Passage.of(title, sentences=sentences, id=id)
    name = next((name for name in _TEXTS if isinstance(record.get(name), str)), None)
    text = record[name] if name else ujson.dumps(record, ensure_ascii=False)
    if title and name == CONTENTS:
        text = text.removeprefix(title)
    elif not title:
        title, text = _split(text)
    return Passage.of(title, text, id=id)


def _split(text: str) -> tuple[str, str]:
    """A title and the rest of a text."""
    if header := _HEADER.match(text):
        return header["title"].strip(" \"'"), text[header.end() :]
    first, _, rest = text.partition("\n")
    if not rest.strip() or len(first) > _LONGEST_TITLE:
        return "", text
    first = first.strip()
    quoted = len(first) > 2 and first[0] == first[-1] == '"'  # as in Pyserini's indexes of Wikipedia
    return (first[1:-1] if quoted else first).strip(), rest
