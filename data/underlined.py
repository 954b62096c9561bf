"""Plain text, whose headings are underlined."""

from __future__ import annotations

import re

from .html import LONGEST_HEADING, Text
from .splitting import Line
from .text import DIVIDED, split_sentences

_RULE = re.compile(r"\s*(?:([-=_*~#+^])\1{2,}|-{2,}%<-*)\s*")
_TITLE = re.compile(r"(?=.*[^\W_])\S+(?: {1,2}\S+)*\s*")  # no columns, as the names of those of a table have
_ITEM = re.compile(r"\s*(?:[*•+-]|\d{1,3}[.)])\s+\S")


def of_plain(source: str) -> Text:
    """The sentences under headings, the first of which is the title if nothing is above it; without other rules. A
    heading is as deep as others that are underlined so."""
    title, styles = "", list[str]()
    path: tuple[tuple[int, str], ...] = ()
    block, found = list[str](), list[Line]()

    def end_block() -> None:
        headings = tuple(text for _, text in path)
        found.extend(Line(sentence, headings) for sentence in split_sentences("\n".join(block)))
        block.clear()

    before, rows = "", DIVIDED.sub(lambda found: found[1] * (found[1] == "-"), source).splitlines()
    for row, following in zip(rows, [*rows[1:], ""], strict=True):
        rule = _RULE.fullmatch(following)
        is_under = rule is not None and rule[1] and len(following.strip()) >= len(row.rstrip()) - 2
        if _RULE.fullmatch(row):
            block.append("")
        elif is_under and rule and not before and len(row) <= LONGEST_HEADING and _TITLE.fullmatch(row):
            end_block()
            name = " ".join(row.split())
            if not title and not found:
                title = name
            else:
                styles += [rule[1]] * (rule[1] not in styles)
                level = styles.index(rule[1])
                path = (*(each for each in path if each[0] < level), (level, name))
                headings = tuple(text for _, text in path)
                found.append(Line(name if name[-1] in ".?!:…" else f"{name}:", headings, is_heading=True))
        else:
            block += ["", row] if _ITEM.match(row) else [row]
        before = "" if _RULE.fullmatch(row) else row.strip()
    end_block()
    return Text(title, found)
