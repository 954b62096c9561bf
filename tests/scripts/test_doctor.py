"""`polyhop doctor`: what it finds, what it advises, and what it must never show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import dspy
import pytest
from typer.testing import CliRunner, Result

from polyhop.data.index import build_index
from polyhop.data.layout import Manifest
from polyhop.engines.profile import read_profile
from polyhop.eval.faults.completions import completion_of
from polyhop.scripts import checks, java_checks
from polyhop.scripts.checks import Status
from polyhop.scripts.main import app
from polyhop.scripts.model_checks import check_model, named_models, private

KEY = "sk-planted-0123456789-never-shown"
SPEC = "openai/some-model"
FIELDS = '[[ ## sub_questions ## ]]\n["Who directed Solaris?", "Where was #1 born?"]\n\n[[ ## completed ## ]]'
JSON = '{"sub_questions": ["Who directed Solaris?", "Where was #1 born?"]}'


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["doctor", *map(str, arguments)])


def lines(result: Result) -> dict[str, str]:
    """What stands beside each check, with its mark before and its advice after it."""
    found: dict[str, str] = {}
    last = ""
    for line in result.stdout.splitlines():
        if line.strip().startswith("->"):
            found[last] += " " + line.strip()
        else:
            mark, rest = line[:9].strip(), line[9:]
            last = next(name for name in (f"model {SPEC}: JSON", f"model {SPEC}", rest[:16].strip()) if name in rest)
            found[last] = f"{mark}: {rest[len(last) :].strip()}"
    return found


# --- models, over a real connection ----------------------------------------------------------------------------------


class Endpoint:
    """An OpenAI-compatible server on loopback: ``reply`` makes status and content, ``seen`` has what it was sent."""

    def __init__(self) -> None:
        self.reply: Callable[[dict[str, Any]], tuple[int, str]] = lambda body: (200, FIELDS)
        self.seen: list[dict[str, Any]] = []
        self.release = threading.Event()
        self.dribbles = False
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.seen.append({"key": self.headers["Authorization"], **body})
                status, content = endpoint.reply(body)
                data = json.dumps(
                    completion_of(body["model"], content, 70, 7) if status == 200 else fault(status, content)
                ).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    while endpoint.dribbles and data and not endpoint.release.wait(0.1):
                        self.wfile.write(data[:1])
                        data = data[1:]
                    self.wfile.write(data)
                except ConnectionError:
                    pass  # who asked has given up

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def hang(self, body: dict[str, Any]) -> tuple[int, str]:
        self.release.wait(30)
        return 200, FIELDS


def fault(status: int, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "error", "code": "invalid_api_key" if status == 401 else None}}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    made = Endpoint()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_API_BASE", made.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    yield made
    made.release.set()
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def on_a_sound_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of the machine are tested for themselves; starting Java for each test of a model would only cost."""
    monkeypatch.setattr(java_checks, "check_java", lambda: checks.ok("java", "not asked here"))


def wanted(body: dict[str, Any]) -> tuple[int, str]:
    return 200, JSON if "JSON object" in str(body["messages"]) else FIELDS


def assert_nothing_private(result: Result, endpoint: Endpoint) -> None:
    for text in (result.stdout, result.stderr, str(result.exception)):
        assert KEY not in text
        assert KEY[:10] not in text
        assert "127.0.0.1" not in text
        assert str(endpoint.server.server_port) not in text


@pytest.mark.usefixtures("on_a_sound_machine")
def test_a_good_model(endpoint: Endpoint) -> None:
    endpoint.reply = wanted
    result = run("--lm", SPEC)
    assert result.exit_code == 0, result.output
    found = lines(result)
    assert found[f"model {SPEC}"].startswith("ok: answers in the fields it was asked for (")
    assert "77 tokens" in found[f"model {SPEC}"]
    assert found[f"model {SPEC}: JSON"].startswith("ok: JSON mode (")
    assert [each["key"] for each in endpoint.seen] == [f"Bearer {KEY}"] * 2
    assert_nothing_private(result, endpoint)


