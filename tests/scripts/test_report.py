"""`polyhop report`: a page from real runs, from made-up ones that are hostile, and what it refuses."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from base64 import b64decode, b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from polyhop.eval.folder import differences
from polyhop.eval.records import read_lines, read_manifest, read_summary
from polyhop.eval.report.traces import outcome
from polyhop.eval.run import evaluate
from polyhop.optimizers.joint.report import sections
from polyhop.scripts.main import app

from ..eval.small import Fake, mixed, numbered
from ..optimizers.joint.run_folder import write_run

_TITLES = [
    "Overview",
    "Outcomes",
    "Hops and types",
    "Cost and quality",
    "Convergence",
    "Calibration",
    "Questions",
    "About",
]

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \" ' & \ud800 {{x}}"
KEY = "sk-planted-0123456789"


def polyhop(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


class Page(HTMLParser):
    """A page taken apart: every element is closed where it should be, and scripts are kept."""

    VOID = frozenset({"meta", "br", "input", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words: list[str] = []
        self.headings: dict[str, str] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data
        elif self.open and self.open[-1] != "style":
            self.words.append(data)
            if self.open[-1] == "h2":
                self.headings[self.ids[-1]] = data

    @property
    def titles(self) -> list[str]:
        """Of the sections, as the navigation has them; they come after the link that skips it."""
        names = [value[1:] for tag, name, value in self.attributes if (tag, name) == ("a", "href")][1:]
        return [self.headings[f"{name}-title"] for name in names]

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
    result = polyhop("report", *runs, "--out", out)
    assert result.exit_code == 0, result.output
    return Page(out.read_text())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """prism and naive on the dev questions of the sample."""
    folder = tmp_path_factory.mktemp("runs")
    for program in ("prism", "naive"):
        result = polyhop("evaluate", "--program", program, "--retriever", "bm25", "--out", folder / program)
        assert result.exit_code == 0, result.output
    return folder / "prism", folder / "naive"


@pytest.fixture(scope="module")
def page(runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Page:
    return report(*runs, out=tmp_path_factory.mktemp("page") / "report.html")


def test_the_numbers_are_those_of_the_runs(page: Page, runs: tuple[Path, Path]) -> None:
    text = " ".join(page.words)
    for run in runs:
        summary = read_summary(run)
        for metric in ("answer_em", "answer_f1", "evidence_f1", "joint_f1", "passage_recall@5"):
            low, high = summary["intervals"][metric]
            assert f" {100 * summary['metrics'][metric]:.1f} " in text
            assert f"{100 * low:.1f} to {100 * high:.1f}" in text


def test_differences_are_those_that_compare_prints(page: Page, runs: tuple[Path, Path]) -> None:
    printed = polyhop("compare", *runs, "--metric", "answer_f1").stdout
    difference, low, high, p = re.findall(
        r"answer F1 +([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\) +\S+ +(\S+)", printed
    )[0]
    shown = " ".join(page.words).replace("−", "-")
    assert f"{low} to {high}" in shown
    assert f" {difference} " in shown
    assert f"p {p} · " in shown


def test_every_question_is_there_with_its_outcome_and_its_trace(page: Page, runs: tuple[Path, Path]) -> None:
    (group,) = page.index["groups"]
    names = [each["key"] for each in page.index["outcomes"]]
    details = iter(page.details)
    for run, column in zip(runs, group["runs"], strict=True):
        lines = list(read_lines(run))
        assert column["at"] == list(range(55))
        assert [names[n] for n in column["outcome"]] == [outcome(line).name for line in lines]
        assert column["answer"] == [line["answer"] for line in lines]
        for line in lines:
            shown = next(details)
            assert shown["gold"] == line["gold"]
            assert [step["step"] for step in shown["trace"]] == [step["step"] for step in line["trace"]]
        counts = Counter(outcome(line) for line in lines)
        assert all(f"{count}" in page.words for count in counts.values())
    assert next(details, None) is None


def test_nothing_is_asked_of_the_network_and_only_our_scripts_run(page: Page) -> None:
    links = [value for _, name, value in page.attributes if name in ("href", "src", "action", "srcset", "data")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    (policy,) = (value for _, name, value in page.attributes if name == "content" and "default-src" in value)
    assert "default-src 'none'" in policy
    ours = [text for attributes, text in page.scripts if "type" not in attributes]
    assert len(ours) == 2
    for script in ours:
        assert f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy


def test_ids_are_distinct_and_links_lead_somewhere(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)
    assert {value[1:] for tag, name, value in page.attributes if (tag, name) == ("a", "href")} <= set(page.ids)
    for _, name, value in page.attributes:
        if name == "aria-labelledby":
            assert value in page.ids


def test_the_command_on_the_page_makes_the_run_again(page: Page, runs: tuple[Path, Path], tmp_path: Path) -> None:
    commands = [words for words in page.words if words.startswith("polyhop evaluate ")]
    assert len(commands) == 2
    assert "--retriever bm25" in commands[0]
    again = [str(tmp_path / "again") if each == "RUN" else each for each in shlex.split(commands[0])[1:]]
    assert polyhop(*again).exit_code == 0
    assert differences(read_manifest(runs[0]).to_json(), read_manifest(tmp_path / "again").to_json()) == []
    answers = [[line["answer"] for line in read_lines(run)] for run in (runs[0], tmp_path / "again")]
    assert answers[0] == answers[1]


def test_the_same_runs_give_the_same_page(runs: tuple[Path, Path], tmp_path: Path) -> None:
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for path in pages:
        report(*runs, out=path)
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_hostile_texts_are_shown_and_nothing_more(tmp_path: Path) -> None:
    run = tmp_path / "run"
    evaluate(Fake(), numbered(3), run)
    lines = [json.loads(text) for text in (run / "predictions.jsonl").read_text().splitlines()]
    for line in lines:
        line |= {
            "question": HOSTILE,
            "answer": HOSTILE,
            "gold_answers": [HOSTILE],
            "kind": HOSTILE,
            "stop_reason": HOSTILE,
        }
        line["evidence"] = [{"passage_id": HOSTILE, "title": HOSTILE, "sentence": None, "text": HOSTILE}]
        line["trace"] = [{"step": "searched", "query": HOSTILE, "found": [[HOSTILE, HOSTILE, 1.0]]}]
        line["incidents"] = {HOSTILE: 1}
    (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "summary.json").unlink()
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["program"] |= {"name": HOSTILE, "tunables": {HOSTILE: HOSTILE}, "lms": {HOSTILE: {"model": HOSTILE}}}
    manifest |= {"dataset": HOSTILE, "api_key": KEY, "environment": {"OPENAI_API_KEY": KEY}}
    manifest["program"]["lms"][HOSTILE]["api_key"] = KEY
    (run / "manifest.json").write_text(json.dumps(manifest))
    page = report(run, out=tmp_path / "report.html")
    assert len([text for attributes, text in page.scripts if "type" not in attributes]) == 2
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert "<script>alert(1)</script>" in " ".join(page.words)
    assert page.index["groups"][0]["question"] == [HOSTILE] * 3
    assert page.details[0]["trace"][0]["query"] == HOSTILE
    assert KEY not in (tmp_path / "report.html").read_text()


def test_failures_incidents_and_agents_are_shown_where_a_run_has_them(tmp_path: Path) -> None:
    run = tmp_path / "run"
    evaluate(Fake(mixed(8)), numbered(8), run)
    plain = report(run, out=tmp_path / "plain.html")
    assert "Incidents" not in plain.words
    assert "Costs by agent, over all questions" not in plain.words
    assert {"Failures", "exception"} <= set(plain.words)
    assert any(words.endswith("no luck") for words in plain.words)
    summary = read_summary(run)
    summary["incidents"] = {"repeated after rate_limit": 3}
    summary["by_agent"] = {"selector": {"lm_calls": 16, "tokens_in": 1200, "tokens_out": 80, "cost_usd": 0.0123}}
    (run / "summary.json").write_text(json.dumps(summary))
    more = report(run, out=tmp_path / "more.html")
    assert {"Incidents", "repeated after rate_limit", "3"} <= set(more.words)
    assert {"selector", "16", "1,200", "80", "$0.012"} <= set(more.words)


def test_an_unfinished_run_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    evaluate(Fake(mixed(8)), numbered(8), run)
    lines = (run / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    (run / "predictions.jsonl").write_bytes(b"".join(lines[2:6]) + lines[6][:20])
    (run / "summary.json").unlink()
    result = polyhop("report", run, "--out", tmp_path / "report.html")
    assert result.exit_code == 0, result.output
    assert "is not finished: 4 of 8 questions" in result.stderr
    page = Page((tmp_path / "report.html").read_text())
    assert any("is not finished: 4 of 8 questions are done" in words for words in page.words)
    assert [each["at"] for each in page.index["groups"][0]["runs"]] == [[0, 1, 2, 3]]
    assert page.index["groups"][0]["question"] == [f"question {n}" for n in range(2, 6)]
    assert "75.0" in page.words  # question 3 is wrong
    assert "33.3" not in page.words


def test_a_run_that_only_lacks_its_summary(tmp_path: Path) -> None:
    run = tmp_path / "run"
    evaluate(Fake(), numbered(3), run)
    (run / "summary.json").unlink()
    result = polyhop("report", run, "--out", tmp_path / "report.html")
    told = "is not finished: all 3 questions are done, but there is no summary"
    assert told in result.stderr
    assert any(told in words for words in Page((tmp_path / "report.html").read_text()).words)


def test_only_runs_over_the_same_questions_are_compared(tmp_path: Path) -> None:
    evaluate(Fake(), numbered(6), tmp_path / "a")
    evaluate(Fake(mixed(6)), numbered(6), tmp_path / "b")
    evaluate(Fake(), numbered(4), tmp_path / "c")
    page = report(tmp_path / "a", tmp_path / "c", tmp_path / "b", out=tmp_path / "report.html")
    groups = page.index["groups"]
    assert [[run["name"] for run in group["runs"]] for group in groups] == [["a", "b"], ["fake"]]
    assert page.words.count("Against ") == 1
    assert len({group["title"] for group in groups}) == 2


def test_one_run_of_one_question(tmp_path: Path) -> None:
    evaluate(Fake(), numbered(1), tmp_path / "run")
    page = report(tmp_path / "run", out=tmp_path / "sub" / "report.html")
    assert page.index["groups"][0]["runs"][0]["em"] == [1]


def test_all_questions_failed(tmp_path: Path) -> None:
    evaluate(Fake({f"question {n}": mixed(1)["question 0"] for n in range(3)}), numbered(3), tmp_path / "run")
    page = report(tmp_path / "run", out=tmp_path / "report.html")
    assert page.index["groups"][0]["runs"][0]["confidence"] is None


def test_runs_of_optimize_stand_beside_those_of_evaluate(tmp_path: Path) -> None:
    evaluate(Fake(), numbered(2), tmp_path / "run")
    tuned, other = write_run(tmp_path / "tuned"), write_run(tmp_path / "other")
    expected = [section.title for section in sections(tuned)]
    assert len(expected) > 2
    both = report(tmp_path / "run", tuned, out=tmp_path / "both.html")
    assert both.titles == [*_TITLES[:-1], *expected, _TITLES[-1]]
    two = report(tuned, other, out=tmp_path / "two.html")
    assert two.titles == ["Optimizations", *(f"{title} · {name}" for name in ("tuned", "other") for title in expected)]
    same = report(tuned, write_run(tmp_path / "run" / "tuned"), out=tmp_path / "same.html")
    assert f"Test · {tuned}" in same.titles
    for page in (both, two):
        assert len(set(page.ids)) == len(page.ids)
        assert all(value.startswith("#") for _, name, value in page.attributes if name in ("href", "src"))


# --- what is refused -------------------------------------------------------------------------------------------------


def test_what_is_no_run(tmp_path: Path) -> None:
    result = polyhop("report", tmp_path, "--out", tmp_path / "x.html")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "is not the folder of a run" in result.stderr
    none = polyhop("report", tmp_path / "none", "--out", tmp_path / "x.html")
    assert (none.exit_code, none.stderr) == (1, f"error: {tmp_path / 'none'} is not a folder.\n")
    (tmp_path / "manifest.json").write_text('{"schema": 1}')
    assert "is not the folder of an evaluation run" in polyhop("report", tmp_path, "--out", tmp_path / "x.html").stderr
    assert not (tmp_path / "x.html").exists()


def test_folders_near_runs_name_those(tmp_path: Path) -> None:
    def why(folder: Path) -> str:
        result = polyhop("report", folder, "--out", tmp_path / "x.html")
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        return result.stderr

    tuned = write_run(tmp_path / "tuned")
    candidate = tuned / "2-prompts" / "candidate"
    assert f"{candidate} is a part of the run {tuned}: give that folder" in why(candidate)
    for name in "abcd":
        evaluate(Fake(), numbered(1), tmp_path / "runs" / name)
    first, second, third = (tmp_path / "runs" / name for name in "abc")
    assert f"runs is not a run folder; it contains runs: {first}, {second}, {third} and 1 more." in why(
        tmp_path / "runs"
    )
    index = tmp_path / "runs" / "index"
    index.mkdir()
    (index / "manifest.json").write_text('{"schema": 1}')
    (index / "problems.jsonl").touch()
    assert "is an index: give the folder of a run over it (--out of `polyhop evaluate`)" in why(index)
    assert not (tmp_path / "x.html").exists()


def test_damaged_lines(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "x.html"
    evaluate(Fake(), numbered(2), run)
    good = (run / "predictions.jsonl").read_text()
    line = json.loads(good.splitlines()[0])
    for damaged in ("{]", '{"n": 0, "id": "x"}', json.dumps({**line, "scores": 3}), json.dumps({**line, "gold": 5})):
        (run / "predictions.jsonl").write_text(f"{damaged}\n{good.splitlines()[1]}\n")
        result = polyhop("report", run, "--out", out)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.output
        assert "is damaged" in result.stderr
    (run / "predictions.jsonl").write_text(good)
    (run / "summary.json").write_text("{}")
    assert "summary.json is damaged" in polyhop("report", run, "--out", out).stderr
    (run / "predictions.jsonl").write_text("")
    assert "has no finished question yet" in polyhop("report", run, "--out", out).stderr
    assert not out.exists()


def test_where_the_page_may_go(tmp_path: Path) -> None:
    run, mine = tmp_path / "run", tmp_path / "mine.html"
    evaluate(Fake(), numbered(2), run)
    assert "is a folder" in polyhop("report", run, "--out", tmp_path).stderr
    mine.write_text("<!doctype html>\nmy own page")
    assert "is not a report" in polyhop("report", run, "--out", mine).stderr
    assert mine.read_text() == "<!doctype html>\nmy own page"
    under = polyhop("report", run, "--out", mine / "report.html")
    assert (under.exit_code, under.stderr.count("\n")) == (1, 1)
    assert "cannot be written" in under.stderr
    report(run, out=tmp_path / "report.html")
    report(run, out=tmp_path / "report.html")  # a report may be made again


def test_help() -> None:
    assert "needs no network" in polyhop("report", "--help").output
