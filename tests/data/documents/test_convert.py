"""Documents of every kind, and what is wrong with some."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.documents import convert as conversion
from polyhop.data.documents.convert import convert
from polyhop.data.documents.html import Text, Unreadable, of_html
from polyhop.data.documents.split import Document, Href, Line, split

from .office_files import write_docx


def texts(text: Text) -> list[str]:
    return [line.text for line in text.lines]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


MARKDOWN = """---
title: "The Handbook"
author: Ada Berg
tags: [a, b]
---
Intro with a [link](https://example.org/x "t") and `code`.

# On call

Tollgate is **on call**.

| Service | Owner |
|---------|:-----:|
| Ledger  | Ada   |
| Kiln    |       |

```python
def pay():
    return 1
```

## Leave
- 25 days
- [ ] ask first

> Quoted. <b>Bold</b><script>alert(1)</script>
"""


def test_markdown_is_parsed(tmp_path: Path) -> None:
    text = convert(written(tmp_path / "h.md", MARKDOWN))
    assert (text.title, text.metadata) == (
        "The Handbook",
        {"title": "The Handbook", "author": "Ada Berg", "tags": "[a, b]"},
    )
    assert texts(text) == [
        "Intro with a link and code.",
        "On call:",
        "Tollgate is on call.",
        "Service: Ledger; Owner: Ada.",
        "Service: Kiln.",
        "def pay():",
        "    return 1",
        "Leave:",
        "25 days",
        "[ ] ask first",
        "Quoted.",
        "Bold",
    ]
    assert [line.apart for line in text.lines] == [0] * 5 + [1] * 2 + [0] * 5
    assert text.lines[-1].headings == ("On call", "Leave")
    assert len(split(Document("h", text.title, text.lines))) == 3  # code apart


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        (
            "<tr><th rowspan=2>Name<th colspan=2>Reach<tr><th>Town<th>Phone"
            "<tr><td rowspan=2>Ada<td>Tarn<td>1<tr><td>Vale<td>2",
            ["Name: Ada; Reach Town: Tarn; Reach Phone: 1.", "Name: Ada; Reach Town: Vale; Reach Phone: 2."],
        ),
        (
            "<tr><td rowspan=3>Ada<td>1<tr><td>2<tr><td>3<tr><td>Otto<td>4",
            ["Ada; 1.", "Ada; 2.", "Ada; 3.", "Otto; 4."],
        ),
        ("<thead><tr><td>A<td>B<tbody><tr><td>1<td>2", ["A: 1; B: 2."]),
        ("<tr><th>Ada<td>Tarn<tr><th>Otto<td>Vale", ["Ada: Tarn.", "Otto: Vale."]),
        ("<thead><tr><th>Function<tbody><tr><td>a(x)<p>Does it.", ["Function", "a(x)", "Does it."]),
        ("<tr><td><p>One.<p>Two.<td><p>Three.", ["One.", "Two.", "Three."]),
        ("<tr><td><table><tr><th>A<th>B<tr><td>1<td>2</table><td>Beside", ["A: 1; B: 2.", "Beside"]),
        ("<tr><td>a<td><pre>if x:\n    y</pre>", ["a", "if x:", "    y"]),
        (
            f"<tr><th>Name<th>Default<th>Use<tr><td>heat<td>900<td>{'w' * 301}<tr><td>ash<td>no<td>x",
            ["Name: heat; Default: 900.", f"Use: {'w' * 301}", "Name: ash; Default: no; Use: x."],
        ),
        ("<tr><td rowspan=x colspan=-1>a<td>b<tr><td>c<td>d", ["a; b.", "c; d."]),
        (  # code in a cell leaves the table one
            "<thead><tr><th>Option<th>Default<th>Use<tbody><tr><td>heat<td>900<td><pre>fire(\n  900)</pre>",
            ["Option: heat; Default: 900.", "Use:", "fire(", "  900)"],
        ),
    ],
)
def test_tables_of_pages(table: str, lines: list[str]) -> None:
    assert texts(of_html(f"<table>{table}</table>")) == lines


KEPT = "<p>Kilns are hot.</p>"


@pytest.mark.parametrize(
    "navigation",
    [
        "<nav>Home</nav>",
        "<div role=navigation><a href=x>Kilns</a></div>",
        "<div class=navheader><table><tr><th>Kiln<tr><td><a href=a>Prev</a><td><a href=b>Next</a></table></div>",
        "<div class=header><p>Next: <a href=b rel=next>Ash</a>, Previous: <a href=a rel=prev>Tarn</a>, "
        "Up: <a href=c>Top</a> [<a href=t>Contents</a>][<a href=i>Index</a>]</p></div>",
        "<p><a href=a>« Previous</a> | <a href=b>Next →</a></p>",
        "<p><a href=a>&lt;-previous</a><a href=b>next-&gt;</a></p>",
        '<div class="md-sidebar x"><ul><li><a href=a>Ash</a></ul></div>',
        "<p><a href='#a'>A</a> | <a href='#b'>B</a> | <a href='#c'>C</a></p>",
        "<aside><p>Also:</p><a href=a>The ash of the kiln</a></aside>",
        "<table class=highlighttable><tr><td class=linenos><pre>1\n2</pre></table>",
    ],
)
def test_navigation_is_left_out(navigation: str) -> None:
    for page in (navigation + KEPT, KEPT + navigation):
        lines = of_html(f"<title>Kiln</title><body>{page}").lines
        assert [line.text for line in lines] == ["Kilns are hot."]
        assert not any(line.links for line in lines)


LONG = "This is a sentence of a page. "
ODD = "".join(map(chr, (*range(1, 9), 11, *range(14, 32), 0xFFFE, 0xFFFF)))
ODD += "".join(f"&#{ord(character)};&#x{ord(character):X};" for character in ODD)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        # what looks like navigation
        ("<p>See the <a href=next.html>next</a> page.</p>", ["See the next page."]),
        ("<ul><li><a href=a>Index</a> of <a href=b>heat</a> in kilns</ul>", ["Index of heat in kilns"]),
        ("<table><tr><td><a href=x>next</a><td>Gives the next one.</table>", ["next; Gives the next one."]),
        ("<aside class=admonition><p>Note</p><p>It is hot.</p></aside>", ["Note: It is hot."]),
        ("<div><p>Note<pre>hot</pre></div>", ["Note:", "hot"]),
        ("<main><h1>T</h1>It burns.</main><aside>By Ada.</aside>", ["It burns."]),
        ("<main><h1>T</h1>It burns.<aside>Use oil.</aside></main>", ["It burns.", "Use oil."]),
        (
            "<p>It burns.<aside class=footnote><a href=https://a.org>https://a.org</a></aside>",
            ["It burns.", "https://a.org"],
        ),
        ("<p>It burns.<aside class=sidebar>Use oil.</aside>", ["It burns.", "Use oil."]),
        # what opens a part of the page, and what acts on it
        ("<h2><button>How hot?</button></h2><p>900.", ["How hot?", "900."]),
        ("<h2>Heat <button>Copy</button></h2><p>900.", ["Heat:", "900."]),
        ("<button aria-expanded=false>How hot is it?</button><p>900.", ["How hot is it?", "900."]),
        ("<button aria-expanded=false>Menu</button><button><h3>Ash</h3></button><p>Grey.", ["Ash:", "Grey."]),
        ("<p>It burns.<footer>Imprint</footer>", ["It burns."]),
        ("<p>It<span epub:type=pagebreak>12</span> burns.", ["It burns."]),
        # lists and lines of links to their own page that say something
        (
            "<ul>" + "<li><a href='#a'>heat</a> - how hot the kiln is" * 11 + "</ul>",
            ["heat - how hot the kiln is"] * 11,
        ),
        (
            "<p>The options <a href='#a'>HEAT_OF_THE_KILN</a>, <a href='#b'>ASH_TO_THE_GROUND</a> and "
            "<a href='#c'>DUST_OF_ALL_THE_OVENS_OF_IT</a> are set.",
            ["The options HEAT_OF_THE_KILN, ASH_TO_THE_GROUND and DUST_OF_ALL_THE_OVENS_OF_IT are set."],
        ),
        (
            "<p>Jump from here: <a href='#a'>HEAT_OF_KILN</a>, <a href='#b'>ASH_TO_GROUND</a>, "
            "<a href='#c'>DUST_OF_OVENS</a>.<p>x",
            ["x"],
        ),
        # marks of notes, and other superscripts
        ("<p>Ada<sup><a href=#n1>1</a></sup> in 1873<a href=#n2><sup>[2]</sup></a>.", ["Ada in 1873."]),
        ("<p>Ada<a class=footnote-ref href=#n>*</a> left.", ["Ada left."]),
        ("<aside role=doc-footnote><span class=label>[1]</span><p>By Ada.</aside>", ["By Ada."]),
        (
            "<p>10<sup>6</sup> t, 5 m<sup>2</sup>, x<sup>n</sup>, 1<sup>st</sup>, Lode<sup>TM</sup>, H<sub>2</sub>O",
            ["10⁶ t, 5 m², xⁿ, 1st, Lode TM, H2O"],
        ),
        ("<p>Ada <sup>1</sup> left <a href=x><sup>by night</sup></a>.", ["Ada 1 left by night."]),
        # tables for layout, and tag soup
        (
            f"<table><tr><td><h2>Hi</h2>{LONG * 20}<td>Aside</table>",
            ["Hi:", *[LONG.strip()] * 20, "Aside"],
        ),
        ("<p>a</b></div></table>b<td>c</tr><table>d<tr>e", ["ab", "c", "d", "e"]),
        ("<h1>T</h1><main></main><p>Outside of an empty main part.", ["Outside of an empty main part."]),
        ("<h1>T</h1><p>It burns.<article><h3>fire()</h3><p>Burns.</article>", ["It burns.", "fire():", "Burns."]),
        ("<p>Beside.<article><h1>T</h1><p>It burns.</article><article>Out.</article>", ["It burns.", "Out."]),
        # characters that XML has not, and those that nobody sees
        (f"<table><tr><th>Heat<th>Kiln<tr><td>9{ODD}0<td>A</table>", ["Heat: 9 0; Kiln: A."]),
        ("<p>max&#8203;_<wbr>wal&shy;_&#xfeff;senders", ["max_wal_senders"]),
        ("<div class='document toc'><h1>T</h1><p>It burns.</div>", ["It burns."]),
        ("<form><h1>T</h1><p>It burns.</form><form><p>Find <input></form>", ["It burns."]),
        ("<h1>T</h1><h2 id=a>Ash</h2><ul><li>Grey.<li>Fine.</ul><h2>Heat</h2>", ["Ash:", "Grey.", "Fine.", "Heat:"]),
        # hostile: quadratic time would take minutes
        *((markup, ["x"]) for markup in ("<div>" * 1_000 + "x", "<b>" * 1_000 + "x" + "</b>" * 1_000)),
        ("<script>" + "a<b" * 400_000 + "</script>x", ["x"]),
        ("<p>x<div>" + "<div>" * 300 + "<p><a>next</a></p>" * 10_000, ["x"]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_read_of_a_page(content: str, lines: list[str]) -> None:
    assert texts(of_html(f"<title>Kiln</title><body>{content}")) == lines


def test_a_heading_is_above_its_part_of_the_page_and_named_once() -> None:
    page = """<title>2.1. Heat</title><body><div class=chapter><div class=title><h2>2.1. Heat</h2></div>
    <p>It is hot.</p><div class=sect><div><h3>2.1.1. Ash</h3></div><p>Grey.</p>
    <div class=note><h3>Note</h3><p>Careful.</p><pre>wait</pre></div><p>Light.</p>
    <div class=box><h4>Kinds</h4><p>Two.</p><h4>Uses</h4><p>One.</p></div>
    <p>Still ash.</p><h4>2.1.1. Ash</h4><p>More.</p></div>
    <p>Below.</p></div>"""
    assert [(line.text, line.headings) for line in of_html(page).lines] == [
        ("It is hot.", ()),
        *((text, ("2.1.1. Ash",)) for text in ("2.1.1. Ash:", "Grey.", "Note: Careful.", "wait", "Light.")),
        *((text, ("2.1.1. Ash", "Kinds")) for text in ("Kinds:", "Two.")),
        *((text, ("2.1.1. Ash", "Uses")) for text in ("Uses:", "One.")),
        *((text, ("2.1.1. Ash",)) for text in ("Still ash.", "More.")),
        ("Below.", ()),
    ]


PARAGRAPH = "It is the heat to which the kiln is fired before any of the pots are put in. "


def test_a_term_stays_with_its_definition() -> None:
    page = f"""<title>T</title><p>{PARAGRAPH * 6}<dl><dt id=h>heat (<a href=d.html>default</a>: 900)
    <dd><p>{PARAGRAPH * 3}<dt>-a</dt><dt>--ash<dd>{PARAGRAPH * 5}<dl><dt>Why?<dd>Dust.</dl><dt>none</dl><p>After."""
    text = of_html(page)
    assert [(line.text, line.is_term) for line in text.lines if line.text != PARAGRAPH.strip()] == [
        *((term, True) for term in ("heat (default: 900)", "-a", "--ash", "Why?")),
        *(("Dust.", False), ("none", True), ("After.", False)),
    ]
    assert [line.terms for line in text.lines if not line.text.startswith("It is")] == [
        *[(), (), ("-a",), ("-a", "--ash"), ("-a", "--ash", "Why?"), (), ()],
    ]
    assert (text.lines[6].links, text.lines[6].anchors) == ((Href(5, "d.html", "default"),), ("h",))
    for most in range(30, 120, 5):
        for passage in split(Document("t", "T", text.lines), most):
            assert passage.sentences[-1] not in ("heat (default: 900)", "-a", "--ash", "Why?")
            assert passage.place
            at = passage.place.sentence
            goes_on = () if text.lines[at].is_term else text.lines[at].terms
            assert passage.place.headings == goes_on
    passages = split(Document("t", "T", text.lines), 40)
    assert {"T > heat", "T > -a > --ash"} <= {passage.heading for passage in passages}


def test_see_also_among_terms_is_said_of_its_own_links() -> None:
    page = "<dl><dt>See also<dd>The <a href=a>ash</a> of it.<dt>heat<dd>The <a href=b>kiln</a> is hot.</dl>"
    assert [(link.text, link.kind) for line in of_html(page).lines for link in line.links] == [
        *(("ash", "see"), ("kiln", "text")),
    ]


PIECES = st.sampled_from("< > / &nbsp; p td tr table h1 pre nav main <td> <tr> </h1> x".split())


@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_html_fails(markup: str) -> None:
    for line in of_html(markup).lines:
        assert line.text


LINKS = """<title>Kiln</title><main><h1 id=top>Kiln</h1>
<p>Kiln uses <a href="ledger.html#pay">the <b>ledger</b></a>. <span id=mid></span>It calls
<a href=tarn.html><img alt="Tarn"></a><a name=old></a> and <a href="mailto:a@example.org">Ada</a>.
<h2 id=own>Owners<a href="#own">¶</a></h2>
<p><a href=ada.html>Ada Berg. She owns it</a> <a href=empty.html></a>
<ul><li><a href=a.html>One</a><li><a href=b.html>Two</a><li><a href=c.html>Three</a>, ok</ul>
<table><tr><th>Service<th>Owner<tr id=row><td>The kiln<td>is of <a href=otto.html>Otto</a></table>
<div class=box><p>See also</p><p>The <a href=vale.html>vale</a>.</p></div><p>A <a href=last.html>last one</a>.
<h3>Related topics</h3><p><a href=t.html>Tollgate</a></main>"""


def test_links_and_anchors_stand_where_they_are() -> None:
    text = of_html(LINKS)
    assert [(line.text, [(*link,) for link in line.links], line.anchors) for line in text.lines] == [
        ("Kiln uses the ledger.", [(8, "ledger.html#pay", "the ledger", "text")], ("top",)),
        (
            "It calls and Ada.",
            [(7, "tarn.html", "Tarn", "text"), (10, "mailto:a@example.org", "Ada", "text")],
            ("mid", "old"),
        ),
        ("Owners:", [], ("own",)),
        ("Ada Berg.", [(0, "ada.html", "Ada Berg. She owns it", "text")], ()),
        ("She owns it", [], ()),
        ("One", [(0, "a.html", "One", "contents")], ()),
        ("Two", [(0, "b.html", "Two", "contents")], ()),
        ("Three, ok", [(0, "c.html", "Three", "contents")], ()),
        ("Service: The kiln; Owner: is of Otto.", [(26, "otto.html", "Otto", "text")], ("row",)),
        ("See also: The vale.", [(11, "vale.html", "vale", "see")], ()),
        ("A last one.", [(1, "last.html", "last one", "text")], ()),
        ("Related topics:", [], ()),
        ("Tollgate", [(0, "t.html", "Tollgate", "see")], ()),
    ]
    [passage] = split(Document("docs/kiln.html", text.title, text.lines))
    assert passage.links[0] == ("docs/ledger.html#pay", "the ledger", 0, "text")
    assert [link.sentence for link in passage.links] == [0, 1, 3, 5, 6, 7, 8, 9, 10, 12]  # no address of mail
    assert passage.anchors == ("top", "mid", "old", "own", "row")


def test_roles_of_markdown_are_read(tmp_path: Path) -> None:
    source = """Call {meth}`~kiln.Kiln.fire` as {doc}`the heat <guide/heat>` and {ref}`glazes
<glazes>` say, {py:func}`!cool` too. Not roles: {"a": `b`}, {fire} `cold`, `{ref}`.
"""
    first, second = convert(written(tmp_path / "a.md", source)).lines
    assert first.text == "Call kiln.Kiln.fire as the heat and glazes say, cool too."
    assert second.text == 'Not roles: {"a": b}, {fire} cold, {ref}.'
    assert [link[1:3] for link in first.links] == [("guide/heat", "the heat")]


def test_admonitions_and_tabs_of_markdown(tmp_path: Path) -> None:
    source = """# T

!!! info "Limits of *kilns*"

    Kilns [glow](g.md).

=== "Linux"

    Use fire.

1. First

    ??? note
        Bare.
"""
    lines = convert(written(tmp_path / "a.md", source)).lines
    assert [line.text for line in lines] == [
        *("Limits of kilns", "Kilns glow.", "Linux", "Use fire.", "First", "Note: Bare."),
    ]
    assert lines[1].links == (Href(5, "g.md", "glow"),)


def test_markdown_with_components(tmp_path: Path) -> None:
    source = """{/* Made by a program.

Do not edit. */}

import Kiln from './kiln'
import {
  Heat,
} from "@/heat";
export const most = {
  heat: 1300,
}

# Kilns

A kiln {/* or two */} burns. Type `{/* this */}`.

```jsx
{/* In code. */}
import Kiln from './kiln'
```

<Heat>

Import 'glazes' first.

</Heat>

import the second one from 'kiln'.
"""
    text = convert(written(tmp_path / "a.mdx", source))
    assert (text.title, texts(text)) == (
        "Kilns",
        [
            *("A kiln burns.", "Type {/* this */}.", "{/* In code. */}", "import Kiln from './kiln'"),
            *("Import 'glazes' first.", "import the second one from 'kiln'."),
        ],
    )
    prose = written(tmp_path / "b.md", "import the second one from 'kiln', then\n\nexport it.")
    assert texts(convert(prose)) == ["import the second one from 'kiln', then", "export it."]


def test_links_of_markdown(tmp_path: Path) -> None:
    source = """# T

A [link](b.md "t"), [one][ref], [ref], <https://example.org/x>, [[Page Name]] and [[Other|words]].
Not one: `[[code]]`, [[1]](c.md). <a href="raw.html">Raw</a> and [Hugo]({{< ref "d.md#x" >}}).

[ref]: ../r.md
"""
    [line, other, last] = convert(written(tmp_path / "a.md", source)).lines
    assert [link[1:3] for link in line.links] == [
        *(("b.md", "link"), ("../r.md", "one"), ("../r.md", "ref")),
        *(("https://example.org/x",) * 2, ("[[Page Name]]", "Page Name"), ("[[Other]]", "words")),
    ]
    assert [link[1:3] for link in other.links] == [("c.md", "[1]")]
    assert [link[1:3] for link in last.links] == [("raw.html", "Raw"), ("d.md#x", "Hugo")]


def test_headings_of_markdown_have_ids(tmp_path: Path) -> None:
    source = "# T\n\n## The *first* one {#one .c}\n\nA.\n\n## {x} `--dry-run=N`\n\nB.\n\nThird {: #three }\n---\n\nC"
    lines = convert(written(tmp_path / "a.md", source)).lines
    assert [(line.text, line.anchors) for line in lines if line.is_heading] == [
        ("The first one:", ("t", "the-first-one", "one")),
        ("{x} --dry-run=N:", ("x---dry-runn",)),
        ("Third:", ("third", "three")),
    ]


def bare(name: str) -> bytes:
    """A zip file with one part that says nothing."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr(name, "<a/>")
    return out.getvalue()


BOMB = io.BytesIO()
with zipfile.ZipFile(BOMB, "w") as bomb:
    bomb.writestr("word/document.xml", b" ")
    bomb.filelist[0].file_size = 600 << 20  # as its directory says


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.pdf", b"%PDF-1.4 nonsense", "damaged"),
        ("a.docx", b"PK\x03\x04nonsense", "no .docx file, or encrypted"),
        ("a.docx", BOMB.getvalue(), "it unpacks to more than 512 MB"),
        ("a.epub", BOMB.getvalue(), "it unpacks to more than 512 MB"),
        ("a.md", b"a\x00b", "a binary file"),
        ("a.txt", "Привет, мир".encode("cp1251"), "not UTF-8 (byte 1): save it as UTF-8"),
        ("a.ipynb", b'{"cells": 1}', "not a notebook"),
        ("a.ipynb", b'{"cells": [1]}', "1 cell of it damaged"),
        ("a.ipynb", b"[" * 100_000, "not a notebook"),
        ("a.txt", b" \n", "empty"),
        ("a.txt", b"", "empty"),
        ("a.epub", bare("META-INF/container.xml"), "damaged, or no .epub file"),
        ("a.csv", b"a\n" + b"x" * (5 << 20), "not a table"),
        ("a.html", b"<div>" * 100_000 + b"x", "elements are nested too deep"),
        ("a.md", b">" * 5_000 + b" x", "too large or nested too deep"),
    ],
    ids=range(15),
)
def test_what_cannot_be_read_has_a_reason(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=re.escape(reason)):
        convert(written(tmp_path / name, content))


