"""Plain text: headings, titles and terms, also of manual pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyhop.data.converters import convert

from .test_converters import texts, written


def test_words_that_a_typesetter_divided_are_joined(tmp_path: Path) -> None:
    source = "Each kiln re\u2010\n    quires a well-\n    known fuel (\u2010\n    peat) or LIG\u2010\n    NITE."
    found = texts(convert(written(tmp_path / "a.txt", source)))
    assert found == ["Each kiln requires a well-known fuel (\u2010 peat) or LIGNITE."]


@pytest.mark.parametrize("name", ["a.txt", "README"])
def test_underlined_headings_of_plain_text(tmp_path: Path, name: str) -> None:
    source = """
=========
The kiln
=========

It burns. Its parts
are two:
 * the hearth
 * the lid, which
   is heavy

Use
---
Fire it.

---%<--------------
fire --now
---%<--------------

At night
~~~~~~~~
Sleep.

Care
----

Name    Default
---------------
heat    900
a long line before it
----
"""
    text = convert(written(tmp_path / name, source))
    assert text.title == "The kiln"
    assert [(line.text, line.headings) for line in text.lines] == [
        *((each, ()) for each in ("It burns.", "Its parts are two:", "* the hearth", "* the lid, which is heavy")),
        *((each, ("Use",)) for each in ("Use:", "Fire it.", "fire --now")),
        *((each, ("Use", "At night")) for each in ("At night:", "Sleep.")),
        *((each, ("Care",)) for each in ("Care:", "Name Default", "heat 900 a long line before it")),
    ]
    assert [line.text for line in text.lines if line.is_heading] == ["Use:", "At night:", "Care:"]
    assert convert(written(tmp_path / name, "Before.\n\nUse\n===\nx")).title == ""


def test_releases_are_no_title(tmp_path: Path) -> None:
    parts = [(f"Kiln 1.{n} ({month} {n}, 2020)", f"It burns {n}.") for n, month in ((2, "June"), (1, "May"))]
    source = "\n".join(f"{name}\n{'=' * len(name)}\n{text}\n" for name, text in parts)
    text = convert(written(tmp_path / "NEWS", source))
    assert (text.title, [line.headings for line in text.lines]) == ("", [(name,) for name, _ in parts for _ in "12"])


def test_manual_pages_as_text(tmp_path: Path) -> None:
    source = """KILN(8)            Kiln Tools            KILN(8)

NAME
       kiln - fire clay

SEE ALSO
       lid(5)
NOT A HEADING
       WARNING
       is text.

Kiln 2.1           2026-01-02            KILN(8)
"""
    text = convert(written(tmp_path / "kiln.8.txt", source))
    assert (text.title, [(line.text, line.headings) for line in text.lines]) == (
        "KILN(8)",
        [
            *(("NAME:", ("NAME",)), ("kiln - fire clay", ("NAME",)), ("SEE ALSO:", ("SEE ALSO",))),
            ("lid(5) NOT A HEADING WARNING is text.", ("SEE ALSO",)),
        ],
    )


@pytest.mark.parametrize(
    ("first", "last", "title"),
    [
        ("FIRE POT(7)      Kiln Tools      FIRE POT(7)", "Kiln 2.1      2026      FIRE POT(7)", "FIRE POT(7)"),
        ("KILN.CONF(5)kiln.confKILN.CONF(5)", "Kiln 2.1      KILN.CONF(5)", "KILN.CONF(5)"),
        ("FIRE-THE-HOT-POTSfire-theFIRE-THE-HOT-POTS-NOW(1)", "FIRE-THE-HOT-POTS-NOW(1)", "FIRE-THE-HOT-POTS-NOW(1)"),
        (
            "FIRE THE HOT POTSKiln TFIREsTHE HOT POTS NOW(1)",
            "2.1   FIRE THE HOT POTS NOW(1)",
            "FIRE THE HOT POTS NOW(1)",
        ),
        ("It lights kiln(8).", "See kiln(8)", ""),
        ("kiln(8)", "", ""),
    ],
)
def test_titles_of_manual_pages(tmp_path: Path, first: str, last: str, title: str) -> None:
    text = convert(written(tmp_path / "a.txt", f"{first}\n\nNAME\n       fire\n\n{last}\n"))
    assert text.title == title
    assert not title or [line.text for line in text.lines] == ["NAME:", "fire"]


def test_what_is_indented_below_a_term_or_beside_it_explains_it(tmp_path: Path) -> None:
    source = """KILN(8)            Kiln Tools            KILN(8)

OPTIONS
   Fuel
       -k fuel, --keep=fuel (since 2.1)
              Keep the fuel. It burns.

              It may be

              peat   Dry. It is the
                     default.
              coal   Black.

              Not at night, as was said in:
                  the guide.
       A paragraph whose second line is indented by three columns
          goes on.

       1. An item
          goes on.

       -q     Be silent. Nothing is said,
              not even a warning.
       It is all.

FILES
       fire
"""
    text = convert(written(tmp_path / "kiln.8.txt", source))
    fuel = ("OPTIONS", "Fuel")
    keep = "-k fuel, --keep=fuel"
    assert [(line.text, line.headings, line.terms) for line in text.lines] == [
        ("OPTIONS:", ("OPTIONS",), ()),
        ("Fuel:", fuel, ()),
        ("-k fuel, --keep=fuel (since 2.1)", fuel, ()),
        *((said, fuel, (keep,)) for said in ("Keep the fuel.", "It burns.", "It may be")),
        *((said, fuel, (keep, "peat")) for said in ("peat Dry.", "It is the default.")),
        *((said, fuel, (keep,)) for said in ("coal Black.", "Not at night, as was said in: the guide.")),
        ("A paragraph whose second line is indented by three columns goes on.", fuel, ()),
        ("1. An item goes on.", fuel, ()),
        *((said, fuel, ("-q",)) for said in ("-q Be silent.", "Nothing is said, not even a warning.")),
        ("It is all.", fuel, ()),
        *((said, ("FILES",), ()) for said in ("FILES:", "fire")),
    ]
