"""The deployment of docs/clusters.md, on a Ray cluster of its own."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from typing import Any

import httpx
import pytest

from polyhop.data.lucene.index import build_index

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (find_spec("ray") and find_spec("grpc")), reason="Ray Serve is not installed: pip install 'polyhop[ray]'"
    ),
]
GUIDE = Path(__file__).parents[2] / "docs" / "clusters.md"


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of the file in the guide, served by two replicas."""
    import ray
    from ray import serve

    (tmp_path / "kestrel.md").write_text("# Kestrel\n\nKestrel was founded by Otto Lind in 2004.")
    build_index([tmp_path / "kestrel.md"], tmp_path / "mine")
    (file,) = (
        block for block in re.findall(r"```py\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL) if "bind" in block
    )
    (tmp_path / "app.py").write_text(file.replace("/shared/indexes/mine", str(tmp_path / "mine")))
    monkeypatch.syspath_prepend(str(tmp_path))
    before = signal.getsignal(signal.SIGTERM)
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        environment = {"env_vars": {"PYTHONPATH": str(tmp_path)}}
        ray.init(num_cpus=4, include_dashboard=False, runtime_env=environment)
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(import_module("app").app)
        yield f"http://127.0.0.1:{port}"
        serve.shutdown()
    finally:
        ray.shutdown()
        sys.modules.pop("app", None)
        signal.signal(signal.SIGTERM, before)


def test_replicas_answer_while_one_is_replaced(address: str) -> None:
    import ray

    def ask(_: int) -> Any:
        headers = {"authorization": "Bearer ..."}
        reply = httpx.post(f"{address}/ask", json={"question": "Who founded Kestrel?"}, headers=headers, timeout=300)
        return reply.json()["answer"]

    assert httpx.get(f"{address}/index").status_code == 401
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, n) for n in range(40)]
        asked[4].result()
        actors = ray.util.list_named_actors(all_namespaces=True)
        replicas = [each for each in actors if each["name"].startswith("SERVE_REPLICA")]
        assert len(replicas) == 2
        ray.kill(ray.get_actor(**replicas[0]))
        assert [each.result() for each in asked] == ["Otto Lind"] * 40
