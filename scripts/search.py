"""`polyhop search`: what a retriever finds."""

from __future__ import annotations

import json

import typer

from ..data.passages import one_a_document
from ..data.retrievers import build_retriever
from .options import Search
from .source import chosen_index, open_source


def search(given: Search) -> None:
    retriever = build_retriever(given.retriever, open_source(chosen_index(given.index)))
    assert retriever is not None  # there is a source
    hits = []
    if any(map(str.isalnum, given.query)):
        find = retriever.search
        hits = one_a_document(find, given.query, given.k) if given.by == "document" else find(given.query, given.k)
    if given.as_json:
        for hit in hits:
            reason = vars(hit.reason) if hit.reason else None
            found = {"rank": hit.rank, "score": hit.score, "reason": reason, **hit.passage.to_record()}
            typer.echo(json.dumps(found, ensure_ascii=False))
    else:
        from .terminal import new_console
        from .view import hit_lines

        for line in hit_lines(given.query, hits):
            new_console().print(line, soft_wrap=True)
