"""What an agent says in a sentence or in a few words, on one line."""

from __future__ import annotations

import re

LONGEST = 400
"""Characters; a longer query or thought is a model that runs away."""

_NOTHING = re.compile(r"\W*(?:none|null|n/?a|empty)?\W*", re.IGNORECASE)
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "<": ">", "`": "`"}


def one_line(text: object) -> tuple[str, tuple[str, ...]]:
    """A reply's text on one line of at most `LONGEST` characters, and what was cut off it."""
    line = " ".join(str(text or "").split())
    if len(line) <= LONGEST:
        return line, ()
    kept = line[:LONGEST].rpartition(" ")[0] or line[:LONGEST]
    return kept, (line[len(kept) :].strip()[:80],)


def read_query(text: object) -> tuple[str, tuple[str, ...]]:
    """A query as the search engine gets it, without the quotes around it, and what was cut off it; empty for "none"."""
    query, invalid = one_line(text)
    if len(query) > 1 and _QUOTES.get(query[0]) == query[-1] and query.count(query[0]) <= 2:
        query = query[1:-1].strip()
    return ("", ()) if _NOTHING.fullmatch(query) else (query, invalid)