def test_depth_and_number_of_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = "".join(f"{'  ' * n}- level {n}\n" for n in range(40))
    assert "level 39" in " ".join(texts(convert(written(tmp_path / "a.md", levels))))
    monkeypatch.setattr(conversion, "_MOST_LINES", 2)
    with pytest.raises(Unreadable, match="more than 2 sentences: split it"):
        convert(written(tmp_path / "a.csv", "a\nx\ny\nz"))


def test_word_files(tmp_path: Path) -> None:
    blocks: list[tuple[str, str] | list[list[str]]] = [
        *(("Title", "Team Guide"), ("", "We build things."), ("heading 1", "On call"), ("", "Tollgate is on call.")),
        [["Service", "Owner"], ["Ledger", "Ada Berg"], ["كتاب", "أحمد"]],
    ]
    write_docx(tmp_path / "a.docx", blocks)
    text = convert(tmp_path / "a.docx")
    assert text == Text(
        "Team Guide",
        [
            Line("We build things."),
            Line("On call:", ("On call",), True),
            Line("Tollgate is on call.", ("On call",)),
            Line("Service: Ledger; Owner: Ada Berg.", ("On call",)),
            Line("Service: كتاب; Owner: أحمد.", ("On call",)),
        ],
    )


def test_a_broken_part_of_a_word_file_costs_itself(tmp_path: Path) -> None:
    blocks: list[tuple[str, str] | list[list[str]]] = [
        *(("Title", "Team Guide"), ("heading 1", "On call"), ("", "Tollgate & <Kiln> are on call.")),
        [["Service", "Owner"], ["Ledger", "Ada Berg"]],
    ]
    write_docx(tmp_path / "a.docx", blocks)
    whole = convert(tmp_path / "a.docx")
    with zipfile.ZipFile(tmp_path / "a.docx") as parts:
        contents = {name: parts.read(name) for name in parts.namelist()}
    note = (
        b'<w:p><w:r><w:footnoteReference w:id="9"/></w:r><w:del><w:r><w:delText>Gone.</w:delText></w:r></w:del></w:p>'
    )
    contents["word/document.xml"] = contents["word/document.xml"].replace(b"</w:body>", note + b"</w:body>")
    contents["word/styles.xml"] = contents["word/styles.xml"].replace(b'w:type="paragraph" ', b"")
    with zipfile.ZipFile(tmp_path / "b.docx", "w") as made:
        for name, content in contents.items():
            made.writestr(name, content)
    broken = convert(tmp_path / "b.docx")
    assert (broken.title, broken.lines) == (whole.title, whole.lines)
    assert "KeyError" in broken.lost


