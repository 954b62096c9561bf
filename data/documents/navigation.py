"""What of a page is navigation, and other parts that are no text."""

from __future__ import annotations

import re
from typing import Any

from .tables import HEADINGS, folded

_LONGEST_ROW, _MOST_WORDS_BESIDE = 300, 12  # characters of a row of navigation; words beside its links
_SKIPPED = frozenset("script style noscript template nav footer select svg iframe title object dialog".split())
_SKIPPED_ROLES = frozenset("navigation banner contentinfo search menu dialog doc-toc doc-pagebreak".split())
_FEWEST_WORDS = 3  # of a button that opens a part of the page and says what is in it
_NOTE_MARK = re.compile(r"[\[(]?(?:\d{1,4}|[*†‡§¶]{1,3}|[a-z])[\])]?", re.IGNORECASE)
_NOTE_NAMES = frozenset("noteref footnote-ref footnote-reference footnote fn reference label".split())
_SKIPPED_NAMES = frozenset(  # of classes and ids, by which generators mark navigation
    # everybody; Sphinx; DocBook; javadoc; MkDocs; GitBook; texinfo
    "nav navbar navigation breadcrumb breadcrumbs sidebar pagination footer cookie-banner toc skip-link sr-only "
    "related sphinxsidebar headerlink linenos prev-next-area "
    "navheader navfooter topnav subnav bottomnav skipnav navlist md-header md-sidebar md-nav md-footer md-tabs "
    "rst-versions wy-nav-side book-summary book-header page-toc bd-sidebar on-this-page "
    "nosearch".split()  # SQLite's manual, in 760 of 765 pages
)
_NOTES = frozenset("admonition footnote footnote-list footnotes".split())
_ROWS = frozenset("p div ul ol table center header span dl".split())
_STEPS = frozenset(  # what the links of rows of navigation say
    [
        *"prev previous next up home top contents index back forward modules search skip toc".split(),
        *("previous page", "next page", "previous topic", "next topic", "general index", "table of contents"),
        *("back to top", "skip to content", "skip to main content", "edit this page", "edit on github"),
    ]
)


def is_left_out(element: Any) -> bool:
    """Whether an element is navigation, a form, or what is no text."""
    tag, attributes = element.tag, element.attrib
    if tag in _ROWS and _is_row(element):
        return True
    if tag == "form":  # in 80 files; some programs put a whole page into one
        return next(element.iter("h1", "h2", "h3", "main", "article"), None) is None
    if tag in _SKIPPED or (tag == "button" and not _is_told(element)):
        return True
    if tag in ("a", "sup", "span") and _is_note_mark(element):
        return True
    if not attributes and tag != "aside":
        return False
    if "hidden" in attributes or attributes.get("aria-hidden") == "true" or attributes.get("role") in _SKIPPED_ROLES:
        return True
    if "pagebreak" in attributes.get("epub:type", "").split():
        return True  # the number of a page of the printed book
    if tag == "a" and attributes.get("href", "").startswith("#") and not re.search(r"\w", "".join(element.itertext())):
        return True  # the mark of a permanent link, in 1,320 files
    if tag == "aside":
        return _is_beside(element)
    marks = f"{attributes.get('class', '')} {attributes.get('id', '')}".lower().split()
    if tag in ("html", "body") or _SKIPPED_NAMES.isdisjoint(marks):
        return False
    return next(element.iter("h1", "main", "article"), None) is None  # else the name means something else


def _is_told(button: Any) -> bool:
    """Whether a button has a text of the page: a heading, or the question of an answer that it opens."""
    if next(button.iter(*HEADINGS), None) is not None:
        return True
    text = _short_text(button) or ""
    heading = next(button.iterancestors(*HEADINGS, "dt", "summary"), None)
    if heading is not None:
        return _short_text(heading) == text
    return ("aria-expanded" in button.attrib or "aria-controls" in button.attrib) and len(text.split()) >= _FEWEST_WORDS


def _is_beside(aside: Any) -> bool:
    """Whether an aside is no note or remark, but navigation: mostly links. What is outside of the main part is told
    from it later."""
    marks = aside.get("class", "").split()
    if aside.get("role", "").startswith(("doc-", "note")) or not _NOTES.isdisjoint(marks):
        return False
    linked = sum(len("".join(link.itertext())) for link in aside.iter("a"))
    return 2 * linked >= len("".join(aside.itertext()).strip())


def _is_note_mark(element: Any) -> bool:
    """Whether a link, a superscript or a label is the mark of a note, which is no part of the text beside it;
    in 79 files."""
    text = _short_text(element)
    if text is None or not _NOTE_MARK.fullmatch(text):
        return False
    if element.tag == "sup":
        return next(element.iter("a"), None) is not None
    kinds = f"{element.get('role', '')} {element.get('epub:type', '')} {element.get('class', '')}".lower().split()
    return (
        not _NOTE_NAMES.isdisjoint(kind.removeprefix("doc-") for kind in kinds)
        or next(element.iter("sup"), None) is not None
        or next(element.iterancestors("sup"), None) is not None
    )


def _is_row(element: Any) -> bool:
    """Whether this is a row such as "Prev Up Home Next": a short element of links that say so; in 44 of 242 pages of
    installed packages, while the manuals mark theirs."""
    text = _short_text(element)
    if text is None or next(element.iter(*HEADINGS), None) is not None:
        return False
    steps = [
        shown
        for link in element.iter("a")
        if (shown := _short_text(link)) is not None
        and (link.get("rel") in ("prev", "next", "up") or shown.strip(" «»←→<>|:·‹›-").casefold() in _STEPS)
    ]
    for step in steps:
        text = text.replace(step, " ", 1)
    beside = sum(word not in _STEPS for word in re.findall(r"[^\W\d]+", text.casefold()))
    return bool(steps) and (not beside or (len(steps) > 1 and beside <= _MOST_WORDS_BESIDE))


def _short_text(element: Any) -> str | None:
    """The text of a small element; None for others."""
    text = ""
    for part in element.itertext():
        text += part
        if len(text) > _LONGEST_ROW:
            return None
    return folded(text)
