"""What comes from Pyserini: its prebuilt indexes, and the documents that its indexes store.

An index of ``python -m pyserini.index.lucene`` stores, depending on its options:

    --storeRaw         the record of the corpus, mostly JSON; by Pyserini's convention "contents" is "title\\ntext"
    --storeContents    the text that was indexed
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import ujson

from ..errors import IndexFault
from ..importing import installs
from ..passages import Passage
from .jvm import attach
from .layout import index_of

PREFIX = "pyserini:"

_TEXTS = ("text", "segment", "passage", "body", "contents")  # of corpora that Anserini reads: BEIR, MS MARCO, ...
_LONGEST_TITLE = 200  # characters of a first line
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_HEADER = re.compile(r"---\n(?:.*\n)*?title: *(?P<title>.*)\n(?:.*\n)*?---\n")


def locate(index: Path | str) -> Path:
    """The folder of an index, which may be named by that of its documents; ``pyserini:NAME`` is one of Pyserini's,
    downloaded if it is not in its cache, ``$PYSERINI_CACHE`` or ``~/.cache/pyserini``.

    Raises:
        IndexFault: Pyserini has no BM25 index of this name, or cannot download it.
    """
    name = str(index)
    if not name.startswith(PREFIX):
        return index_of(Path(index))
    name = name.removeprefix(PREFIX)
    attach()  # before Pyserini starts Java with a module that BM25 does not need and some Javas lack
    prebuilt = import_module("pyserini.prebuilt_index_info").TF_INDEX_INFO
    if name not in prebuilt:
        near = " or ".join(get_close_matches(name, prebuilt))
        raise IndexFault(f"Pyserini has no BM25 index {name!r}{f': is it {near}?' if near else '.'}")
    try:
        util = import_module("pyserini.util")
    except ImportError as error:  # pandas
        raise IndexFault(f"Pyserini's downloads need more packages ({error}): run `{installs('hub')}`.") from error
    try:
        with redirect_stdout(sys.stderr):  # it prints its progress
            return Path(util.download_prebuilt_index(name, verbose=False))
    except (OSError, ValueError, AssertionError) as error:  # AssertionError: a wrong size or checksum
        url = prebuilt[name]["urls"][0]
        raise IndexFault(
            f"Pyserini's index {name!r} cannot be downloaded from {url} ({error}). Try again, or unpack it into "
            f"{util.get_cache_home()}/indexes yourself."
        ) from error


def document_passage(id: str, raw: str | None, text: str | None) -> Passage:
    """The passage of a stored document: of its record, mostly JSON, or of its text.

    Raises:
        IndexFault: it has neither.
    """
    try:
        record = ujson.loads(raw or "")
    except ValueError:
        record = None
    if isinstance(record, dict):
        return passage_of(id, record)
    if raw is None and text is None:
        raise IndexFault(
            "The index stores no text of its documents. Build it again with --storeRaw or --storeContents."
        )
    return passage_of(id, {"contents": text if text is not None else _TAG.sub(" ", raw or "")})


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
    if title:
        text = text.removeprefix(title) if name == "contents" else text
    elif header := _HEADER.match(text):
        title, text = header["title"].strip(" \"'"), text[header.end() :]
    else:
        first, _, rest = text.partition("\n")
        if rest.strip() and len(first) <= _LONGEST_TITLE:
            title, text = first.strip(), rest
            if len(title) > 2 and title[0] == title[-1] == '"':  # as in Pyserini's indexes of Wikipedia
                title = title[1:-1].strip()
    return Passage.of(title, text, id=id)