def test_structured_output_is_tried_where_it_is_known(endpoint: Endpoint) -> None:
    endpoint.reply = wanted
    _, as_json = check_model("openai/gpt-4o-mini", seconds=20)
    assert (as_json.status, as_json.found.partition(" (")[0]) == (Status.ok, "structured output")
    assert [each.get("response_format", {}).get("type") for each in endpoint.seen] == [None, "json_schema"]


def test_json_without_a_mode_for_it(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dspy.LM, "supported_params", frozenset())
    endpoint.reply = wanted
    _, as_json = check_model(SPEC, seconds=20)
    assert as_json.found.startswith("by request only, DSPy knows of no JSON mode for it (")
    assert "response_format" not in endpoint.seen[1]


@pytest.mark.usefixtures("on_a_sound_machine")
def test_a_refused_key_is_not_shown_even_if_the_server_does(endpoint: Endpoint) -> None:
    endpoint.reply = lambda body: (401, f"Incorrect API key provided: {KEY} ({KEY[:14]}***hown) at {endpoint.url}")
    result = run("--lm", SPEC)
    assert result.exit_code == 1
    told = lines(result)[f"model {SPEC}"]
    assert told.startswith("failed: ")
    assert "Incorrect API key provided: ***" in told
    assert "-> export the key that the provider knows" in told
    assert len(endpoint.seen) == 1
    assert_nothing_private(result, endpoint)
    assert_nothing_private(run("--lm", SPEC, "--json"), endpoint)


