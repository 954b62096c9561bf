"""`polyhop answer`: answers a file of questions that have no right answers beside them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from ..data.text import count
from .evaluation_view import evaluation_bar
from .options import (
    SAMPLE,
    AdaptiveOption,
    BudgetCallsOption,
    BudgetDollarsOption,
    BudgetMinutesOption,
    ClusterOption,
    DepthOption,
    IndexOption,
    ModelsOption,
    NoCacheOption,
    RetrieverOption,
    RetryOption,
    SettingsOption,
    ThreadsOption,
    TimeoutOption,
    WorkersOption,
    build_program,
    open_source,
)
from .text import warn

if TYPE_CHECKING:
    import dspy

_LONGEST = 1 << 20  # bytes of a line
_MOST = 200_000  # questions: they are kept in memory, and stdin may have no end


def answer(
    questions: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help='Questions, one a line; .jsonl: {"question": ..., "id": ...}; - for stdin.'
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE.jsonl", help="One JSON object per question, in their order.")],
    index: IndexOption = None,
    program: Annotated[str, typer.Option(metavar="NAME|DIR", help="As for 'ask'.")] = "polyhop",
    lm: ModelsOption = None,
    k: DepthOption = None,
    retriever: RetrieverOption = None,
    adaptive: AdaptiveOption = False,
    settings: SettingsOption = None,
    threads: ThreadsOption = 1,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    timeout: TimeoutOption = None,
    retry_failed: RetryOption = False,
    no_cache: NoCacheOption = False,
    budget_calls: BudgetCallsOption = None,
    budget_usd: BudgetDollarsOption = None,
    budget_minutes: BudgetMinutesOption = None,
) -> None:
    """Answer questions from a file or stdin; run the same command again to resume.

    The run is kept in FILE.jsonl.run, as by 'polyhop evaluate --out'. A failed question has an error and no answer.
    """
    from ..engines.budget import Budget, BudgetSpent
    from ..eval.cluster import workers_of
    from ..eval.folder import account
    from ..eval.run import evaluate
    from ..eval.settings import RunManifest, files_of

    try:
        asked = list(_read(questions))
    except OSError as error:
        raise PolyhopError(f"{questions} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise PolyhopError(f"{error}, or use - and stdin") from error
    if not asked:
        raise PolyhopError(f"{questions} has no questions")
    source = open_source(index) if index else None
    run = build_program(
        program,
        source,
        lm or (),
        k,
        retriever=retriever,
        adaptive=adaptive,
        settings=settings or (),
        no_cache=no_cache,
    )
    if hasattr(run, "search") and source is None:
        raise PolyhopError(f"nothing to search: name an index with --index DIR or POLYHOP_INDEX, or --index {SAMPLE}")
    folder = out.with_name(f"{out.name}.run")
    if out.is_dir() or (out.exists() and not folder.exists()):
        raise PolyhopError(f"{out} exists and was not made by this command: choose another --out")
    budget = None
    if any(limit is not None for limit in (budget_calls, budget_usd, budget_minutes)):
        budget = Budget(calls=budget_calls, usd=budget_usd, minutes=budget_minutes, file=account(folder))
        budget.meter_program(run)
    searched = getattr(source, "manifest", None)
    manifest = RunManifest.of(
        run, asked, name=program, timeout=timeout, index=searched, files=files_of({"index": index})
    )
    try:
        with evaluation_bar(program) as show:
            evaluate(
                run,
                asked,
                folder,
                threads=threads,
                executor=workers_of(workers, threads, cluster),
                timeout=timeout,
                retry_failed=retry_failed,
                manifest=manifest,
                on_progress=show,
            )
    except BudgetSpent as spent:
        raise PolyhopError(
            f"the budget ({spent}) is spent; what is done is in {out}: resume with a larger one"
        ) from None
    finally:
        if budget is not None:
            budget.close()
        if (folder / "predictions.jsonl").exists():
            done, failed = _write(folder, out)
    typer.echo(f"{out}: {count(done, 'question')} answered, {failed} failed", err=True)


def _read(source: str) -> Iterator[dspy.Example]:
    """The questions of a file or of stdin; what is none is skipped with a warning.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a regular file.
    """
    import dspy

    from ..data.files import bounded_lines, check_regular
    from ..data.text import clean
    from ..programs.prediction import QuestionError, check_question

    if source != "-":
        check_regular(Path(source))
    known = set[str]()
    with nullcontext(sys.stdin.buffer) if source == "-" else open(source, "rb") as file:
        for number, line in enumerate(bounded_lines(file, _LONGEST), 1):
            try:
                if line is None:
                    raise ValueError(f"a line of more than {_LONGEST >> 20} MB")
                text = line.decode("utf-8-sig").strip()
                if not text:
                    continue
                record = json.loads(text) if source.endswith(".jsonl") else {"question": text}
                if not isinstance(record, dict) or not isinstance(record.get("question"), str):
                    raise ValueError("no object with a question")
                question, id = check_question(record["question"]), clean(str(record.get("id") or number))
            except (ValueError, RecursionError, QuestionError) as error:
                warn(f"{source}, line {number}: {error}")
                continue
            if id in known:
                warn(f"{source}, line {number}: repeats the id {id!r}")
                continue
            known.add(id)
            if len(known) > _MOST:
                raise PolyhopError(f"{source} has more than {_MOST:,} questions: split them")
            yield dspy.Example(id=id, question=question, answers=()).with_inputs("question")


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
                    "confidence": record.confidence,
                    "status": record.status,
                    "evidence": [item.model_dump() for item in record.evidence],
                }
            file.write(json.dumps({**line, "costs": record.costs}, ensure_ascii=False) + "\n")
    return done, failed
