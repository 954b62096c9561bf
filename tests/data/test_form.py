"""The form of a question: counts that do not see style, and names masked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.form import FEATURES, features, masked


def counts(question: str) -> dict[str, float]:
    return dict(zip(FEATURES, features(question), strict=True))


def test_what_is_counted() -> None:
    question = "Who is the wife of the director of the film that Élan's presenter saw in 1999, and when did he die?"
    found = {name: count for name, count in counts(question).items() if count}
    assert {name: found.pop(name) for name in ("words", "the")} == {"words": 21, "the": 3}
    twice = {name for name, count in found.items() if count == 2}
    assert twice == {
        *("wh words", "relative words", "auxiliaries", "of", "agents", "a relation of", "described relations"),
    }
    assert found.keys() - twice == {
        *("prepositions", "and", "makers", "kin", "works", "pronouns", "possessives", "possessed relations", "numbers"),
        *("nested of", "described by a clause", "asks inside", "commas", "begins with who"),
    }


@given(st.text())
def test_any_text_has_counts(text: str) -> None:
    found = features(text)
    assert len(found) == len(FEATURES)
    assert all(count >= 0 for count in found)
    assert isinstance(masked(text), str)


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("Where was the director of Solaris born?", "where was the director of @ born"),
        ("Who wrote The Sound and the Fury?", "who wrote @ and the @"),
        ("Who wrote War of the Worlds?", "who wrote @"),
        ('Who sang "Let it be"?', "who sang @"),
        ("Where was Hank Snow's wife born?", "where was @'s wife born"),
        ("Kafka was born in 1883 where?", "@ was born in @ where"),
        ("Are Lake Como and Lake Garda in Italy?", "are @ and @ in @"),
        ("who wrote emma", "who wrote emma"),
        ("", ""),
    ],
)
def test_names_are_masked(question: str, form: str) -> None:
    assert masked(question) == form