@pytest.mark.parametrize(
    ("source", "title", "lines", "metadata"),
    [
        ("---\n\n# Mill\n\nOf Ada: yes.\n\n---\n\nNine.", "Mill", ["Of Ada: yes.", "Nine."], {}),
        ("---\ntitle: Mill\ntags:\n- a\n  b\n# x\n---\nNine.", "Mill", ["Nine."], {"title": "Mill"}),
        ("+++\ntitle = 'Mill'\ndraft = false\ntags = ['a']\n+++\nNine.", "Mill", ["Nine."], {"draft": "False"}),
        ("---\n- Ada\n- Bo\n---\nNine.", "", ["Ada", "Bo", "Nine."], {}),
        ("+++\nno table\n+++\nNine.", "", ["+++ no table +++ Nine."], {}),
    ],
)
def test_front_matter(source: str, title: str, lines: list[str], metadata: dict[str, str], tmp_path: Path) -> None:
    text = convert(written(tmp_path / "a.md", source))
    assert (text.title, texts(text)) == (title, lines)
    assert (text.metadata or {}).items() >= metadata.items()


def test_footnotes_of_markdown(tmp_path: Path) -> None:
    source = "# Mill\n\n1873[^2], says Rosk[^a]^[It was hot.].\n\n[^2]: Otto\n[^a]: https://a.org"
    text = convert(written(tmp_path / "a.md", source))
    assert texts(text) == ["1873, says Rosk.", "Otto", "https://a.org", "It was hot."]


