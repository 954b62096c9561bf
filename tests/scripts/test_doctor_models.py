"""What `polyhop doctor` asks of models over a real connection, what it advises, and what it must never show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from typer.testing import CliRunner, Result

from polyhop.scripts import checks
from polyhop.scripts.checks import Status
from polyhop.scripts.doctor import check_model, named_models, private
from polyhop.scripts.main import app

from ..faults.exchange import Exchange
from ..faults.faults import drip
from ..faults.listening import Listening, fails, says
from ..faults.server import Server

KEY = "sk-planted-0123456789-never-shown"
SPEC = "openai/some-model"
FIELDS = '[[ ## sub_questions ## ]]\n["Who directed Solaris?", "Where was #1 born?"]\n\n[[ ## completed ## ]]'
JSON = '{"sub_questions": ["Who directed Solaris?", "Where was #1 born?"]}'


@pytest.fixture(autouse=True)
def sound_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java is tested for itself; starting it for each test of a model would only cost."""
    monkeypatch.setattr(checks, "check_java", lambda: checks.ok("java", "not asked here"))


def reply(exchange: Exchange) -> None:
    """As a good model does, in fields or as JSON."""
    says(JSON if "JSON object" in exchange.prompt else FIELDS, 70, 7)(exchange)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listening]:
    with Listening(reply) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


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


def assert_nothing_private(result: Result, endpoint: Listening) -> None:
    for text in (result.stdout, result.stderr, str(result.exception)):
        assert KEY not in text
        assert KEY[:10] not in text
        assert "127.0.0.1" not in text
        assert str(endpoint.port) not in text


def test_a_good_model(endpoint: Listening) -> None:
    result = run("--lm", SPEC)
    assert result.exit_code == 0, result.output
    found = lines(result)
    assert found[f"model {SPEC}"].startswith("ok: answers in the expected fields (")
    assert "77 tokens" in found[f"model {SPEC}"]
    assert found[f"model {SPEC}: JSON"].startswith("ok: JSON mode (")
    assert [each["key"] for each in endpoint.seen] == [f"Bearer {KEY}"] * 2
    assert_nothing_private(result, endpoint)


def test_structured_output_is_tried_where_it_is_known(endpoint: Listening) -> None:
    _, as_json = check_model("openai/gpt-4o-mini", seconds=20)
    assert (as_json.status, as_json.found.partition(" (")[0]) == (Status.ok, "structured output")
    assert [each.get("response_format", {}).get("type") for each in endpoint.seen] == [None, "json_schema"]


def test_a_refused_key_is_not_shown_even_if_the_server_does(endpoint: Listening) -> None:
    endpoint.act = fails(401, f"Incorrect API key provided: {KEY} ({KEY[:14]}***hown) at {endpoint.url}")
    result = run("--lm", SPEC)
    assert result.exit_code == 1
    told = lines(result)[f"model {SPEC}"]
    assert told.startswith("failed: ")
    assert "Incorrect API key provided: ***" in told
    assert "-> export a valid key" in told
    assert len(endpoint.seen) == 1
    assert_nothing_private(result, endpoint)
    assert_nothing_private(run("--lm", SPEC, "--json"), endpoint)


def test_a_missing_key_is_named(endpoint: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    endpoint.act = fails(401, "You did not provide a key.")
    for base in (endpoint.url, None):
        if base is None:
            monkeypatch.delenv("OPENAI_API_BASE")
        told = lines(run("--lm", SPEC))[f"model {SPEC}"]
        assert told.startswith("failed: ")
        assert told.endswith("-> export OPENAI_API_KEY=...")
    assert len(endpoint.seen) == 1  # OpenAI itself is not asked without a key


def test_the_models_of_a_profile(endpoint: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE"):
        monkeypatch.delenv(name)
    profile = tmp_path / "models.toml"
    profile.write_text(
        f'lm = "{SPEC}"\n[roles]\nselector = "lexical"\n'
        f'[models."openai/*"]\napi_base = "{endpoint.url}"\napi_key_env = "MY_OWN_KEY"\ntemperature = 0.25'
    )
    assert list(named_models([str(profile)])) == ["lexical", SPEC]
    assert "MY_OWN_KEY" in lines(run("--lm", profile))[f"model {SPEC}"]
    monkeypatch.setenv("MY_OWN_KEY", KEY)
    result = run("--lm", profile)
    assert lines(result)[f"model {SPEC}"].startswith("ok: answers in the expected fields")
    assert [(each["key"], each["temperature"]) for each in endpoint.seen] == [(f"Bearer {KEY}", 0.25)] * 2
    assert_nothing_private(result, endpoint)


def test_a_model_that_sends_a_byte_now_and_then(endpoint: Listening) -> None:
    """No pause is as long as the limit, so the client's own time limit never ends it."""
    endpoint.act = drip(0.1).act
    started = monotonic()
    (found,) = check_model(SPEC, seconds=0.5)
    assert (found.status, found.found) == (Status.failed, "no answer in 0.5 s")
    assert monotonic() - started < 60


def test_prose_instead_of_fields(endpoint: Listening) -> None:
    endpoint.act = says(f"Happy to help! My key is {KEY}.")
    result = run("--lm", SPEC)
    assert result.exit_code == 1
    found = lines(result)
    assert "reply to AnalyzeQuestion does not have the expected fields" in found[f"model {SPEC}"]
    assert "'Happy to help! My key is ***.'" in found[f"model {SPEC}"]
    assert found[f"model {SPEC}"].endswith("-> use a more capable model with --lm")
    assert found[f"model {SPEC}: JSON"].startswith("warning: the model's reply ")
    assert_nothing_private(result, endpoint)


def test_a_model_that_speaks_json_only(endpoint: Listening) -> None:
    endpoint.act = lambda exchange: says(JSON if "JSON object" in exchange.prompt else "Well...")(exchange)
    result = run("--lm", SPEC)
    assert result.exit_code == 0  # polyhop can use it: what does not parse is asked for again as JSON
    assert lines(result)[f"model {SPEC}"].startswith("warning: answers only as JSON, not in the expected fields")


def test_nobody_at_the_address(endpoint: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server() as gone:
        monkeypatch.setenv("OPENAI_API_BASE", gone.url)
    result = run("--lm", SPEC)
    assert result.exit_code == 1
    told = lines(result)[f"model {SPEC}"]
    assert told.startswith("failed: ")
    assert "-> start the server, or correct its address in the environment or the profile" in told
    assert str(gone.port) not in result.output
    assert_nothing_private(result, endpoint)


def test_which_models_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(named_models([])) == ["lexical"]
    assert list(named_models(["judge=a/b", "a/b", "azure/x=y"])) == ["a/b", "azure/x=y"]
    assert list(named_models(["judge=a/b"])) == ["a/b", "lexical"]
    monkeypatch.setenv("POLYHOP_LM", "c/d")
    assert list(named_models([])) == ["c/d"]
    assert list(named_models(["judge=a/b"])) == ["a/b", "c/d"]
    assert list(named_models(["a/b"])) == ["a/b"]


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
