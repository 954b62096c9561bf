"""`polyhop serve`: the page, the HTTP API, OpenAI's chat API and MCP."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.errors import PolyhopError
from ..data.importing import installs
from ..eval.options import Limits as BudgetLimits
from ..eval.options import ProgramOptions
from .home import chosen_index
from .index import HOME
from .options import SAMPLE, IndexOption, build_program, label, models_of, open_source, searches

if TYPE_CHECKING:
    import dspy

    from ..serve.service import Service
    from ..serve.uploads import Uploads

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_EVERYWHERE = ("0.0.0.0", "::")  # under names that nobody can know here, for clients with a token
_CONNECTIONS = 500  # at the same time; requests on further ones get status 503
_NOT_SERVED = ("oracle", "full_context")
"""Programs that need more than a question."""


def serve(
    index: IndexOption = None,
    program: Annotated[
        str, typer.Option(metavar="NAME|DIR", help="The default program; the others can be chosen for each question.")
    ] = "polyhop",
    *,
    options: ProgramOptions,
    host: Annotated[str, typer.Option(help="Address to listen on. Other than loopback needs a token.")] = "127.0.0.1",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Also answer requests for this host, as a proxy passes them. May be repeated."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8080,
    token: Annotated[
        str | None,
        typer.Option(envvar="POLYHOP_TOKEN", help="What clients must send: Authorization: Bearer TOKEN."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Questions answered at the same time; others wait.  [default: 64; 4 with the embedded engine alone]",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds per question.")] = 300.0,
    uploads: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Let clients add documents; they are kept in DIR and added to the index."),
    ] = None,
    paid: BudgetLimits,
    mcp: Annotated[bool, typer.Option("--mcp", help="Speak MCP on stdin and stdout instead of HTTP.")] = False,
) -> None:
    """Serve a page, an HTTP API, OpenAI's chat API and MCP tools."""
    if not find_spec("fastapi") or not find_spec("mcp") or not find_spec("uvicorn"):
        raise PolyhopError(f"the server needs more packages: {installs('serve')}")
    if token is None and os.environ.get("POLYHOP_TOKEN") is not None:  # which Typer takes for none
        token = ""
    if host not in _LOOPBACK and token is None and not mcp:
        raise PolyhopError(f"{host} can be reached by others: set a token with --token or POLYHOP_TOKEN")
    from ..engines.budget import Budget
    from ..engines.costs import FREE
    from ..programs import PROGRAMS
    from ..serve.service import Limits, Service

    index = chosen_index(index) if index or program in PROGRAMS or searches(program) else None
    source = open_source(index) if index else None
    others = {name: name for name in PROGRAMS if name not in _NOT_SERVED} if source else {}
    names = {label(program): program} | others
    default = label(program)

    def build(name: str) -> dspy.Module:
        others = ProgramOptions(lm=options.lm, no_cache=options.no_cache)
        return build_program(names[name], source, options if name == default else others)

    budget = Budget(**paid.budget) if paid.model_fields_set else None
    # The embedded engine computes here: more threads would only keep events of others waiting.
    embedded = all(model.model in FREE for model in models_of(build(default)))
    limits = Limits(concurrency=concurrency or (4 if embedded else 64), seconds=timeout)
    called = "" if index is None else index.name if index.name != HOME else index.absolute().parent.name
    service = Service(build, names, source, index=called, examples=_examples(index), limits=limits, budget=budget)
    service.program(default)  # a wrong option is an error now
    if mcp:
        from ..serve.tools import tool_server

        tool_server(service).run("stdio")
        return
    import uvicorn

    from ..serve.app import LOOPBACK, create_app

    taken = _uploads(service, uploads)
    _log_lines()
    hosts = ["*"] if host in _EVERYWHERE else [*LOOPBACK, f"[{host}]" if ":" in host else host, *(allowed_host or ())]
    app = create_app(service, token=token, hosts=hosts, uploads=taken)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    sys.setswitchinterval(0.001)  # so that events do not wait for threads that compute
    server = uvicorn.Server(config)
    with config.bind_socket() as socket:
        socket.listen(2048)  # who reads the next line may connect
        where = f"[{host}]" if ":" in host else host
        typer.echo(f"polyhop answers on http://{where}:{socket.getsockname()[1]}/ (Ctrl-C stops it)")
        server.run([socket])


def _uploads(service: Service, folder: Path | None) -> Uploads | None:
    if folder is None:
        return None
    from ..data.lucene.bm25 import BM25Index
    from ..serve.uploads import Uploads

    if not isinstance(service.source, BM25Index):
        raise PolyhopError("--uploads needs an index of your own: polyhop index FILES --out DIR makes one")
    return Uploads(service, service.source.path, folder)


def _examples(index: Path | None) -> list[str]:
    """Questions on the sample corpus."""
    if str(index) != SAMPLE:
        return []
    from ..data.sample import load_sample

    return [example.question for example in load_sample("test")[:3]]


def _log_lines() -> None:
    """One JSON object per line, to stderr; also of warnings by others, before they choose a handler that needs more."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.getLogger().addHandler(handler)
    logging.getLogger("polyhop.serve").setLevel(logging.INFO)


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        from ..engines.secrets import without_secrets

        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
        # ASCII, since a path in a request may have characters that control a terminal.
        return without_secrets(json.dumps({**line, **getattr(record, "details", {})}))
