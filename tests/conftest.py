"""What every test stands on: DSPy as new, caches in a temporary folder, no key and no default model from outside."""

from __future__ import annotations

import copy
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Before anything imports dspy, which looks at them once.
os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp(prefix="polyhop-test-dspy-")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # prices are looked up, and not on the network
# Java notices null by a signal, which Ray would take, in all later tests of this process.
os.environ["RAY_DISABLE_FAILURE_SIGNAL_HANDLER"] = "1"

# nohup and some CI systems start us with SIGINT ignored, which children inherit: tests of Ctrl-C need the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import dspy
import hypothesis
from dspy import lm15
from dspy.dsp.utils.settings import DEFAULT_CONFIG
from filelock import FileLock

# No test depends on how busy the machine is, or on chance; the slow ones of tests/fuzz do.
hypothesis.settings.register_profile("polyhop", deadline=None, max_examples=40, derandomize=True)
hypothesis.settings.load_profile("polyhop")

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for `shared_data` is marked so, and skipped where the benchmark files are not at hand."""
    for item in items:
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker("shared_data")
        if item.get_closest_marker("shared_data") and not SHARED_DATA.is_dir():
            item.add_marker(pytest.mark.skip(reason=f"no benchmark files in {SHARED_DATA}"))


@pytest.fixture
def shared_data() -> Path:
    """The folder of benchmark files beside the checkout."""
    return SHARED_DATA


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    home = str(tmp_path_factory.getbasetemp() / "home")
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HF_HOME"):
        monkeypatch.setenv(name, home)
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith("POLYHOP_"):
            monkeypatch.delenv(name)
    dspy.configure_cache(enable_disk_cache=False)
    yield
    dspy.configure(**copy.deepcopy(DEFAULT_CONFIG), inherit_config=False)


@pytest.fixture(scope="session")
def sample_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Evaluation runs of prism and naive on the dev questions of the sample, with the embedded engine. Workers of xdist
    share them: the second one resumes finished runs."""
    from typer.testing import CliRunner

    from polyhop.scripts.main import app

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "sample-runs"
    with FileLock(f"{folder}.lock"):
        for program in ("prism", "naive"):
            options = ["--program", program, "--retriever", "bm25", "--out", str(folder / program)]
            result = CliRunner().invoke(app, ["evaluate", *options])
            assert result.exit_code == 0, result.output
    return folder / "prism", folder / "naive"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("there is no Chromium")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    quiet += ["--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=quiet)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page, of a server or a file, which must print nothing, not fail, and ask no other server."""
    contexts, troubles = [], list[str]()

    def opened(address: str, *, expected: str = "", **options: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(f"a dialog: {dialog.message}"))
        page.on("console", lambda m: troubles.extend([] if expected and expected in m.text else [m.text]))
        page.on("request", lambda r: troubles.extend([] if r.url.startswith(address) else [r.url]))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not troubles


class Parrot:
    """An engine that gives the same reply to everything; it counts one token in and one out."""

    def __init__(self, reply: str) -> None:
        self.reply = reply

    def complete(self, request: lm15.Request) -> lm15.Response:
        message, usage = lm15.Message.assistant(self.reply), lm15.Usage(input_tokens=1, output_tokens=1)
        return lm15.Response(id="parrot", model=request.model, message=message, usage=usage, finish_reason="stop")


@pytest.fixture
def parrot() -> Callable[[str], Any]:
    """Makes a language model that gives the same reply to everything."""
    return lambda reply: dspy.LM("parrot", engine=Parrot(reply), cache=False, num_retries=0)


@pytest.fixture
def printed() -> Callable[[str], set[str]]:
    """Runs code in processes of its own, and returns all that they print: one text, unless it depends on the process.

    PYTHONHASHSEED gives each another order of sets.
    """

    def run(code: str, seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

    return lambda code: {run(code, seed) for seed in "12"}
