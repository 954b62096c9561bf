"""The text of PDF files: sentences below the numbers of their pages, without headers and footers."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from ctypes import c_double, c_int, create_string_buffer
from itertools import pairwise
from operator import add
from typing import Any

from ..text import FUNCTION_WORDS, clean, count, raised, split_sentences, undivided
from .html import LONGEST_ANCHOR_TEXT, LONGEST_HEADING, Text, Unreadable
from .split import Href, Line

_AT_END, _LONGEST_HEADER = re.compile(r"^\d{1,4}\b|\b\d{1,4}$"), 100  # numbers, and characters of the line
_PAGE_NUMBER = re.compile(r"\d+|^[ivxlc]+$")
_LEADERS = re.compile(r"(?:\. ?){6}")  # of a line in a table of contents
_SMALLER, _HIGHER = 0.85, 0.1  # than the letter before, of its size: a superscript
_JOINED = "\ufffe"  # PDFium writes it where it joins a divided word
_SHORT = 0.6  # share of the width that a line fills, which is that of every fourth
# What is no title: headings that many documents have, and names of files from which they are made.
_GENERIC = frozenset(("name", "contents", "table of contents", "untitled", "abstract", "introduction", "preface"))
_MADE_FROM = re.compile(r".*\.(?:dvi|e?ps|tex|ms|fm|docx?|odt|rtf|pdf|indd|qxd|pptx?|xlsx?)", re.IGNORECASE)
_FOOTNOTES = " ∗†‡§¶"  # marks
_STREAM = re.compile(rb"obj\b((?:(?!endobj).){1,1000}?)>>\s*stream\r?\n", re.DOTALL)
_PACKED, _PIECE = re.compile(rb"/Filter\s*\[?\s*/FlateDecode"), 1 << 16

_Page = tuple[list[str], list[tuple[str, str]], float]  # lines; texts and targets of links; height of the first


def of_pdf(content: bytes) -> Text:
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(content)
    except PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("it is encrypted and needs a password") from None
        raise
    pages = [_pdf_page(document, page) for page in document]
    lost = _lost(content)
    if not any(lines for lines, *_ in pages):
        raise Unreadable(lost or "no text in it: scanned pages need OCR first")
    _leave_out_running([lines for lines, *_ in pages], [top for *_, top in pages])
    title = _title(document.get_metadata_value("Title"))
    first = next((lines for lines, *_ in pages if lines), [])
    if not title and len(first) > 1 and len(first[0]) <= 100 and first[0][-1] not in ".,;-" and _title(first[0]):
        title = _title(first.pop(0))
    return Text(title[:LONGEST_HEADING], list(_paged(pages)), lost=lost)


def _lost(content: bytes) -> str:
    """Whether a stream cannot be unpacked, other than of a picture: PDFium leaves out what follows the damage."""
    streams = _STREAM.finditer(content if b"/Encrypt" not in content else b"")
    packed = (stream.end() for stream in streams if _PACKED.search(stream[1]) and b"/Image" not in stream[1])
    damaged = sum(not _unpacks(content, start) for start in packed)
    return f"{count(damaged, 'part')} of it cannot be unpacked: the text of pages may be missing" if damaged else ""


def _unpacks(content: bytes, at: int) -> bool:
    unpacking, rest = zlib.decompressobj(), b""
    try:
        while not unpacking.eof and (rest or at < len(content)):
            if not rest:
                rest, at = content[at : at + _PIECE], at + _PIECE
            unpacking.decompress(rest, _PIECE)
            rest = unpacking.unconsumed_tail
    except zlib.error:
        return False
    return unpacking.eof


def _title(written: str) -> str:
    """A title without marks of footnotes, or "" for one that says nothing."""
    title = " ".join(clean(written).split()).rstrip(_FOOTNOTES)
    return "" if title.casefold() in _GENERIC or _MADE_FROM.fullmatch(title) else title


def _leave_out_running(pages: list[list[str]], tops: list[float]) -> None:
    """Remove headers and footers, which may change by chapter and from left to right: first and last lines with the
    number of the page, and those that pages nearby have, too, but for numbers. The title of the first page stays, which
    stands lower."""
    bare = [[_PAGE_NUMBER.sub("0", line) for line in (*lines[:1], *lines[-1:])] for lines in pages]
    counts = Counter(line for lines in bare for line in {*lines})
    numbers = Counter(
        int(number) - n
        for n, lines in enumerate(pages)
        for line in (*lines[:1], *lines[-1:])
        for number in _AT_END.findall(line)
    )
    top = Counter(round(top) for top, lines in zip(tops, pages, strict=True) if lines).most_common(1)[0][0]
    start = next((n for n, lines in enumerate(pages) if lines), 0)
    title = (start, 0) if tops[start] < top - 2 else None
    before, times = numbers.most_common(1)[0] if numbers else (0, 0)
    for n, lines in enumerate(pages):
        nearby = {line for m in range(max(0, n - 2), min(n + 3, len(pages))) if m != n for line in bare[m]}

        def is_running(line: str, number: str = str(n + before), nearby: set[str] = nearby) -> bool:
            shown = _PAGE_NUMBER.sub("0", line)
            is_shared = shown in nearby and counts[shown] > min(2, len(pages) // 2)
            has_number = len(line) <= _LONGEST_HEADER and number in _AT_END.findall(line)
            return shown == "0" or is_shared or (has_number and times > max(2, len(pages) / 4))

        last = len(lines) - 1
        lines[:] = [line for m, line in enumerate(lines) if 0 < m < last or (n, m) == title or not is_running(line)]


def _raised(text: str, shown: Any) -> dict[int, str]:
    """By its place, what a small raised digit is in the text: a superscript after a number or a unit; nothing as the
    mark of a note after a word or a stop. 8 of 16 manuals of LaTeX packages have some."""
    import pypdfium2.raw as pdfium

    def size_and_base(at: int) -> tuple[float, float]:
        x, y = c_double(), c_double()
        pdfium.FPDFText_GetCharOrigin(shown, at, x, y)
        return pdfium.FPDFText_GetFontSize(shown, at), y.value

    instead = dict[int, str]()
    for at in (digit.start() for digit in re.finditer(r"(?<=\S)\d", text)):
        size, base = size_and_base(at)
        before, line = size_and_base(at - 1)
        if at - 1 in instead and (size, base) == (before, line):
            instead[at] = raised(text[at]) if instead[at - 1] else ""
        elif size < _SMALLER * before and base - line > _HIGHER * before:
            is_mark = re.search(r"(?:[^\W\d_]{4}|[^\w\s])\Z", text[max(0, at - 4) : at])
            instead[at] = "" if is_mark else raised(text[at])
    return instead


def _pdf_page(document: Any, page: Any) -> _Page:
    """The text of a page, and its links to other documents."""
    import pypdfium2.raw as pdfium

    def text_of(read: Any, *of: Any) -> str:
        buffer = create_string_buffer(read(*of, None, 0) + 1)
        read(*of, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    shown = page.get_textpage()
    text = shown.get_text_range()
    letters = [*text]
    if len(text) == shown.count_chars():
        for place, written in _raised(text, shown).items():
            letters[place] = written
    start = len(text) - len(text.lstrip())
    top = shown.get_charbox(start, loose=True)[3] if start < len(text) else 0.0
    links, at, link, box = [], c_int(0), pdfium.FPDF_LINK(), pdfium.FS_RECTF()
    while pdfium.FPDFLink_Enumerate(page, at, link):
        action = pdfium.FPDFLink_GetAction(link)
        address = text_of(pdfium.FPDFAction_GetURIPath, document, action)
        target = address or text_of(pdfium.FPDFAction_GetFilePath, action)
        if target and pdfium.FPDFLink_GetAnnotRect(link, box):
            inside = shown.get_text_bounded(box.left, box.bottom, box.right, box.top)
            links.append((" ".join(clean(inside).split())[:LONGEST_ANCHOR_TEXT], target))
    lines = map(str.strip, "".join(letters).replace(_JOINED, "-\n").splitlines())
    return [line for line in lines if line and not _LEADERS.search(line)], links, top


def _is_apart(line: str, following: str, width: int) -> bool:
    """Whether neither line fills the width, as on a title page or in a table, and the second begins anew."""
    is_short = max(len(line), len(following)) < _SHORT * width and not following[0].islower()
    return is_short and line[-1] not in ",:;-\u00ad\u2010" and line.split()[-1].lower() not in FUNCTION_WORDS


def _paged(pages: list[_Page]) -> Iterator[Line]:
    """Sentences below the number of the page on which they end."""
    carried = ""
    lengths = sorted(len(line) for lines, *_ in pages for line in lines)
    width = lengths[len(lengths) * 3 // 4] if lengths else 0
    for number, (page, targets, _) in enumerate(pages, 1):
        ends = ["\n" * (1 + _is_apart(*both, width)) for both in pairwise(page)]
        text = carried + "".join(map(add, page, [*ends, ""]))
        sentences = split_sentences(clean(undivided(text, typeset=True)))
        is_open = bool(sentences) and number < len(pages) and sentences[-1][-1] not in ".?!:…。？！\"”')"
        if is_open and page and (following := pages[number][0]):
            is_open = not _is_apart(page[-1], following[0], width)
        carried = sentences.pop() + "\n" if is_open and len(sentences[-1]) < 1000 else ""
        links: list[list[Href]] = [[] for _ in sentences]
        for text, target in targets if sentences else ():
            shown = next((n for n, sentence in enumerate(sentences) if text in sentence), 0)
            before = sentences[shown].partition(text)[0] if text in sentences[shown] and text else ""
            links[shown].append(Href(len("".join(before.split())), target, text or target[:LONGEST_ANCHOR_TEXT]))
        for sentence, hrefs in zip(sentences, links, strict=True):
            yield Line(sentence, (f"page {number}",), links=tuple(sorted(hrefs)))
