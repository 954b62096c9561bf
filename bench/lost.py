"""Which words of files are not read.

python -m bench.lost FOLDER... [--every 40]

A file's words are compared with those that another, plain extraction has: lxml for HTML (all text that a browser may
show, but for scripts and styles), the texts of the XML of Word files and books, poppler's pdftotext for PDF, the cells
of notebooks, and the file itself for the others, with its markup and its addresses. The share that is read is told by
format, then the files that lose most, with words of them; of HTML also the elements that lose most, each with an
example: navigation should be there, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lxml import etree

from polyhop.data.documents.convert import convert
from polyhop.data.documents.html import Unreadable
from polyhop.data.files import FORMATS
from polyhop.data.text import clean

_WORD = re.compile(r"[^\W_]+")
_PARTS = re.compile(r"word/(?:document|footnotes|endnotes|comments)\.xml|.*\.x?html?")  # of Word files and books
_WORST = 10


def written(path: Path) -> str:
    """The text of a file, by a plain extraction."""
    match path.suffix.lower():
        case ".pdf":
            command = ["pdftotext", "-q", str(path), "-"]
            return subprocess.run(command, capture_output=True, check=False, timeout=60).stdout.decode(
                "utf-8", "replace"
            )
        case ".docx" | ".epub":
            texts = list[str]()
            with zipfile.ZipFile(path) as archive:
                for name in filter(_PARTS.fullmatch, archive.namelist()):
                    root = etree.fromstring(archive.read(name), etree.XMLParser(recover=True, resolve_entities=False))
                    texts += [] if root is None else _paragraphs(root)
            return "\n".join(texts)
        case ".ipynb":
            cells = json.loads(path.read_bytes()).get("cells", [])
            return "\n".join("".join(cell.get("source", "")) for cell in cells)
        case suffix if FORMATS.get(suffix) == "html":
            root = etree.HTML(path.read_bytes())
            return "" if root is None else "\n".join(text for _, text in texts_of(root))
    return path.read_bytes().decode("utf-8", "replace")


def _paragraphs(root: Any) -> Iterator[str]:
    """The texts of the paragraphs of a document, without the field codes of Word."""
    word = "{*}t" if "wordprocessingml" in root.tag else "*"
    for paragraph in root.iter("{*}p", "{*}h1", "{*}h2", "{*}h3", "{*}li", "{*}td"):
        if word == "*":
            yield "".join(paragraph.itertext())
        else:
            texts = [part for part in paragraph.iter(word) if next(part.iterancestors("{*}p")) is paragraph]
            yield "".join(part.text or "" for part in texts if next(part.iterancestors("{*}Fallback"), None) is None)


def texts_of(root: Any) -> Iterator[tuple[str, str]]:
    """The texts of a page, each with the outermost element that a class or id names, and the tags below it."""
    for element in root.iter("*"):
        if next(element.iterancestors("script", "style", "template"), None) is None:
            if element.tag not in ("script", "style", "template") and element.text:
                yield _place(element), element.text
            if element.tail and element.getparent() is not None:
                yield _place(element.getparent()), element.tail


def _place(element: Any) -> str:
    names = [element.tag]
    for outer in element.iterancestors():
        if len(names) == 3 or outer.tag in ("html", "body"):
            break
        mark = outer.get("class") or outer.get("id") or outer.get("role")
        names.append(f"{outer.tag}.{mark.split()[0]}" if mark else outer.tag)
    return " < ".join(names)


def words_of(text: str) -> Counter[str]:
    return Counter(_WORD.findall(clean(text).casefold()))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="read every Nth file only")
    options = parser.parse_args(arguments)
    shares = defaultdict[str, list[tuple[float, int, str, str]]](list)
    unread, places, examples = Counter[str](), Counter[str](), defaultdict[str, Counter[str]](Counter)
    for folder in options.folders:
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in FORMATS and path.is_file())
        for path in paths[:: options.every]:
            try:
                shown = words_of(written(path))
                text = convert(path)
            except (Unreadable, OSError, ValueError, zipfile.BadZipFile, subprocess.TimeoutExpired) as error:
                unread[f"{path.suffix}: {str(error)[:70]}"] += 1
                continue
            read = words_of(" ".join([text.title, *(line.text for line in text.lines)]))
            lost = shown - read
            if shown:
                share = 1 - lost.total() / shown.total()
                most = " ".join(word for word, _ in lost.most_common(8))
                shares[path.suffix.lower()].append((share, shown.total(), str(path), most))
            if FORMATS[path.suffix.lower()] == "html":
                for place, part in texts_of(etree.HTML(path.read_bytes())):
                    if lost_here := (words_of(part) & lost).total():
                        places[place] += lost_here
                        examples[place][" ".join(part.split())[:80]] += 1
    for suffix, files in sorted(shares.items()):
        total = sum(count for _, count, *_ in files)
        print(f"{suffix}: {len(files)} files, {total:,} words, {sum(s * n for s, n, *_ in files) / total:.1%} read")
        for share, count, name, most in sorted(files)[:_WORST]:
            print(f"    {share:6.1%} of {count:6,}  {name}: {most}")
    for place, many in places.most_common(30):
        print(f"{many:8,}  {place:60}  {examples[place].most_common(1)[0][0]}")
    for problem, many in unread.most_common():
        print(f"{many:8,}  not read: {problem}")


if __name__ == "__main__":
    main()
