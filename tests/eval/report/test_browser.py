"""The page in a real browser: opened, searched, read and closed with the keyboard alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyhop.eval.records import read_lines
from polyhop.eval.report.traces import Outcome, outcome
from polyhop.eval.run import evaluate
from polyhop.scripts.main import app

from ...optimizers.joint.run_folder import write_run
from ..small import Fake, numbered

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
_BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(_BROWSER is None, reason="there is no Chromium")
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
_ARGUMENTS += ["--disable-background-networking", "--disable-component-update"]


def polyhop(*arguments: str | Path) -> None:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """prism and naive on the dev questions of the sample, by the embedded engine."""
    folder = tmp_path_factory.mktemp("runs")
    for program in ("prism", "naive"):
        polyhop("evaluate", "--program", program, "--out", folder / program)
    return folder / "prism", folder / "naive"


@pytest.fixture(scope="module")
def report(runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    polyhop("report", *runs, "--out", out)
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=_BROWSER, args=_ARGUMENTS)
        yield browser
        browser.close()


class Watched:
    """A page whose errors and requests are noted; both must stay empty."""

    def __init__(self, browser: Any, width: int = 1440, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.troubles: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)

    def _dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith("file://"):
            self.troubles.append(f"request: {request.url}")

    def open(self, path: Path) -> Any:
        self.page.goto(path.as_uri())
        return self.page


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    watched = Watched(browser)
    yield watched
    watched.context.close()
    assert watched.troubles == []


def wait_until_open(page: Any, question: str) -> None:
    playwright.expect(page.locator("#question h3")).to_have_text(question)


def test_a_question_is_found_and_read_with_the_keyboard(
    watched: Watched, report: Path, runs: tuple[Path, Path]
) -> None:
    lines = list(read_lines(runs[0]))
    page = watched.open(report)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("which film")
    wanted = [line for line in lines if "which" in (text := line["question"].lower()) and "film" in text]
    assert page.text_content("#count").startswith(f"{len(wanted)} question")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "list"
    page.fill("#find", "")
    page.keyboard.press("Enter")
    page.keyboard.press("Home")
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    wait_until_open(page, lines[1]["question"])
    shown = page.inner_text("#question")
    for text in ("search 1", "round 1: kept", "Gold passages", "Every run", *lines[1]["gold_answers"]):
        assert text in shown
    assert page.locator("#question .part > .steps > .step").count() == len(lines[1]["trace"])
    assert page.locator("#question .hits .is-gold").count() >= 1
    page.keyboard.press("]")
    playwright.expect(page.locator("#run option:checked")).to_have_text("naive")
    page.keyboard.press("Escape")
    page.wait_for_selector("#question .empty")
    assert page.evaluate("document.activeElement.id") == "list"


def test_tab_reaches_what_can_be_used_and_focus_can_be_seen(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    reached = set()
    while page.evaluate("document.activeElement.id") != "list":
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
        outline = "getComputedStyle(document.activeElement.closest('.chip') ?? document.activeElement).outlineStyle"
        assert page.evaluate(outline) == "solid"
    assert {"Overview", "Questions", "theme", "help", "find", "run", "sort", "list"} <= reached
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    assert not page.is_visible("#keys")
    page.keyboard.press("?")
    page.click("#keys button")
    assert not page.is_visible("#keys")


def test_filters_show_what_they_say(watched: Watched, report: Path, runs: tuple[Path, Path]) -> None:
    ours, theirs = (list(read_lines(run)) for run in runs)
    page = watched.open(report)
    page.select_option("#other", label="naive")
    gained = sum(a["scores"]["answer_em"] > b["scores"]["answer_em"] for a, b in zip(ours, theirs, strict=True))
    assert gained
    assert page.text_content("#count").startswith(f"{gained} question")
    page.select_option("#other", label="none")
    page.check("#outcomes .chip:has-text('reading error') input")
    reading = [line for line in ours if outcome(line) is Outcome.reading]
    assert page.text_content("#count").startswith(f"{len(reading)} question")
    page.select_option("#sort", "confidence-")
    first = max(reading, key=lambda line: (line["confidence"], -line["n"]))
    assert page.text_content("#row-0 .asked") == first["question"]
    page.click("[data-outcome=correct][data-run='1']")
    right = [line for line in theirs if outcome(line) is Outcome.correct]
    assert page.text_content("#count").startswith(f"{len(right)} question")


def test_light_and_dark(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    dark = page.evaluate(paper)
    assert dark != light
    page.reload()
    assert page.evaluate(paper) == dark
    page.keyboard.press("t")
    assert page.evaluate(paper) == light


def test_dark_where_the_system_is(browser: Any, report: Path) -> None:
    dark = Watched(browser, scheme="dark")
    page = dark.open(report)
    assert page.text_content("#theme") == "Light"
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(16, 19, 23)"
    page.click("#theme")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    dark.context.close()
    assert dark.troubles == []


@pytest.mark.parametrize("width", [900, 390])
def test_narrow_screens(browser: Any, report: Path, width: int, runs: tuple[Path, Path]) -> None:
    narrow = Watched(browser, width)
    page = narrow.open(report)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#row-2")
    wait_until_open(page, next(line for line in read_lines(runs[0]) if line["n"] == 2)["question"])
    assert not page.is_visible("#list")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#question .tools button:has-text('Next')")
    wait_until_open(page, next(line for line in read_lines(runs[0]) if line["n"] == 3)["question"])
    page.click("#question .tools button")
    assert page.is_visible("#list")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    narrow.context.close()
    assert narrow.troubles == []


@pytest.mark.parametrize("width", [1280, 390])
def test_where_the_links_have_no_room_they_are_a_list_that_opens(browser: Any, tmp_path: Path, width: int) -> None:
    names = ["first", "second", "third"]
    polyhop("report", *(write_run(tmp_path / name) for name in names), "--out", tmp_path / "report.html")
    folded = Watched(browser, width)
    page = folded.open(tmp_path / "report.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.text_content("#menu") == "Optimizations"
    assert not page.is_visible("#links")
    page.focus("#menu")
    page.keyboard.press("Enter")
    assert page.locator("#links b").all_text_contents() == names
    page.set_viewport_size({"width": width, "height": 801})  # a bar of the browser went away
    page.evaluate("new Promise(requestAnimationFrame)")
    assert page.is_visible("#links")
    for link in page.locator("#links a").all():
        box = link.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    page.keyboard.press("Escape")
    assert not page.is_visible("#links")
    assert page.evaluate("document.activeElement.id") == "menu"
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**#test")
    playwright.expect(page.locator("#menu")).to_have_text("Test · first")
    assert not page.is_visible("#links")
    folded.context.close()
    assert folded.troubles == []


def test_where_the_links_have_room_they_are_a_row(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    assert not page.is_visible("#menu")
    assert len({link.bounding_box()["y"] for link in page.locator("#links a").all()}) == 1
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_selector("#menu")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.wait_for_selector("#links")
    assert not page.is_visible("#menu")


def test_of_several_sets_of_questions_one_is_shown(watched: Watched, tmp_path: Path) -> None:
    for count in (3, 5):
        evaluate(Fake(), numbered(count), tmp_path / str(count))
    polyhop("report", tmp_path / "3", tmp_path / "5", "--out", tmp_path / "report.html")
    page = watched.open(tmp_path / "report.html")
    chosen = "[...document.querySelectorAll('table [aria-pressed=true]')].map((each) => each.dataset.choose)"
    for place, count in enumerate((3, 5)):
        page.locator(f"[data-choose='{place}']").first.click()
        assert page.text_content("#count") == f"{count} questions of {count}"
        assert set(page.evaluate(chosen)) == {str(place)}
        assert page.locator("#group").input_value() == str(place)
        assert page.locator("#cost [data-group]:visible").count() == 1
    page.select_option("#group", "0")
    assert page.text_content("#count") == "3 questions of 3"
    assert set(page.evaluate(chosen)) == {"0"}


def test_an_address_opens_its_question(watched: Watched, report: Path, runs: tuple[Path, Path]) -> None:
    line = list(read_lines(runs[1]))[7]
    page = watched.open(report)
    page.goto(f"{report.as_uri()}#questions/0/naive/{line['id']}")
    page.reload()
    wait_until_open(page, line["question"])
    assert page.evaluate("location.hash").endswith(f"/{line['id']}")


@pytest.mark.parametrize("cut", ["naive/%E0%A4%A", "%E0%A4%A/id", "naive/nobody"])
def test_an_address_that_was_cut_off_opens_nothing(watched: Watched, report: Path, cut: str) -> None:
    page = watched.open(report)
    page.goto(f"{report.as_uri()}#questions/0/{cut}")
    page.reload()
    page.wait_for_selector("#row-0")
    assert page.is_visible("#question .empty")


def test_hostile_texts_do_nothing(watched: Watched, tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(2)><b>'\"&amp;"
    run = tmp_path / "run"
    evaluate(Fake(), numbered(2), run)
    lines = [json.loads(text) for text in (run / "predictions.jsonl").read_text().splitlines()]
    for line in lines:
        line |= {"question": hostile, "answer": hostile, "gold_answers": [hostile], "stop_reason": hostile}
        line["evidence"] = [{"passage_id": hostile, "title": hostile, "sentence": None, "text": hostile}]
        line["trace"] = every_step(hostile)
        line["incidents"] = {hostile: 1}
        line["costs_by_agent"] = {hostile: {"lm_calls": 1, "tokens_in": 10, "tokens_out": 2, "cost_usd": 0.5}}
    (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    polyhop("report", run, "--out", tmp_path / "report.html")
    page = watched.open(tmp_path / "report.html")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    wait_until_open(page, hostile)
    assert page.locator("#question .part > .steps > .step").count() == len(lines[0]["trace"])
    assert page.locator("#question img, #question script").count() == 0
    assert page.text_content("#question .answers dd").startswith(hostile)


def test_names_that_every_object_has_are_names_like_others(watched: Watched, tmp_path: Path) -> None:
    run = tmp_path / "run"
    evaluate(Fake(), numbered(1), run)
    (line,) = read_lines(run)
    line["gold"] = ["constructor", "__proto__"]
    line["trace"] = [{"step": "constructor", "what": "unheard of"}, {"step": "__proto__"}]
    (run / "predictions.jsonl").write_text(json.dumps(line) + "\n")
    polyhop("report", run, "--out", tmp_path / "report.html")
    page = watched.open(tmp_path / "report.html")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    wait_until_open(page, line["question"])
    gold = page.locator("#question .part", has_text="Gold passages").locator("th")
    names = [f"★ gold {name} (no run found it)" for name in ("constructor", "__proto__")]
    assert gold.all_text_contents() == names
    steps = page.locator("#question .steps > .step > .kind")
    assert steps.all_text_contents() == ["constructor", "__proto__"]


def test_a_round_that_kept_the_same_says_so(watched: Watched, tmp_path: Path) -> None:
    run = tmp_path / "run"
    evaluate(Fake(), numbered(1), run)
    (line,) = read_lines(run)
    kept = [[["paris", 1], ["rome", 0]], [["rome", 0], ["paris", 1]], [["paris", 1]]]
    line["trace"] = [{"step": "selected", "round": n, "kept": each, "invalid": []} for n, each in enumerate(kept, 1)]
    (run / "predictions.jsonl").write_text(json.dumps(line) + "\n")
    polyhop("report", run, "--out", tmp_path / "report.html")
    page = watched.open(tmp_path / "report.html")
    page.click("#row-0")
    wait_until_open(page, line["question"])
    first, second, third = (step.inner_text() for step in page.locator("#question .steps > .step").all())
    assert "sentence 2" in first
    assert second.split("\n") == ["round 2: kept", "the same 2 as before"]
    assert "no longer kept" in third


def test_long_and_turned_texts_keep_to_their_places(browser: Any, tmp_path: Path) -> None:
    long, turned = "a<b>kind</b>" * 20, "\u202eprism"
    run = tmp_path / "run"
    evaluate(Fake(), numbered(2), run)
    lines = [line | {"kind": long, "answer": long, "stop_reason": long} for line in read_lines(run)]
    (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["program"]["name"] = turned
    (run / "manifest.json").write_text(json.dumps(manifest))
    (run / "summary.json").unlink()
    polyhop("report", run, "--out", tmp_path / "report.html")
    narrow = Watched(browser, 390)
    page = narrow.open(tmp_path / "report.html")
    page.click("#row-0")
    wait_until_open(page, lines[0]["question"])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    notice = page.locator(".notice strong")
    assert notice.text_content() == turned
    told = """strong => {
        const range = document.createRange();
        range.setStart(strong.nextSibling, 1);
        range.setEnd(strong.nextSibling, 3);
        return range.getBoundingClientRect().left - strong.getBoundingClientRect().right;
    }"""
    assert notice.evaluate(told) > 0  # what follows a name that turns the direction stands after it
    narrow.context.close()
    assert narrow.troubles == []


def every_step(text: str) -> list[dict[str, Any]]:
    """A step of every kind that says only this, and of one that no page knows."""
    reason = {"via": "link", "name": text, "source": text, "words": [text]}
    answered = {"step": "answered", "answer": text, "reasoning": text, "confidence": 0.5, "invalid": [text]}
    return [
        {"step": "estimated", "probabilities": [0.1, 0.2, 0.3, 0.4]},
        {"step": "recalled", "questions": [text]},
        {"step": "routed", "route": text, "query": text, "invalid": [text]},
        {"step": "decomposed", "sub_questions": [text], "invalid": [], "thoughts": [text], "route": text},
        {"step": "searched", "query": text, "found": [[text, text, 1.5]] * 7, "reasons": [reason] * 7, "offset": 2},
        {"step": "selected", "round": 1, "kept": [[text, None]], "invalid": [text], "flagged": [[text, 1]]},
        {"step": "added", "round": 1, "added": [[text, 2]], "invalid": []},
        {"step": "proposed", "queries": [[text, 0.5]], "invalid": []},
        {"step": "learned", "known": [text], "required": [text], "invalid": []},
        {"step": "required", "questions": [text]},
        {"step": "checked", "supported": [text], "unsupported": [text], "invalid": [], "irrelevant": [text]},
        {"step": "decided", "action": text, "query": text, "thought": text, "invalid": []},
        {"step": "thought", "text": text, "invalid": []},
        {"step": "stepanswered", "number": 1, "question": text, "answer": text, "cited": [[text, 0]], "invalid": []},
        {"step": "judged", "aspect": text, "score": 0.5, "verdict": text, "invalid": []},
        {"step": "weighed", "alpha": 0.5, "confidence": 0.5, "passed": False},
        {"step": "revised", "answer": text, "reason": text, "accepted": False, "cited": [], "invalid": []},
        {"step": "replaced", "answer": text, "reason": text},
        {"step": "refined", "number": 2, "question": text, "invalid": []},
        {"step": "parallel", "branches": [[answered], [{"step": "unheard-of", "what": text}]]},
        {"step": "stopped", "reason": text},
    ]
