"""The spans of a line that could be an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.engines.lexical.spans import SPAN_KINDS, candidate_spans


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The film was shot by Robby Müller in Salem, Oregon.", ["Robby Müller", "Salem, Oregon", "Salem", "Oregon"]),
        ("It opened on 4 May 1932.", ["4 May 1932", "1932"]),
        ("It ran from 1969 to 1974.", ["1969 to 1974", "1969", "1974"]),
        ("The bridge is 300 metres long.", ["300", "300 metres"]),
        ("He was a professor of physics.", ["professor", "physics", "professor of physics"]),
        ("She is an Austrian mezzo soprano.", ["Austrian", "mezzo soprano"]),
        ('He wrote "Slow Glass" in Ghent.', ["Slow Glass", '"Slow Glass"', "Ghent"]),
        ("It was founded by Ann Lee and Tom Fox.", ["Ann Lee", "Tom Fox", "Ann Lee and Tom Fox"]),
        ("She left the University of Ghent.", ["University of Ghent", "Ghent"]),
        ("It is known for garden tools, toys and lamps.", ["garden tools", "lamps", "garden tools, toys and lamps"]),
    ],
)
def test_candidates(line: str, expected: list[str]) -> None:
    assert set(expected) <= {span.text for span in candidate_spans(line)}


@given(st.text(max_size=200))
def test_candidates_stand_where_they_say(text: str) -> None:
    found = candidate_spans(text)
    assert all(text[span.start : span.end] == span.text and span.kind in SPAN_KINDS for span in found)
    assert len({(span.start, span.end) for span in found}) == len(found)
