"""Language models by name, and the models of a program's agents.

A spec names a model: ``lexical`` is the keyless engine, ``recorded:FILE`` replies what ``--record FILE`` has kept, and
anything else is a LiteLLM name such as ``openai/gpt-4o-mini``.
``ROLE=SPEC`` gives a model to one agent, or to a group of agents that the program names; a role is the name of a
predictor in the program. ``FILE.toml`` is a profile, as docs/models.md describes it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import dspy
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..data.errors import PolyhopError, first_error
from .limits import LimitedLM, Limits, RateLimit, ServerTraits, address_of
from .recorded import PREFIX, recorded_model
from .replies import ModelError, model_errors

DEFAULT = "lexical"
SUFFIX = ".toml"
VARIABLE = "POLYHOP_LM"
"""The environment variable that replaces the default."""

CONTEXT = 8_192
"""Tokens of the context of Ollama's models: a prompt of 6,000, its reply, and the error of the estimate."""

_PROVIDER_AND_NAME = re.compile(r"[\w.-]+(/[^\s/]+)+")
_ROLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class ProfileError(PolyhopError):
    """A profile cannot be read or is not valid."""


def language_model(
    spec: str = DEFAULT, profile: Profile | None = None, arguments: Mapping[str, Any] | None = None
) -> dspy.LM:
    """The language model of a spec, with its limits. It is not contacted yet.

    Args:
        profile: How the model is reached, and its limits.
        arguments: Of `dspy.LM`; they replace those of the profile.

    Raises:
        ModelError: the spec is none of a model, or the settings do not fit the model.
        PolyhopError: there is no such file of recorded replies.
        ProfileError: the environment does not have a key that the profile names.
    """
    if spec == "lexical":
        from .lexical import LexicalEngine

        # DSPy's cache knows a model by its name, and would return replies of an older version. Nor would it be faster.
        return dspy.LM("lexical", engine=LexicalEngine(), cache=False)
    if spec.startswith(PREFIX):
        return recorded_model(spec.removeprefix(PREFIX))
    if not _PROVIDER_AND_NAME.fullmatch(spec):
        raise ModelError(
            f"unknown language model {spec!r}: use 'lexical' (needs no key), 'recorded:FILE', a LiteLLM name with "
            "its provider, such as 'openai/gpt-4o-mini' or 'ollama_chat/qwen3', or a profile, FILE.toml"
        )
    settings = (profile.settings(spec) if profile else {}) | dict(arguments or {})
    section = (profile.section(spec) if profile else None) or Section()
    address = address_of(spec, settings.get("api_base"))
    if spec.startswith("openai/") and address and not os.environ.get("OPENAI_API_KEY"):
        settings = {"api_key": "none", **settings}  # local servers need no key, but DSPy's client does
    local = is_local(spec, address)
    if spec.startswith(("ollama/", "ollama_chat/")):  # without it Ollama cuts a prompt, without a word
        settings = {"num_ctx": CONTEXT, **settings}
    with model_errors():  # reasoning models refuse a temperature, for example
        lm = dspy.LM(spec, **settings)
    limit = section.one_at_a_time(address or spec) if local else section.limit
    return LimitedLM(lm, limit, traits=_traits(spec, address, section.structured, local))


def is_local(spec: str, address: str) -> bool:
    """Whether a model's server is on this machine: its address is loopback, or it is Ollama or LM Studio at its usual
    address."""
    if not address:
        return spec.startswith(("ollama/", "ollama_chat/", "lm_studio/", "llamafile/"))
    host = urlsplit(address).hostname or ""
    return host in ("localhost", "host.docker.internal") or host.startswith("127.") or host in ("::1", "0.0.0.0")


@cache
def _traits(spec: str, address: str, structured: bool | str, local: bool) -> ServerTraits:
    """What is known of a model, for all programs of this process. Whether a server of this machine enforces schemas,
    the first reply tells; the others are sent none unless the profile says so, since their models need none."""
    return ServerTraits((None if local else False) if structured == "auto" else bool(structured), local=local)


def roles(program: dspy.Module) -> dict[str, list[dspy.Predict]]:
    """The predictors of a program by short name, in program order.

    The short name of ``search.rewriter.predict`` is ``rewriter``; predictors with the same short name are one role.
    """
    by_name: dict[str, list[dspy.Predict]] = {}
    for name, predictor in program.named_predictors():
        parts = [part for part in re.split(r"[.\[\]'\"]+", name) if part and not part.isdigit() and part != "predict"]
        by_name.setdefault(parts[-1] if parts else "predict", []).append(predictor)
    return by_name


def name_predictors(program: dspy.Module) -> None:
    """Tell the predictors of a program their roles, under which costs and steps are recorded."""
    for role, predictors in roles(program).items():
        for predictor in predictors:
            predictor.role = getattr(predictor, "role", "") or role


