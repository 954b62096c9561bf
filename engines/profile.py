"""Profiles: which agent uses which model, how models are reached, and their limits, in a TOML file.

    lm = "openai/gpt-4o-mini"                 # for all agents that are not listed below

    [roles]
    selector = "lexical"
    verifier = "ollama_chat/qwen3"

    [models."openai/*"]                       # all models that match a pattern share its limits
    concurrency = 16
    requests_per_minute = 500
    tokens_per_minute = 200_000
    timeout = 60                              # seconds per request

    [models."ollama_chat/qwen3"]
    api_base = "http://localhost:11434"
    temperature = 0.2

While models are used, changes of concurrency and of the limits per minute take effect within seconds. Profiles contain
no keys: ``api_key_env`` names the environment variable of a key that is not in the provider's usual one.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ..data.errors import PolyhopError
from ..data.files import read_bytes
from .endpoint import Endpoint, Limits

SUFFIX = ".toml"

_LARGEST = 1 << 20  # bytes
_SECRETS = ("api_key", "apikey", "headers", "authorization", "token", "password", "secret", "credential")


class ProfileError(PolyhopError):
    """A profile cannot be read or is not valid."""


def _address(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http:// or https://")
    if parts.username is not None or parts.password is not None or parts.query:
        raise ValueError("must not contain a user, a password or parameters")
    return address


_Name = Annotated[str, Field(pattern=r"\S")]


class Section(Limits):
    """A table ``[models."PATTERN"]``: limits, settings of `dspy.LM`, and the variable of the key."""

    api_base: Annotated[str, AfterValidator(_address)] | None = None
    api_version: str | None = None
    model_type: Literal["chat", "responses"] | None = None
    reasoning_effort: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    cache: bool | None = None
    extra_body: dict[str, Any] | None = None
    """Fields that only this server knows."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None

    @cached_property
    def endpoint(self) -> Endpoint:
        return Endpoint(Limits(**self.model_dump(include=set(Limits.model_fields))))

    def settings(self) -> dict[str, Any]:
        """Arguments of `dspy.LM`, without the key."""
        return self.model_dump(exclude={*Limits.model_fields, "api_key_env"}, exclude_none=True)


class Profile(BaseModel):
    """A profile as it is written."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    path: Path = Field(exclude=True)
    lm: _Name | None = None
    roles: dict[str, _Name] = {}
    models: dict[str, Section] = {}

    def pattern(self, spec: str) -> str | None:
        """The section of a model: the one with its name, else the first whose pattern matches."""
        return spec if spec in self.models else next((each for each in self.models if fnmatchcase(spec, each)), None)

    def section(self, spec: str) -> Section | None:
        pattern = self.pattern(spec)
        return None if pattern is None else self.models[pattern]

    def settings(self, spec: str) -> dict[str, Any]:
        """Arguments of `dspy.LM` for a model, with its key."""
        section = self.section(spec)
        if section is None:
            return {}
        variable = section.api_key_env
        if variable is None:
            return section.settings()
        if not os.environ.get(variable):
            raise ProfileError(f"{self.path} reads the key of {spec} from {variable}: export {variable}=...")
        return {**section.settings(), "api_key": os.environ[variable]}


def read_profile(path: Path | str) -> Profile:
    """Read a profile.

    Raises:
        ProfileError: it cannot be read, is not TOML, has unknown or invalid settings, or contains a key.
    """
    path = Path(path)
    try:
        content = tomllib.loads(read_bytes(path, _LARGEST).decode("utf-8"))
    except OSError as error:
        raise ProfileError(f"cannot read the profile {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, or not TOML
        raise ProfileError(f"{path} is not a profile: {error}") from error
    models = content.get("models")
    for name, section in (models if isinstance(models, dict) else {}).items():
        if isinstance(section, dict) and any(map(_is_secret, _names(section))):
            raise ProfileError(
                f'{path}, [models."{name}"]: profiles do not contain keys; use api_key_env = "VARIABLE" to name the '
                "environment variable that does"
            )
    try:
        profile = Profile(**{**content, "path": path})
        for pattern, section in profile.models.items():
            section.endpoint.gate.follow(_later_limits(path, pattern))
        return profile
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ProfileError(f"{path}{_problem(first['loc'], first['type'], first['msg'])}") from None


def _later_limits(path: Path, pattern: str) -> Callable[[], tuple[int | None, float | None, float | None] | None]:
    """Returns the limits of a section when the file has changed since the last call. A file that cannot be read, as
    while somebody writes it, changes nothing."""
    changed = path.stat().st_mtime_ns

    def limits() -> tuple[int | None, float | None, float | None] | None:
        nonlocal changed
        with suppress(OSError, ProfileError, KeyError):
            if (now := path.stat().st_mtime_ns) != changed:
                section = read_profile(path).models[pattern]
                changed = now
                return section.concurrency, section.requests_per_minute, section.tokens_per_minute
        return None

    return limits


def _names(settings: Mapping[str, Any]) -> Iterator[str]:
    """Names of settings, and of texts inside them: ``skip_special_tokens = true`` is not a key."""
    for name, value in settings.items():
        yield name
        if isinstance(value, Mapping):
            yield from _names({key: each for key, each in value.items() if isinstance(each, str | Mapping)})


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRETS) and name not in Section.model_fields


def _problem(loc: tuple[int | str, ...], kind: str, message: str) -> str:
    """A validation error in the words of the file. Values are not repeated: one may be a key."""
    table = f', [models."{loc[1]}"]' if loc[0] == "models" and len(loc) > 1 else ", [roles]" if len(loc) > 1 else ""
    name = str(loc[2] if loc[0] == "models" and len(loc) > 2 else loc[-1])
    if kind == "extra_forbidden":
        known = [*Section.model_fields] if table else ["lm", "roles", "models"]
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        return f"{table}: unknown setting {name!r}; {hint}"
    if kind == "string_pattern_mismatch":
        message = "must be the name of an environment variable, in capitals" if name == "api_key_env" else "is empty"
    return f"{table}: {name} {message.replace('Input should', 'must').removeprefix('Value error, ')}"
