"""The page: its sections, its escaping, and the data of the question browser."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path

from markupsafe import Markup

from polyhop.eval.report.browser import CHUNK, Chunks
from polyhop.eval.report.page import Section, render, write_page

SECTIONS = [
    Section("history", "History", Markup("<p>of the first</p>"), of="<first>"),
    Section("history", "History", Markup("<p>of the second</p>"), of="second"),
]
HOSTILE = "</td><script>alert('x')</script> & \"quoted\" \ud800 \0"


def written(path: Path, *sections: Section, title: str = "Title") -> str:
    with Chunks() as chunks:
        write_page(path / "x.html", title, "lead", sections, [], None, chunks)
    return (path / "x.html").read_text()


def headings(text: str) -> list[tuple[str, str]]:
    return re.findall(r'<section id="([\w-]+)" .+?<h2 .+?>(.+?)</h2>', text)


def test_sections_of_several_runs_are_distinct(tmp_path: Path) -> None:
    text = written(tmp_path, *SECTIONS)
    assert headings(text) == [("history", "History · &lt;first&gt;"), ("history-2", "History · second")]
    assert "<p>of the first</p>" in text
    assert 'href="#history-2"' in text
    assert 'id="index"' not in text


def test_no_text_becomes_markup(tmp_path: Path) -> None:
    body = render("groups.html.j2", parts=[(HOSTILE, HOSTILE)] * 2)
    assert "<script" not in body
    text = written(tmp_path, Section("x", HOSTILE, body), title=HOSTILE)
    assert text.count("<script>alert(") == text.count("\0") == 0
    assert (
        "&lt;/td&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &#34;quoted&#34; ? \N{REPLACEMENT CHARACTER}"
        in text
    )


def test_chunks_hold_what_was_added() -> None:
    details = [{"n": n, "text": "</script>" * n} for n in range(2 * CHUNK + 1)]
    with Chunks() as chunks:
        for each in details[:-1]:
            chunks.add(each)
        chunks.close()
        chunks.close()
        chunks.add(details[-1])
        chunks.close()
        packed = list(chunks)
        assert len(chunks) == len(packed) == 3
    assert not any("<" in chunk for chunk in packed)
    assert [each for chunk in packed for each in json.loads(gzip.decompress(b64decode(chunk)))] == details
