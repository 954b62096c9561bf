"""Files that commands are run on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

_RECORD = {
    "question": "Which river flows through Testville?",
    "answer": "Blue River",
    "type": "bridge",
    "context": [
        ["Otherville", ["Otherville is a town."]],
        ["Testville", ["The Blue River flows through Testville.", " It is old."]],
    ],
    "supporting_facts": [["Testville", 0]],
}


@pytest.fixture
def write_hotpotqa(tmp_path: Path) -> Callable[[int], Path]:
    """Writes a file of so many questions, each about the second of its contexts, and a broken record."""

    def write(count: int) -> Path:
        path = tmp_path / "dev.json"
        path.write_text(json.dumps([*({"_id": f"q{n}", **_RECORD} for n in range(count)), {"_id": "broken"}]))
        return path

    return write


@pytest.fixture
def hotpotqa(write_hotpotqa: Callable[[int], Path]) -> Path:
    """Three questions and a broken record."""
    return write_hotpotqa(3)
