"""`polyhop report`: pages of real runs, of hostile texts, and the errors."""

from __future__ import annotations

import gzip
import json
import shutil
from base64 import b64decode, b64encode
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from polyhop.eval.run import evaluate
from polyhop.optimizers.report import section

from ..eval.small import Fake, mixed, numbered
from ..optimizers.run_folder import write_run
from .cli import done, of_run, records, refused, written

_TITLES = "Overview,Outcomes,Hops and types,Questions,About".split(",")

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \" ' & \ud800 {{x}}"
KEY = "sk-planted-0123456789"


class Page:
    """A parsed page."""

    def __init__(self, text: str) -> None:
        tree = html.document_fromstring(text)
        every = [each for each in tree.iter() if isinstance(each.tag, str)]
        self.attributes = [(each.tag, name, value) for each in every for name, value in each.items()]
        self.ids = [value for _, name, value in self.attributes if name == "id"]
        self.scripts = [(dict(each.attrib), each.text or "") for each in every if each.tag == "script"]
        self.words = [str(each) for each in tree.xpath("//text()[not(ancestor::script or ancestor::style)]")]
        headings = {each.get("id"): each.text for each in every if each.tag == "h2"}
        links = [value[1:] for tag, name, value in self.attributes if (tag, name) == ("a", "href")][
            1:
        ]  # the first skips
        self.titles = [headings[f"{name}-title"] for name in links]

    @property
    def index(self) -> dict[str, Any]:
        (text,) = (text for attributes, text in self.scripts if attributes.get("id") == "index")
        index: dict[str, Any] = json.loads(text)
        return index

    @property
    def details(self) -> list[dict[str, Any]]:
        chunks = [text for attributes, text in self.scripts if (attributes.get("id") or "").startswith("chunk-")]
        return [each for chunk in chunks for each in json.loads(gzip.decompress(b64decode(chunk)))]


def report(*runs: Path, out: Path) -> Page:
    done("report", *runs, "--out", out)
    return Page(out.read_text())


@pytest.fixture(scope="module")
def page(sample_runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Page:
    return report(*sample_runs, out=tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with failures and wrong answers; tests change copies of it."""
    run = tmp_path_factory.mktemp("fake") / "run"
    evaluate(Fake(mixed(8)), numbered(8), run)
    return run


@pytest.fixture
def run(fake: Path, tmp_path: Path) -> Path:
    return shutil.copytree(fake, tmp_path / "run")


def change(run: Path, **changes: Any) -> None:
    """Change the records of a run, which then has no summary."""
    path = run / "predictions.jsonl"
    written(path, [record | changes for record in records(path)])
    (run / "summary.json").unlink()


def test_the_page_loads_nothing_and_runs_only_its_scripts(page: Page) -> None:
    links = [value for _, name, value in page.attributes if name in ("href", "src", "action", "srcset", "data")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    (policy,) = (value for _, name, value in page.attributes if name == "content" and "default-src" in value)
    assert "default-src 'none'" in policy
    ours = [text for attributes, text in page.scripts if "type" not in attributes]
    assert len(ours) == 1
    assert f"'sha256-{b64encode(sha256(ours[0].encode()).digest()).decode()}'" in policy
    assert len(set(page.ids)) == len(page.ids)
    targets = {value.removeprefix("#") for _, name, value in page.attributes if name in ("href", "aria-labelledby")}
    assert targets <= set(page.ids)


def test_hostile_texts_stay_texts(run: Path, tmp_path: Path) -> None:
    change(
        run,
        **dict.fromkeys(("question", "answer", "kind", "stop_reason"), HOSTILE),
        gold_answers=[HOSTILE],
        evidence=[{"passage_id": HOSTILE, "title": HOSTILE, "sentence": None, "text": HOSTILE}],
        trace=[{"step": "searched", "query": HOSTILE, "found": [[HOSTILE, HOSTILE, 1.0]]}],
        incidents={HOSTILE: 1},
    )
    manifest = of_run(run, "manifest")
    hostile = HOSTILE.replace("\ud800", "")  # half a character, which a manifest cannot have
    manifest["program"] |= {"name": hostile, "tunables": {hostile: hostile}, "lms": {hostile: {"model": hostile}}}
    manifest |= {"dataset": hostile, "api_key": KEY, "environment": {"OPENAI_API_KEY": KEY}}
    manifest["program"]["lms"][hostile]["api_key"] = KEY
    (run / "manifest.json").write_text(json.dumps(manifest))
    page = report(run, out=tmp_path / "report.html")
    assert len([text for attributes, text in page.scripts if "type" not in attributes]) == 1
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert "<script>alert(1)</script>" in " ".join(page.words)
    assert page.index["groups"][0]["question"] == [HOSTILE] * 8
    assert page.details[0]["trace"][0]["query"] == HOSTILE
    assert KEY not in (tmp_path / "report.html").read_text()


def test_optimization_runs_have_their_own_sections(run: Path, tmp_path: Path) -> None:
    tuned, other = write_run(tmp_path / "tuned"), write_run(tmp_path / "other")
    expected = [section(tuned).title]
    both = report(run, tuned, out=tmp_path / "both.html")
    assert both.titles == [*_TITLES[:-1], *expected, _TITLES[-1]]
    two = report(tuned, other, out=tmp_path / "two.html")
    assert two.titles == [f"{title} · {name}" for name in ("tuned", "other") for title in expected]
    assert "optimization tuned, optimization other" in two.words
    same = report(tuned, write_run(run / "tuned"), out=tmp_path / "same.html")
    assert f"Optimization · {tuned}" in same.titles
    for page in (both, two):
        assert len(set(page.ids)) == len(page.ids)


# --- errors ----------------------------------------------------------------------------------------------------------


error = partial(refused, "report")


def test_damaged_runs(run: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "x.html")
    first, *rest = (run / "predictions.jsonl").read_text().splitlines()
    line = json.loads(first)
    for damaged in ("{]", json.dumps({**line, "scores": 3})):
        (run / "predictions.jsonl").write_text("\n".join([damaged, *rest, ""]))
        assert "is damaged" in error(run, *out)
    strange = json.dumps({**line, "trace": [{"step": "searched", "found": "text"}]})
    (run / "predictions.jsonl").write_text("\n".join([strange, *rest, ""]))
    assert "the trace of question 0 is not one that polyhop wrote. Delete the line" in error(run, *out)
    (run / "predictions.jsonl").write_text("")
    assert "has no finished question yet" in error(run, *out)
    assert not (tmp_path / "x.html").exists()


def test_only_reports_are_replaced(run: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    assert "is not a report" in error(run, "--out", tmp_path)
    mine.write_text("<!doctype html>\nmy own page")
    assert "is not a report" in error(run, "--out", mine)
    assert mine.read_text() == "<!doctype html>\nmy own page"
    assert "cannot be read or written" in error(run, "--out", mine / "report.html")
    report(run, out=tmp_path / "report.html")
    before = (tmp_path / "report.html").read_bytes()
    assert "versions.dspy" in report(run, out=tmp_path / "report.html").words
    assert (tmp_path / "report.html").read_bytes() == before
