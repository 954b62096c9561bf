"""`polyhop report`: an HTML page about evaluation and optimization runs."""

from __future__ import annotations

from dataclasses import replace

import typer

from ..data.errors import PolyhopError
from ..eval.folder import read_manifest
from ..eval.report.page import GENERATOR, evaluation_sections, heading, write_page
from ..eval.report.runs import Details, read_groups
from ..optimizers.report import is_optimization, section
from .options import Report
from .terminal import progress_bar, warn


def report(options: Report) -> None:
    out, paths = options.out, list(dict.fromkeys(options.runs))
    if out.is_dir() or (out.exists() and not out.read_bytes().startswith(GENERATOR.encode())):
        raise PolyhopError(f"{out} exists and is not a report: give --out another name, such as report.html")
    optimized = {path: path.resolve().name for path in paths if is_optimization(path)}
    if len(set(optimized.values())) < len(optimized):
        optimized = {path: str(path) for path in optimized}
    evaluated = [path for path in paths if path not in optimized]
    details = Details()
    with progress_bar("report") as bar:
        task = bar.add_task("reading", total=sum(read_manifest(path).questions.count for path in evaluated))
        groups = read_groups(evaluated, details, lambda: bar.advance(task))
        page = evaluation_sections(groups) if groups else []
        of = list(optimized.values()) if len(optimized) > 1 else [""]
        page[-1:-1] = [
            replace(section(path), name=f"optimization-{n}", of=name)
            for n, (path, name) in enumerate(zip(optimized, of, strict=False), 1)
        ]
        title, lead = heading(groups, list(optimized.values()))
        out.parent.mkdir(parents=True, exist_ok=True)
        write_page(out, title, lead, page, groups, details.chunks)
    for run in (run for group in groups for run in group.runs if not run.finished):
        warn(f"{run.path} is not finished: {run.missing}")
    typer.echo(f"{out}: {out.stat().st_size / 1e6:.1f} MB")
