"""What of a page of HTML is left out: navigation, scripts and forms."""

from __future__ import annotations

import re
from typing import Any

_SKIPPED = frozenset(
    "script style noscript template nav footer form button select svg iframe title object dialog".split()
)
_SKIPPED_ROLES = frozenset("navigation banner contentinfo search menu dialog doc-toc".split())
_SKIPPED_NAMES = frozenset(  # of classes and ids, by which generators mark navigation
    # everybody; Sphinx; DocBook; javadoc; MkDocs; GitBook; texinfo
    "nav navbar navigation breadcrumb breadcrumbs sidebar pagination footer cookie-banner toc skip-link sr-only "
    "related sphinxsidebar headerlink linenos clearer prev-next-area "
    "navheader navfooter topnav subnav bottomnav skipnav navlist md-header md-sidebar md-nav md-footer md-tabs "
    "rst-versions wy-nav-side book-summary book-header page-toc bd-sidebar on-this-page".split()
)
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_PARTS = frozenset("html body main article section".split())
_ROWS = frozenset("p div ul ol table center header span dl".split())
_STEPS = frozenset(  # what the links of rows of navigation say
    [
        *"prev previous next up home top contents index back forward modules search skip toc".split(),
        *("previous page", "next page", "previous topic", "next topic", "general index", "table of contents"),
        *("back to top", "skip to content", "skip to main content", "edit this page", "edit on github"),
    ]
)
_LONGEST_ROW = 300  # characters of such a row
_MOST_WORDS_BESIDE = 12  # its links


def is_left_out(element: Any) -> bool:
    tag, given = element.tag, element.attrib
    if tag in _SKIPPED:
        return True
    if not given and tag != "aside":
        return False
    if "hidden" in given or given.get("aria-hidden") == "true" or given.get("role") in _SKIPPED_ROLES:
        return True
    if tag == "a" and given.get("href", "").startswith("#") and not re.search(r"\w", "".join(element.itertext())):
        return True  # the mark of a permanent link
    marks = f"{given.get('class', '')} {given.get('id', '')}".lower().split()
    if tag == "aside" and "admonition" not in marks and not given.get("role", "").startswith(("doc-", "note")):
        return next(element.iterancestors("article"), None) is None  # beside the page, or a remark
    return tag not in ("html", "body") and not _SKIPPED_NAMES.isdisjoint(marks)


def rows_of_steps(root: Any) -> set[Any]:
    """Rows such as "Prev Up Home Next": short elements of links that say so."""
    found = set()
    for link in root.iter("a"):
        if not _is_step(link):
            continue
        row, inside = None, link
        while (inside := inside.getparent()) is not None and inside.tag not in _PARTS:
            text = _short_text(inside)
            if text is None or next(inside.iter(*HEADINGS), None) is not None:
                break
            steps = list(filter(_is_step, inside.iter("a")))
            for each in steps:
                text = text.replace(folded("".join(each.itertext())), " ", 1)
            rest = [word for word in re.findall(r"[^\W\d]+", text.casefold()) if word not in _STEPS]
            if inside.tag in _ROWS and (not rest or (len(steps) > 1 and len(rest) <= _MOST_WORDS_BESIDE)):
                row = inside
        if row is not None:
            found.add(row)
    return found


def _is_step(link: Any) -> bool:
    text = _short_text(link)
    return text is not None and (
        link.get("rel") in ("prev", "next", "up") or text.strip(" «»←→<>|:·‹›").casefold() in _STEPS
    )


def _short_text(element: Any) -> str | None:
    """The text of a small element; None for others."""
    texts, size = [], 0
    for text in element.itertext():
        texts.append(text)
        size += len(text)
        if size > _LONGEST_ROW:
            return None
    return folded("".join(texts))


def folded(text: str) -> str:
    return " ".join(text.split())
