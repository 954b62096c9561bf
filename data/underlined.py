"""Plain text, whose headings are underlined, or in capitals above indented text, as in manual pages.

What is indented below a term, or goes on below what is beside it, explains the term:

    -k, --keep
            Keep the files.
    KiB     1,024 bytes. Other names
            are accepted.
"""

from __future__ import annotations

import re

from .html import LONGEST_HEADING, Text, differ_in_numbers
from .splitting import Line
from .text import DIVIDED, FUNCTION_WORDS, split_sentences

_RULE = re.compile(r"\s*(?:([-=_*~#+^])\1{2,}|-{2,}%<-*)\s*")
_TITLE = re.compile(r"(?=.*[^\W_])\S+(?: {1,2}\S+)*\s*")  # no columns, as the names of those of a table have
_CAPITALS = re.compile(r"[A-Z][A-Z\d]+(?:[ /&-][A-Z\d]+){0,5}")
_MAN_PAGE = re.compile(r"\s*(\S+\(\d\w*\))\s{2,}.*\s{2,}\1\s*")  # its first line
_SUBHEADING = 3  # columns before one of a manual page
_ITEM = re.compile(r"\s*(?:[*•+-]|\d{1,3}[.)])\s+\S")
_BESIDE = re.compile(r"\s*(\S+(?: \S+)*) {2,}(?=\S)")
_USUAL, _NARROW = 0.9, 60  # share of the rows that are not longer than paragraphs are wide, and least width


def of_plain(source: str, has_title: bool = True) -> Text:
    """The sentences under headings, without other rules. A heading is as deep as others that are underlined so. The
    first line of a manual page is its title, and an underlined heading with nothing above it; not one of releases.
    """
    title, title_rule, styles = "", "", list[str]()
    path: tuple[tuple[int, str], ...] = ()
    block, found = list[str](), list[Line]()
    terms, outer = list[tuple[int, str]](), 0  # with their columns; how many of them are above the block

    def end_block() -> None:
        headings, above = tuple(text for _, text in path), tuple(text for _, text in terms)
        for n, sentence in enumerate(split_sentences("\n".join(block))):
            found.append(Line(sentence, headings, terms=above if n else above[:outer]))
        block.clear()

    def add_heading(name: str, style: str) -> None:
        nonlocal path, styles
        terms.clear()
        styles += [style] * (style not in styles)
        level = styles.index(style)
        path = (*(each for each in path if each[0] < level), (level, name))
        headings = tuple(text for _, text in path)
        found.append(Line(name if name[-1] in ".?!:…" else f"{name}:", headings, is_heading=True))

    rows = DIVIDED.sub(lambda found: "-" * (found[1] == "-"), source).expandtabs().splitlines()
    if page := next((_MAN_PAGE.fullmatch(row) for row in rows if row.strip()), None):
        title, foot = page[1], re.compile(rf"(?:.*\s{{2,}})?{re.escape(page[1])}\s*")
        rows = [row for row in rows if not foot.fullmatch(row)]
    widths = sorted(len(row) for row in rows if row.strip())
    width = max(_NARROW, widths[int(_USUAL * len(widths))] if widths else 0)
    before, is_next = "", True  # the row above, and whether a term can follow it
    for row, following in zip(rows, [*rows[1:], ""], strict=True):
        rule = _RULE.fullmatch(following)
        is_under = rule is not None and rule[1] and len(following.strip()) >= len(row.rstrip()) - 2
        if _RULE.fullmatch(row):
            block.append("")
        elif is_under and rule and not before and len(row) <= LONGEST_HEADING and _TITLE.fullmatch(row):
            end_block()
            name = " ".join(row.split())
            if has_title and not title and not found:
                title, title_rule = name, rule[1]
            elif rule[1] == title_rule and differ_in_numbers(title, name):
                return of_plain(source, has_title=False)
            else:
                add_heading(name, rule[1])
        elif not before and _CAPITALS.fullmatch(row.rstrip()) and re.match(r" {2,}\S", following):
            end_block()
            add_heading(row.strip(), "")
            is_next = True
        else:
            kept = sum(column < _column(row) for column, _ in terms) if row.strip() else len(terms)
            is_first = is_next or not before or kept < len(terms)
            if (term := _term(row, following, width) if is_first else "") or kept < len(terms):
                end_block()
                del terms[kept:]
                outer = kept
            if page and term and _column(row) == _SUBHEADING:
                add_heading(term, " ")
            else:
                terms += [(_column(row), term)] * bool(term)
                block += ["", row] if _ITEM.match(row) else [row]
            is_next = bool(term)
        before = "" if _RULE.fullmatch(row) else row.strip()
    end_block()
    return Text(title, found)


def _term(row: str, following: str, width: int) -> str:
    """What the following row explains, or goes on to explain; "" if that is nothing."""
    below, beside = _column(following), _BESIDE.match(row)
    if below <= _column(row) or _ITEM.match(row) or not (row.strip() and following.strip()):
        return ""
    is_wrapped = len(row) + 1 + len(following.split()[0]) > width
    text = beside[1] if beside and beside.end() == below else "" if is_wrapped else " ".join(row.split())
    is_name = re.search(r"\w\w|-\w", text) and text[-1] not in ".,;:" and text.split()[-1] not in FUNCTION_WORDS
    return text.partition(" (")[0] if is_name and len(text) <= LONGEST_HEADING else ""


def _column(row: str) -> int:
    return len(row) - len(row.lstrip())
