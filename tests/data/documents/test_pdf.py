"""The text of PDF files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pypdf import PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject

from polyhop.data.documents.convert import convert
from polyhop.data.documents.html import Text, Unreadable
from polyhop.data.documents.split import Href

from .office_files import pdf_of, write_pdf


def texts(text: Text) -> list[str]:
    return [line.text for line in text.lines]


def pages_of(*contents: str, glyphs: dict[int, str] = {}) -> PdfWriter:  # noqa: B006
    """Pages, whose font has letters of one width, and says that a space is very wide."""
    differences = [entry for at, name in glyphs.items() for entry in (NumberObject(at), NameObject(name))]
    font = {
        "/BaseFont": NameObject("/Kiln"),
        "/FirstChar": NumberObject(32),
        "/LastChar": NumberObject(126),
        "/Widths": ArrayObject([NumberObject(1000 if n == 32 else 500) for n in range(32, 127)]),
        "/Encoding": DictionaryObject({NameObject("/Differences"): ArrayObject(differences)}),
    }
    return pdf_of(contents, font)


def test_pdf_pages(tmp_path: Path) -> None:
    sentence = "The ledger service is owned by Ada Berg, who lives in Tarn."
    write_pdf(
        tmp_path / "a.pdf",
        ["Ledger Guide", *[f"{sentence} It runs at night." for _ in range(60)]],
        header="Company 2020",
    )
    text = convert(tmp_path / "a.pdf")
    assert text.title == "Ledger Guide"
    assert set(texts(text)) == {sentence, "It runs at night."}
    assert {line.headings for line in text.lines} == {("page 1",), ("page 2",), ("page 3",)}


def test_headers_that_change_by_chapter_are_left_out(tmp_path: Path) -> None:
    """But not what pages that are not nearby have at their ends."""
    pages, ends = list[str](), "azcdzfgzijklm"
    for number, chapter in enumerate([*["Ash"] * 6, *["Clay"] * 5, "Glaze", "Heat"]):
        header = f"Chapter {chapter} {number + 5}" if number % 2 else "All of Kilns"
        lines = f"({header}) Tj 0 -20 Td (Text of page {number}.) Tj 0 -20 Td (Its end is {ends[number]}.) Tj"
        pages.append(f"BT /F1 12 Tf 72 700 Td {lines} ET")
    pages_of(*pages).write(tmp_path / "a.pdf")
    sentences = texts(convert(tmp_path / "a.pdf"))
    assert sentences[::2] == [f"Text of page {number}." for number in range(13)]
    assert sentences[1::2] == [f"Its end is {letter}." for letter in ends]


@pytest.mark.parametrize(
    ("first", "named", "title"),
    [
        ("The kiln\u2217", None, "The kiln"),
        ("The kiln", "Kilns", "Kilns"),
        ("The kiln", "kiln.dvi", "The kiln"),
        ("Contents", "Microsoft Word - kiln.docx", ""),
        ("NAME", None, ""),
    ],
)
def test_titles_of_a_pdf(tmp_path: Path, first: str, named: str | None, title: str) -> None:
    shown = first.replace("\u2217", "#")
    writer = pages_of(f"BT /F1 12 Tf 72 700 Td ({shown}) Tj 0 -14 Td (It burns.) Tj ET", glyphs={35: "/asteriskmath"})
    writer.add_metadata({"/Title": named} if named else {})
    writer.write(tmp_path / "a.pdf")
    assert convert(tmp_path / "a.pdf").title == title


@pytest.mark.parametrize(("height", "title"), [(700, "All of Kilns"), (750, "By Ada")])
def test_a_title_may_be_the_header_of_later_pages(tmp_path: Path, height: int, title: str) -> None:
    pages = list[str]()
    for number in range(6):
        place, shown, letter = (750, f"Text {number}", "abcdef"[number]) if number else (height, "By Ada", "x")
        lines = f"(All of Kilns) Tj 0 -50 Td ({shown}) Tj 0 -14 Td (It is {letter}.) Tj"
        pages.append(f"BT /F1 12 Tf 72 {place} Td {lines} ET")
    pages_of(*pages).write(tmp_path / "a.pdf")
    text = convert(tmp_path / "a.pdf")
    assert text.title == title
    assert "All of Kilns" not in " ".join(texts(text))


def test_words_that_a_typesetter_divided_are_joined(tmp_path: Path) -> None:
    rows = ("Title", "Each Tarn# Kiln#", "Ost re-", "quires Kiln-", "Ash of a con$rmed kind.")
    shown = " 0 -14 Td ".join(f"({row}) Tj" for row in rows)
    pages_of(f"BT /F1 12 Tf 72 700 Td {shown} ET", glyphs={35: "/hyphentwo", 36: "/fi"}).write(tmp_path / "a.pdf")
    lines = texts(convert(tmp_path / "a.pdf"))
    assert lines == ["Each Tarn\u2010 Kiln\u2010 Ost requires Kiln- Ash of a confirmed kind."]


def test_small_raised_digits_are_no_part_of_what_is_before(tmp_path: Path) -> None:
    text = "The Rosk mill^{12} burned in 1873^{2} and used 5 m^{3} of H_{2}O,^{3} and 10^{16} tons.^{4} It was old."
    write_pdf(tmp_path / "a.pdf", ["The History", text])
    assert [line.text for line in convert(tmp_path / "a.pdf").lines] == [
        "The Rosk mill burned in 1873² and used 5 m³ of H2O, and 10¹⁶ tons.",
        "It was old.",
    ]


def test_links_of_a_pdf(tmp_path: Path) -> None:
    writer = pages_of(
        "BT /F1 12 Tf 72 700 Td (Heat is in ) Tj ET BT 222 700 Td (the guide) Tj ET BT 322 700 Td ( to all.) Tj ET "
        "BT 72 680 Td (More of it is elsewhere.) Tj ET"
    )
    writer.add_annotation(0, Link(rect=(222, 695, 300, 715), url="guide.pdf#page=2"))
    writer.add_annotation(0, Link(rect=(400, 10, 500, 20), url="https://example.org/x"))  # of a picture
    writer.add_annotation(0, Link(rect=(72, 675, 100, 690), target_page_index=0))
    writer.write(tmp_path / "a.pdf")
    first, second = convert(tmp_path / "a.pdf").lines
    assert first.links == (
        Href(0, "https://example.org/x", "https://example.org/x"),
        Href(8, "guide.pdf#page=2", "the guide"),
    )
    assert second.links == ()


def test_damaged_pages_are_told(tmp_path: Path) -> None:
    writer = pages_of(
        "BT /F1 10 Tf 50 700 Td (The kiln is hot.) Tj ET",
        f"BT /F1 10 Tf 50 700 Td (The mill is cold.) Tj ET {'q Q ' * 300}",
    )
    for page in writer.pages:
        page.compress_content_streams()
    out = io.BytesIO()
    writer.write(out)
    whole = out.getvalue()
    second = whole.rindex(b"stream\nx") + 9
    for content, lost in ((whole, ""), (whole[:second] + b"x" * 20 + whole[second + 20 :], "1 part of it cannot be")):
        (tmp_path / "a.pdf").write_bytes(content)
        text = convert(tmp_path / "a.pdf")
        assert texts(text)[:1] == ["The kiln is hot."]
        assert text.lost[: len(lost) or None] == lost
    assert len(texts(text)) == 1


@pytest.mark.parametrize(
    ("password", "reason"), [(None, "no text in it: scanned pages need OCR first"), ("secret", "needs a password")]
)
def test_pages_without_text_and_without_a_key(tmp_path: Path, password: str | None, reason: str) -> None:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    if password:
        writer.encrypt(password, "owner", algorithm="AES-256")
    writer.write(tmp_path / "a.pdf")
    with pytest.raises(Unreadable, match=reason):
        convert(tmp_path / "a.pdf")
