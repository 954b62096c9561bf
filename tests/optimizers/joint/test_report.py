"""What a report says of a joint run is what stands in its folder, and nothing in there can forge it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from polyhop.eval.folder import RunError
from polyhop.eval.report.page import Section
from polyhop.optimizers.joint.plan import Plan, Splits
from polyhop.optimizers.joint.report import sections, together
from polyhop.optimizers.joint.run import Told, optimize

from .run_folder import study, write, write_run
from .tiny import Engine, examples, make

SPLITS = Splits(examples(0, 24), examples(100, 24), examples(200, 16))
EVIL = "\"'><script>alert(1)</script></svg></section><img src=x onerror=alert(2)> \0 var(--ink, #fff)"


class Page(HTMLParser):
    """The sections as a browser would read them.

    Attributes:
        tags: Every element, with its attributes.
        texts: What is shown, by the innermost element that it stands in.
        rows: The cells of each row of the tables.
    """

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

    def row(self, name: str) -> list[str]:
        return next(row for row in self.rows if row and row[0] == name)


def page(path: Path, name: str | None = None) -> Page:
    return Page(section for section in sections(path) if name in (None, section.name))


# --- a folder written by hand ----------------------------------------------------------------------------------------


def test_it_has_a_section_for_each_thing(tmp_path: Path) -> None:
    found = sections(write_run(tmp_path / "run"))
    assert [section.name for section in found] == ["optimization", "test", "search-1-tunables", "changes", "spent"]
    assert all(re.fullmatch("[a-z0-9-]+", section.name) for section in found)


def test_the_stages_stand_with_their_verdicts(tmp_path: Path) -> None:
    found = page(write_run(tmp_path / "run"), "optimization")
    assert found.rows == [
        ["stage", "answer F1, %", "gain", "p", "LM calls a question", ""],
        ["start", "25.0", "", "", "2.50", "what the others are compared with"],
        ["tunables", "20.0", "−5.0", "0.750", "2.50", "not kept: no better (3 trials, tpe); 1 failed"],
        ["prompts", "75.0", "+50.0", "0.031", "2.50", "kept: better (bootstrap, light)"],
    ]
    assert "Tiny over BM25 was tuned on 24 questions of made-up for answer F1" in found.text
    assert "tunables (3 trials, tpe), then prompts (bootstrap, light)" in found.text
    assert "if a paired test on 2 validation questions gives p < 0.05" in found.text
    assert "all stages are played. The result is that of prompts (stage 2)" in found.text


def test_the_test_says_start_against_result(tmp_path: Path) -> None:
    found = page(write_run(tmp_path / "run"), "test")
    assert (
        "Over 16 questions that no stage saw, answer F1 is 25.0 at the start and 75.0 tuned: +50.0 (+40.0 to +60.0), "
        "p <0.001"
    ) in found.text
    assert found.row("answer F1") == ["answer F1", "25.0 (15.0 to 35.0)", "75.0 (65.0 to 85.0)"]
    assert found.row("tokens") == ["tokens", "1,200 (1,100 to 1,300)", "1,200 (1,100 to 1,300)"]
    assert "answer EM" not in found.text  # which neither has
    assert found.of("title") == ["25.0 (15.0 to 35.0)", "75.0 (65.0 to 85.0)"]  # of the picture's points


def test_a_search_shows_its_trials_and_what_was_chosen(tmp_path: Path) -> None:
    found = page(write_run(tmp_path / "run"), "search-1-tunables")
    assert "3 trials (2 complete, 1 pruned) by tpe on 24 questions, for answer F1" in found.text
    assert "Trial 1 was chosen: 0.9, with the defaults 0.5" in found.text
    assert [note.partition(":")[0] for note in found.of("title")] == [
        "trial 0, complete",
        "trial 1, complete",
        "trial 2, pruned",
    ]
    assert found.row("effort") == ["effort", "3", "4", "75.0%", "1 to 10"]
    assert found.row("style") == ["style", "florid", "terse", "25.0%", "florid, terse"]
    assert found.of("strong") == ["4", "terse"]
    assert len([tag for tag, _ in found.tags if tag == "svg"]) == 2  # no front without a cost


def test_with_a_cost_there_is_a_front(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    write(run / "1-tunables/proposal.json", {"study": study(cost="lm_calls")})
    found = page(run, "search-1-tunables")
    assert len([tag for tag, _ in found.tags if tag == "svg"]) == 3
    assert found.row("trial 0") == ["trial 0", "0.5", "2"]
    assert found.row("trial 1, chosen") == ["trial 1, chosen", "0.9", "3"]


def test_where_everything_is_the_same_nothing_is_drawn(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    same = study(cost="lm_calls")
    for trial in same["trials"]:
        trial["score"] = 0.0
    write(run / "1-tunables/proposal.json", {"study": same})
    found = page(run, "search-1-tunables")
    assert "Every trial with a score has 0." in found.text
    assert len([tag for tag, _ in found.tags if tag == "svg"]) == 1  # the importances
    assert found.row("trial 0") == ["trial 0", "0", "2"]
    summary = json.loads((run / "summary.json").read_text())
    zero = {"mean": 0.0, "low": 0.0, "high": 0.0}
    test = {**summary["test"], "start": zero, "best": zero, "difference": zero}
    write(run / "summary.json", {**summary, "test": test})
    found = page(run, "test")
    assert "answer F1 is 0.0 at the start and 0.0 tuned" in found.text
    assert not [tag for tag, _ in found.tags if tag == "svg"]


def test_changes_are_marked(tmp_path: Path) -> None:
    found = page(write_run(tmp_path / "run"), "changes")
    assert "answerer: instructions; 1 demo added" in found.text
    assert found.of("del") == ["question."]
    assert found.of("ins") == ["question in few words.", "Capital of Norway?", "Oslo", *["Who wrote Emma?"] * 2]
    assert "exemplars.memory: 1 added, 0 removed" in found.text
    assert "What tunables (stage 1) proposed in vain" in found.text
    folded = ["open" not in attributes for tag, attributes in found.tags if tag == "details"]
    assert folded == [False, True, True]  # prompts are what one wants to see


def test_what_was_spent(tmp_path: Path) -> None:
    found = page(write_run(tmp_path / "run"), "spent")
    assert [row[1] for row in found.rows[1:]] == ["1,234", "50,000", "600", "1.50", "1.5"]


def test_pictures_have_the_colours_of_the_page(tmp_path: Path) -> None:
    for section in sections(write_run(tmp_path / "run")):
        for tag, attributes in Page([section]).tags:
            for name in ("fill", "stroke"):
                colour = attributes.get(name) or "none"
                assert re.fullmatch(r"none|var\(--(ink|muted|grid|paper|series-[1-6])\)", colour), (tag, colour)


def test_hundreds_of_trials_stay_small(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    write(run / "1-tunables/proposal.json", {"study": study(trials=2_000)})
    (found,) = (section for section in sections(run) if section.name == "search-1-tunables")
    assert found.body.count("<circle") == 2_000
    assert len(found.body) < 300_000


def test_several_runs_have_a_row_each(tmp_path: Path) -> None:
    tuned, untested, going = (write_run(tmp_path / name) for name in ("tuned", "untested", "going"))
    summary = json.loads((untested / "summary.json").read_text())
    write(untested / "summary.json", {**summary, "test": None})
    (going / "summary.json").unlink()
    (going / "stages.jsonl").unlink()
    found = Page([together({"tuned": tuned, "untested": untested, "going": going})])
    what = ["answer F1", "Tiny", "made-up"]
    assert found.row("tuned") == [
        "tuned",
        "25.0",
        "75.0",
        "+50.0 (+40.0 to +60.0)",
        "<0.001",
        "2.50",
        "kept: prompts",
        *what,
    ]
    assert found.row("untested") == ["untested", "25.0", "75.0", "", "", "2.50", "kept: prompts", *what]
    assert found.row("going") == ["going", "", "", "", "", "", "not finished", *what]


# --- texts from outside ----------------------------------------------------------------------------------------------


def test_no_text_becomes_markup(tmp_path: Path) -> None:
    harmless = page(write_run(tmp_path / "harmless"))
    texts = ("instructions", "demo", "style", "question", "note", "ended", "dataset", "name", "file")
    evil = page(write_run(tmp_path / "evil", **dict.fromkeys(texts, EVIL)))
    assert {tag for tag, _ in evil.tags} == {tag for tag, _ in harmless.tags}
    assert {name for _, names in evil.tags for name in names} == {name for _, names in harmless.tags for name in names}
    shown = EVIL.replace("\0", "\N{REPLACEMENT CHARACTER}")
    for place in (evil.of("ins"), evil.row("style"), evil.row("prompts"), evil.of("strong")):
        assert any("<script>alert(1)</script>" in text for text in place)
    assert "var(--ink, #fff)" in evil.text
    assert shown in evil.of("ins")


def test_half_characters_are_damage(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    lines = (run / "stages.jsonl").read_text().replace("bootstrap, light", "\\ud800")
    (run / "stages.jsonl").write_text(lines)
    with pytest.raises(RunError, match="stages.jsonl, line 3 is damaged"):
        sections(run)


# --- real runs -------------------------------------------------------------------------------------------------------


def test_a_run_under_way_is_reported_and_left_alone(tmp_path: Path) -> None:
    out, plan = tmp_path / "run", Plan(metric="answer_em", optimizer="bootstrap", trials=8, seed=3)
    seen: dict[str, Page] = {}

    def told(each: Told) -> None:
        key = f"{each.stage}: {each.report.detail.partition(',')[0]}"
        if key not in seen or each.report.done == 4:
            before = snapshot(out)
            seen[key] = page(out)
            assert snapshot(out) == before

    optimize(lambda: make(Engine()), SPLITS, out, plan=plan, on_told=told)
    assert (
        "0 of at most 3 stages are over, the program at its start is being measured"
        in seen["start: validation questions"].text
    )
    tuning = seen["tunables: trials"]
    assert "2 of at most 3 stages are over, tunables (stage 3) is played" in tuning.text
    assert "This search is not finished. So far: 4 trials (" in tuning.text
    assert "The test questions" not in tuning.text
    assert "the result is being measured" in seen["test: test questions"].text
    ended = page(out)
    assert "not finished" not in ended.text
    assert "8 trials" in ended.text


def test_a_run_without_searches(tmp_path: Path) -> None:
    out, plan = tmp_path / "run", Plan(stages=("prompts",), metric="answer_em", optimizer="bootstrap", seed=3)
    optimize(lambda: make(Engine()), SPLITS, out, plan=plan)
    assert [section.name for section in sections(out)] == ["optimization", "test", "changes", "spent"]
    assert "demos added" in page(out, "changes").text


def test_a_run_that_keeps_nothing(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    lines = [json.loads(line) for line in (run / "stages.jsonl").read_text().splitlines()]
    lines[2]["kept"] = False
    (run / "stages.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = json.loads((run / "summary.json").read_text())
    del summary["test"]["runs"]["2-prompts"]
    write(run / "summary.json", {**summary, "stages": lines})
    assert "The result is the program as it was at the start" in page(run, "optimization").text
    assert "Nothing was kept" in page(run, "changes").text
    assert page(run, "test").row("answer F1") == ["answer F1", "25.0 (15.0 to 35.0)"]


def test_a_run_that_was_taken_up_again_is_not_finished(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    summary = json.loads((run / "summary.json").read_text())
    write(run / "summary.json", {**summary, "stages": summary["stages"][:2]})
    assert "This run is not finished: 2 of at most 2 stages are over" in page(run, "optimization").text


# --- what cannot be reported -----------------------------------------------------------------------------------------


def test_what_is_no_run_is_told_in_one_line(tmp_path: Path) -> None:
    def why(run: Path) -> str:
        with pytest.raises(RunError) as caught:
            sections(run)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "is not the folder of a run" in why(tmp_path / "nowhere")
    write(tmp_path / "manifest.json", {"schema": 1})
    assert "another kind of run" in why(tmp_path)
    for name, damage in (
        ("manifest.json", b"{"),
        ("manifest.json", b'{"plan": {"stages": ["../../etc"]}}'),
        ("stages.jsonl", b'{"n": 0}\n'),
        ("summary.json", b'{"ended": 3}'),
        ("1-tunables/proposal.json", b'{"study": {"trials": 7}}'),
        ("start/state.json", b"{}"),
    ):
        run = write_run(tmp_path / "damaged")
        (run / name).write_bytes(damage)
        assert name.rpartition("/")[2] in why(run)
        shutil.rmtree(run)


def test_a_damaged_journal_is_told(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "summary.json").unlink()
    first = (run / "stages.jsonl").read_text().splitlines(keepends=True)[0]
    (run / "stages.jsonl").write_text(first)
    (run / "1-tunables/proposal.json").unlink()
    assert [section.name for section in sections(run)] == ["optimization", "changes", "spent"]  # no trial yet
    (run / "1-tunables/tunables.journal").write_text("no journal\n{}\n")
    with pytest.raises(RunError, match="tunables.journal is not a journal of a search, or damaged"):
        sections(run)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}
