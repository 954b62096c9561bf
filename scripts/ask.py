"""`polyhop ask`: answers a question, or those of a file, which can be interrupted and resumed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from ..data.errors import PolyhopError
from ..data.text import count
from ..eval.options import Limits, ProgramOptions, Resources
from .home import chosen_index
from .options import IndexOption, RetryOption, TimeoutOption, build_program, label, open_source, paying, searches
from .text import warn

if TYPE_CHECKING:
    import dspy

_LONGEST = 1 << 20  # bytes of a line


def ask(
    question: Annotated[str | None, typer.Argument(help="The question.", show_default=False)] = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help='Questions, one a line; of a .jsonl file {"question": ..., "id": ...}; - for stdin.',
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="ANSWERS.jsonl",
            help="With --file: write one JSON object per question, in their order. Interrupted runs resume.",
        ),
    ] = None,
    index: IndexOption = None,
    program: Annotated[
        str,
        typer.Option(
            metavar="NAME|DIR",
            help="A program, the folder of an artifact, or any DSPy program as FILE.py:NAME; FILE.py:NAME=DIR with the "
            "state of an artifact, or =STATE.json with one that DSPy saved.",
        ),
    ] = "polyhop",
    *,
    built: ProgramOptions,
    trace: Annotated[bool, typer.Option("--trace", help="Show every step, and the costs by agent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per question.")] = False,
    resources: Resources,
    timeout: TimeoutOption = None,
    retry_failed: RetryOption = False,
    limits: Limits,
) -> None:
    """Answer a question, with its chain of evidence; or those of a --file.

    With --out, the run is kept in ANSWERS.jsonl.run, as by 'polyhop evaluate --out', and the same command resumes it. A
    failed question has an error and no answer. --threads, --workers, --timeout and --retry-failed are for such runs.
    """
    import dspy

    from ..eval.run import evaluate
    from ..eval.settings import RunManifest, files_of
    from ..programs.prediction import check_question
    from .evaluation_view import evaluation_bar

    if (question is None) == (file is None) or (out and not file):
        raise typer.BadParameter("ask one question, or those of a --file, whose answers can go to --out")
    asked = _read(file) if file else [("1", check_question(question or ""))]
    folder = out.with_name(f"{out.name}.run") if out else None
    if out and (out.is_dir() or (out.exists() and folder and not folder.exists())):
        raise PolyhopError(f"{out} exists and was not made by this command: choose another --out")
    searched = chosen_index(index) if searches(program) else None
    source = open_source(searched) if searched else None
    run = build_program(program, source, built)
    with paying(limits, folder) as pay:
        pay(run)
        if not (out and folder):
            for _, each in asked:
                _print(run, each, str(searched) if searched else None, trace=trace, as_json=as_json)
            return
        examples = [dspy.Example(id=id, question=each, answers=()).with_inputs("question") for id, each in asked]
        known, files = getattr(source, "manifest", None), files_of({"index": searched})
        manifest = RunManifest.of(run, examples, name=label(program), timeout=timeout, index=known, files=files)
        try:
            with evaluation_bar("answering") as show:
                evaluate(
                    run,
                    examples,
                    folder,
                    threads=resources.threads,
                    executor=resources.executor,
                    timeout=timeout,
                    retry_failed=retry_failed,
                    manifest=manifest,
                    on_progress=show,
                )
        finally:
            if (folder / "predictions.jsonl").exists():
                done, failed = _write(folder, out)
                typer.echo(f"{out}: {count(done, 'question')} answered, {failed} failed", err=True)


def _print(run: dspy.Module, question: str, searched: str | None, *, trace: bool, as_json: bool) -> None:
    from time import perf_counter

    import dspy

    from ..engines.costs import FREE, Ledger
    from ..engines.replies import model_errors
    from ..programs.program import ask as answer
    from ..programs.program import completed
    from . import view
    from .progress import showing_progress

    start, ledger = perf_counter(), Ledger(on_incident=lambda incident: warn(f"{incident} ..."))
    with showing_progress(), model_errors(), dspy.context(usage_tracker=ledger, disable_history=True, trace=None):
        prediction = completed(answer(run, dspy.Example(question=question).with_inputs("question")))
    seconds = perf_counter() - start
    if as_json:
        view.print_json(question, prediction, seconds, ledger, index=searched)
        sys.stdout.flush()
    else:
        view.print_answer(question, prediction, seconds, ledger, index=searched, trace=trace)
        is_free = all(getattr(predictor.lm, "model", "") in FREE for predictor in run.predictors())
        if is_free and prediction.get("status") in view.IN_DOUBT:
            typer.echo("  The embedded engine finds only what a passage says in so many words: read the evidence,")
            typer.echo("  or ask a language model with --lm, such as --lm openai/gpt-4o-mini.\n")


def _read(file: str) -> Iterator[tuple[str, str]]:
    """The ids and questions of a file or of stdin; what is none is skipped with a warning."""
    from ..data.files import bounded_lines
    from ..data.text import clean
    from ..programs.prediction import QuestionError, check_question

    known = set[str]()
    with nullcontext(sys.stdin.buffer) if file == "-" else _opened(file) as lines:
        for number, line in enumerate(bounded_lines(lines, _LONGEST), 1):
            try:
                if line is None:
                    raise ValueError(f"a line of more than {_LONGEST >> 20} MB")
                text = line.decode("utf-8-sig").strip()
                if not text:
                    continue
                record = json.loads(text) if file.endswith(".jsonl") else {"question": text}
                if not isinstance(record, dict) or not isinstance(record.get("question"), str):
                    raise ValueError("no object with a question")
                id, question = clean(str(record.get("id") or number)), check_question(record["question"])
                if id in known:
                    raise ValueError(f"repeats the id {id!r}")
            except (ValueError, RecursionError, QuestionError) as error:
                warn(f"{file}, line {number}: {error}")
                continue
            known.add(id)
            yield id, question
    if not known:
        raise PolyhopError(f"{file} has no questions")


def _opened(file: str) -> BinaryIO:
    from ..data.files import check_regular

    path = Path(file)
    try:
        if path.exists():
            check_regular(path)
        return path.open("rb")
    except OSError as error:
        raise PolyhopError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise PolyhopError(f"{error}, or name - and send it to stdin") from error


def _write(folder: Path, out: Path) -> tuple[int, int]:
    """Write what is done, and return how many questions were answered and failed."""
    from ..eval.folder import replacing
    from ..eval.records import read_records

    done = failed = 0
    with replacing(out) as file:
        for record in read_records(folder):
            line: dict[str, Any] = {"id": record.id, "question": record.question}
            if record.error:
                failed += 1
                line["error"] = record.error.message
            else:
                done += 1
                line |= {
                    "answer": record.answer,
                    "guess": record.guess,
                    "confidence": record.confidence,
                    "status": record.status,
                    "evidence": [item.model_dump() for item in record.evidence],
                }
            file.write(json.dumps({**line, "costs": record.costs}, ensure_ascii=False) + "\n")
    return done, failed
