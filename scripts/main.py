"""The `polyhop` command: makes a command of each model of `options`, and reports errors.

A command's file is imported when it runs, so that ``polyhop --help`` answers at once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from errno import EDQUOT, ENOSPC
from importlib import import_module
from inspect import Parameter, Signature, get_annotations
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from ..data.errors import PolyhopError, first_error
from ..optimizers.settings import Options
from .options import COMMANDS

_FILES = {"search": "ask", "score": "evaluate", "diff": "export"}  # of commands that share one


class Commands(TyperGroup):
    """Prints errors on one line. Exit status 1: an expected error; 2: wrong usage; 130: interrupted."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where Typer still catches a closed pipe
            return result
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise
        except (PolyhopError, OSError) as error:
            if ctx.params["debug"] or isinstance(error, BrokenPipeError):  # Typer's
                raise
            from .terminal import safe

            message = str(error)
            if isinstance(error, OSError) and error.filename:
                message = f"{error.filename} cannot be read or written: {error.strerror}"
            if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
                message += "; what is finished is saved"
            typer.secho(f"error: {safe(message)}", fg=typer.colors.RED, err=True)
            raise SystemExit(1) from None


# Plain help and no rich tracebacks: each would cost 0.2 s or more at every start, and the latter print local variables,
# in which a key may stand.
app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        typer.echo(f"polyhop {__version__}")
        raise typer.Exit


@app.callback()
def polyhop(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="POLYHOP_DEBUG", help="Show the traceback of an error.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Answer questions whose evidence is spread over several documents."""
    warnings.showwarning = _print_warning  # also those of other packages


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from .terminal import warn

    warn(str(message))


def _command(model: type[Options]) -> Callable[..., None]:
    """The command of a model. What is not given keeps its default, and is not in ``model_fields_set``."""
    name = model.__name__.lower()

    def run(**values: Any) -> None:
        changed = {field: value for field, value in values.items() if not (value in (None, []) or value is False)}
        try:
            options = model(**changed)
        except ValidationError as error:
            field, _, why = first_error(error).partition(":")
            raise typer.BadParameter(f"{field.replace('_', '-')}:{why}") from error
        getattr(import_module(f".{_FILES.get(name, name)}", __package__), name)(options)

    parameters = list(_parameters(model))
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__ = name, model.__doc__
    return run


def _parameters(model: type[Options]) -> Iterator[Parameter]:
    """Those of a model, its own before those of its bases."""
    first = get_annotations(model)
    for name in sorted(model.model_fields, key=lambda name: name not in first):
        field = model.model_fields[name]
        extra: Any = field.json_schema_extra
        default = None if field.is_required() else field.default
        several = get_origin(field.annotation) in (tuple, dict) and not default
        types = get_args(field.annotation) or (field.annotation,)
        kind: Any = list[str] if several else next((type for type in (bool, int, float, Path) if type in types), str)
        shown = ",".join(default) if isinstance(default, tuple) else default
        suffix = "" if shown in (None, "", {}, False) else f"  [default: {shown}]"
        metavar = extra["metavar"] or (None if kind is bool else "N" if kind in (int, float) else "TEXT")
        shape: dict[str, Any] = {"metavar": metavar, "help": f"{field.description}{suffix}", "show_default": False}
        flag = extra["flag"] or f"--{name.replace('_', '-')}"
        parameter: Any = typer.Argument(**shape) if extra["flag"] == "" else typer.Option(flag, **shape)
        value = Parameter.empty if field.is_required() else False if kind is bool else None
        optional = kind | None if value is None else kind
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=Annotated[optional, parameter])


for command in COMMANDS:
    app.command()(_command(command))


def _print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Redact keys: a provider's message, which tracebacks include, may quote one."""
    from traceback import format_exception

    from ..engines.secrets import without_secrets

    sys.stderr.write(without_secrets("".join(format_exception(kind, error, trace))))


def main() -> None:
    """The console script."""
    sys.excepthook = _print_traceback
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a title in a terminal that lacks its script
    app(prog_name="polyhop")


if __name__ == "__main__":
    main()