def test_tables(tmp_path: Path) -> None:
    assert texts(convert(written(tmp_path / "open.csv", 'a,b\n"xxx'))) == ["a: xxx."]
    for name, mark in (("a.csv", ","), ("b.tsv", "\t"), ("c.csv", ";")):
        rows = [["service", "owner"], ["Ledger", "Ada Berg"], ["Kiln", ""], ["霧", "x" * 400]]
        text = convert(written(tmp_path / name, "\n".join(mark.join(row) for row in rows)))
        assert texts(text) == ["service: Ledger; owner: Ada Berg.", "service: Kiln.", "service: 霧.", "x" * 400]
    for title, mark in (
        ("sep=;\n", ";"),
        ("sep=\t\n", "\t"),
        ("Report, of sales\n\n", "\t"),
        ("Report of sales;;\n", ";"),
    ):
        rows = [["pH", "Straße", "", "pH"], ["7", "Tarn", "x", "8", "more"], ["", "a, b, c"]]
        text = convert(written(tmp_path / "t.csv", title + "\n".join(mark.join(row) for row in rows)))
        above = [] if title.startswith("sep") else [title.strip(";\n") + "."]
        assert texts(text) == [*above, "pH: 7; Straße: Tarn; x; pH: 8; more.", "Straße: a, b, c."]


