"""Language models by name, and which agent of a program talks to which.

A model is named by a spec: ``lexical`` is the embedded engine, anything else a LiteLLM name such as
``openai/gpt-4o-mini`` or ``ollama_chat/qwen3``. ``ROLE=SPEC`` gives a model to one agent; a role is the name of a
predictor in the program (``analyzer``, ``selector``, ...). ``FILE.toml`` is a profile, which says all this and more.
Keys are read from the environment, by LiteLLM or under the name that a profile gives.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, DSPyError, LMError

from ..data.errors import PolyhopError
from .endpoint import Endpoint
from .profile import SUFFIX, Profile, read_profile
from .secrets import without_secrets

DEFAULT = "lexical"
VARIABLE = "POLYHOP_LM"
"""The environment variable that replaces the default."""

_PROVIDER_AND_NAME = re.compile(r"[\w.-]+(/[^\s/]+)+")
_ROLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class ModelError(PolyhopError):
    """A language model is not known, cannot be reached, or does not answer what it is asked."""


def language_model(spec: str = DEFAULT, profile: Profile | None = None) -> dspy.LM:
    """The language model of a spec, behind an endpoint. Nothing is called yet: whether the model answers shows at the
    first question.

    Args:
        profile: Says how the model is reached, and how much it may be asked.

    Raises:
        ModelError: the spec is neither ``lexical`` nor of the form ``PROVIDER/NAME``, or its settings do not fit it.
        ProfileError: the profile names a key that the environment does not have.
    """
    if spec == "lexical":
        from .lexical import LexicalEngine

        # DSPy's cache knows a model by its name: it would serve the replies of an older engine after an update. Nor
        # would it pay: 0.2 ms for a new entry and 80 ms to open the store, against about 1 ms for the engine's work.
        return dspy.LM("lexical", engine=LexicalEngine(), cache=False)
    if not _PROVIDER_AND_NAME.fullmatch(spec):
        raise ModelError(
            f"no language model {spec!r}: say 'lexical' (embedded, needs no key), a LiteLLM name with its provider, "
            "such as 'openai/gpt-4o-mini' or 'ollama_chat/qwen3', or a profile, FILE.toml"
        )
    section = profile.section(spec) if profile else None
    settings = section.arguments() if section else {}
    with model_errors():  # a reasoning model takes no temperature, say
        lm = dspy.LM(spec, **_without_key(spec, settings), **settings)
    return (section.endpoint if section else Endpoint()).guard(lm)


def _without_key(spec: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """A server of one's own that speaks OpenAI's language (vLLM, llama.cpp, ...) asks for no key, but DSPy does."""
    elsewhere = "api_base" in settings or any(os.environ.get(name) for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"))
    if spec.startswith("openai/") and elsewhere and "api_key" not in settings and not os.environ.get("OPENAI_API_KEY"):
        return {"api_key": "none"}
    return {}


def roles(program: dspy.Module) -> dict[str, list[dspy.Predict]]:
    """The agents of a program: its predictors under their short names, in the order of the program.

    The short name of ``search.rewriter.predict`` is ``rewriter``; predictors with the same short name are one role.
    """
    found: dict[str, list[dspy.Predict]] = {}
    for name, predictor in program.named_predictors():
        parts = [part for part in re.split(r"[.\[\]'\"]+", name) if part and not part.isdigit() and part != "predict"]
        found.setdefault(parts[-1] if parts else "predict", []).append(predictor)
    return found


def assign_models(program: dspy.Module, specs: Sequence[str] = ()) -> None:
    """Give every predictor of a program its model, in place.

    Args:
        program: Any DSPy program.
        specs: ``SPEC`` for all predictors, ``ROLE=SPEC`` for one of them, ``FILE.toml`` for a profile, in any order.
            Predictors that no spec covers get the model that the environment variable ``POLYHOP_LM`` names, which may
            be a profile too, else the lexical engine. A profile may name roles of other programs.

    Raises:
        ModelError: an unknown role or model, or two specs for the same thing.
        ProfileError: there is no such profile, or it says what nobody understands.
    """
    agents = roles(program)
    chosen, default, profile = chosen_models(specs)
    for role in chosen:
        if role and role not in agents and not (profile and role in profile.roles):
            raise ModelError(f"no role {role!r} in {type(program).__name__}: its roles are {', '.join(agents)}")
    model = cache(language_model)  # one object for each spec, so that its predictors share history and limits
    for role, predictors in agents.items():
        for predictor in predictors:
            predictor.lm = model(chosen.get(role, default), profile)


def chosen_models(specs: Sequence[str]) -> tuple[dict[str, str], str, Profile | None]:
    """What some specs say: models by role, "" being all roles; the model of the roles that are not named; the profile.

    Raises:
        ModelError: two specs for the same thing.
        ProfileError: see `assign_models`.
    """
    variable = os.environ.get(VARIABLE) or DEFAULT
    profiles = [text for text in specs if text.endswith(SUFFIX)]
    if len(profiles) > 1:
        raise ModelError(f"two profiles: {profiles[0]} and {profiles[1]}")
    path = profiles[0] if profiles else variable
    profile = profile_at(path) if path.endswith(SUFFIX) else None
    chosen: dict[str, str] = {}
    for text in specs:
        if text in profiles:
            continue
        match = _ROLE.fullmatch(text)
        role, spec = (match[1], match[2]) if match else ("", text)
        if role in chosen:
            raise ModelError(f"two models for {f'the {role}' if role else 'all roles'}: {chosen[role]!r} and {spec!r}")
        chosen[role] = spec
    told = {**profile.roles, **({"": profile.default} if profile.default else {})} if profile else {}
    chosen = {**told, **chosen}
    return chosen, chosen.get("", DEFAULT if variable.endswith(SUFFIX) else variable), profile


def profile_at(path: str) -> Profile:
    """A profile, read once until it is changed: the programs of a process share its endpoints, and so their limits."""
    file = Path(path).absolute()
    return _read_once(path, file, file.stat().st_mtime_ns if file.exists() else 0)


@cache
def _read_once(path: str, file: Path, changed: int) -> Profile:
    return read_profile(path)


@contextmanager
def model_errors() -> Iterator[None]:
    """Turn what DSPy raises about a model, inside, into a `ModelError` that says what to do."""
    try:
        yield
    except (LMError, AdapterParseError) as error:
        raise ModelError(explain(error)) from error


def explain(error: BaseException) -> str:
    """One line on what went wrong, with the way out where there is one, and without keys."""
    return without_secrets(_explained(error))


def _explained(error: BaseException) -> str:
    if isinstance(error, AdapterParseError):
        wanted = ", ".join(error.signature.output_fields)
        reply = " ".join(without_secrets(str(error.lm_response)).split()) or "nothing"
        return (
            f"the model's reply to {error.signature.__name__} has not the fields it was asked for ({wanted}): "
            f"{reply[:160]!r}. Try a more capable model for this role."
        )
    if isinstance(error, DSPyError):
        # What follows the first line is advice for who writes the program, and the provider's own small print.
        first, _, _ = without_secrets(str(error)).strip().partition("\n")  # before it is cut: nobody knows half a key
        code = error.code or ""
        if "connection error" in first.lower():  # LiteLLM's word for a server that is not there
            code = "transport"
        return first[:_LONGEST_LINE] + _WAY_OUT.get(code, "")
    text = " ".join(str(error).split())
    return text if isinstance(error, PolyhopError) else f"{type(error).__name__}: {text}".rstrip(": ")


_LONGEST_LINE = 600  # characters: a provider's error may be a whole page of HTML

_WAY_OUT = {
    "not_configured": " Or use --lm lexical, which needs no key.",
    "auth": " (check the provider's key in the environment)",
    "transport": " (is the server up and the network reachable? --lm lexical needs neither)",
    "timeout": " (a profile can raise the timeout)",
    "rate_limit": " (wait, use fewer --threads, or set requests_per_minute in a profile)",
    "context_window_exceeded": " (give the program fewer passages with -k)",
    "overlong_reply": " (set max_tokens in a profile, or try a more capable model)",
    "cut_reply": " (raise max_tokens in a profile)",
    "empty_reply": " (try a more capable model, or raise max_tokens if it thinks before it answers)",
}
