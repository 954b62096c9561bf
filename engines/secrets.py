"""Redaction of API keys: a provider's message may quote the key that it was sent."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
"""Names of variables and settings that hold a secret."""

SHORTEST = 8
"""Characters of a secret: ``TOKENIZERS_PARALLELISM=false`` holds none."""

_LOOKS_SECRET = re.compile(r"\bsk-[\w*.-]+|\bBearer\s+\S+|(?<=://)[^\s/@:]+:[^\s/@]+(?=@)", re.IGNORECASE)

_learned: set[str] = set()


def learn(lm: Any) -> None:
    """Remember the secrets in a model's settings, which need not be in the environment."""
    _learned.update(_secrets(getattr(lm, "kwargs", None) or {}))


def learn_models(program: Any) -> None:
    """Remember the secrets of all models that a program may call: those of its predictors, and DSPy's default."""
    from dspy import settings

    for lm in (settings.lm, *(predictor.lm for predictor in program.predictors())):
        learn(lm)


def without_secret_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if not _secrets({name: value})}


def without_secrets(text: str) -> str:
    """The text with ``***`` for secrets of the environment and of models, and for what looks like one."""
    secrets = {*_secrets(os.environ), *_learned}
    for value in sorted(secrets, key=len, reverse=True):  # one may contain another
        text = re.sub(re.escape(value), "***", text, flags=re.IGNORECASE)
    return _LOOKS_SECRET.sub("***", text)


def _secrets(settings: Mapping[str, Any], every: bool = False) -> list[str]:
    values = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            values += _secrets(value, every or "header" in name.lower())
        elif isinstance(value, str) and len(value) >= SHORTEST and (every or SECRET.search(name)):
            values.append(value)
    return values
