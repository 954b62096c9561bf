"""The `polyhop` command. Each command has a file; this one registers them and reports their errors.

Commands import what they need inside their functions, so that ``polyhop --help`` answers at once.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..data.errors import PolyhopError
from .ask import ask
from .compare import compare
from .demo import demo
from .diagnose import diagnose
from .diff import diff
from .doctor import doctor
from .evaluate import evaluate
from .export import export
from .index import index
from .optimize import optimize
from .options import grouped
from .report import report
from .score import score
from .search import search
from .serve import serve
from .table import table


class Commands(TyperGroup):
    """Prints errors on one line. Exit status 1: an expected error; 2: wrong usage; 130: interrupted."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe can still be caught
            return result
        except PolyhopError as error:
            if ctx.params["debug"]:
                raise
            from .text import safe

            typer.secho(f"error: {safe(str(error))}", fg=typer.colors.RED, err=True)
            raise SystemExit(1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise SystemExit(130) from None
        except BrokenPipeError:
            # The reader has seen enough (`polyhop ask ... | head`). What is still buffered goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(1) from None
        except OSError as error:
            if ctx.params["debug"] or error.errno not in _FAULTS:
                raise
            from .text import safe

            where = f" ({safe(str(error.filename))})" if error.filename else ""
            advice = "What is finished is saved: make room or get access, and run the same command again."
            typer.secho(f"error: {error.strerror}{where}. {advice}", fg=typer.colors.RED, err=True)
            raise SystemExit(1) from None


_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)

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


COMMANDS: tuple[Callable[..., None], ...] = (
    ask, search, index, evaluate, score, compare, report, diagnose, optimize, table, diff, export,
    serve, demo, doctor,
)  # fmt: skip
for command in COMMANDS:
    app.command()(grouped(command))


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
