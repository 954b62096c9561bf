"""`polyhop doctor`: is everything there that polyhop needs, does it work, and if not, what mends it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .checks import Finding

_WIDTH = 16  # of what a check is called; models may be longer
_COLORS = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "failed": typer.colors.RED}


def doctor(
    index: Annotated[Path | None, typer.Option("--index", metavar="DIR", help="Read an index through, too.")] = None,
    lm: Annotated[
        list[str] | None,
        typer.Option(
            "--lm",
            metavar="[ROLE=]SPEC",
            help="Ask this model, or those of a profile (FILE.toml), two short questions. May be repeated.  [default: "
            "$POLYHOP_LM or lexical]",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long a model may take to answer.")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check Python, packages, Java, an index, extras, memory and disk, and models; say what mends each problem.

    The network is used for the models that are named only. Neither keys nor addresses of models are shown. The exit
    status is 1 if a check failed; warnings do not count.
    """
    import json
    from dataclasses import asdict

    findings: list[Finding] = []
    for finding in _findings(index, lm or (), seconds):
        findings.append(finding)
        if not as_json:
            _print(finding)
    failed = any(finding.status == "failed" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": not failed, "checks": [asdict(each) for each in findings]}, ensure_ascii=False))
    if failed:
        raise typer.Exit(1)


def _findings(index: Path | None, models: Sequence[str], seconds: float) -> Iterator[Finding]:
    from . import checks, java_checks

    yield checks.check_python()
    yield checks.check_packages()
    yield from checks.check_extras()
    yield checks.check_memory()
    yield from checks.check_disk()
    java = java_checks.check_java()
    yield java
    if index is not None and java.status == "failed":
        yield checks.warning("index", "not looked at, because Java does not work", "first mend Java")
    elif index is not None:
        yield from java_checks.check_index_folder(index)

    from .model_checks import check_model, named_models

    for spec, profile in named_models(models).items():
        yield from check_model(spec, profile, seconds)


def _print(finding: Finding) -> None:
    mark = typer.style(f"{finding.status:<9}", fg=_COLORS[finding.status])
    typer.echo(f"{mark}{finding.check:<{_WIDTH}}  {finding.found}")
    if finding.fix:
        typer.echo(f"{'':<{9 + _WIDTH}}  -> {finding.fix}")