def test_a_numbered_section_is_no_title_of_a_page_that_has_one(tmp_path: Path) -> None:
    body = '<div class="nosearch">Small. Fast.</div><h1>1. Overview</h1><p>It is a log.</p>'
    page = "<html><head><title>{}</title></head><body>" + body + "</body></html>"
    text = convert(written(tmp_path / "a.html", page.format("Write-Ahead Logging")))
    assert (text.title, texts(text)) == ("Write-Ahead Logging", ["1. Overview:", "It is a log."])
    for title in ("", "1. Overview — The manual"):
        text = convert(written(tmp_path / "b.html", page.format(title)))
        assert (text.title, texts(text)) == ("1. Overview", ["It is a log."])


RST = """
Kiln
====

See :ref:`the target <x>`, :func:`kiln.fire`, :doc:`a page </guide/b>` and `more <https://example.org/x>`_.

.. _x:

Owners
------

.. note::

   It is hot.

.. py:function:: kiln.fire(heat=None)
   :noindex:

   Light it.

.. confval:: heat
   :type: :code-py:`int`
   :default: ``12``

   In degrees.

.. versionadded:: 3.2

.. code-block:: python
   :linenos:

   def f():
       return 1

.. toctree::
   :maxdepth: 2

   intro
   Usage <guide/usage>

.. include:: /etc/passwd

.. raw:: html

   <b>raw</b>

.. csv-table::
   :file: /etc/passwd

.. list-table::
   :header-rows: 1

   * - Service
     - Owner
   * - Ledger
     - Ada

.. unknown:: An argument
   :option: 1

   Its :unknown:`content`.

.. seealso::

   The :doc:`guide`.
"""


