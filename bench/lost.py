"""Which words of HTML files are not read, by the elements that they are in.

python -m bench.lost FOLDER... [--each 40]

All text that a browser may show is counted (lxml), but for scripts and styles. The share that is read is told, then the
elements that lose most words, each with an example: navigation should be there, and nothing else.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lxml import etree

from polyhop.data.documents.convert import convert
from polyhop.data.documents.html import Unreadable
from polyhop.data.text import clean

_WORD = re.compile(r"\w+")


def texts(root: Any) -> Iterator[tuple[str, str]]:
    """The texts of a page, each with the outermost element that a class or id names, and the tags below it."""
    for element in root.iter("*"):
        if next(element.iterancestors("script", "style", "template"), None) is None:
            if element.tag not in ("script", "style", "template") and element.text:
                yield _place(element), element.text
            if element.tail and element.getparent() is not None:
                yield _place(element.getparent()), element.tail


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text))} "


def _place(element: Any) -> str:
    names = [element.tag]
    for outer in element.iterancestors():
        if len(names) == 3 or outer.tag in ("html", "body"):
            break
        mark = outer.get("class") or outer.get("id") or outer.get("role")
        names.append(f"{outer.tag}.{mark.split()[0]}" if mark else outer.tag)
    return " < ".join(names)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--each", type=int, default=1, help="read every so many files only")
    options = parser.parse_args(arguments)
    lost, examples, files = Counter[str](), defaultdict[str, Counter[str]](Counter), 0
    shown = kept = 0
    for folder in options.folders:
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".html", ".htm", ".xhtml"))
        for path in paths[:: options.each]:
            root = etree.HTML(path.read_bytes())
            try:
                text = convert(path)
            except Unreadable as error:
                print(f"{path}: {error}")
                continue
            if root is None:
                continue
            files += 1
            read = _words(" ".join([text.title, *(line.text for line in text.lines)]))
            for place, written in texts(root):
                words = _words(clean(written))
                shown += len(words.split())
                if words in read:
                    kept += len(words.split())
                elif words.strip():
                    lost[place] += len(words.split())
                    examples[place][" ".join(written.split())[:80]] += 1
    print(f"{files} files, {shown:,} words, {kept / max(shown, 1):.1%} read")
    for place, many in lost.most_common(60):
        print(f"{many:8,}  {place:60}  {examples[place].most_common(1)[0][0]}")


if __name__ == "__main__":
    main()
