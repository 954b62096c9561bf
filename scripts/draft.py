"""`polyhop draft`: pairs of passages of one's own documents, to write test questions from."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import typer

from ..app.named import open_source
from ..data.benchmarks.question import question_id
from ..data.chain.pairs import Pair, pairs
from ..data.errors import PolyhopError
from ..data.text import count
from .ask import searched_index
from .options import Draft


def draft(options: Draft) -> None:
    source = open_source(searched_index(options.index))
    if options.out.exists():
        raise PolyhopError(f"{options.out} is there already, perhaps with questions that you wrote: name another file")
    drafts = list(islice(pairs(source, options.seed), options.count))
    if not drafts:
        raise PolyhopError(
            "no passage leads to another document by a link or by a rare name, so there are no pairs to ask about"
        )
    lines = (json.dumps(_record(pair), ensure_ascii=False) + "\n" for pair in drafts)
    options.out.write_text("".join(lines), encoding="utf-8")
    typer.echo(f"{options.out}: {count(len(drafts), 'pair')} of passages")
    typer.echo(
        "Write a question that needs both, and its answer, into each line, and delete the lines that you leave out."
    )
    typer.echo(f"Then: polyhop evaluate --dataset own --questions {options.out}")


def _record(pair: Pair) -> dict[str, Any]:
    """A question of one's own, still to be written, and what it is to be written from."""
    first, second = pair.first, pair.second
    how = "links to" if pair.via == "hyperlink" else "mentions"
    return {
        "id": question_id(f"{first.id}\n{second.id}"),
        "question": "",
        "answer": "",
        "gold": [first.document, second.document],
        "type": "bridge",
        "tie": f"{first.heading} {how} {second.heading}: {pair.name}",
        "sentence": first.sentences[pair.sentence],
        "first": first.text,
        "second": second.text,
    }
