"""What the training commands share: they behave as ``polyhop`` does."""

from __future__ import annotations

import typer

from ...data.errors import PolyhopError


def new_app() -> typer.Typer:
    """An app with plain help and tracebacks, which start faster."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def run_command(app: typer.Typer, module: str) -> None:
    """Run an app as ``python -m MODULE``; a `PolyhopError` prints one line."""
    try:
        app(prog_name=f"python -m {module}")
    except PolyhopError as error:
        typer.secho(f"error: {error}", fg=typer.colors.RED, err=True)
        raise SystemExit(1) from None
