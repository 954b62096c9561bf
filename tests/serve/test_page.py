"""The page in a real browser: asking, failing, comparing, history, links, keys, and hostile texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from polyhop.data.passages import Link, Passage
from polyhop.data.pool import PassagePool

from ..faults.server import Server
from .conftest import QUESTION, faults

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def ask(page: Any, question: str = QUESTION, other: str = "") -> None:
    page.wait_for_selector("#program option", state="attached")
    if other:
        page.select_option("#other", other)
    page.fill("#question", question)
    page.keyboard.press("Enter")
    page.wait_for_selector(".run:not(.running)")
    page.wait_for_selector(".run.running", state="detached")


@pytest.mark.parametrize(("width", "colors"), [(1280, "light"), (390, "dark")])
def test_a_question_is_answered_with_its_chain(
    width: int, colors: str, address: str, visit: Callable[..., Any]
) -> None:
    page = visit(address, viewport={"width": width, "height": 900}, color_scheme=colors, reduced_motion="reduce")
    ask(page)
    assert page.inner_text(".answer .text")
    titles = page.locator(".chain .title").all_inner_texts()
    assert "Stalker (1979 film)" in titles
    drawn = page.locator(".node.cited text").all_text_contents()
    assert {title[:10] for title in titles} == {title[:10] for title in drawn}
    assert page.locator(".steps > li").count() > 3
    assert "calls" in page.inner_text(".meters")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not faults(page)


def test_steps_are_drawn_while_a_slow_model_works_and_work_can_be_stopped(
    start: Callable[..., str], visit: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(latency=1.5) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        page = visit(start(lm="openai/slow"))
        page.wait_for_selector("#program option", state="attached")
        page.fill("#question", QUESTION)
        page.click("#ask")
        page.wait_for_selector(".running .node.found")
        page.locator(".status", has_text="asking the").wait_for()
        assert page.inner_text("#ask") == "Stop"
        assert not faults(page)
        page.keyboard.press("Escape")
        assert page.inner_text(".answer") == "Stopped."
        assert page.inner_text("#ask") == "Ask"


def test_errors_are_told_and_a_passage_can_be_read_with_keys_alone(address: str, visit: Callable[..., Any]) -> None:
    page = visit(address, expected="422")
    ask(page, "?!")
    assert page.inner_text(".error") == "a question is a text with words, got '?!'"
    assert not faults(page)
    ask(page)
    page.locator(".node[role=button]").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#passage mark").count() >= 1
    assert page.inner_text("#passage .why")
    assert not faults(page)
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "question"


def test_two_programs_side_by_side_history_and_links(address: str, visit: Callable[..., Any]) -> None:
    page = visit(address)
    ask(page, other="naive")
    assert page.locator(".run h2").all_inner_texts() == ["polyhop", "naive"]
    boxes = [run.bounding_box() for run in page.locator(".run").all()]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert not faults(page)
    answer = page.locator(".answer .text").first.inner_text()
    steps = page.locator(".steps > li").count()
    page.click("#share")
    link = page.url
    page.reload()
    playwright.expect(page.locator("#question")).to_have_value(QUESTION, timeout=30_000)
    playwright.expect(page.locator("#other")).to_have_value("naive", timeout=30_000)
    assert page.locator(".run").count() == 0  # a link asks nothing by itself
    page.click("#history-button")
    assert not faults(page)
    page.click("#history ol button")
    assert page.locator(".answer .text").first.inner_text() == answer
    assert page.locator(".steps > li").count() == steps
    assert link.startswith(f"{address}/#q=")
    page.click("#history-button")
    page.click("#forget")
    assert page.inner_text("#history ol") == "Nothing yet."


def test_the_token_is_asked_for(start: Callable[..., str], visit: Callable[..., Any]) -> None:
    page = visit(start(token="right"), expected="401")
    for token in ("wrong", "right"):
        page.wait_for_selector("#key[open]")
        assert not faults(page)
        page.fill("#token", token)
        page.keyboard.press("Enter")
    ask(page)
    assert page.inner_text(".answer .text")


def test_texts_of_documents_and_questions_are_never_run(start: Callable[..., str], visit: Callable[..., Any]) -> None:
    attack = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    passages = [
        Passage.of(f"Stalker {attack}", f"Stalker was directed by Andrei Tarkovsky {attack}."),
        Passage.of("Andrei Tarkovsky", f"Andrei Tarkovsky was born in Zavrazhye {attack}."),
    ]
    page = visit(start(source=PassagePool(passages)))
    ask(page, f"Where was the director of Stalker born? {attack}")
    page.locator(".node[role=button]").first.click()
    assert attack[:10] in page.inner_text("#passage")
    page.keyboard.press("Escape")
    page.evaluate(
        "history => localStorage.setItem('polyhop-history', history)",
        json.dumps([{"question": attack, "when": 0, "runs": [{"program": attack, "events": []}]}]),
    )
    page.click("#history-button")
    assert attack in page.inner_text("#history ol")
    assert page.locator("main img, dialog img, main script").count() == 0


def test_hyperlinks_of_passages_are_followed_and_none_of_them_is_a_script(
    start: Callable[..., str], visit: Callable[..., Any]
) -> None:
    links = (
        Link("tarkovsky.html", "Andrei Tarkovsky", 0),
        Link('//example.org/"><img src=x onerror=alert(1)>', "this page", 1),
        Link("//javascript:alert(2)", "that page", 1),
        Link("javascript:alert(3)", "a third page", 1),
        Link("elsewhere.html", "a fourth page", 1),
    )
    sentences = [
        "Stalker was directed by Andrei Tarkovsky.",
        "Read of Stalker on this page, that page, a third page, and a fourth page.",
    ]
    passages = [
        replace(Passage.of("Stalker", sentences=sentences, id="stalker.html"), links=links),
        Passage.of("Andrei Tarkovsky", "Andrei Tarkovsky was born in Zavrazhye.", id="tarkovsky.html"),
    ]
    page = visit(start(source=PassagePool(passages)))
    ask(page, "Where was the director of Stalker born?")
    page.locator(".node[role=button]", has_text="Stalker").first.click()
    text = page.locator("#passage .text")
    assert text.inner_text().strip() == " ".join(sentences)
    [outside] = text.locator("a").all()
    assert outside.inner_text() == "this page"
    assert outside.get_attribute("href").startswith("https://example.org/%22%3E%3Cimg")
    assert (outside.get_attribute("target"), outside.get_attribute("rel")) == ("_blank", "noopener noreferrer")
    assert not faults(page)
    [inside] = text.locator("button").all()
    inside.click()
    page.locator("#passage h2", has_text="Andrei Tarkovsky").wait_for()
    assert text.inner_text().strip() == passages[1].text
    assert page.locator("main img, dialog img, main script").count() == 0
