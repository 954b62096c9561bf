"""`polyhop search`: what a retriever finds."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from ..data.passages import one_a_document
from ..data.retrievers import build_retriever
from .home import chosen_index
from .options import IndexOption, open_source

_SHOWN = 10  # hits, without -k


class By(StrEnum):
    passage = "passage"
    document = "document"


def search(
    query: Annotated[str, typer.Argument(help="Words to search for, or a question.", show_default=False)],
    index: IndexOption = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Hits.")] = _SHOWN,
    retriever: Annotated[
        str | None, typer.Option(metavar="NAME|MODULE:FUNCTION", help="The retriever, as for 'ask'.  [default: chain]")
    ] = None,
    by: Annotated[
        By, typer.Option(help="What a hit is: a passage, or a document, shown by its best one.")
    ] = By.passage,
    trec: Annotated[
        bool, typer.Option("--trec", help="Print a TREC run: 'q Q0 PASSAGE RANK SCORE TAG' lines.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per passage.")] = False,
) -> None:
    """Show what a retriever finds, and why.

    The chain retriever is fast here. Beside a language model, programs search thoroughly (search.effort).
    """
    if trec and as_json:
        raise typer.BadParameter("--trec and --json exclude each other")
    name = retriever or "chain"
    searched = build_retriever(name, open_source(chosen_index(index)))
    assert searched is not None  # there is a source
    hits = []
    if any(map(str.isalnum, query)):
        hits = one_a_document(searched.search, query, k) if by is By.document else searched.search(query, k)
    if trec:
        from ..eval.summary import run_lines

        typer.echo("".join(run_lines("q", [hit.passage.id for hit in hits], name)), nl=False)
    elif as_json:
        for hit in hits:
            reason = vars(hit.reason) if hit.reason else None
            found = {"rank": hit.rank, "score": hit.score, "reason": reason, **hit.passage.to_record()}
            typer.echo(json.dumps(found, ensure_ascii=False))
    else:
        from rich.console import Console

        from .view import hit_lines

        console = Console(highlight=False, markup=False, emoji=False)
        for line in hit_lines(query, hits):
            console.print(line, soft_wrap=True)
