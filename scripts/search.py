"""`polyhop search`: what a retriever finds."""

from __future__ import annotations

import json

import typer

from ..data.passages import one_a_document
from ..data.retrievers import build_retriever
from ..programs.prediction import check_question
from .options import Search
from .source import chosen_index, open_source


def search(options: Search) -> None:
    query = check_question(options.query)
    retriever = build_retriever(options.retriever, open_source(chosen_index(options.index)))
    assert retriever is not None  # there is a source
    find = retriever.search
    hits = one_a_document(find, query, options.k) if options.by == "document" else find(query, options.k)
    if options.as_json:
        for hit in hits:
            reason = vars(hit.reason) if hit.reason else None
            record = {"rank": hit.rank, "score": hit.score, "reason": reason, **hit.passage.to_record()}
            typer.echo(json.dumps(record, ensure_ascii=False))
    else:
        from .terminal import new_console
        from .view import hit_lines

        for line in hit_lines(query, hits):
            new_console().print(line, soft_wrap=True)
