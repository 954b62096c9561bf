"""The sections on an optimization run show what its folder holds, and its texts cannot become markup."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from polyhop.eval.folder import RunError
from polyhop.eval.report.page import Section
from polyhop.optimizers.pipeline import OptimizationProgress, optimize
from polyhop.optimizers.report import comparison, sections
from polyhop.optimizers.settings import OptimizationSettings, Splits

from ..joint.tiny import Engine, examples, make
from .run_folder import measured_both, study, write, write_run

SPLITS = Splits(examples(0, 24), examples(100, 24), examples(200, 16))
EVIL = "\"'><script>alert(1)</script></svg></section><img src=x onerror=alert(2)> \0 var(--ink, #fff)"


class Page(HTMLParser):
    """Parsed sections: elements with attributes, texts by their innermost element, and the cells of table rows."""

    def __init__(self, found: Iterable[Section]) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        for section in found:
            self.feed(section.body)
            assert not self._open, f"{section.name} leaves {self._open} open"
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join("".join(text for _, text in self.texts).split())

    def of(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def row(self, name: str) -> list[str]:
        return next(row for row in self.rows if row and row[0] == name)


def page(path: Path, name: str | None = None) -> Page:
    return Page(section for section in sections(path) if name in (None, section.name))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("made") / "run")


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A run to change."""
    return shutil.copytree(made, tmp_path / "run")


def change(file: Path, **changes: Any) -> None:
    write(file, {**json.loads(file.read_text()), **changes})


def test_stages_and_verdicts(made: Path) -> None:
    found = page(made, "optimization")
    assert found.rows == [
        ["Stage", "Answer F1, %", "Gain", "p", "LM calls per question", "Verdict"],
        ["start", "25.0", "", "", "2.50", "the baseline"],
        ["tunables", "20.0", "−5.0", "0.750", "2.50", "not kept: no better (3 trials, tpe); 1 failed"],
        ["prompts", "75.0", "+50.0", "0.031", "2.50", "kept: better (bootstrap, light)"],
    ]
    assert "Tiny over BM25 was tuned on 24 questions of made-up for Answer F1" in found.text
    assert "tunables (3 trials, tpe), then prompts (bootstrap, light); seed 0" in found.text
    assert "if a paired test on 2 validation questions gives p < 0.05" in found.text
    assert "Finished: all stages are done. The result is the proposal of prompts (stage 2)." in found.text


def test_the_test_compares_start_and_result(made: Path) -> None:
    found = page(made, "test")
    assert (
        "Over 16 questions that no stage has seen, Answer F1 is 25.0 at the start and 75.0 tuned: +50.0 (+40.0 to "
        "+60.0), p <0.001"
    ) in found.text
    assert found.row("Answer F1") == ["Answer F1", "25.0 (15.0 to 35.0)", "75.0 (65.0 to 85.0)"]
    assert found.row("Tokens") == ["Tokens", "1,200 (1,100 to 1,300)", "1,200 (1,100 to 1,300)"]
    assert "Answer EM" not in found.text  # neither program has it
    assert set(found.of("title")[1:]) == {"25.0 (15.0 to 35.0)", "75.0 (65.0 to 85.0)"}


def test_a_search_shows_its_trials_and_the_choice(made: Path) -> None:
    found = page(made, "search-1-tunables")
    assert "3 trials (2 complete, 1 pruned) by tpe on 24 questions, for Answer F1" in found.text
    assert "Trial 1 was chosen: 0.9; the defaults have 0.5." in found.text
    notes = [note.partition(":")[0] for note in found.of("title") if note.startswith("trial")]
    assert notes == ["trial 0, complete", "trial 1, complete", "trial 2, pruned"]
    assert found.row("effort") == ["effort", "3", "4", "75.0%", "1 to 10"]
    assert found.row("style") == ["style", "florid", "terse", "25.0%", "florid, terse"]
    assert found.of("strong") == ["4", "terse"]
    assert found.count("svg") == 2  # no front without a cost


def test_a_search_with_a_cost_shows_the_front(run: Path) -> None:
    write(run / "1-tunables/proposal.json", {"study": study(cost="lm_calls")})
    found = page(run, "search-1-tunables")
    assert found.count("svg") == 3
    assert found.row("trial 0") == ["trial 0", "0.5", "2"]
    assert found.row("trial 1, chosen") == ["trial 1, chosen", "0.9", "3"]


def test_changes_are_marked(made: Path) -> None:
    found = page(made, "changes")
    assert "answerer: instructions; 1 demo added" in found.text
    assert found.of("del") == ["question."]
    assert found.of("ins") == ["question in few words.", "Capital of Norway?", "Oslo", *["Who wrote Emma?"] * 2]
    assert "exemplars.memory: 1 added, 0 removed" in found.text
    assert "Not kept: the proposal of tunables (stage 1)" in found.text
    folded = ["open" not in attributes for tag, attributes in found.tags if tag == "details"]
    assert folded == [False, True, True]


