"""Models by name, and who gets which."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import exceptions as errors

from polyhop.data.errors import PolyhopError
from polyhop.engines.limits import unlimited
from polyhop.engines.models import assign_models, language_model, protect_cache, read_profile, roles
from polyhop.engines.replies import ModelError, OverlongReplyError, RefusedError, explain, model_errors
from polyhop.programs import Direct, Prism


def names(program: dspy.Module) -> dict[str, str]:
    return {role: predictors[0].lm.model for role, predictors in roles(program).items()}


@pytest.mark.parametrize(
    "spec", ["", " ", "lexcial", "gpt-4o", "openai/", "/gpt-4o", "openai/gpt 4o", "openai//x", "a\nb/c"]
)
def test_nonsense_is_refused_with_examples(spec: str) -> None:
    with pytest.raises(ModelError, match="'lexical' .* a LiteLLM name with its provider, such as"):
        language_model(spec)


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYHOP_LM", "openai/gpt-4o-mini")
    program = Prism()
    assign_models(program, ["selector=lexical"])
    assert names(program) == {
        "analyzer": "openai/gpt-4o-mini",
        "selector": "lexical",
        "selector_without_bridging": "openai/gpt-4o-mini",
        "adder": "openai/gpt-4o-mini",
        "answerer": "openai/gpt-4o-mini",
    }


@pytest.mark.parametrize("specs", [["a/b", "adder=c/d=e"], ["adder=c/d=e", "a/b"]])
def test_a_role_beats_the_default_in_any_order(specs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYHOP_LM", "not/asked")
    program = Prism()
    assign_models(program, specs)
    assert names(program) == {"adder": "c/d=e"} | dict.fromkeys(set(names(program)) - {"adder"}, "a/b")


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (
            ["judge=lexical"],
            "Prism has no role 'judge': its roles are analyzer, selector, selector_without_bridging, adder, answerer",
        ),
        (["adder="], "unknown language model ''"),
        (["a/b", "c/d"], "two models for all roles"),
        (["adder=a/b", "adder=c/d"], "two models for the adder"),
    ],
)
def test_wrong_specs_are_errors(specs: list[str], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        assign_models(Prism(), specs)


def test_a_reply_without_the_fields_is_explained(parrot: Callable[[str], Any]) -> None:
    program = Direct()
    program.set_lm(parrot("I would rather\ntalk about cats."))
    with pytest.raises(ModelError) as caught, model_errors():
        program(question="Who?")
    assert "reply to AnswerDirectly" in str(caught.value)
    assert "(reasoning, answer, confidence)" in str(caught.value)
    assert "'I would rather talk about cats.'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_key_is_explained() -> None:
    program = Direct()
    assign_models(program, ["openai/gpt-4o-mini"])
    with pytest.raises(ModelError, match="OPENAI_API_KEY .*--lm lexical, which needs no key"), model_errors():
        program(question="Who?")


def test_a_server_that_is_not_there_is_explained_without_the_key() -> None:
    program = Direct()
    program.set_lm(dspy.LM("openai/x", api_base="http://127.0.0.1:9", api_key="sk-planted", num_retries=0, cache=False))
    with pytest.raises(ModelError, match="is the server up") as caught, model_errors():
        program(question="Who?")
    assert "sk-planted" not in str(caught.value)


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL", None])
def test_a_server_of_ones_own_is_asked_without_a_key(
    variable: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models.toml").write_text('[models."*"]\napi_base = "http://127.0.0.1:9/v1"')
    profile = None if variable else read_profile(tmp_path / "models.toml")
    if variable:
        monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
    assert unlimited(language_model("openai/x", profile)).kwargs["api_key"] == "none"
    assert "api_key" not in unlimited(language_model("ollama_chat/x", profile)).kwargs
    monkeypatch.setenv("OPENAI_API_KEY", "planted-0123456789")
    assert "api_key" not in unlimited(language_model("openai/x", profile)).kwargs


def test_settings_that_do_not_fit_a_model(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text('[models."openai/*"]\ntemperature = 0.2')
    with pytest.raises(ModelError, match="reasoning models require passing temperature=1.0"):
        language_model("openai/gpt-5", read_profile(tmp_path / "models.toml"))


def test_a_profile_gives_models_to_roles_and_may_know_others(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text('lm = "a/b"\n[roles]\nselector = "lexical"\njudge = "c/d"')
    program = Prism()
    assign_models(program, [str(path), "adder=e/f"])
    assert names(program) == {
        "analyzer": "a/b",
        "selector": "lexical",
        "selector_without_bridging": "a/b",
        "adder": "e/f",
        "answerer": "a/b",
    }
    with pytest.raises(ModelError, match="Prism has no role 'jugde'"):
        assign_models(program, [str(path), "jugde=e/f"])
    with pytest.raises(ModelError, match="two profiles: .*models.toml and other.toml"):
        assign_models(program, [str(path), "other.toml"])


@pytest.mark.parametrize(
    ("error", "way_out"),
    [
        (errors.LMTimeoutError("no reply within 60 s"), "(a profile can raise the timeout)"),
        (errors.LMRateLimitError("slow down"), "(wait, use fewer --threads, or set requests_per_minute in a profile)"),
        (errors.LMAuthError("no"), "(check the provider's key in the environment)"),
        (errors.ContextWindowExceededError(message="no"), "(give the program fewer passages with -k)"),
        (OverlongReplyError("a reply of 1,000,000 characters"), "or try a more capable model)"),
        (errors.LMTransportError("connection reset"), "--lm lexical needs neither)"),
        (errors.LMProviderError("Connection error."), "--lm lexical needs neither)"),
        (RefusedError("the model refused to answer: no"), "the model refused to answer: no"),
    ],
)
def test_errors_say_the_way_out(error: errors.LMError, way_out: str) -> None:
    assert explain(error).endswith(way_out)
    assert "\n" not in explain(error)


class _Planted:
    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.made),)


def test_the_reply_cache_is_private_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, made = tmp_path / "cache", tmp_path / "made"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("DSPY_CACHEDIR", str(folder))
    protect_cache.__wrapped__()
    dspy.cache.put({"question": 1}, _Planted(made))
    dspy.cache.put({"question": 2}, {"reply": "Tula"})
    dspy.cache.reset_memory_cache()
    assert dspy.cache.get({"question": 1}) is None
    assert dspy.cache.get({"question": 2}) == {"reply": "Tula"}
    assert not made.exists()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_without_a_folder_the_reply_cache_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "file"))
    protect_cache.__wrapped__()
    dspy.cache.put({"question": 2}, {"reply": "Tula"})
    assert dspy.cache.get({"question": 2}) == {"reply": "Tula"}


def test_an_error_that_repeats_a_question_is_cut() -> None:
    for error in (PolyhopError(f"no words in {'?' * 600_000}: ask something"), ValueError("?" * 600_000)):
        assert len(explain(error)) < 2_100
    assert explain(PolyhopError(f"{'?' * 600_000}: ask something")).endswith(": ask something")
