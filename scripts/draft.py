"""`polyhop draft`: test questions over one's own documents, drafted by a model or as a sheet, and read by a person."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO

import dspy
import typer

from ..app.named import open_source, set_models
from ..data.errors import PolyhopError
from ..data.text import count
from ..engines.models import chosen_models
from ..eval.drafts import KNOWN, USABLE, Drafter, drafted, examples, written
from ..eval.folder import RunRecord
from .ask import searched_index
from .options import Draft
from .results import check_own, run_into
from .serve import check_installed
from .terminal import progress_bar


def draft(options: Draft) -> None:
    if options.review:
        if others := options.model_fields_set - {"review", "port"}:
            named = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(others))
            raise typer.BadParameter(f"--review reads what is drafted already: leave {named} out")
        check_installed()
        from ..serve.review import serve_review

        serve_review(options.review, options.port)
        return
    out = options.out
    if out is None:
        raise typer.BadParameter("name the file of the questions: --out FILE.jsonl; or one to --review")
    if "port" in options.model_fields_set:
        raise typer.BadParameter("--port is that of a --review")
    has_model = chosen_models(options.lm)[:2] != ({}, "lexical")
    if has_model:
        check_own(out)
    elif out.exists():
        raise PolyhopError(f"{out} is there already, perhaps with questions that you wrote: name another file")
    index = searched_index(options.index)
    source = open_source(index)
    with progress_bar("looking for pairs") as bar:
        asked = list(bar.track(islice(examples(source, options.seed), options.count), options.count))
    if not asked:
        raise PolyhopError(
            "no passage leads to another document by a link or by a rare name, so there are no pairs to ask about"
        )
    if not has_model:
        _write_sheet(out, asked)
        return
    program = Drafter()
    set_models(program, options)
    run_into(out, program, asked, options, partial(_write, asked), name="draft", index=index, source=source)
    typer.echo(f"Read them: polyhop draft --review {out}", err=True)


def _write_sheet(out: Path, asked: Sequence[dspy.Example]) -> None:
    """The pairs, for a person to write from."""
    lines = [json.dumps(written(example.pair), ensure_ascii=False) + "\n" for example in asked]
    out.write_text("".join(lines), encoding="utf-8")
    typer.echo(f"{out}: {count(len(lines), 'pair')} of passages")
    typer.echo(f"Write a question that needs both, and its answer: polyhop draft --review {out}")
    typer.echo("Or write them into the file, and delete the lines that you leave out.")


def _write(asked: Sequence[dspy.Example], file: IO[str], records: Iterable[RunRecord]) -> str:
    """Write the drafts that passed the model's own check; returns how the checks ended."""
    checks = Counter[str]()
    for record in records:
        check = "failed" if record.error else record.stop_reason
        checks[check] += 1
        if check in (USABLE, KNOWN):
            file.write(json.dumps(drafted(asked[record.n].pair, record), ensure_ascii=False) + "\n")
    ends = "; ".join(f"{number} {check}" for check, number in checks.most_common())
    return f"{count(checks[USABLE] + checks[KNOWN], 'question')} of {count(checks.total(), 'draft')} ({ends})"