def test_restructured_text(tmp_path: Path) -> None:
    text = convert(written(tmp_path / "a.rst", RST))
    assert text.title == "Kiln"
    assert texts(text) == [
        *("See the target, kiln.fire, a page and more.", "Owners:", "Note: It is hot.", "kiln.fire(heat=None)"),
        *(
            "Light it.",
            "heat",
            "type: int; default: 12",
            "In degrees.",
            "New in version 3.2",
            "def f():",
            "    return 1",
            "intro",
            "Usage",
        ),
        *("Service: Ledger; Owner: Ada.", "An argument", "Its content.", "See also: The guide."),
    ]
    assert [(link.target, link.kind) for line in text.lines for link in line.links] == [
        *(("#x", "text"), ("/guide/b", "text"), ("https://example.org/x", "text")),
        *(("intro", "contents"), ("guide/usage", "contents"), ("guide", "see")),
    ]
    assert "x" in text.lines[1].anchors


def test_a_notebook(tmp_path: Path) -> None:
    """Texts, code, and what its cells have shown: as a text, or as a page where the text names an object only."""
    shown = [
        {"text": ["```\n"]},
        {"data": {"text/plain": "<IPython.core.display.HTML object>", "text/html": "<p>Feverfew <b>made</b> it.</p>"}},
        {"data": {"text/markdown": ["**Nettle** too."]}},
        {"data": {"text/plain": "\x1b[31m3\x1b[0m\n", "text/html": "<b>4</b>"}},
        {"ename": "KeyError", "evalue": "no heat\n"},
        {"data": {"text/plain": "x" * 5000, "image/png": "y"}},
        {"ename": "E"},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Kiln\n", "It is [hot](heat.md)."]},
        {"source": "No type."},
        {"cell_type": "code", "source": "print('```')\n", "outputs": shown},
        7,
    ]
    text = convert(written(tmp_path / "a.ipynb", json.dumps({"cells": cells})))
    assert (text.title, text.lost) == ("Kiln", "1 cell of it damaged")
    printed = "```\n3\nno heat\n" + "x" * 5000
    assert texts(text) == [
        *("It is hot.", "No type.", "print('```')"),
        *printed[:2000].splitlines(),
        *("Feverfew made it.", "Nettle too."),
    ]
    assert text.lines[0].links[0].target == "heat.md"


