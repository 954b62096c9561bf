"""Calibration: a known distortion is found again, and a program that is given it tells the share of right answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from polyhop.eval.statistics import calibration_error
from polyhop.programs.confidence import logit, sigmoid
from polyhop.scripts.main import app as commands
from polyhop.scripts.training.calibration import app, fit, observed


def apply(confidence: np.ndarray, slope: float, offset: float) -> np.ndarray:
    return np.array([sigmoid(slope * logit(p) + offset) for p in confidence])


def overconfident(count: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Confidences, and answers that are right as often as sigmoid(0.5 * logit(confidence) - 1) says."""
    chance = np.random.default_rng(0)
    confidence = chance.uniform(0.02, 0.98, count)
    return confidence, (chance.uniform(size=count) < apply(confidence, 0.5, -1.0)).astype(float)


def test_the_distortion_is_found() -> None:
    confidence, right = overconfident()
    slope, offset = fit(confidence, right)
    assert slope == pytest.approx(0.5, abs=0.08)
    assert offset == pytest.approx(-1.0, abs=0.1)
    assert calibration_error(apply(confidence, slope, offset), right) < 0.03 < calibration_error(confidence, right)


def write_run(folder: Path, confidence: np.ndarray, right: np.ndarray) -> None:
    made = CliRunner().invoke(commands, ["evaluate", "--program", "direct", "--limit", "1", "--out", str(folder)])
    assert made.exit_code == 0
    empty = {"question": "q", "gold_answers": [], "gold": [], "evidence": [], "ranking": [], "costs": {}}
    answered = [("A", float(c), float(r)) for c, r in zip(confidence, right, strict=True)]
    failure = {"cause": "model", "type": "x", "message": "x"}
    lines: list[dict[str, Any]] = [
        {**empty, "answer": answer, "confidence": c, "scores": {"answer_em": r}}
        for answer, c, r in [*answered, ("unknown", 0.0, 0.0)]
    ]
    lines.append({**empty, "answer": None, "error": failure, "scores": {"answer_em": 0.0}})
    lines = [{"n": n, "id": str(n), **line} for n, line in enumerate(lines)]
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["questions"]["count"] = len(lines)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_command_reads_runs(tmp_path: Path) -> None:
    confidence, right = overconfident(400)
    write_run(tmp_path / "a", confidence, right)
    assert len(observed([tmp_path / "a"])[0]) == 400
    result = CliRunner().invoke(app, [str(tmp_path / "a")])
    assert result.exit_code == 0, result.output
    assert "calibration.slope=0." in result.stdout
    assert "from 400 answers" in result.stdout
