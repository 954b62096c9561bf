"""Profiles: which agent talks to which model, how models are reached, and how much they may be asked, as a TOML file.

    lm = "openai/gpt-4o-mini"                 # for every agent that is not named below

    [roles]
    selector = "lexical"
    verifier = "ollama_chat/qwen3"

    [models."openai/*"]                       # all models that a section fits share its limits
    concurrency = 16
    requests_per_minute = 500
    tokens_per_minute = 200_000
    timeout = 60                              # seconds a request may take

    [models."ollama_chat/qwen3"]
    api_base = "http://localhost:11434"
    temperature = 0.2

A profile holds no keys: ``api_key_env`` names the environment variable that does, where it is not the provider's usual
one.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..data.errors import PolyhopError
from .endpoint import Endpoint, Limits

SUFFIX = ".toml"

_LIMITS = tuple(each.name for each in fields(Limits))
_SETTINGS: dict[str, tuple[type, ...]] = {
    "api_base": (str,),
    "api_version": (str,),
    "model_type": (str,),
    "reasoning_effort": (str,),
    "temperature": (int, float),
    "top_p": (int, float),
    "max_tokens": (int,),
    "seed": (int,),
    "cache": (bool,),
    "extra_body": (dict,),  # what only this server knows
}
"""What `dspy.LM` is made with."""

_CALLED = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "a table"}
_MODEL_TYPES = ("chat", "responses")

_KEY = "api_key_env"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_SECRETS = ("api_key", "apikey", "headers", "authorization", "token", "password", "secret", "credential")


class ProfileError(PolyhopError):
    """A profile cannot be read, or says what nobody understands."""


@dataclass(frozen=True, eq=False)
class Section:
    """What a profile says of some models.

    Attributes:
        fits: A spec, or a pattern such as ``openai/*``.
        endpoint: Shared by all models that the section fits.
        settings: For `dspy.LM`.
        key: The environment variable that holds the key; None for the provider's usual one.
    """

    fits: str
    endpoint: Endpoint
    settings: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None

    def arguments(self) -> dict[str, Any]:
        """For `dspy.LM`, with the key.

        Raises:
            ProfileError: the environment has none.
        """
        if self.key is None:
            return dict(self.settings)
        if not os.environ.get(self.key):
            raise ProfileError(f"the profile reads the key of {self.fits} from {self.key}: export {self.key}=...")
        return {**self.settings, "api_key": os.environ[self.key]}


@dataclass(frozen=True, eq=False)
class Profile:
    """A profile as it is written."""

    path: Path
    default: str | None
    roles: Mapping[str, str]
    sections: tuple[Section, ...]

    def section(self, spec: str) -> Section | None:
        """Of a model: the one that names it, else the first whose pattern fits."""
        exact = [each for each in self.sections if each.fits == spec]
        return next(iter([*exact, *(each for each in self.sections if fnmatchcase(spec, each.fits))]), None)


def read_profile(path: Path | str) -> Profile:
    """Read a profile.

    Raises:
        ProfileError: there is none, it is not TOML, it names something unknown or of the wrong type, or holds a key.
    """
    path = Path(path)
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"cannot read the profile {path}: {error.strerror}") from error
    except ValueError as error:  # not UTF-8, or not TOML
        raise ProfileError(f"{path} is not a profile: {error}") from error
    _only(told, ("lm", "roles", "models"), f"{path}")
    default, roles, models = told.get("lm"), told.get("roles", {}), told.get("models", {})
    if default is not None and not _is_name(default):
        raise ProfileError(f"{path}: lm must be the name of a model")
    if not isinstance(roles, dict) or not all(map(_is_name, roles.values())):
        raise ProfileError(f'{path}: [roles] must give each role the name of a model, as in selector = "lexical"')
    if not isinstance(models, dict) or not all(isinstance(each, dict) for each in models.values()):
        raise ProfileError(f'{path}: models are sections, such as [models."openai/*"]')
    return Profile(path, default, roles, tuple(_section(path, name, each) for name, each in models.items()))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _section(path: Path, name: str, told: Mapping[str, Any]) -> Section:
    where = f'{path}, [models."{name}"]'
    for setting in _names(told):
        if any(word in setting.lower() for word in _SECRETS) and setting not in (_KEY, *_SETTINGS, *_LIMITS):
            raise ProfileError(f'{where}: keys do not stand in profiles; {_KEY} = "VARIABLE" names where one is')
    _only(told, (*_LIMITS, *_SETTINGS, _KEY), where)
    for setting, kinds in _SETTINGS.items():
        value = told.get(setting)
        if value is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            raise ProfileError(f"{where}: {setting} must be {_CALLED[kinds[-1]]}")
    if told.get("model_type", "chat") not in _MODEL_TYPES:
        raise ProfileError(f"{where}: model_type must be {' or '.join(_MODEL_TYPES)}")
    if "api_base" in told:
        _check_address(told["api_base"], where)
    key = told.get(_KEY)
    if key is not None and not (isinstance(key, str) and _VARIABLE.fullmatch(key)):  # it may be a key: not repeated
        raise ProfileError(f"{where}: {_KEY} must be the name of an environment variable, in capitals")
    try:
        limits = Limits(**{setting: told[setting] for setting in _LIMITS if setting in told})
    except ValueError as error:
        raise ProfileError(f"{where}: {error}") from error
    return Section(name, Endpoint(limits), {setting: told[setting] for setting in _SETTINGS if setting in told}, key)


def _names(told: Mapping[str, Any]) -> Iterator[str]:
    """What is set, and each text further inside: ``skip_special_tokens = true`` is no key."""
    for name, value in told.items():
        yield name
        if isinstance(value, Mapping):
            yield from _names({name: each for name, each in value.items() if isinstance(each, str | Mapping)})


def _check_address(address: str, where: str) -> None:
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ProfileError(f"{where}: api_base must be an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None or parts.query:
        raise ProfileError(f"{where}: api_base must be without user, password and parameters")


def _only(told: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in told:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ProfileError(f"{where}: nothing is called {name!r} here; {hint}")
