"""`polyhop serve`: the page, the HTTP API, OpenAI's chat API and MCP."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import dspy
import typer

from ..app.named import NamedProgram, models_of, open_source
from ..app.options import ProgramOptions
from ..data.benchmarks import SAMPLE
from ..data.errors import PolyhopError
from ..data.importing import installs
from ..data.lucene.bm25 import BM25Index
from ..data.lucene.layout import HOME
from ..data.sample import load_sample
from ..engines.budget import Budget
from ..engines.costs import FREE
from ..engines.secrets import without_secrets
from ..programs import PROGRAMS
from .ask import searched_index
from .options import Serve

if TYPE_CHECKING:
    from ..serve.service import Service

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_EVERYWHERE = ("0.0.0.0", "::")  # under names that nobody can know here, for clients with a token
_CONNECTIONS = 500  # at the same time; requests on further ones get status 503
_NOT_SERVED = ("oracle", "full_context")
"""Programs that need more than a question."""


def serve(options: Serve) -> None:
    check_installed()
    if options.mcp:
        from ..serve.tools import tool_server

        tool_server(service_of(options)).run("stdio")
        return
    import uvicorn

    app = application(options)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(handlers=[handler], force=True)  # the MCP SDK has one of its own
    logging.getLogger("polyhop.serve").setLevel(logging.INFO)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    sys.setswitchinterval(0.001)  # so that events do not wait for threads that compute
    with config.bind_socket() as socket:
        socket.listen(2048)  # who reads the next line may connect
        where = f"{_in_address(options.host)}:{socket.getsockname()[1]}"
        typer.echo(f"polyhop answers on http://{where}/ (Ctrl-C stops it)")
        uvicorn.Server(config).run([socket])


def check_installed() -> None:
    """Raise what to install, if the server's packages are missing."""
    if not find_spec("fastapi") or not find_spec("mcp") or not find_spec("uvicorn"):
        raise PolyhopError(f"the server needs more packages: {installs('serve')}")


def application(options: Serve) -> Any:
    """The ASGI application of a command; an option that is wrong is an error now."""
    host, token = options.host, os.environ.get("POLYHOP_TOKEN") if options.token is None else options.token
    if token is None and (host not in _LOOPBACK or "*" in options.allowed_host):
        reached = host if host not in _LOOPBACK else "under any host name, this server"
        raise PolyhopError(f"{reached} can be reached by others: set a token with --token or POLYHOP_TOKEN")
    from ..serve.app import LOOPBACK, create_app
    from ..serve.uploads import Uploads

    service, uploads = service_of(options), None
    if options.uploads:
        if not isinstance(service.source, BM25Index):
            raise PolyhopError("--uploads needs an index of your own: polyhop index FILES --out DIR makes one")
        uploads = Uploads(service, service.source, options.uploads)
    hosts = ["*"] if host in _EVERYWHERE else [*LOOPBACK, _in_address(host), *options.allowed_host]
    return create_app(service, token=token, hosts=hosts, uploads=uploads)


def service_of(options: Serve) -> Service:
    """What answers the questions: the default program, and with something to search all others."""
    from ..serve.service import Service

    named = NamedProgram(options.program)
    index = searched_index(options.index) if options.index or options.program in PROGRAMS or named.searches else None
    source = open_source(index) if index else None
    default = named.label
    others = [name for name in PROGRAMS if source and name not in (*_NOT_SERVED, default)]
    names = {default: options.program, **{name: name for name in others}}  # a program of one's own may have such a name

    def build(name: str) -> dspy.Module:
        chosen = options if name == default else ProgramOptions(lm=options.lm, no_cache=options.no_cache)
        return NamedProgram(names[name]).build(source, chosen)

    # The keyless engine computes here: more threads would only keep events of others waiting.
    embedded = all(model.model in FREE for model in models_of(build(default)))
    service = Service(
        build,
        names,
        source,
        index="" if index is None else index.name if index.name != HOME else index.absolute().parent.name,
        examples=[example.question for example in load_sample("test")[:3]] if str(index) == SAMPLE else (),
        concurrency=options.concurrency or (4 if embedded else 64),
        seconds=options.timeout,
        budget=Budget(**options.budget) if options.budget else None,
    )
    service.program(default)  # a wrong option is an error now
    return service


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Lines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
        # ASCII, since a path in a request may have characters that control a terminal.
        return without_secrets(json.dumps({**line, **getattr(record, "details", {})}))
