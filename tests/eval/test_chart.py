"""One drawing is a file on white and a part of a page in its colours."""

from __future__ import annotations

from polyhop.eval.chart import document, dot, inline, line, text

FORGED = 'a "var(--grid, #123456)" of somebody\'s </svg>'
PARTS = [line(0, 0, 1, 1), dot(1, 1, "var(--series-1, #3b528b)", FORGED), text(0, 0, FORGED, "start")]


def test_a_file_has_plain_colours() -> None:
    drawn = document(10, 20, PARTS)
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert 'stroke="#ddd"' in drawn
    assert 'fill="#3b528b"' in drawn
    assert 'fill="white"' in drawn


def test_a_part_of_a_page_has_the_colours_of_the_page() -> None:
    drawn = inline(10, 20, PARTS)
    assert 'stroke="var(--grid)"' in drawn
    assert 'fill="var(--series-1)"' in drawn
    assert "white" not in drawn


def test_texts_are_left_as_they_are() -> None:
    for drawn in (document(10, 20, PARTS), inline(10, 20, PARTS)):
        assert drawn.count("a &quot;var(--grid, #123456)&quot; of somebody&#x27;s &lt;/svg&gt;") == 2


def test_half_characters_do_not_spoil_a_page() -> None:
    assert "a?b" in inline(1, 1, [text(0, 0, "a\ud800b", "start")])
