"""The text of PDF files: sentences below the numbers of their pages, without headers and footers."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from operator import add
from typing import Any

from .html import LONGEST_ANCHOR_TEXT, LONGEST_HEADING, Text, Unreadable
from .splitting import Href, Line
from .text import DIVIDED, FUNCTION_WORDS, clean, split_sentences

_AT_END, _LONGEST_HEADER = re.compile(r"^\d{1,4}\b|\b\d{1,4}$"), 100  # numbers, and characters of the line
_PAGE_NUMBER = re.compile(r"\d+|^[ivxlc]+$")
_LEADERS = re.compile(r"(?:\. ?){6}")  # of a line in a table of contents
_GAP, _WIDE_GAP = 180, 500  # thousandths of the size of a font: a space is wider; what pypdf takes for a space in any

_SCALED = ("/Type0", "/Type3")  # fonts in which letters are of two bytes, or widths have a scale of their own
_SHORT = 0.6  # share of the width that a line fills, which is that of every fourth
# What is no title: headings that many documents have, and names of files from which they are made.
_GENERIC = frozenset(("name", "contents", "table of contents", "untitled", "abstract", "introduction", "preface"))
_MADE_FROM = re.compile(r".*\.(?:dvi|e?ps|tex|ms|fm|docx?|odt|rtf|pdf|indd|qxd|pptx?|xlsx?)", re.IGNORECASE)
_MANUAL = re.compile(r"(\S+\(\w+\))\s.*\s\1")  # the header of a page of a manual
_FOOTNOTES = " ∗†‡§¶"  # marks

_Page = tuple[list[str], list[tuple[str, str]], float]  # lines; texts and targets of links; height of the first


def of_pdf(content: bytes) -> Text:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Unreadable("it is encrypted and needs a password")
    pages = [_pdf_page(page) for page in reader.pages]
    first = next((lines for lines, *_ in pages if lines), None)
    if not first:
        raise Unreadable("no text in it: scanned pages need OCR first")
    header = _MANUAL.fullmatch(first[0])
    _leave_out_running([lines for lines, *_ in pages], [top for *_, top in pages])
    title = _title(str((reader.metadata and reader.metadata.title) or "")) or (header[1] if header else "")
    if header and first and first[0] == header[0]:
        first.pop(0)
    first = next((lines for lines, *_ in pages if lines), [])
    if not title and len(first) > 1 and len(first[0]) <= 100 and first[0][-1] not in ".,;" and _title(first[0]):
        title = _title(first.pop(0))
    return Text(title[:LONGEST_HEADING], list(_paged(pages)))


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


def _show_gaps(page: Any) -> None:
    """Write the gaps that operators set as numbers between strings, where pypdf sees them: "Tw" widens each space, and
    Ghostscript shows "a b" as the string "ab" with the gap as "Tc"."""
    from pypdf.generic import ArrayObject, ByteStringObject, ContentStream, FloatObject, NameObject

    def parts(shown: Any) -> Iterator[Any]:
        """A string, with its gaps."""
        if not isinstance(shown, bytes) or is_scaled or state[b"Tf"] <= 0:
            yield shown
        elif len(shown) == 2 and state[b"Tc"] * 1000 >= _GAP * state[b"Tf"]:  # of longer ones, letters are spaced
            yield from (ByteStringObject(shown[:1]), FloatObject(-_WIDE_GAP), FloatObject(_WIDE_GAP))
            yield ByteStringObject(shown[1:])
        else:
            *spaced, last = shown.split(b" ") if state[b"Tw"] else [shown]
            for each in spaced:
                yield from (ByteStringObject(each + b" "), FloatObject(-1000 * state[b"Tw"] / state[b"Tf"]))
            yield ByteStringObject(last)

    if "/Contents" not in page or "/Font" not in (resources := page.get("/Resources", {})):
        return
    scaled = {name for name, font in resources["/Font"].items() if font.get_object().get("/Subtype") in _SCALED}
    state, stack, is_scaled = {b"Tc": 0.0, b"Tw": 0.0, b"Tf": 1.0}, list[dict[bytes, float]](), False
    content = ContentStream(page["/Contents"].get_object(), page.pdf, "bytes")
    operations = list[tuple[Any, bytes]]()
    for operands, operator in content.operations:
        if operator in state and operands:
            state[operator] = float(operands[-1])
            is_scaled = operands[0] in scaled if operator == b"Tf" else is_scaled
        elif operator == b"q":
            stack.append({**state})
        elif operator == b"Q" and stack:
            state = stack.pop()
        if operator in (b"Tj", b"'", b"TJ") and operands:
            operations += [([], b"T*")] if operator == b"'" else []
            shown = operands[0] if operator == b"TJ" else operands
            operations.append(([ArrayObject(part for each in shown for part in parts(each))], b"TJ"))
        else:
            operations.append((operands, operator))
    content.operations = operations
    page[NameObject("/Contents")] = content


def _pdf_page(page: Any) -> _Page:
    """The text of a page, and its links to other documents."""
    from pypdf.generic import FloatObject

    runs: list[tuple[float, float, str]] = []

    def widen(operator: bytes, operands: list[Any], *matrices: object) -> None:
        """Spaces that are only gaps, in a font that says its spaces are wide."""
        if operator == b"TJ":
            parts: list[Any] = []
            for each in operands[0]:
                is_gap = isinstance(each, int | float) and -_WIDE_GAP < each <= -_GAP
                parts += [FloatObject(-_WIDE_GAP), FloatObject(_WIDE_GAP + each)] if is_gap else [each]
            operands[0][:] = parts

    def collect(text: str, outer: list[float], inner: list[float], *font: object) -> None:
        x, y = inner[4:6]
        runs.append((x * outer[0] + y * outer[2] + outer[4], x * outer[1] + y * outer[3] + outer[5], text))

    _show_gaps(page)
    text = page.extract_text(visitor_operand_before=widen, visitor_text=collect)
    top = max((y for _, y, run in runs if run.strip()), default=0.0)
    links = []
    for annotation in (each.get_object() for each in page.get("/Annots") or ()):
        action = annotation["/A"].get_object() if annotation.get("/A") else {}
        file = action.get("/URI") or action.get("/F") or ""
        target = str((file.get("/UF") or file.get("/F") or "") if isinstance(file, dict) else file)
        if annotation.get("/Subtype") == "/Link" and target:
            (left, right), (low, high) = (sorted(map(float, annotation["/Rect"][n::2])) for n in (0, 1))
            inside = [run for x, y, run in runs if left - 2 <= x < right and low - 2 <= y < high and run.strip()]
            links.append((" ".join(clean("".join(inside)).split())[:LONGEST_ANCHOR_TEXT], target))
    return [line.strip() for line in text.splitlines() if line.strip() and not _LEADERS.search(line)], links, top


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
        sentences = split_sentences(clean(DIVIDED.sub("", text)))
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
