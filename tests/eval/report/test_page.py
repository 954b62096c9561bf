"""The page takes sections of other runs beside and instead of those of evaluation runs."""

from __future__ import annotations

import re
from pathlib import Path

from polyhop.eval.report.chunks import Chunks
from polyhop.eval.report.page import write_page
from polyhop.eval.report.runs import read_groups
from polyhop.eval.report.section import Section
from polyhop.eval.run import evaluate

from ..small import Fake, numbered

FURTHER = [
    Section("history", "History", "<p>of the first</p>", of="<first>"),
    Section("history", "History", "<p>of the second</p>", of="second"),
]


def headings(path: Path) -> list[tuple[str, str]]:
    return re.findall(r'<section id="([\w-]+)" .+?<h2 .+?>(.+?)</h2>', path.read_text())


def test_sections_alone(tmp_path: Path) -> None:
    with Chunks() as chunks:
        write_page(tmp_path / "x.html", [], [], chunks, FURTHER)
    assert headings(tmp_path / "x.html") == [("history", "History · &lt;first&gt;"), ("history-2", "History · second")]
    text = (tmp_path / "x.html").read_text()
    assert "<p>of the first</p>" in text
    assert 'href="#history-2"' in text
    assert 'id="index"' not in text
    assert "<h1>Optimization: &lt;first&gt; and second</h1>" in text


def test_the_sections_of_one_run_do_not_name_it(tmp_path: Path) -> None:
    with Chunks() as chunks:
        write_page(tmp_path / "x.html", [], [], chunks, FURTHER[:1])
    assert headings(tmp_path / "x.html") == [("history", "History")]
    assert "<h1>Optimization: &lt;first&gt;</h1>" in (tmp_path / "x.html").read_text()


def test_sections_beside_an_evaluation_run(tmp_path: Path) -> None:
    evaluate(Fake(), numbered(2), tmp_path / "run")
    with Chunks() as chunks:
        groups = read_groups([tmp_path / "run"], chunks)
        write_page(tmp_path / "x.html", groups, [[]], chunks, FURTHER)
    names = [name for name, _ in headings(tmp_path / "x.html")]
    assert names[0] == "overview"
    assert names[-4:] == ["questions", "history", "history-2", "about"]
    assert ", and 2 optimizations: &lt;first&gt; and second</p>" in (tmp_path / "x.html").read_text()


def test_what_sections_draw_with_is_defined(tmp_path: Path) -> None:
    with Chunks() as chunks:
        write_page(tmp_path / "x.html", [], [], chunks, FURTHER)
    text = (tmp_path / "x.html").read_text()
    promised = re.findall(r"var\((--[\w-]+)\)", Section.__doc__ or "")
    assert {"--ink", "--muted", "--grid", "--paper", "--series-1", "--series-6"} == set(promised)
    for name in promised:
        assert text.count(f"  {name}: light-dark(#") == 1