@pytest.mark.usefixtures("on_a_sound_machine")
def test_a_missing_key_is_named(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    endpoint.reply = lambda body: (401, "You did not provide a key.")
    for base in (endpoint.url, None):
        if base is None:
            monkeypatch.delenv("OPENAI_API_BASE")
        told = lines(run("--lm", SPEC))[f"model {SPEC}"]
        assert told.startswith("failed: ")
        assert told.endswith("-> export OPENAI_API_KEY=...")
    assert len(endpoint.seen) == 1  # OpenAI itself is not asked without a key


@pytest.mark.usefixtures("on_a_sound_machine")
def test_a_server_that_wants_no_key(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    endpoint.reply = wanted
    assert lines(run("--lm", SPEC))[f"model {SPEC}"].startswith("ok: answers in the fields")


@pytest.mark.usefixtures("on_a_sound_machine")
def test_the_models_of_a_profile(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE"):
        monkeypatch.delenv(name)
    endpoint.reply = wanted
    profile = tmp_path / "models.toml"
    profile.write_text(
        f'lm = "{SPEC}"\n[roles]\nselector = "lexical"\n'
        f'[models."openai/*"]\napi_base = "{endpoint.url}"\napi_key_env = "MY_OWN_KEY"\ntemperature = 0.25'
    )
    assert list(named_models([str(profile)])) == ["lexical", SPEC]
    assert "MY_OWN_KEY" in lines(run("--lm", profile))[f"model {SPEC}"]
    monkeypatch.setenv("MY_OWN_KEY", KEY)
    result = run("--lm", profile)
    assert lines(result)[f"model {SPEC}"].startswith("ok: answers in the fields")
    assert [(each["key"], each["temperature"]) for each in endpoint.seen] == [(f"Bearer {KEY}", 0.25)] * 2
    assert_nothing_private(result, endpoint)


@pytest.mark.usefixtures("on_a_sound_machine")
def test_a_server_that_fails_is_asked_once(endpoint: Endpoint) -> None:
    endpoint.reply = lambda body: (500, "CUDA_ERROR_OUT_OF_MEMORY")
    result = run("--lm", SPEC)
    assert result.exit_code == 1
    assert lines(result)[f"model {SPEC}"].endswith("-> name another model with --lm; --lm lexical always works")
    assert len(endpoint.seen) == 1


@pytest.mark.usefixtures("on_a_sound_machine")
def test_a_model_that_hangs(endpoint: Endpoint) -> None:
    endpoint.reply = endpoint.hang
    result = run("--lm", SPEC, "--seconds", "0.5")
    assert result.exit_code == 1
    assert lines(result)[f"model {SPEC}"].startswith("failed: no answer in 0.5 s -> is the server up")
    assert_nothing_private(result, endpoint)


def test_a_model_that_sends_a_byte_now_and_then(endpoint: Endpoint) -> None:
    """No pause is as long as the limit, so the client's own time limit never ends it."""
    endpoint.dribbles = True
    started = monotonic()
    (found,) = check_model(SPEC, seconds=0.5)
    assert (found.status, found.found) == (Status.failed, "no answer in 0.5 s")
    assert monotonic() - started < 15


@pytest.mark.usefixtures("on_a_sound_machine")
def test_prose_instead_of_fields(endpoint: Endpoint) -> None:
    endpoint.reply = lambda body: (200, f"Happy to help! My key is {KEY}.")
    result = run("--lm", SPEC)
    assert result.exit_code == 1
    found = lines(result)
    assert "reply to AnalyzeQuestion has not the fields" in found[f"model {SPEC}"]
    assert "'Happy to help! My key is ***.'" in found[f"model {SPEC}"]
    assert found[f"model {SPEC}"].endswith("-> name a more capable model with --lm")
    assert found[f"model {SPEC}: JSON"].startswith("warning: cannot be used: ")
    assert_nothing_private(result, endpoint)


@pytest.mark.usefixtures("on_a_sound_machine")
def test_a_model_that_speaks_json_only(endpoint: Endpoint) -> None:
    endpoint.reply = lambda body: (200, JSON if "JSON object" in str(body["messages"]) else "Well...")
    result = run("--lm", SPEC)
    assert result.exit_code == 0  # polyhop can use it: what does not parse is asked for again as JSON
    assert lines(result)[f"model {SPEC}"].startswith(
        "warning: answers, but not in the fields it was asked for; as JSON"
    )


@pytest.mark.usefixtures("on_a_sound_machine")
def test_nobody_at_the_address(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    gone.server_close()
    monkeypatch.setenv("OPENAI_API_BASE", f"http://127.0.0.1:{gone.server_port}/v1")
    result = run("--lm", SPEC)
    assert result.exit_code == 1
    told = lines(result)[f"model {SPEC}"]
    assert told.startswith("failed: ")
    assert "-> start the server, or mend its address in the environment or the profile" in told
    assert str(gone.server_port) not in result.output
    assert_nothing_private(result, endpoint)


@pytest.mark.usefixtures("on_a_sound_machine")
def test_the_embedded_model_is_the_default_and_needs_nothing() -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert "ok       model lexical     answers in the fields it was asked for (" in result.stdout


@pytest.mark.usefixtures("on_a_sound_machine")
def test_a_name_that_is_none() -> None:
    result = run("--lm", "lexcial")
    assert result.exit_code == 1
    assert "no language model 'lexcial'" in result.stdout


def test_which_models_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(named_models([])) == ["lexical"]
    assert list(named_models(["judge=a/b", "a/b", "azure/x=y"])) == ["a/b", "azure/x=y"]
    assert list(named_models(["judge=a/b"])) == ["a/b", "lexical"]
    monkeypatch.setenv("POLYHOP_LM", "c/d")
    assert list(named_models([])) == ["c/d"]
    assert list(named_models(["judge=a/b"])) == ["a/b", "c/d"]
    assert list(named_models(["a/b"])) == ["a/b"]


def test_which_models_of_a_profile_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that the environment names is like one that is given, unless another is given."""
    mine, other = tmp_path / "mine.toml", tmp_path / "other.toml"
    mine.write_text('lm = "a/default"\n[roles]\njudge = "a/judge"')
    other.write_text('[roles]\nadder = "b/adder"')
    monkeypatch.setenv("POLYHOP_LM", str(mine))
    found = named_models([])
    assert list(found) == ["a/judge", "a/default"]
    assert {profile.path for profile in found.values() if profile} == {mine}
    assert list(named_models(["judge=c/d"])) == ["c/d", "a/default"]
    assert list(named_models(["c/d"])) == ["a/judge", "c/d"]
    assert list(named_models([str(other)])) == ["b/adder", "lexical"]
    assert list(named_models([str(other), "judge=c/d"])) == ["b/adder", "c/d", "lexical"]


def test_what_is_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "hunter2-and-more")
    monkeypatch.setenv("OLLAMA_HOST", "gpubox")
    monkeypatch.setenv("CORP_BASE_URL", "https://models.corp.example/v1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    cases = {
        "key hunter2-and-more refused": "key *** refused",
        "no route to GPUBOX": "no route to ***",
        "models.corp.example: name not known": "***: name not known",
        "see ftp://somewhere/else for more": "see *** for more",
        "connect to 10.1.2.3 or [::1]:80 or localhost:11434": "connect to *** or ***:80 or ***",
        "header Bearer abc.def": "header ***",
        "it is false that gpt-4.1 has 1.5 s: version 1.2": "it is false that gpt-4.1 has 1.5 s: version 1.2",
    }
    assert {text: private(text) for text in cases} == cases


# --- the machine -----------------------------------------------------------------------------------------------------


def test_json_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["ok"]) == (0, True), result.output
    by_name = {each["check"]: each for each in report["checks"]}
    assert {"python", "packages", "memory", "java", "model lexical", "extra dense"} <= by_name.keys()
    assert "Lucene 9." in by_name["java"]["found"]
    assert all(each.keys() == {"check", "status", "found", "fix"} for each in report["checks"])


def test_python() -> None:
    assert checks.check_python().status is Status.ok
    old = checks.check_python((3, 10, 4))
    assert (old.status, "3.10.4" in old.found, "3.11" in old.fix) == (Status.failed, True, True)


def test_packages_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"optuna": "4.9", "psycopg": "2.0"}
    real = metadata.version

    def version(name: str) -> str:
        if name in ("cmaes", "bm25s"):
            raise metadata.PackageNotFoundError(name)
        return versions.get(name) or real(name)

    assert checks.check_packages().status is Status.ok
    monkeypatch.setattr(metadata, "version", version)
    found = checks.check_packages()
    assert found.status is Status.failed
    assert "optuna 4.9 (needed: <6,>=5), cmaes is not installed" in found.found
    assert found.fix == "pip install 'optuna<6,>=5' 'cmaes<1,>=0.12'"
    extras = {each.check: each for each in checks.check_extras()}
    assert extras.keys() == {"extra benchmark", "extra dense", "extra postgres", "extra tracking"}
    assert extras["extra benchmark"].found == "not installed; if you want it: pip install 'polyhop[benchmark]'"
    assert (extras["extra postgres"].status, extras["extra postgres"].found) == (
        Status.warning,
        "psycopg 2.0: not in range",
    )


def test_requirements_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert checks.check_packages().status is Status.warning
    assert list(checks.check_extras()) == []


def test_java_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmxnonsense")
    found = java_checks.check_java()
    assert (found.status, found.fix) == (Status.failed, "unset JAVA_TOOL_OPTIONS")
    assert "does not start" in found.found


def test_a_java_that_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = java_checks.check_java()
    assert (found.status, "passed over: JAVA_HOME=" in found.found) == (Status.warning, True)


def test_a_java_that_is_too_slow() -> None:
    found = java_checks.check_java(seconds=0.01)
    assert (found.status, found.found) == (Status.failed, "Java did not answer in 0 s")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_virtual_machine_that_takes_its_process_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash = tmp_path / "python"
    crash.write_text(f"#!{sys.executable}\nimport os\nos.abort()\n")
    crash.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crash))
    found = java_checks.check_java()
    assert (found.status, found.found) == (
        Status.failed,
        "the process with Java ended with status -6: nothing was said",
    )


@pytest.fixture
def index(tmp_path: Path) -> Path:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"title": "Rome", "text": "Rome is in Italy."}\n{"title": "Paris", "text": "In France."}\n')
    build_index([corpus], tmp_path / "ix")
    return tmp_path / "ix"


def test_a_sound_index(index: Path) -> None:
    sound, vectors = java_checks.check_index_folder(index)
    assert sound.status is Status.ok
    assert "is sound: 2 passages, built today by polyhop" in sound.found
    assert vectors == checks.ok("vectors", f"none; if you want them: polyhop index --dense {index}")


def test_a_damaged_index(index: Path) -> None:
    path = next(index.glob("lucene-*/*.fdt"))
    path.write_bytes(path.read_bytes()[:40] + b"\x00" * 8 + path.read_bytes()[48:])
    (found,) = java_checks.check_index_folder(index)
    assert (found.status, found.fix) == (
        Status.failed,
        f"Build it again: polyhop index CORPUS --out {index}",
    )
    assert "is damaged" in found.found


def test_an_index_that_is_not_there(tmp_path: Path) -> None:
    (found,) = java_checks.check_index_folder(tmp_path / "none")
    assert (found.status, found.found, found.fix) == (
        Status.failed,
        f"There is no index at {tmp_path / 'none'}",
        f"Build one: polyhop index CORPUS --out {tmp_path / 'none'}",
    )


def test_an_index_that_takes_too_long(index: Path) -> None:
    slow, _ = java_checks.check_index_folder(index, seconds=0.01)
    assert (slow.status, slow.fix) == (Status.warning, f"polyhop index --check {index}")


def test_an_index_with_long_passages(tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("A sentence of some words. " * 2_000)
    build_index([book], tmp_path / "ix")
    _, long, _ = java_checks.check_index_folder(tmp_path / "ix")
    assert (long.status, "--max-words 200" in long.fix) == (Status.warning, True)


def test_vectors(index: Path) -> None:
    build = Manifest.read(index).lucene_folder.removeprefix("lucene-")
    file = index / f"vectors-{build}-tests-lengths.f16"
    file.write_bytes(bytes(2 * 2 * 2))
    _, unfinished = java_checks.check_index_folder(index)
    assert (unfinished.status, f"polyhop index --dense {index}" in unfinished.fix) == (Status.failed, True)
    said = {"encoder": "tests/lengths", "dimension": 2, "rows": 2}
    file.with_suffix(".json").write_text(json.dumps(said))
    _, whole = java_checks.check_index_folder(index)
    assert whole == checks.ok("vectors", "2 of 2 dimensions by tests/lengths")
    file.write_bytes(bytes(3))
    _, cut = java_checks.check_index_folder(index)
    assert (cut.status, "is damaged" in cut.found) == (Status.failed, True)


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "file"))
    temporary, cache = checks.check_disk()
    assert temporary.status is Status.ok
    assert (cache.status, "cannot be written to" in cache.found, "DSPY_CACHEDIR" in cache.fix) == (
        Status.failed,
        True,
        True,
    )
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "new"))
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=2**29))
    _, cache = checks.check_disk()
    assert (cache.status, cache.found.startswith("0.5 GB free")) == (Status.warning, True)


def test_paths_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert checks.shown("/home/somebody/indexes/x") == str(Path("~/indexes/x"))
    assert checks.shown("/a/b/c/d/e/f") == ".../d/e/f"


def test_everything_in_one_command(index: Path, endpoint: Endpoint) -> None:
    """As a process of its own: nothing private on any of its streams, and it ends although a model hangs."""
    endpoint.reply = endpoint.hang
    command = [sys.executable, "-m", "polyhop.scripts.main", "doctor", "--index", str(index), "--lm", SPEC]
    done = subprocess.run([*command, "--seconds", "3"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "is sound: 2 passages" in done.stdout
    assert "no answer in 3 s" in done.stdout
    assert len(endpoint.seen) == 1  # it was the model that took the time
    assert KEY not in done.stdout
    assert "127.0.0.1" not in done.stdout


def test_a_profile_whose_key_is_not_there(tmp_path: Path) -> None:
    profile = tmp_path / "models.toml"
    profile.write_text('lm = "openai/x"\n[models."openai/*"]\napi_key_env = "MY_OWN_KEY"\n')
    (found,) = check_model("openai/x", read_profile(profile))
    assert found.fix == "export MY_OWN_KEY=..."
