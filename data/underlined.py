"""Plain text, whose headings are underlined, or in capitals above indented text, as in manual pages."""

from __future__ import annotations

import re

from .html import LONGEST_HEADING, Text, differ_in_numbers
from .splitting import Line
from .text import DIVIDED, split_sentences

_RULE = re.compile(r"\s*(?:([-=_*~#+^])\1{2,}|-{2,}%<-*)\s*")
_TITLE = re.compile(r"(?=.*[^\W_])\S+(?: {1,2}\S+)*\s*")  # no columns, as the names of those of a table have
_CAPITALS = re.compile(r"[A-Z][A-Z\d]+(?:[ /&-][A-Z\d]+){0,5}")
_MAN_PAGE = re.compile(r"\s*(\S+\(\d\w*\))\s{2,}.*\s{2,}\1\s*")  # its first line
_ITEM = re.compile(r"\s*(?:[*•+-]|\d{1,3}[.)])\s+\S")


def of_plain(source: str, has_title: bool = True) -> Text:
    """The sentences under headings, without other rules. A heading is as deep as others that are underlined so. The
    first line of a manual page is its title, and an underlined heading with nothing above it; not one of releases.
    """
    title, title_rule, styles = "", "", list[str]()
    path: tuple[tuple[int, str], ...] = ()
    block, found = list[str](), list[Line]()

    def end_block() -> None:
        headings = tuple(text for _, text in path)
        found.extend(Line(sentence, headings) for sentence in split_sentences("\n".join(block)))
        block.clear()

    def add_heading(name: str, style: str) -> None:
        nonlocal path, styles
        styles += [style] * (style not in styles)
        level = styles.index(style)
        path = (*(each for each in path if each[0] < level), (level, name))
        headings = tuple(text for _, text in path)
        found.append(Line(name if name[-1] in ".?!:…" else f"{name}:", headings, is_heading=True))

    before, rows = "", DIVIDED.sub(lambda found: "-" * (found[1] == "-"), source).splitlines()
    if page := next((_MAN_PAGE.fullmatch(row) for row in rows if row.strip()), None):
        title, foot = page[1], re.compile(rf"(?:.*\s{{2,}})?{re.escape(page[1])}\s*")
        rows = [row for row in rows if not foot.fullmatch(row)]
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
        elif not before and _CAPITALS.fullmatch(row.rstrip()) and re.match(r"(?: {2,}|\t)\s*\S", following):
            end_block()
            add_heading(row.strip(), "")
        else:
            block += ["", row] if _ITEM.match(row) else [row]
        before = "" if _RULE.fullmatch(row) else row.strip()
    end_block()
    return Text(title, found)
