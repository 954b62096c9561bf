"""`polyhop search`: what a retriever finds; and for other commands, which index is searched."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from ..app.named import NoIndexError, chosen_index, open_source
from ..data.passages import one_a_document
from ..data.retrievers import build_retriever
from ..programs.prediction import check_question
from .options import Index, Search
from .terminal import new_console
from .view import hit_lines


def search(options: Search) -> None:
    query = check_question(options.query)
    retriever = build_retriever(options.retriever, open_source(searched_index(options.index)))
    assert retriever is not None  # there is a source
    find = retriever.search
    hits = one_a_document(find, query, options.k) if options.by == "document" else find(query, options.k)
    if options.as_json:
        for hit in hits:
            reason = vars(hit.reason) if hit.reason else None
            record = {"rank": hit.rank, "score": hit.score, "reason": reason, **hit.passage.to_record()}
            typer.echo(json.dumps(record, ensure_ascii=False))
        return
    for line in hit_lines(query, hits):
        new_console().print(line, soft_wrap=True)


def searched_index(index: Path | None) -> Path:
    """The `chosen_index`. In a terminal, a folder that has none is indexed if the user agrees."""
    try:
        return chosen_index(index)
    except NoIndexError as error:
        if not in_terminal():
            raise
        where = error.folder.resolve()
        typer.confirm(f"{where} has no index. Index its documents now?", default=True, abort=True, err=True)
        from .index import index as build  # which reads documents

        build(Index(names=(str(error.folder),), out=error.home))
        return error.home


def in_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # a service may have none
