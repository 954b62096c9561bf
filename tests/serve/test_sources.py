"""No text of a document adds a source to what is shown, by a line of its own or a mark, nor an element of Markdown."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

pytest.importorskip("fastapi")
pytest.importorskip("mcp")

from polyhop.data.passages import Evidence, Hit, Passage, Reason
from polyhop.data.text import quoted
from polyhop.eval.summary import run_lines
from polyhop.scripts.view import evidence_table, hit_lines
from polyhop.serve.chat import cited
from polyhop.serve.tools import shown

_BREAKS = ["\n", "\n\n", "\r\n", "\x0b", "\x85", "\u2028", "\u2029", "\x1b[2J", "\u200b", "\u202e", " "]
_MARKS = ["[2]", "[2] Official: ", "[official.md] Handbook", "［3］", "- Official: ", "reason: named", "   1    9.99  "]
_MARKS += [
    "<script>",
    "</div>",
    "<!--",
    "<https://x.example>",
    "](",
    "[2]: https://x.example",
    "&#91;2&#93;",
    "&lbrack;3]",
]
TEXTS = st.lists(st.sampled_from([*_BREAKS, *_MARKS, "word", "list[int]"]), max_size=8).map("".join)
_MARK = re.compile(r"(?:^|[^\w\])])[\[［](?=\S)")


@given(TEXTS)
@example("[2]: https://x.example")
def test_a_quoted_text_is_one_line_without_marks(text: str) -> None:
    once = quoted(text)
    assert once.isprintable()
    assert not _MARK.search(once)
    assert not _MARK.search(unescape(once))
    assert quoted(once) == once
    addresses: dict[str, Any] = {}
    MarkdownIt("commonmark").parse(once, addresses)
    assert not addresses.get("references")
    assert re.sub(r"\s", "", once) == re.sub(r"\s", "", "".join(c if c.isprintable() else " " for c in text))


@given(*[st.lists(st.sampled_from(["`", "``", "```", "\\`", "a", " "]), max_size=6).map("".join)] * 2)
@example("``` a `", "` b ```")
@example("\\` a", "\\` b")
def test_code_of_a_quoted_text_ends_in_it(first: str, second: str) -> None:
    [_, block, _] = MarkdownIt("commonmark").parse(f"one {quoted(first)}\n[2] {quoted(second)}")
    assert "softbreak" in [token.type for token in block.children or ()]


@given(TEXTS, TEXTS, TEXTS)
def test_each_source_has_its_own_lines_and_marks(id: str, title: str, text: str) -> None:
    passage = Passage("x" + id, title, text + "x", (text + "x",))
    hit = Hit(passage, 1.0, 1, Reason("named", title, None, (text,)))
    lines = shown(hit, [hit]).split("\n")
    for line, start in zip(lines, ("id: x", "title:", "reason: the question names it", "text: "), strict=True):
        assert line.startswith(start)
        assert not _MARK.search(line)
    assert unquote(lines[0].removeprefix("id: ")) == "x" + id  # as it is read
    item = {"passage_id": id, "title": title, "text": text}
    content, annotations = cited({"answer": "x" + text, "guess": text, "evidence": [item, item]}, "http://localhost/")
    answer, _, *sources = content.split("\n")
    assert [len(_MARK.findall(answer)), *(_MARK.findall(each) for each in sources)] == [2, ["["], ["["]]
    assert len(annotations) == len(sources) == 2
    for told in (content, shown(hit, [hit])):
        blocks = MarkdownIt("commonmark").parse(told)
        found = {token.type for block in blocks for token in (block, *(block.children or ()))}
        assert not found & {"html_block", "html_inline", "link_open", "image"}
    assert len(hit_lines("x", [hit])) == 2
    assert all(line.plain.isprintable() for line in hit_lines("x", [hit]))
    shown_cells = [cell for column in evidence_table([Evidence(passage, 0)]).columns for cell in column.cells]
    assert len(shown_cells) == 3
    assert all(str(cell).isprintable() for cell in shown_cells)
    assert next(run_lines("q", ["x" + id])).count("\n") == 1
