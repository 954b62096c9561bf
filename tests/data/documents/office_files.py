"""Writes small PDF and Word files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

_PER_PAGE = 50  # lines
_WIDTH = 90  # characters
_MARKS = re.compile(rb"([_^])\{(\d+)\}")
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
    lines = [line for paragraph in paragraphs for line in [*_wrapped(paragraph), ""]]
    pages = [lines[at : at + _PER_PAGE] for at in range(0, len(lines), _PER_PAGE)] or [[]]
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>"
        % (len(pages), b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(pages)))),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages, 1):
        shown = [header, *page, str(number)] if header and number > 1 else page
        text = b"".join(b"(%s) Tj T*\n" % _MARKS.sub(_small, _escaped(line)) for line in shown)
        content = b"BT /F1 10 Tf 12 TL 50 780 Td\n" + text + b"ET"
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (3 + 2 * number)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    out = bytearray(b"%PDF-1.4\n")
    places = list[int]()
    for number, written in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, written)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    path.write_bytes(
        bytes(out)
        + b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
        + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    )


def _small(mark: re.Match[bytes]) -> bytes:
    return b") Tj /F1 6 Tf %d Ts (%s) Tj /F1 10 Tf 0 Ts (" % (4 if mark[1] == b"^" else -2, mark[2])


def _wrapped(paragraph: str) -> list[str]:
    lines = [""]
    for word in paragraph.split():
        if len(lines[-1]) + len(word) > _WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def _escaped(line: str) -> bytes:
    for mark in "\\()":
        line = line.replace(mark, f"\\{mark}")
    return line.encode("cp1252", "replace")


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
