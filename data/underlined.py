"""Plain text, whose headings are underlined, or in capitals above indented text, as in manual pages."""

from __future__ import annotations

import re

from .html import LONGEST_HEADING, Text, differ_in_numbers
from .splitting import Line
from .terms import column, is_item, label_of, term_of, width_of
from .text import DIVIDED, split_sentences

_RULE = re.compile(r"\s*(?:([-=_*~#+^])\1{2,}|-{2,}%<-*)\s*")
_TITLE = re.compile(r"(?=.*[^\W_])\S+(?: {1,2}\S+)*\s*")  # no columns, as the names of those of a table have
_CAPITALS = re.compile(r"[A-Z][A-Z\d]+(?:[ /&-][A-Z\d]+){0,5}")
_HEAD = re.compile(r"\s*(\S+(?: \S+){0,5}\(\w*\)).*\1\s*")  # the first line of a manual page
_FOOT = re.compile(r"(?:.*\s{2,})?(\S+(?: \S+){0,5}\(\w*\))\s*")
_WIDEST, _UNCUT = 300, 12  # characters of these lines, and of a title that even a narrow first line has
_SUBHEADING = 3  # columns before one of a manual page


def of_plain(source: str, has_title: bool = True) -> Text:
    """The sentences under headings, without other rules. A heading is as deep as others that are underlined so. The
    first line of a manual page is its title, and an underlined heading with nothing above it; not one of releases.
    """
    title, title_rule, styles = "", "", list[str]()
    path: tuple[tuple[int, str], ...] = ()
    block, found = list[str](), list[Line]()
    terms = list[tuple[int, str]]()  # with their columns

    def end_block(is_term: bool = False) -> None:
        headings, above = tuple(text for _, text in path), tuple(text for _, text in terms)
        texts = [" ".join("".join(block).split())] if is_term else split_sentences("\n".join(block))
        found.extend(Line(text, headings, terms=above, is_term=is_term) for text in texts)
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
    if page := _page(rows):
        title = page
        rows = [row for row in rows if len(row) > _WIDEST or not _is_margin(row, page)]
    width = width_of(rows)
    before, is_next = "", True  # the row above, and whether a term can follow it
    for row, following in zip(rows, [*rows[1:], ""], strict=False):
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
            kept = sum(each < column(row) for each, _ in terms) if row.strip() else len(terms)
            is_first = is_next or not before or kept < len(terms)
            if (term := term_of(row, following, width) if is_first else "") or kept < len(terms):
                end_block()
                del terms[kept:]
            is_next = term == " ".join(row.split()) != ""
            if page and is_next and column(row) == _SUBHEADING:
                add_heading(term, " ")
            else:
                block += ["", row] if is_item(row) else [row]
                if is_next:
                    end_block(is_term=True)
                terms += [(column(row), label_of(term))] * bool(term)
        before = "" if _RULE.fullmatch(row) else row.strip()
    end_block()
    return Text(title, found)


def _page(rows: list[str]) -> str:
    """The title of a manual page, as "kiln(8)"; "" if the text is none. In a narrow first line it is cut short."""
    first, last = (next((row.strip() for row in order if row.strip()), "") for order in (rows, rows[::-1]))
    if max(len(first), len(last)) > _WIDEST:
        return ""
    found = _HEAD.fullmatch(first) or (_FOOT.fullmatch(last) if first != last else None)
    return found[1] if found and first.startswith(found[1][:_UNCUT]) else ""


def _is_margin(row: str, page: str) -> bool:
    """Whether a row is the first or last one of a page of a manual."""
    is_head = row.strip().startswith(page[:_UNCUT]) and row.rstrip().endswith(page[-_UNCUT:])
    return is_head or ((foot := _FOOT.fullmatch(row)) is not None and foot[1] == page)