def test_several_runs_have_a_row_each(made: Path, run: Path, tmp_path: Path) -> None:
    change(run / "summary.json", test=None)
    running = shutil.copytree(made, tmp_path / "running")
    (running / "summary.json").unlink()
    (running / "stages.jsonl").unlink()
    found = Page([comparison({"tuned": made, "untested": run, "running": running})])
    end = ["kept: prompts", "Answer F1", "Tiny", "made-up"]
    assert found.row("tuned") == ["tuned", "25.0", "75.0", "+50.0 (+40.0 to +60.0)", "<0.001", "2.50", *end]
    assert found.row("untested") == ["untested", "25.0", "75.0", "", "", "2.50", *end]
    assert found.row("running") == ["running", "", "", "", "", "", "not finished", *end[1:]]


def test_no_text_becomes_markup(made: Path, tmp_path: Path) -> None:
    harmless = page(made)
    texts = ("instructions", "demo", "style", "question", "note", "ended", "dataset", "name", "file")
    evil = page(write_run(tmp_path / "evil", **dict.fromkeys(texts, EVIL)))
    assert {tag for tag, _ in evil.tags} == {tag for tag, _ in harmless.tags}
    assert {name for _, names in evil.tags for name in names} == {name for _, names in harmless.tags for name in names}
    for place in (evil.of("ins"), evil.row("style"), evil.row("prompts"), evil.of("strong")):
        assert any("<script>alert(1)</script>" in text for text in place)


# --- unfinished runs -------------------------------------------------------------------------------------------------


def test_a_running_optimization_is_reported_and_not_changed(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "metric": "answer_em",
        "cost": "seconds",
        "optimizer": "bootstrap",
        "trials": 8,
        "seed": 3,
    }
    out, plan = tmp_path / "run", OptimizationSettings(**settings, budget_calls=12_345)
    seen: dict[str, Page] = {}

    def on_told(each: OptimizationProgress) -> None:
        key = f"{each.stage}: {each.progress.detail.partition(',')[0]}"
        if key not in seen or each.progress.done == 4:
            before = snapshot(out)
            seen[key] = page(out)
            assert snapshot(out) == before

    optimize(make(Engine()), SPLITS, out, plan, on_progress=on_told)
    start = "0 of at most 3 stages are done; the program is measured at the start"
    assert start in seen["start: validation questions"].text
    tuning = seen["tunables: trials"]
    assert "2 of at most 3 stages are done; tunables (stage 3) is running" in tuning.text
    assert "This search is not finished. So far: 4 trials (" in tuning.text
    assert "Score against seconds per question. The line is the Pareto front so far." in tuning.text
    assert tuning.row("LM calls")[2] == "12,345"
    assert "the result is being measured" in seen["test: test questions"].text
    ended = page(out)
    assert "not finished" not in ended.text
    assert "8 trials" in ended.text
    assert "demos added" in ended.text


def test_a_run_that_keeps_nothing(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "stages.jsonl").read_text().splitlines()]
    lines[2]["kept"] = False
    (run / "stages.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    test = measured_both()
    del test["runs"]["2-prompts"]
    change(run / "summary.json", test=test, stages=lines)
    assert "The result is the program as it was at the start" in page(run, "optimization").text
    assert "Nothing was kept" in page(run, "changes").text
    assert page(run, "test").row("Answer F1") == ["Answer F1", "25.0 (15.0 to 35.0)"]


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("manifest.json", b"{"),
        ("manifest.json", b'{"settings": {"stages": ["../../etc"]}}'),
        ("stages.jsonl", b'{"n": 0}\n'),
        ("stages.jsonl", b'{"n": 0, "round": 0, "stage": "start", "kept": true, "why": "\\ud800"}\n'),
        ("summary.json", b'{"ended": 3}'),
        ("1-tunables/proposal.json", b'{"study": {"trials": 7}}'),
        ("start/state.json", b"{}"),
    ],
)
def test_damaged_files_are_named(run: Path, name: str, damage: bytes) -> None:
    (run / name).write_bytes(damage)
    with pytest.raises(RunError, match=name.rpartition("/")[2]) as caught:
        sections(run)
    assert "\n" not in str(caught.value)


def test_other_folders(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run folder"):
        sections(tmp_path / "nowhere")
    write(tmp_path / "manifest.json", {"schema": 1})
    with pytest.raises(RunError, match="is another kind of run"):
        sections(tmp_path)


def test_a_damaged_journal(run: Path) -> None:
    (run / "summary.json").unlink()
    first = (run / "stages.jsonl").read_text().splitlines(keepends=True)[0]
    (run / "stages.jsonl").write_text(first)
    (run / "1-tunables/proposal.json").unlink()
    assert [section.name for section in sections(run)] == ["optimization", "changes", "spent"]  # no trial yet
    (run / "1-tunables/tunables.journal").write_text("no journal\n{}\n")
    with pytest.raises(RunError, match=r"tunables\.journal"):
        sections(run)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}
