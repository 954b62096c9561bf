"""Writes small PDF and Word files."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from textwrap import wrap
from zipfile import ZIP_DEFLATED, ZipFile

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject, PdfObject

_PER_PAGE = 50  # lines
_WIDTH = 90  # characters
_MARKS = re.compile(r"([_^])\{(\d+)\}")
_SPECIAL, _ESCAPED = re.compile(r"[\\()]"), r"\\\g<0>"
_NAMESPACE = "http://schemas.openxmlformats.org"
_TYPES = (
    f'<Types xmlns="{_NAMESPACE}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/></Types>'
)
_RELATIONS = (
    f'<Relationships xmlns="{_NAMESPACE}/package/2006/relationships"><Relationship Id="r" '
    f'Type="{_NAMESPACE}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)


def write_pdf(path: Path, paragraphs: Sequence[str], header: str = "") -> None:
    """Write a PDF of pages of text in Latin-1, with a header and the number of the page on all but the first. "^{2}" is
    raised, "_{2}" lowered."""
    lines = [line for paragraph in paragraphs for line in [*wrap(paragraph, _WIDTH), ""]]
    pages = [lines[at : at + _PER_PAGE] for at in range(0, len(lines), _PER_PAGE)] or [[]]
    contents = list[str]()
    for number, page in enumerate(pages, 1):
        shown = [header, *page, str(number)] if header and number > 1 else page
        text = "".join(f"({_MARKS.sub(_small, _SPECIAL.sub(_ESCAPED, line))}) Tj T*\n" for line in shown)
        contents.append(f"BT /F1 10 Tf 12 TL 50 780 Td\n{text}ET")
    font = {"/BaseFont": NameObject("/Helvetica"), "/Encoding": NameObject("/WinAnsiEncoding")}
    pdf_of(contents, font).write(path)


def pdf_of(contents: Sequence[str], font: Mapping[str, PdfObject]) -> PdfWriter:
    """A PDF with a page for each content, whose font F1 is of Type 1."""
    writer, whole, packed = PdfWriter(), PdfWriter(), io.BytesIO()
    named = {"/Type": NameObject("/Font"), "/Subtype": NameObject("/Type1"), **font}
    fonts = DictionaryObject({NameObject("/F1"): _dictionary(named)})
    for content in contents:
        page = writer.add_blank_page(595, 842)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(content.encode("cp1252", "replace"))
        page[NameObject("/Contents")] = stream
    writer.write(packed)
    whole.append(packed)  # which gives the streams numbers
    return whole


def _dictionary(values: Mapping[str, PdfObject]) -> DictionaryObject:
    return DictionaryObject({NameObject(name): value for name, value in values.items()})


def _small(mark: re.Match[str]) -> str:
    return f") Tj /F1 6 Tf {4 if mark[1] == '^' else -2} Ts ({mark[2]}) Tj /F1 10 Tf 0 Ts ("


def write_docx(path: Path, blocks: Sequence[tuple[str, str] | list[list[str]]]) -> None:
    """Write a Word file of blocks: a style ("Title", "Heading 1", "") and a text, or the rows of a table."""
    body = "".join(_table(block) if isinstance(block, list) else _paragraph(*block) for block in blocks)
    document = f'<w:document xmlns:w="{_NAMESPACE}/wordprocessingml/2006/main"><w:body>{body}</w:body></w:document>'
    names = sorted({block[0] for block in blocks if isinstance(block, tuple) and block[0]})
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{name.replace(" ", "")}"><w:name w:val="{name}"/></w:style>'
        for name in names
    )
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", _TYPES)
        file.writestr("_rels/.rels", _RELATIONS)
        file.writestr("word/document.xml", document)
        file.writestr(
            "word/styles.xml", f'<w:styles xmlns:w="{_NAMESPACE}/wordprocessingml/2006/main">{styles}</w:styles>'
        )


def _paragraph(style: str, text: str) -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style.replace(" ", "")}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def _table(rows: list[list[str]]) -> str:
    cells = ["".join(f"<w:tc>{_paragraph('', cell)}</w:tc>" for cell in row) for row in rows]
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"
