"""The page in Chromium: the question browser, the keyboard, themes, narrow screens, hostile texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyhop.eval.run import evaluate
from polyhop.scripts.main import app

from ..small import Fake, numbered, read_lines

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def polyhop(*arguments: str | Path) -> None:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def report(sample_runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on prism and naive."""
    out = tmp_path_factory.mktemp("page") / "report.html"
    polyhop("report", *sample_runs, "--out", out)
    return out


@pytest.fixture
def lines(sample_runs: tuple[Path, Path]) -> list[dict[str, Any]]:
    """The records of prism."""
    return list(read_lines(sample_runs[0]))


@pytest.fixture
def report_on(tmp_path: Path) -> Callable[..., Path]:
    """Makes a report on a small run with changed records and another program name."""

    def made(count: int = 1, name: str = "fake", **changes: Any) -> Path:
        run, out = tmp_path / "run", tmp_path / "report.html"
        evaluate(Fake(), numbered(count), run)
        records = [record | changes for record in read_lines(run)]
        (run / "predictions.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["program"]["name"] = name
        (run / "manifest.json").write_text(json.dumps(manifest))
        (run / "summary.json").unlink()
        polyhop("report", run, "--out", out)
        return out

    return made


def wait_until_open(page: Any, question: str) -> None:
    playwright.expect(page.locator("#question h3")).to_have_text(question)


def test_a_question_is_found_and_read_with_the_keyboard(
    visit: Callable[..., Any], report: Path, lines: list[dict[str, Any]]
) -> None:
    page = visit(report.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("which film")
    wanted = [line for line in lines if "which" in (text := line["question"].lower()) and "film" in text]
    assert page.text_content("#count").startswith(f"{len(wanted)} question")
    page.fill("#find", "")
    for key in ("Escape", "j", "j", "j", "k"):
        page.keyboard.press(key)
    wait_until_open(page, lines[1]["question"])
    shown = page.inner_text("#question")
    for text in ("search 1", "selected", "Gold passages", "All runs", *lines[1]["gold_answers"]):
        assert text in shown
    assert page.locator("#question .part > .steps > .step").count() == len(lines[1]["trace"])
    assert page.locator("#question .hits .is-gold").count() >= 1
    page.click("#question a:has-text('naive')")
    playwright.expect(page.locator("#run option:checked")).to_have_text("naive")
    wait_until_open(page, lines[1]["question"])
    page.keyboard.press("Escape")
    page.wait_for_selector("#question .empty")
    assert page.evaluate("document.activeElement.textContent").startswith(lines[1]["question"])


def test_hostile_texts_do_nothing(visit: Callable[..., Any], report_on: Callable[..., Path]) -> None:
    hostile = "</script><script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(2)><b>'\"&amp;"
    path = report_on(
        **dict.fromkeys(("question", "answer", "stop_reason"), hostile),
        name=hostile,
        gold_answers=[hostile],
        evidence=[{"passage_id": hostile, "title": hostile, "sentence": None, "text": hostile}],
        trace=every_step(hostile),
        incidents={hostile: 1},
        costs_by_agent={hostile: {"lm_calls": 1, "tokens_in": 10, "tokens_out": 2, "cost_usd": 0.5}},
    )
    page = visit(path.as_uri())
    page.keyboard.press("j")
    wait_until_open(page, hostile)
    assert page.locator("#question .part > .steps > .step").count() == len(every_step(""))
    assert page.locator("#question img, #question script").count() == 0
    assert page.text_content("#question .answers dd").startswith(hostile)


def every_step(text: str) -> list[dict[str, Any]]:
    """Steps with this text in fields of every shape, and one of an unknown kind."""
    reason = {"via": "link", "name": text, "source": text, "words": [text]}
    answered = {"step": "answered", "answer": text, "reasoning": text, "confidence": 0.5, "invalid": [text]}
    return [
        {"step": "estimated", "probabilities": [0.1, 0.2, 0.3, 0.4]},
        {"step": "decomposed", "sub_questions": [text], "invalid": [], "route": text},
        {"step": "searched", "query": text, "found": [[text, text, 1.5]] * 7, "reasons": [reason] * 7, "offset": 2},
        {"step": "selected", "round": 1, "kept": [[text, None]], "invalid": [text], "flagged": [[text, 1]]},
        {"step": "proposed", "queries": [[text, 0.5]], "invalid": []},
        {"step": "weighed", "alpha": 0.5, "confidence": 0.5, "passed": False},
        {"step": "parallel", "branches": [[answered], [{"step": text, "what": {text: text}}]]},
    ]