def test_a_book(tmp_path: Path) -> None:
    page = "<html xmlns='http://www.w3.org/1999/xhtml'><head><title/></head><body>{}</body></html>"
    parts = {
        "META-INF/container.xml": """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
            <rootfile full-path="in/book.opf"/></rootfiles></container>""",
        "in/book.opf": """<!DOCTYPE p [<!ENTITY e SYSTEM "file:///etc/passwd">]>
            <package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">
            <metadata><dc:title>The &amp; Kiln</dc:title><dc:title>&e;</dc:title></metadata>
            <manifest><item id="b" href="b%20c.xhtml"/><item id="a" href="a.xhtml"/></manifest>
            <spine><itemref idref="a"/><itemref idref="gone"/><itemref idref="b"/></spine></package>""",
        "in/a.xhtml": page.format("<ul><li><a href='b%20c.xhtml'>Ash</a></li><li><a href='a.xhtml'>Top</a></li></ul>"),
        "in/b c.xhtml": page.format(
            "<h1>Ash</h1><p>See <a href='a.xhtml#x'>x</a>, <a href='https://example.org'>y</a>.</p><h2>Use</h2><p>None."
        ),
    }

    def book() -> Text:
        with zipfile.ZipFile(tmp_path / "a.epub", "w") as made:
            for name, content in parts.items():
                made.writestr(name, content)
        return convert(tmp_path / "a.epub")

    assert book() == Text(
        "The & Kiln",
        [
            Line("Ash:", ("Ash",), True),
            Line("See x, y.", ("Ash",), links=(Href(3, "#x", "x"), Href(5, "https://example.org", "y"))),
            Line("Use:", ("Ash", "Use"), True),
            Line("None.", ("Ash", "Use")),
        ],
    )
    whole = parts["in/a.xhtml"]
    for damaged in ("", "\0" * 300, whole[:100]):
        parts["in/a.xhtml"] = damaged
        assert book().lost == "1 chapter of it cut off or missing, such as a.xhtml"
    for chapter in ("<svg:svg xmlns:svg='x'></svg:svg>", whole.upper()):  # a cover
        parts["in/a.xhtml"] = chapter
        assert not book().lost
    parts["in/a.xhtml"] = parts["in/b c.xhtml"] = ""
    with pytest.raises(Unreadable, match="2 chapters of it cut off or missing"):
        book()


HELLO = "Grüße aus Köln von Ada."


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("README", HELLO.replace("Ada", "A\x08Ad\x08da\x08a").encode(), ""),
        ("a.txt", HELLO.replace("aus", "a\u2010\n us").encode(), ""),
        ("a.md", f"# „T“\n\n{HELLO}".encode("cp1252"), "„T“"),
        *(
            ("a.htm", f"<title>Straße</title><p>{HELLO}".encode(name), "Straße")
            for name in ("cp1252", "utf-16", "utf-32")
        ),
        *(("a.txt", HELLO.encode(name), "") for name in ("utf-8-sig", "utf-16", "utf-32")),
        # a charset that is given, and some that are none
        *(
            ("a.HTM", f"<meta charset={charset}><title>Ö</title><p>{HELLO}".encode("cp1252"), "Ö")
            for charset in ("iso-8859-1", "idna", "hex", "no-such")
        ),
    ],
    ids=range(13),
)
def test_other_encodings(name: str, content: bytes, title: str, tmp_path: Path) -> None:
    text = convert(written(tmp_path / name, content))
    assert (text.title, texts(text)) == (title, [HELLO])
