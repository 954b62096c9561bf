"""The text of books (EPUB) and of Word files, both archives of XML."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from posixpath import dirname, normpath
from urllib.parse import unquote
from zipfile import ZipFile

from lxml import etree

from ..text import clean, count
from .decode import decoded_html
from .html import LONGEST_HEADING, Text, Unreadable, of_html
from .split import Line

_UNPACKED = 512 << 20  # bytes of what an archive contains
_WHOLE = re.compile(rb"</(?:\w+:)?(?:html|svg)\s*>", re.IGNORECASE)  # the end of a chapter
_TEXTS_OF_WORD = "word/document.xml", "word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"
_AS_HTML = {"p": "p", "tbl": "table", "tr": "tr", "tc": "td"}
_HEADING_STYLE = re.compile(r"(?:Title|[Hh]eading ?([1-6]))")


@contextmanager
def _archive(content: bytes) -> Iterator[ZipFile]:
    with ZipFile(io.BytesIO(content)) as parts:
        if sum(part.file_size for part in parts.infolist()) > _UNPACKED:
            raise Unreadable(f"it unpacks to more than {_UNPACKED >> 20} MB")
        yield parts


def of_epub(content: bytes) -> Text:
    """A book: its chapters in the order in which they are read, each below its title."""
    with _archive(content) as parts:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        container = etree.fromstring(parts.read("META-INF/container.xml"), parser)
        place = next(container.iter("{*}rootfile")).get("full-path")
        package = etree.fromstring(parts.read(place), parser)
        files = {item.get("id"): unquote(item.get("href")) for item in package.iter("{*}item")}
        names = [files[item.get("idref")] for item in package.iter("{*}itemref") if item.get("idref") in files]
        paths, members = [normpath(f"{dirname(place)}/{name}".lstrip("/")) for name in names], set(parts.namelist())
        contents = [parts.read(path) if path in members else b"" for path in paths]
    chapters = [of_html(decoded_html(content)) for content in contents]
    chapters_by_name = zip(names, contents, strict=True)
    damaged = [name for name, content in chapters_by_name if not _WHOLE.search(content.replace(b"\0", b""))]
    lost = f"{count(len(damaged), 'chapter')} of it cut off or missing, such as {clean(damaged[0])}" if damaged else ""
    titles = (element.text for element in package.iter("{http://purl.org/dc/elements/1.1/}title"))
    title = next(filter(None, titles), "")
    lines: list[Line] = []
    for chapter in chapters:
        above = (chapter.title,) if chapter.title and chapter.title != title else ()
        if above:
            lines.append(Line(f"{chapter.title}:", above, is_heading=True))
        for line in chapter.lines:
            links = tuple(  # to another file of the book: to another place in it
                link if ":" in link.target else link._replace(target=f"#{link.target.partition('#')[2]}")
                for link in line.links
            )
            if not any(link.kind == "contents" and link.target.startswith("#") for link in links):
                lines.append(line._replace(headings=(*above, *line.headings), links=links))
    return Text(" ".join(clean(title).split())[:LONGEST_HEADING], lines, lost=lost)


def of_docx(content: bytes) -> Text:
    from mammoth import convert_to_html, images

    lost = ""
    with _archive(content) as parts:
        try:
            markup = convert_to_html(
                io.BytesIO(content),
                style_map="p[style-name='Title'] => h1:fresh",
                convert_image=images.img_element(lambda image: {"src": ""}),
            ).value
        except Exception as error:  # a style, a link or a picture that it refers to is missing
            markup = "".join(_paragraphs(parts, name) for name in _TEXTS_OF_WORD if name in parts.namelist())
            if not markup:
                raise
            lost = f"styles and links of it: {type(error).__name__}, {clean(str(error))[:100]}"

    def headers(row: re.Match[str]) -> str:
        return row.group().replace("<td", "<th").replace("</td>", "</th>")

    # Word does not tell that the first row of a table is its header.
    text = of_html(re.sub(r"<table>(?:<tbody>)?<tr>.*?</tr>", headers, clean(markup), flags=re.DOTALL))
    if not text.lines:
        raise Unreadable("no text in it")
    return text._replace(lost=lost)


def _paragraphs(parts: ZipFile, name: str) -> str:
    """The paragraphs and tables of a part of a Word file as HTML, without what it refers to."""
    root = etree.fromstring(parts.read(name), etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    for gone in list(root.iter("{*}del", "{*}moveFrom", "{*}instrText", "{*}Fallback")):
        gone.getparent().remove(gone)
    for element in list(root.iter("{*}*")):
        tag = etree.QName(element).localname
        style = next(element.iterfind("{*}pPr/{*}pStyle"), None)
        heading = None if style is None else _HEADING_STYLE.fullmatch("".join(style.values()))
        element.text = element.text if tag == "t" else " " if tag in ("tab", "br") else ""
        element.tag = f"h{heading[1] or 1}" if heading else _AS_HTML.get(tag, "span")
        element.attrib.clear()
    return etree.tostring(root, encoding="unicode", method="html")
