"""Models by name, who gets which, and profiles: what they may say, and that no key gets out of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.engines.limits import unlimited
from polyhop.engines.models import (
    Profile,
    ProfileError,
    assign_models,
    chosen_models,
    language_model,
    protect_cache,
    read_profile,
    roles,
)
from polyhop.engines.replies import ModelError, model_errors
from polyhop.programs import Direct, Prism

KEY = "planted-0123456789"


def names(program: dspy.Module) -> dict[str, str]:
    return {role: predictors[0].lm.model for role, predictors in roles(program).items()}


def profile(folder: Path, text: str) -> Profile:
    (folder / "models.toml").write_text(text, encoding="utf-8")
    return read_profile(folder / "models.toml")


# --- who gets which --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["", " ", "lexcial", "gpt-4o", "openai/", "/gpt-4o", "openai//x", "a\nb/c"])
def test_nonsense_is_refused_with_examples(spec: str) -> None:
    with pytest.raises(ModelError, match="'lexical' .* a LiteLLM name with its provider, such as"):
        language_model(spec)


@pytest.mark.parametrize("specs", [["a/b", "adder=c/d=e"], ["adder=c/d=e"]])
def test_a_role_beats_the_default_and_the_environment_names_it(
    specs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYHOP_LM", "not/asked" if len(specs) > 1 else "a/b")
    program = Prism()
    for order in (specs, specs[::-1]):
        assign_models(program, order)
        assert names(program) == {"adder": "c/d=e"} | dict.fromkeys(set(names(program)) - {"adder"}, "a/b")


def test_a_profile_gives_models_to_roles_and_may_know_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile(tmp_path, 'lm = "a/b"\n[roles]\nselector = "lexical"\njudge = "c/d"')
    path = str(tmp_path / "models.toml")
    program = Prism()
    assign_models(program, [path, "adder=e/f"])
    assert names(program) == {
        "analyzer": "a/b",
        "selector": "lexical",
        "selector_without_bridging": "a/b",
        "adder": "e/f",
        "answerer": "a/b",
    }
    with pytest.raises(ModelError, match="Prism has no role 'jugde'"):
        assign_models(program, [path, "jugde=e/f"])
    monkeypatch.setenv("POLYHOP_LM", path)
    assert chosen_models([])[:2] == ({"": "a/b", "selector": "lexical", "judge": "c/d"}, "a/b")
    assert chosen_models(["e/f", "selector=g/h"])[:2] == ({"": "e/f", "selector": "g/h", "judge": "c/d"}, "e/f")


# --- errors ----------------------------------------------------------------------------------------------------------


def test_a_missing_key_and_a_missing_server_are_explained_without_the_key() -> None:
    program = Direct()
    assign_models(program, ["openai/gpt-4o-mini"])
    with pytest.raises(ModelError, match="OPENAI_API_KEY .*--lm lexical, which needs no key"), model_errors():
        program(question="Who?")
    program.set_lm(dspy.LM("openai/x", api_base="http://127.0.0.1:9", api_key="sk-planted", num_retries=0, cache=False))
    with pytest.raises(ModelError, match="is the server up") as caught, model_errors():
        program(question="Who?")
    assert "sk-planted" not in str(caught.value)


# --- profiles --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "lm = 3",
        "colour = 3",
        "[models.x]\nconcurrency = 0",
        f'[models.x]\napi_key = "{KEY}"',
        f'[models.x]\nheaders = {{ Authorization = "{KEY}" }}',
        f'[models.x]\napi_key_env = "{KEY}"',
        f'lm = "{KEY}',
    ],
)
def test_a_profile_that_is_wrong_is_one_line_without_its_values(text: str, tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="models.toml") as caught:
        profile(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert "planted" not in str(caught.value)
    with pytest.raises(ProfileError, match="cannot read the profile .*none.toml: No such file"):
        read_profile(tmp_path / "none.toml")


def test_the_name_beats_a_pattern_and_the_first_pattern_the_next(tmp_path: Path) -> None:
    told = profile(tmp_path, '[models."openai/*"]\n[models."*"]\n[models."openai/gpt-4o"]\n[models."a/[x]"]')
    found = {spec: told.pattern(spec) for spec in ("openai/gpt-4o", "openai/x", "b/c", "a/[x]")}
    assert found == {"openai/gpt-4o": "openai/gpt-4o", "openai/x": "openai/*", "b/c": "*", "a/[x]": "a/[x]"}


def test_programs_of_a_process_share_limits_until_the_profile_changes(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text('lm = "openai/x"\n[models."openai/*"]\nconcurrency = 2')
    first, second = Prism(), Prism()
    assign_models(first, [str(path)])
    assign_models(second, [str(path)])
    assert first.adder.lm.engine.limit is second.selector.lm.engine.limit
    path.write_text('lm = "openai/y"')
    os.utime(path, ns=(1, 1))
    assign_models(second, [str(path)])
    assert second.adder.lm.model == "openai/y"


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL", None])
def test_a_server_of_ones_own_is_asked_without_a_key(
    variable: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = None if variable else profile(tmp_path, '[models."*"]\napi_base = "http://127.0.0.1:9/v1"')
    if variable:
        monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
    assert unlimited(language_model("openai/x", told)).kwargs["api_key"] == "none"
    assert "api_key" not in unlimited(language_model("ollama_chat/x", told)).kwargs
    monkeypatch.setenv("OPENAI_API_KEY", "planted-0123456789")
    assert "api_key" not in unlimited(language_model("openai/x", told)).kwargs


def test_a_key_comes_from_the_environment_and_stays_in_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = profile(tmp_path, '[models."openai/*"]\napi_key_env = "MY_OWN_KEY"')
    with pytest.raises(ProfileError, match=r"reads the key of openai/x from MY_OWN_KEY: export MY_OWN_KEY="):
        language_model("openai/x", told)
    monkeypatch.setenv("MY_OWN_KEY", KEY)
    lm = language_model("openai/x", told)
    assert unlimited(lm).kwargs["api_key"] == KEY
    program = dspy.Predict("question -> answer")
    program.set_lm(lm)
    program.save(tmp_path / "program.json")
    files = [path.read_text() for path in tmp_path.iterdir()]
    sections = [told.section("openai/x"), told]
    shown = [repr(each) for each in (*sections, lm, lm.engine, lm.kwargs, lm.dump_state(), program.dump_state())]
    assert not [text for text in (*files, *shown) if KEY in text]


# --- the reply cache -------------------------------------------------------------------------------------------------


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