def role_groups(program: dspy.Module) -> Mapping[str, Sequence[str]]:
    """The groups of roles that a program names: those of C-3PO's proxy, for example."""
    return getattr(program, "role_groups", {})


def assign_models(program: dspy.Module, specs: Sequence[str] = (), arguments: Mapping[str, Any] | None = None) -> None:
    """Set the model of every predictor of a program, in place.

    Args:
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
            choices = [*agents, *(f"{group} ({', '.join(members)})" for group, members in groups.items())]
            raise ModelError(f"{type(program).__name__} has no role {role!r}: its roles are {', '.join(choices)}")
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
    profile = read_profile(path) if path.endswith(SUFFIX) else None
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


@cache
def protect_cache() -> None:
    """Keep DSPy's reply cache on disk to this user, and let what is read from it create nothing but data: by default
    DSPy runs the pickles that another process has put there. Without a usable folder, the cache is in memory only.
    """
    folder = Path(os.environ.get("DSPY_CACHEDIR") or Path.home() / ".dspy_cache")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(OSError):  # it belongs to another user: then only the restriction protects
            folder.chmod(0o700)
        dspy.configure_cache(disk_cache_dir=str(folder), restrict_pickle=True)
    except (OSError, sqlite3.Error):
        dspy.configure_cache(enable_disk_cache=False)


# --- profiles ---------------------------------------------------------------------------------------------------------


class Section(Limits):
    """A table ``[models."PATTERN"]``: limits, settings of `dspy.LM`, and the variable of the key."""

    api_base: str | None = None
    api_version: str | None = None
    model_type: Literal["chat", "responses"] | None = None
    reasoning_effort: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    cache: bool | None = None
    num_ctx: int | None = None
    """Tokens of the context, for Ollama."""
    structured: bool | Literal["auto"] = "auto"
    """Whether replies follow a JSON schema that the server enforces; "auto": on this machine, where the server does."""
    extra_body: dict[str, Any] | None = None
    """Fields that only this server knows."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None

    @cached_property
    def limit(self) -> RateLimit:
        return RateLimit(Limits(**self.model_dump(include=set(Limits.model_fields))))

    def one_at_a_time(self, server: str) -> RateLimit:
        """The limits of a server of this machine: one request at a time, and much time for it, unless the profile says
        otherwise."""
        named = self.model_dump(include=set(Limits.model_fields) & self.model_fields_set)
        return _shared_limit(server, Limits(**{"concurrency": 1, "timeout": 900.0} | named))


@cache
def _shared_limit(server: str, limits: Limits) -> RateLimit:
    """One for all models of a server."""
    return RateLimit(limits)


class Profile(BaseModel):
    """A profile as it is written."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    path: Path = Field(exclude=True)
    lm: str | None = None
    roles: dict[str, str] = {}
    models: dict[str, Section] = {}

    def pattern(self, spec: str) -> str | None:
        """The section of a model: the one with its name, else the first whose pattern matches."""
        return spec if spec in self.models else next((name for name in self.models if fnmatchcase(spec, name)), None)

    def section(self, spec: str) -> Section | None:
        pattern = self.pattern(spec)
        return None if pattern is None else self.models[pattern]

    def settings(self, spec: str) -> dict[str, Any]:
        """Arguments of `dspy.LM` for a model, with its key."""
        section = self.section(spec)
        if section is None:
            return {}
        settings = section.model_dump(exclude={*Limits.model_fields, "api_key_env", "structured"}, exclude_none=True)
        if (variable := section.api_key_env) is None:
            return settings
        if not os.environ.get(variable):
            raise ProfileError(f"{self.path} reads the key of {spec} from {variable}: export {variable}=...")
        return {**settings, "api_key": os.environ[variable]}


def read_profile(path: Path | str) -> Profile:
    """Read a profile; again only when it changes: the programs of a process share its limits.

    Raises:
        ProfileError: it cannot be read, is not TOML, or has unknown or invalid settings. Keys are such: a profile only
            names the environment variable that holds one, ``api_key_env = "VARIABLE"``.
    """
    path = Path(path)
    try:
        return _read(path, path.absolute(), path.stat().st_mtime_ns)
    except OSError as error:
        raise ProfileError(f"cannot read the profile {path}: {error.strerror}") from error
    except ValidationError as error:  # values are not repeated: one may be a key
        raise ProfileError(f"{path}: {first_error(error)} (the settings are those of docs/models.md)") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, or not TOML
        raise ProfileError(f"{path} is not a profile: {error}") from error


@cache
def _read(path: Path, file: Path, changed: int) -> Profile:
    return Profile(**{**tomllib.loads(file.read_text("utf-8")), "path": path})
