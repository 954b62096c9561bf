"""Models by name, and who gets which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dspy
import pytest

from polyhop.engines.models import ModelError, assign_models, explain, language_model, model_errors, roles
from polyhop.programs import Direct, Prism


def names(program: dspy.Module) -> dict[str, str]:
    return {role: predictors[0].lm.model for role, predictors in roles(program).items()}


def test_lexical_is_the_default_and_bypasses_the_cache() -> None:
    model = language_model()
    assert model.model == "lexical"
    assert model.cache is False


@pytest.mark.parametrize(
    "spec", ["openai/gpt-4o-mini", "ollama_chat/qwen3:8b", "huggingface/meta/llama-3", "azure/a=b"]
)
def test_litellm_names_pass_through(spec: str) -> None:
    assert language_model(spec).model == spec


@pytest.mark.parametrize(
    "spec", ["", " ", "lexcial", "gpt-4o", "openai/", "/gpt-4o", "openai/gpt 4o", "openai//x", "a\nb/c"]
)
def test_nonsense_is_refused_with_examples(spec: str) -> None:
    with pytest.raises(ModelError, match="'lexical' .* a LiteLLM name with its provider, such as"):
        language_model(spec)


def test_roles_are_the_predictors_in_program_order() -> None:
    assert list(roles(Prism())) == ["analyzer", "selector", "adder", "answerer"]
    assert list(roles(Direct())) == ["answerer"]


def test_roles_look_through_modules_and_lists() -> None:
    class Nested(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Direct()
            self.thinker = dspy.ChainOfThought("question -> answer")
            self.agents = [dspy.Predict("question -> answer") for _ in range(3)]

    found = roles(Nested())
    assert {role: len(predictors) for role, predictors in found.items()} == {"answerer": 1, "thinker": 1, "agents": 3}


def test_no_spec_is_lexical_for_all() -> None:
    program = Prism()
    assign_models(program)
    assert set(names(program).values()) == {"lexical"}


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYHOP_LM", "openai/gpt-4o-mini")
    program = Prism()
    assign_models(program, ["selector=lexical"])
    assert names(program) == {
        "analyzer": "openai/gpt-4o-mini",
        "selector": "lexical",
        "adder": "openai/gpt-4o-mini",
        "answerer": "openai/gpt-4o-mini",
    }


@pytest.mark.parametrize("specs", [["a/b", "adder=c/d=e"], ["adder=c/d=e", "a/b"]])
def test_a_role_beats_the_default_in_any_order(specs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYHOP_LM", "not/asked")
    program = Prism()
    assign_models(program, specs)
    assert names(program) == {"analyzer": "a/b", "selector": "a/b", "adder": "c/d=e", "answerer": "a/b"}


def test_what_stands_before_the_sign_is_a_role_only_if_it_is_a_name() -> None:
    program = Direct()
    assign_models(program, ["azure/my-deployment=2"])
    assert names(program) == {"answerer": "azure/my-deployment=2"}


def test_predictors_with_the_same_spec_share_one_model() -> None:
    program = Prism()
    assign_models(program, ["a/b"])
    assert program.analyzer.lm is program.answerer.lm


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["judge=lexical"], "no role 'judge' in Prism: its roles are analyzer, selector, adder, answerer"),
        (["adder="], "no language model ''"),
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


def test_an_empty_reply_is_explained(parrot: Callable[[str], Any]) -> None:
    program = Direct()
    program.set_lm(parrot(""))
    with pytest.raises(ModelError, match="'nothing'"), model_errors():
        program(question="Who?")


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


def test_other_errors_keep_their_name() -> None:
    assert explain(KeyError("x")) == "KeyError: 'x'"
    assert explain(ZeroDivisionError()) == "ZeroDivisionError"
