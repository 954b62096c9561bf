"""Language models by name, and the models of a program's agents.

A spec names a model: ``lexical`` is the embedded engine, anything else a LiteLLM name such as ``openai/gpt-4o-mini`` or
``ollama_chat/qwen3``. ``ROLE=SPEC`` gives a model to one agent, or to a group of agents that the program names; a role
is the name of a predictor in the program.
``FILE.toml`` is a profile. Keys are read from the environment.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import dspy
from dspy.clients import DISK_CACHE_DIR
from dspy.utils.exceptions import AdapterParseError, DSPyError, LMError

from ..data.errors import PolyhopError
from ..signatures.replies import without_thinking
from .endpoint import Endpoint
from .profile import SUFFIX, Profile, read_profile
from .secrets import without_secrets

DEFAULT = "lexical"
VARIABLE = "POLYHOP_LM"
"""The environment variable that replaces the default."""

_PROVIDER_AND_NAME = re.compile(r"[\w.-]+(/[^\s/]+)+")
_ROLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class ModelError(PolyhopError):
    """A language model is unknown, cannot be reached, or gives unusable replies."""


def language_model(
    spec: str = DEFAULT, profile: Profile | None = None, arguments: Mapping[str, Any] | None = None
) -> dspy.LM:
    """The language model of a spec, behind an endpoint. It is not contacted yet.

    Args:
        profile: How the model is reached, and its limits.
        arguments: Of `dspy.LM`; they replace those of the profile.

    Raises:
        ModelError: the spec is neither ``lexical`` nor ``PROVIDER/NAME``, or the settings do not fit the model.
        ProfileError: the environment does not have a key that the profile names.
    """
    if spec == "lexical":
        from .lexical import LexicalEngine

        # DSPy's cache knows a model by its name, and would return replies of an older version. Nor would it be faster.
        return dspy.LM("lexical", engine=LexicalEngine(), cache=False)
    if not _PROVIDER_AND_NAME.fullmatch(spec):
        raise ModelError(
            f"unknown language model {spec!r}: use 'lexical' (embedded, needs no key), a LiteLLM name with its "
            "provider, such as 'openai/gpt-4o-mini' or 'ollama_chat/qwen3', or a profile, FILE.toml"
        )
    settings = (profile.settings(spec) if profile else {}) | dict(arguments or {})
    section = profile.section(spec) if profile else None
    with model_errors():  # reasoning models refuse a temperature, for example
        lm = dspy.LM(spec, **_placeholder_key(spec, settings), **settings)
    return (section.endpoint if section else Endpoint()).guard(lm)


def _placeholder_key(spec: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Local OpenAI-compatible servers need no key, but DSPy's client does."""
    elsewhere = "api_base" in settings or any(os.environ.get(name) for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"))
    if spec.startswith("openai/") and elsewhere and "api_key" not in settings and not os.environ.get("OPENAI_API_KEY"):
        return {"api_key": "none"}
    return {}


def roles(program: dspy.Module) -> dict[str, list[dspy.Predict]]:
    """The predictors of a program by short name, in program order.

    The short name of ``search.rewriter.predict`` is ``rewriter``; predictors with the same short name are one role.
    """
    found: dict[str, list[dspy.Predict]] = {}
    for name, predictor in program.named_predictors():
        parts = [part for part in re.split(r"[.\[\]'\"]+", name) if part and not part.isdigit() and part != "predict"]
        found.setdefault(parts[-1] if parts else "predict", []).append(predictor)
    return found


def role_groups(program: dspy.Module) -> Mapping[str, Sequence[str]]:
    """The groups of roles that a program names: those of C-3PO's proxy, for example."""
    groups: Mapping[str, Sequence[str]] = getattr(program, "role_groups", {})
    return groups


def assign_models(program: dspy.Module, specs: Sequence[str] = (), arguments: Mapping[str, Any] | None = None) -> None:
    """Set the model of every predictor of a program, in place.

    Args:
        program: Any DSPy program.
        specs: ``SPEC`` for all predictors, ``ROLE=SPEC`` for one or for a group, ``FILE.toml`` for a profile, in any
            order; a role's own spec goes before that of its group. The default is ``$POLYHOP_LM``, else ``lexical``. A
            profile may name roles of other programs.
        arguments: As of `language_model`.

    Raises:
        ModelError: an unknown role or model, or two specs for the same role.
        ProfileError: the profile is not valid.
    """
    agents, groups = roles(program), role_groups(program)
    chosen, default, profile = chosen_models(specs)
    for role in chosen:
        if role and role not in agents and role not in groups and not (profile and role in profile.roles):
            known = [*agents, *(f"{group} ({', '.join(members)})" for group, members in groups.items())]
            raise ModelError(f"{type(program).__name__} has no role {role!r}: its roles are {', '.join(known)}")
    # Predictors with the same spec share one object.
    model = cache(partial(language_model, profile=profile, arguments=arguments))
    of_groups = {role: chosen[group] for group in groups if group in chosen for role in groups[group]}
    for role, predictors in agents.items():
        for predictor in predictors:
            predictor.lm = model(chosen.get(role, of_groups.get(role, default)))


def chosen_models(specs: Sequence[str]) -> tuple[dict[str, str], str, Profile | None]:
    """Models by role ("" for all roles), the model of the other roles, and the profile."""
    variable = os.environ.get(VARIABLE) or DEFAULT
    profiles = [text for text in specs if text.endswith(SUFFIX)]
    if len(profiles) > 1:
        raise ModelError(f"two profiles: {profiles[0]} and {profiles[1]}")
    path = profiles[0] if profiles else variable
    profile = profile_at(path) if path.endswith(SUFFIX) else None
    named: dict[str, str] = {}
    for text in specs:
        if text in profiles:
            continue
        match = _ROLE.fullmatch(text)
        role, spec = (match[1], match[2]) if match else ("", text)
        if role in named:
            raise ModelError(f"two models for {f'the {role}' if role else 'all roles'}: {named[role]!r} and {spec!r}")
        named[role] = spec
    if profile:
        named = {**profile.roles, **({"": profile.lm} if profile.lm else {}), **named}
    return named, named.get("", DEFAULT if variable.endswith(SUFFIX) else variable), profile


def profile_at(path: str) -> Profile:
    """A profile, read again only when it changes: the programs of a process share its endpoints and their limits."""
    file = Path(path).absolute()
    return _read_once(path, file, file.stat().st_mtime_ns if file.exists() else 0)


@cache
def _read_once(path: str, file: Path, changed: int) -> Profile:
    return read_profile(path)


@cache
def protect_cache() -> None:
    """Keep DSPy's reply cache on disk to this user, and let what is read from it create nothing but data.

    Replies are stored as pickles; by default DSPy runs what another process has put there. The command line calls this;
    it replaces an earlier `dspy.configure_cache`. Without a usable folder, the cache is in memory only.
    """
    folder = Path(DISK_CACHE_DIR)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(OSError):  # it belongs to another user: then only the restriction protects
            folder.chmod(0o700)
        dspy.configure_cache(disk_cache_dir=str(folder), restrict_pickle=True)
    except (OSError, sqlite3.Error):
        dspy.configure_cache(enable_disk_cache=False)


@contextmanager
def model_errors() -> Iterator[None]:
    """Turn errors of models into a `ModelError` that says what to do."""
    try:
        yield
    except (LMError, AdapterParseError) as error:
        raise ModelError(explain(error)) from error


def explain(error: BaseException) -> str:
    """An error in one line, with advice, without keys."""
    return without_secrets(_explained(error))


def _explained(error: BaseException) -> str:
    if isinstance(error, AdapterParseError):
        fields = ", ".join(error.signature.output_fields)
        whole = str(error.lm_response)
        if whole.strip() and not without_thinking(whole, fields=error.signature.output_fields).strip():
            return (
                f"the model's reply to {error.signature.__name__} has no answer after its thinking. "
                "Raise max_tokens in a profile, or try a model that thinks less."
            )
        reply = " ".join(without_secrets(whole).split()) or "nothing"
        return (
            f"the model's reply to {error.signature.__name__} does not have the expected fields ({fields}): "
            f"{reply[:160]!r}. Try a more capable model for this role."
        )
    if isinstance(error, DSPyError):
        # The first line: advice for programmers and the provider's details follow. Redacted before it is truncated.
        first, _, _ = without_secrets(str(error)).strip().partition("\n")
        code = error.code or ""
        if "connection error" in first.lower():  # LiteLLM's wording for an unreachable server
            code = "transport"
        return first[:_LONGEST_LINE] + _ADVICE.get(code, "")
    text = shortened(" ".join(str(error).split()))
    return text if isinstance(error, PolyhopError) else f"{type(error).__name__}: {text}".rstrip(": ")


def shortened(text: str, most: int = 2_000) -> str:
    """A text with at most so many characters: its middle is left out, since advice stands at the end."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


_LONGEST_LINE = 600  # characters: a provider's error may be a whole page of HTML

_ADVICE = {
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
