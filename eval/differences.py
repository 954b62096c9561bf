"""What two runs were started with, compared setting by setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NOT_COMPARED = ("created", "files", "python", "platform")  # where and when it ran; the rest says what it measures
_NAME = "program.name"  # a tuned program is called by its folder, which may have moved: alone that is no difference


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What two manifests have different, one line a setting: ``"program.tunables.search.k: 20 before, 5 now"``."""
    old, new = dict(_flat(before)), dict(_flat(now))
    changed = [
        name
        for name in dict.fromkeys([*old, *new])
        if name.partition(".")[0] not in _NOT_COMPARED and old.get(name) != new.get(name)
    ]
    if changed == [_NAME]:
        return []
    return [f"{name}: {_shown(old.get(name))} before, {_shown(new.get(name))} now" for name in changed]


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{prefix}{name}.")
        else:
            yield prefix + name, item


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)
