"""Profiles: what they may say, what they say it for, and that no key gets out of them."""

from __future__ import annotations

import os
from pathlib import Path

import dspy
import pytest

from polyhop.engines.limits import Limits, unlimited
from polyhop.engines.models import (
    Profile,
    ProfileError,
    assign_models,
    chosen_models,
    language_model,
    profile_at,
    read_profile,
)
from polyhop.programs import Prism

KEY = "planted-0123456789"


def profile(folder: Path, text: str) -> Profile:
    path = folder / "models.toml"
    path.write_text(text, encoding="utf-8")
    return read_profile(path)


def test_all_that_a_profile_can_say(tmp_path: Path) -> None:
    told = profile(
        tmp_path,
        """
        lm = "openai/gpt-4o-mini"
        [roles]
        selector = "lexical"
        [models."openai/*"]
        concurrency = 16
        requests_per_minute = 500
        tokens_per_minute = 200_000
        timeout = 60
        retries = 0
        api_base = "https://localhost:11434/v1"
        api_version = "1"
        model_type = "responses"
        reasoning_effort = "low"
        temperature = 1
        top_p = 0.9
        max_tokens = 100
        seed = 7
        cache = false
        extra_body = { guided = true, skip_special_tokens = false, stop_token_ids = [1, 2] }
        """,
    )
    assert (told.lm, told.roles) == ("openai/gpt-4o-mini", {"selector": "lexical"})
    section = told.section("openai/gpt-4o-mini")
    assert section is not None
    assert section.limit.limits == Limits(
        concurrency=16, requests_per_minute=500, tokens_per_minute=200_000, timeout=60, retries=0
    )
    settings = told.settings("openai/gpt-4o-mini")
    assert settings["extra_body"] == {"guided": True, "skip_special_tokens": False, "stop_token_ids": [1, 2]}
    lm = language_model("openai/gpt-4o-mini", told)
    assert (lm.cache, lm.model_type, lm.kwargs["temperature"], lm.kwargs["seed"]) == (False, "responses", 1, 7)
    assert unlimited(lm).kwargs["api_base"] == "https://localhost:11434/v1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lm = 3", "models.toml: lm must be a valid string"),
        ('lm = ""', "models.toml: lm is empty"),
        ("roles = 3", "roles must be a valid dictionary"),
        ("[roles]\nselector = 3", r"\[roles\]: selector must be a valid string"),
        ('[roles]\nselector = ""', r"\[roles\]: selector is empty"),
        ("models = 3", "models must be a valid dictionary"),
        ("[models]\nconcurrency = 3", r'\[models."concurrency"\]: concurrency must be a valid dictionary or instance'),
        ("[model.x]", r"models.toml: unknown setting 'model'; did you mean models\?"),
        ("colour = 3", "unknown setting 'colour'; known are lm, roles, models"),
        ("[models.x]\nconcurency = 3", r'\[models."x"\]: unknown setting .* did you mean concurrency\?'),
        ("[models.x]\nconcurrency = 0", r'\[models."x"\]: concurrency must be greater than or equal to 1'),
        ("[models.x]\nconcurrency = 2.5", "concurrency must be a valid integer"),
        ("[models.x]\nconcurrency = true", "concurrency must be a valid integer"),
        ('[models.x]\ntimeout = "60"', "timeout must be a valid number"),
        ("[models.x]\ntimeout = inf", "timeout must be (less than|a finite)"),
        ("[models.x]\ntimeout = nan", "timeout must be a finite number"),
        ("[models.x]\nrequests_per_minute = -5", "requests_per_minute must be greater than 0"),
        ("[models.x]\nretries = -1", "retries must be greater than or equal to 0"),
        ('[models.x]\ntemperature = "hot"', "temperature must be a valid number"),
        ("[models.x]\ntemperature = true", "temperature must be a valid number"),
        ("[models.x]\nmax_tokens = 2.5", "max_tokens must be a valid integer"),
        ("[models.x]\ncache = 1", "cache must be a valid boolean"),
        ("[models.x]\napi_base = 80", "api_base must be a valid string"),
        ("[models.x]\nextra_body = 1", "extra_body must be a valid dictionary"),
        ('[models.x]\nmodel_type = "text"', "model_type must be 'chat' or 'responses'"),
        ('[models.x]\napi_base = "localhost:80"', "api_base must begin with http:// or https://"),
        ('[models.x]\napi_base = "http://[::1"', "api_base must begin with http:// or https://"),
        (
            f'[models.x]\napi_base = "https://me:{KEY}@h/v1"',
            "must not contain a user, a password or parameters",
        ),
        (f'[models.x]\napi_base = "https://h/v1?key={KEY}"', "api_base must not contain a user, a password or param"),
        (f'[models.x]\napi_key = "{KEY}"', 'profiles do not contain keys; use api_key_env = "VARIABLE"'),
        (f'[models.x]\nOPENAI_API_KEY = "{KEY}"', "profiles do not contain keys"),
        (f'[models.x]\nheaders = {{ Authorization = "{KEY}" }}', "profiles do not contain keys"),
        (f'[models.x]\nextra_body = {{ auth = {{ access_token = "{KEY}" }} }}', "profiles do not contain keys"),
        (f'[models.x]\napi_key_env = "{KEY}"', "api_key_env must be the name of an environment variable, in capitals"),
        ('[models.x]\napi_key_env = "hf_planted0123456789"', "must be the name of an environment variable"),
        ("[models.x]\napi_key_env = 3", "api_key_env must be a valid string"),
        (f'lm = "{KEY}', "models.toml is not a profile: "),
    ],
)
def test_what_no_profile_says(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=message) as caught:
        profile(tmp_path, text)
    assert "planted" not in str(caught.value)


def test_a_profile_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cannot read the profile .*none.toml: No such file"):
        read_profile(tmp_path / "none.toml")
    with pytest.raises(ProfileError, match="cannot read the profile"):
        profile_at(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b'lm = "\xe9"')
    with pytest.raises(ProfileError, match="is not a profile"):
        read_profile(tmp_path / "latin.toml")


def test_the_name_beats_a_pattern_and_the_first_pattern_the_next(tmp_path: Path) -> None:
    told = profile(tmp_path, '[models."openai/*"]\n[models."*"]\n[models."openai/gpt-4o"]\n[models."a/[x]"]')
    found = {spec: told.pattern(spec) for spec in ("openai/gpt-4o", "openai/x", "b/c", "a/[x]")}
    assert found == {"openai/gpt-4o": "openai/gpt-4o", "openai/x": "openai/*", "b/c": "*", "a/[x]": "a/[x]"}
    assert profile(tmp_path, '[models."OPENAI/*"]').section("openai/x") is None


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


# --- with the command line -------------------------------------------------------------------------------------------


def test_a_profile_may_be_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "models.toml"
    path.write_text('lm = "a/b"\n[roles]\nselector = "lexical"\njudge = "c/d"')
    monkeypatch.setenv("POLYHOP_LM", str(path))
    chosen, default, told = chosen_models([])
    assert (chosen, default, told is None) == ({"": "a/b", "selector": "lexical", "judge": "c/d"}, "a/b", False)
    assert chosen_models(["e/f", "selector=g/h"])[:2] == ({"": "e/f", "selector": "g/h", "judge": "c/d"}, "e/f")
