"""What runs over questions print: progress, summaries, costs, and what went wrong."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any

import dspy
import typer
from rich.table import Table
from rich.text import Text

from ..app.named import paying
from ..app.task import Task
from ..data.errors import PolyhopError
from ..data.files import read_bytes
from ..data.importing import installs
from ..data.lucene.bm25 import BM25Index
from ..data.pool import PassagePool
from ..data.text import plain
from ..engines.costs import sum_costs
from ..eval.folder import PREDICTIONS, RunManifest, RunRecord, files_of, flat, read_records, replacing
from ..eval.metrics import COSTS, METRICS, answer_f1, evidence_f1
from ..eval.questions import Questions
from ..eval.run import RunProgress, evaluate
from .options import RunOptions
from .terminal import new_console, new_table, progress_bar, warn

_MLFLOW = "MLFLOW_TRACKING_URI"
_LONGEST = 250  # characters of a name or a value in MLflow


def run_questions(
    task: Task, program: dspy.Module, name: str, out: Path | None, *, file: Path | None = None, **options: Any
) -> dict[str, Any]:
    """The summary of a program's run over the questions of a task, with a progress bar.

    Args:
        name: What the program is called.
        file: The program's artifact.
        options: Those of `polyhop.eval.run.evaluate`.
    """
    index, questions = task.index, task.questions
    manifest = RunManifest.of(
        program,
        questions,
        name=name,
        timeout=options.get("timeout"),
        index=index.manifest if index else None,
        files=files_of(
            questions=questions.file, aliases=questions.aliases, index=index.path if index else None, program=file
        ),
    )
    with tracked(name, manifest.to_json(), out, traces=True) as record, evaluation_bar(name) as show:
        options |= {"look_up": task.look_up, "manifest": manifest, "on_progress": show}
        try:
            summary = evaluate(program, questions, out, **options)
        except KeyboardInterrupt:
            if out is not None:
                done, count = sum(1 for _ in read_records(out)), manifest.questions.count
                state = f"{done} of {count} questions are done; run the same command again to resume."
                typer.echo(f"{out}: {state}", err=True)
            raise
        record({**summary["metrics"], "counts": summary["counts"], "totals": summary["totals"]})
        return summary


@contextmanager
def evaluation_bar(name: str) -> Iterator[Callable[[RunProgress], None]]:
    """A progress bar with the running scores, on stderr."""
    with progress_bar(name) as bar:
        task = bar.add_task("", total=None)
        yield lambda run: bar.update(task, completed=run.done, total=run.questions, description=_state(run))


def _state(run: RunProgress) -> str:
    means = {metric: run.mean(metric.name) for metric in (answer_f1, evidence_f1)}
    parts = [f"{metric.label} {metric.text(value)}" for metric, value in means.items() if value is not None]
    counts = {"failed": run.failed, "repeated": run.repeated, "tokens": run.tokens}
    parts += [f"{number:,} {name}" for name, number in counts.items() if number]
    if run.cost_usd:
        parts.append(COSTS["cost_usd"].text(run.cost_usd) + ("" if run.priced else "+"))
    return ", ".join(parts)


def print_summary(summary: Mapping[str, Any], name: str, questions: Questions, out: Path | None, as_json: bool) -> None:
    """Print the scores and costs of a run, and what went wrong in it on stderr."""
    counts = summary["counts"]
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        where = ", ".join(part for part in (questions.dataset, questions.split, questions.setting) if part)
        lost = ((questions.skipped, "records skipped"), (counts["failed"], "failed"))
        losses = "".join(f", {number:,} {what}" for number, what in lost if number)
        console = new_console()
        console.print(summary_table(summary, name, f"{where}: {counts['questions']} questions{losses}"))
        if summary["by_agent"]:
            console.print(costs_table(summary["by_agent"], "costs by agent, without cached replies"))
        if out is not None:
            typer.echo(f"{out}: summary.json, predictions.jsonl, rankings and official files")
    warn_of_skipped(questions)
    if counts["gold_not_found"]:
        lost_gold = f"{counts['gold_not_found']:,} of {counts['questions']:,} questions"
        warn(f"{lost_gold} have gold passages that are not in the index: is it the right one?")
    if missing := summary.get("not_returned"):
        warn(f"{name} returns no {' and no '.join(missing)}: not scored")
    for cause in summary["failures"]:
        warn(f"{name}: {cause['count']} failed: {cause['message']}")
    if summary["incidents"]:
        warn(f"{name}: {', '.join(f'{what} {number:,} times' for what, number in summary['incidents'].items())}")


def warn_of_skipped(questions: Questions) -> None:
    """The records that were skipped in the last iteration."""
    for problem in questions.problems:
        warn(f"skipped {problem.where}: {problem.reason}")
    if questions.skipped > len(questions.problems):
        warn(f"... {questions.skipped:,} records were skipped in total")


def summary_table(summary: Mapping[str, Any], name: str, title: str) -> Table:
    """The means of a run, with 95% intervals; of a metric that some questions lack, also of how many it is."""
    shown = new_table(title, "", name, "95% interval")
    means, count, scored = summary["metrics"], summary["counts"]["questions"], summary.get("scored", {})
    for quantity in (*METRICS.values(), *COSTS.values()):
        if quantity.shown and (mean := means.get(quantity.name)) is not None and (mean or quantity.kind != "dollars"):
            some = scored.get(quantity.name, count)
            ends = " to ".join(map(quantity.text, summary["intervals"][quantity.name]))
            shown.add_row(quantity.heading + (f", of {some}" if some < count else ""), quantity.text(mean), ends)
    for percent in (50, 95):
        if (seconds := means.get(f"seconds_p{percent}")) is not None:  # predictions that were made elsewhere have none
            shown.add_row(f"ms per question, p{percent}", f"{1000 * seconds:.1f}")
    shown.add_row("failed questions", str(summary["counts"]["failed"]))
    return shown


def costs_table(by_agent: Mapping[str, Mapping[str, float]], title: str) -> Table:
    """The costs of each agent, and their total."""
    rows = [*by_agent.items(), ("total", sum_costs(by_agent.values()))]
    paid = any(costs.get("cost_usd") != 0 for _, costs in rows)  # also where a price is unknown
    shown = new_table(title, "", "LM calls", "tokens in", "tokens out", *(["dollars"] if paid else []))
    for name, costs in rows:
        counts = (f"{costs.get(cost, 0):,.0f}" for cost in ("lm_calls", "tokens_in", "tokens_out"))
        dollars = [COSTS["cost_usd"].text(costs.get("cost_usd")) or "?"] if paid else []
        shown.add_row(Text(plain(name)), *counts, *dollars)
    return shown


# --- a file of answers ------------------------------------------------------------------------------------------------

_WRITTEN = "answers.sha256"  # in the folder of the run: of what --out was, and of what replaces it


def run_into(
    out: Path,
    program: dspy.Module,
    examples: Sequence[dspy.Example],
    options: RunOptions,
    write: Callable[[IO[str], Iterable[RunRecord]], str],
    *,
    name: str,
    index: Path | None,
    source: BM25Index | PassagePool | None,
) -> None:
    """Run a program over questions, and write what it answered to a file, also if it is interrupted. The run is kept
    beside the file, and the same command resumes it.

    Args:
        write: Writes the records of the run; returns how they ended.
        name: What the program is called.
        source: What is opened of the index.
    """
    folder, searched = _folder_of(out), source.manifest if isinstance(source, BM25Index) else None
    about: dict[str, Any] = {"index": searched, "files": files_of(index=index)}
    manifest = RunManifest.of(program, examples, name=name, timeout=options.timeout, **about)
    with paying(options, folder) as pay:
        pay(program)
        try:
            with evaluation_bar(name) as show:
                evaluate(program, examples, folder, manifest=manifest, on_progress=show, **options.how)
        finally:
            if (folder / PREDICTIONS).exists():
                check_own(out)
                with replacing(out) as file:
                    ends = write(file, read_records(folder))
                    file.flush()
                    with replacing(folder / _WRITTEN) as hashes:  # first: a kill leaves one of the two contents
                        hashes.writelines(f"{_hash(path)}\n" for path in (out, Path(file.name)) if path.exists())
                typer.echo(f"{out}: {ends}", err=True)


def check_own(out: Path) -> None:
    """Refuse to replace what the last call of `run_into` has not written."""
    if not out.name:
        raise PolyhopError(f"{out} is a folder: name a file")
    written = _folder_of(out) / _WRITTEN
    hashes = read_bytes(written).split() if written.exists() else []
    if out.exists() and not (out.is_file() and _hash(out).encode() in hashes):
        raise PolyhopError(f"{out} exists and is not as this command wrote it: move it away, or choose another --out")


def _folder_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.run")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


# --- MLflow: the run's folder has all results, so an error of MLflow is a warning -------------------------------------


@contextmanager
def tracked(
    name: str, settings: Mapping[str, Any], out: Path | None, *, traces: bool = False
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A run in MLflow, if MLFLOW_TRACKING_URI is set; an exception marks it as failed. Gives a function that logs
    metrics, which may be nested. With ``traces``, the calls of programs, agents and models are recorded.
    """
    if not os.environ.get(_MLFLOW):
        yield lambda metrics: None
        return
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # a server that is down is noticed at once

    def begin() -> Any:
        import mlflow

        mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", "polyhop"))
        mlflow.start_run(run_name=name, tags={"polyhop.folder": str(out.absolute())} if out else None)
        mlflow.log_params({key: str(value)[:_LONGEST] for key, value in _flat(settings).items()})
        if traces:
            mlflow.dspy.autolog(silent=True)
        return mlflow

    def log(metrics: Mapping[str, Any]) -> None:
        numbers = {key: value for key, value in _flat(metrics).items() if type(value) in (int, float)}
        _try(lambda: mlflow and mlflow.log_metrics(numbers))

    mlflow, status = _try(begin), "FAILED"
    try:
        yield log
        status = "FINISHED"
    finally:
        _try(lambda: mlflow and mlflow.end_run(status))


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, under names that MLflow allows."""
    names = {key: re.sub(r"[^\w\-. /:]", "_", key.replace("@", "_at_"))[:_LONGEST] for key, _ in flat(values)}
    return {names[key]: value for key, value in flat(values) if value is not None}


def _try(call: Callable[[], Any]) -> Any:
    """The result of a call of MLflow. Its errors may tell the address, with a password: only their kind is told."""
    try:
        return call()
    except ImportError:
        warn(f"{_MLFLOW} is set, but MLflow is not installed: {installs('tracking')}")
    except Exception as error:  # noqa: BLE001  # a tracking server must not stop the run
        warn(f"not tracked: cannot write to {_MLFLOW} ({type(error).__name__})")
    return None
