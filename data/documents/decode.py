"""The text of the bytes of a file, in whatever charset it is."""

from __future__ import annotations

import codecs
import re

from ..text import clean
from .html import Unreadable

_MOST_ACCENTS = 0.3  # share of accented letters
_WIDEST = codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE
_WIDE = *_WIDEST, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
_PRINTED = re.compile(r"[^\x00-\x07\x0e-\x1f\x7f]*")  # a backspace prints bold in pages of manuals
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)


def decoded(content: bytes, charset: str = "cp1252") -> str:
    """The text of a file in UTF-8, or with a mark in UTF-16 or UTF-32, or else in another charset, if it looks like
    that."""
    if content.startswith(_WIDE):
        return clean(content.decode("utf-32" if content.startswith(_WIDEST) else "utf-16", "replace"))
    if b"\x00" in content:
        raise Unreadable("a binary file")
    try:
        return clean(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        if charset == "cp1252" and len(content.translate(None, bytes(range(128)))) > _MOST_ACCENTS * len(content):
            raise Unreadable(f"not UTF-8 (byte {error.start + 1}): save it as UTF-8") from None
    try:
        return clean(content.decode(charset, "replace"))
    except (LookupError, ValueError):  # no such charset, or one that is not for texts, such as "idna"
        return clean(content.decode("cp1252", "replace"))


def decoded_html(content: bytes) -> str:
    """The text of a page, which may declare its charset."""
    if not content.startswith(_WIDE):
        content = content.replace(b"\x00", b" ")
    declared = _CHARSET.search(content[:4096])
    return decoded(content, declared[1].decode() if declared else "cp1252")


def looks_like_text(start: bytes) -> bool:
    """Whether a file without a suffix that starts so is text: in UTF-8, without control characters, and no script."""
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    except UnicodeDecodeError:
        return False
    return bool(text.strip()) and not text.startswith("#!") and _PRINTED.fullmatch(text) is not None
