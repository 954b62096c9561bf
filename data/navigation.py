"""What of a page is navigation, and other parts that are no text."""

from __future__ import annotations

import re
from typing import Any

from .tables import HEADINGS, folded

_LONGEST_ROW, _MOST_WORDS_BESIDE = 300, 12  # characters of a row of navigation; words beside its links
_SKIPPED = frozenset("script style noscript template nav footer button select svg iframe title object dialog".split())
_SKIPPED_ROLES = frozenset("navigation banner contentinfo search menu dialog doc-toc".split())
_SKIPPED_NAMES = frozenset(  # of classes and ids, by which generators mark navigation
    # everybody; Sphinx; DocBook; javadoc; MkDocs; GitBook; texinfo
    "nav navbar navigation breadcrumb breadcrumbs sidebar pagination footer cookie-banner toc skip-link sr-only "
    "related sphinxsidebar headerlink linenos prev-next-area "
    "navheader navfooter topnav subnav bottomnav skipnav navlist md-header md-sidebar md-nav md-footer md-tabs "
    "rst-versions wy-nav-side book-summary book-header page-toc bd-sidebar on-this-page".split()
)
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
    if tag == "form":  # some programs put a whole page into one
        return next(element.iter("h1", "h2", "h3", "main", "article"), None) is None
    if tag in _SKIPPED:
        return True
    if not attributes and tag != "aside":
        return False
    if "hidden" in attributes or attributes.get("aria-hidden") == "true" or attributes.get("role") in _SKIPPED_ROLES:
        return True
    if tag == "a" and attributes.get("href", "").startswith("#") and not re.search(r"\w", "".join(element.itertext())):
        return True  # the mark of a permanent link
    marks = f"{attributes.get('class', '')} {attributes.get('id', '')}".lower().split()
    if tag == "aside" and "admonition" not in marks and not attributes.get("role", "").startswith(("doc-", "note")):
        return next(element.iterancestors("article"), None) is None  # beside the page, or a remark
    if tag in ("html", "body") or _SKIPPED_NAMES.isdisjoint(marks):
        return False
    return next(element.iter("h1", "main", "article"), None) is None  # else the name means something else


def _is_row(element: Any) -> bool:
    """Whether this is a row such as "Prev Up Home Next": a short element of links that say so."""
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
