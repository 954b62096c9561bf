"""`polyhop draft`: test questions over one's own documents, drafted by a model or as a sheet, and read by a person."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import dspy
import typer

from ..app.named import NamedProgram, open_source, paying
from ..data.errors import PolyhopError
from ..data.text import count
from ..engines.models import chosen_models
from ..eval.drafts import KNOWN, USABLE, drafted, examples, written
from ..eval.folder import RunManifest, files_of, read_records
from ..eval.run import evaluate
from .ask import check_own, replacing_own, searched_index
from .options import Draft
from .results import evaluation_bar
from .serve import check_installed

_DRAFTER = "polyhop.eval.drafts:Drafter"


def draft(options: Draft) -> None:
    if options.review:
        check_installed()
        from ..serve.review import serve_review

        serve_review(options.review, options.port)
        return
    if options.out is None:
        raise typer.BadParameter("name the file of the questions: --out FILE.jsonl; or one to --review")
    index = searched_index(options.index)
    source = open_source(index)
    asked = list(islice(examples(source, options.seed), options.count))
    if not asked:
        raise PolyhopError(
            "no passage leads to another document by a link or by a rare name, so there are no pairs to ask about"
        )
    if chosen_models(options.lm)[:2] == ({}, "lexical"):
        _write_sheet(options.out, asked)
    else:
        files = {"index": getattr(source, "manifest", None), "files": files_of(index=index)}
        _draft(options, options.out, asked, files)


def _write_sheet(out: Path, asked: list[dspy.Example]) -> None:
    """The pairs, for a person to write from."""
    if out.exists():
        raise PolyhopError(f"{out} is there already, perhaps with questions that you wrote: name another file")
    lines = [json.dumps(written(example.pair), ensure_ascii=False) + "\n" for example in asked]
    out.write_text("".join(lines), encoding="utf-8")
    typer.echo(f"{out}: {count(len(lines), 'pair')} of passages")
    typer.echo(f"Write a question that needs both, and its answer: polyhop draft --review {out}")
    typer.echo("Or write them into the file, and delete the lines that you leave out.")


def _draft(options: Draft, out: Path, asked: list[dspy.Example], files: dict[str, Any]) -> None:
    """The questions that a model writes, without those that its own check refuses."""
    folder = out.with_name(f"{out.name}.run")
    check_own(out, folder)
    program = NamedProgram(_DRAFTER).build(None, options)
    manifest = RunManifest.of(program, asked, name="draft", timeout=options.timeout, **files)
    with paying(options, folder) as pay:
        pay(program)
        try:
            with evaluation_bar("drafting") as show:
                evaluate(program, asked, folder, manifest=manifest, on_progress=show, **options.how)
        finally:
            if (folder / "predictions.jsonl").exists():
                _write(folder, out, asked)


def _write(folder: Path, out: Path, asked: list[dspy.Example]) -> None:
    """Write what the run has, as far as it is, and how its checks ended."""
    checks = Counter[str]()
    with replacing_own(out, folder) as file:
        for record in read_records(folder):
            check = "failed" if record.error else record.stop_reason
            checks[check] += 1
            if check in (USABLE, KNOWN):
                file.write(json.dumps(drafted(asked[record.n].pair, record), ensure_ascii=False) + "\n")
    ends = "; ".join(f"{number} {check}" for check, number in checks.most_common())
    typer.echo(
        f"{out}: {count(checks[USABLE] + checks[KNOWN], 'question')} of {count(checks.total(), 'draft')} ({ends})",
        err=True,
    )
    typer.echo(f"Read them: polyhop draft --review {out}", err=True)
