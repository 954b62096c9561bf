"""Hyperlinks: what they name, and how targets and documents are compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polyhop.data.documents.corpus import Corpus
from polyhop.data.links import LONGEST_TARGET, LinkMap, address, resolve

from .reading import placed

BASE = "docs/guide/install.html"


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("start.html#first", "docs/guide/start.html#first"),
        ("../api/", "docs/api/"),
        ("../../other/x.md", "other/x.md"),
        ("..", "docs/"),
        ("../../..", ""),  # out of the folder
        ("../../../x.md", ""),
        ("#first", "docs/guide/install.html#first"),
        ("#", ""),
        ("a.html?v=1#b%20c", "docs/guide/a.html#b c"),
        ("/docs/../x", "/x"),
        ("/../..", "/"),
        ("https://Example.org:443/A/?q#b", "//example.org/A/#b"),
        ("HTTP://ada@example.org", "//example.org"),
        ("https://", ""),
        ("a%20b.html", "docs/guide/a b.html"),
        ("caf%C3%A9.html", "docs/guide/café.html"),
        ("c%23.html#x", "docs/guide/c%23.html#x"),
        ("sub\\a.html", "docs/guide/sub/a.html"),
        ("mailto:ada@example.org", ""),
        ("java\tscript:alert(1)", ""),
        ("file:///etc/passwd", ""),
        ("C:\\x.html", ""),
        ('{{< ref "start.md#x" >}}', "docs/guide/start.md#x"),
        ("{{ site.baseurl }}/a.md", "/a.md"),
        ("{{ '/a/' | relative_url }}", "/a/"),
        ("[[Owners  list|who]]", "[[Owners list]]"),
        ("[[Owners#Ada]]", "[[Owners]]#Ada"),
        ("[[#Ada]]", "docs/guide/install.html#Ada"),
        ("x" * LONGEST_TARGET, ""),
    ],
)
def test_a_reference_is_resolved(href: str, target: str) -> None:
    assert resolve(BASE, href) == target


@pytest.mark.parametrize(
    ("targets", "form"),
    [
        ("docs/ docs docs/index.html docs/index docs/_index.md docs/README.md docs/index.html#x docs.html", "docs"),
        ("a/git-gc.html a/git-gc.txt a/git-gc.rst.txt a/git-gc.HTM#x", "a/git-gc"),
        ("v1.2 v1.2/ v1.2/index.html", "v1.2"),
        ("//example.org //example.org/ //example.org/index.html", "//example.org"),
        ("A/b.md a/B.MD", "a/b"),
        ("a/.md", "a/.md"),
        ("index.html", "index"),
    ],
)
def test_addresses(targets: str, form: str) -> None:
    assert {address(target) for target in targets.split()} == {form}
    assert address(f"[[Owners list]]#{form}") == address("[[owners List]]")


NAMES = st.sampled_from(["a", "b.html", "index.html", "C d", "é", "x.y"])
IDS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
SOUP = st.text(st.sampled_from("ab./\\#?%2:[]|{}<> \n\x00é&@"), max_size=30)


@given(IDS, IDS, st.sampled_from(["", "#x", "#a.b"]))
def test_a_relative_path_finds_its_document(base: str, document: str, fragment: str) -> None:
    """From every document, to every document."""
    up = "../" * base.count("/")
    target = resolve(base, up + document.replace(" ", "%20") + fragment)
    assert target == document + fragment
    assert address(target) == address(document)


@given(IDS, st.one_of(SOUP, st.text(max_size=30)))
@example("a", "//[")
@example("a", "/..//x")
def test_no_reference_fails(base: str, href: str) -> None:
    target = resolve(base, href)
    assert len(target) <= LONGEST_TARGET
    assert not any(ord(character) < 32 for character in target)
    assert ".." not in target.partition("#")[0].split("/")[:-1] or target.startswith("[[")
    assert address(address(target)) == address(target)


# --- from sites to documents -----------------------------------------------------------------------------------------

SITE = (
    "manual/guide/install.md",
    "manual/guide/usage/index.md",
    "manual/guide/usage/first.md",
    "manual/api/io.html",
    "manual/de/guide/install.md",
    "notes/c#.md",
    "top.md",
)


@pytest.mark.parametrize(
    ("base", "href", "target"),
    [
        # the address of a site, with and without versions, and of a host of code
        ("notes/x.md", "https://mills.example/api/io.html#read", "manual/api/io.html#read"),
        ("notes/x.md", "https://git.example/team/mills/blob/main/manual/api/io.html", "manual/api/io.html"),
        ("notes/x.md", "https://mills.example/manual/guide/usage/#a", "manual/guide/usage/index.md#a"),
        ("notes/x.md", "/api/io", "manual/api/io.html"),
        ("notes/x.md", "/top", "top.md"),
        ("manual/guide/install.md", "/notes/c%23.md#x", "notes/c%23.md#x"),
        # several that fit: the nearest to the link, then the shortest
        ("manual/de/start.md", "/guide/install", "manual/de/guide/install.md"),
        ("manual/api/io.html", "/guide/install", "manual/guide/install.md"),
        # a file that is none
        ("manual/guide/usage/first.md", "../../usage.md", "manual/usage.md"),
        # nothing that fits, and what fits by its last part alone
        ("top.md", "https://mills.example/other/x", "//mills.example/other/x"),
        ("top.md", "/x/io", "/x/io"),
        ("top.md", "[[io]]", "[[io]]"),
    ],
)
def test_a_target_is_mapped_to_a_document(base: str, href: str, target: str) -> None:
    assert LinkMap(SITE)(base, resolve(base, href)) == target


def test_pages_give_themselves_addresses(tmp_path: Path) -> None:
    pages = {
        "kilns/index.md": '---\ntitle: Kilns\naliases:\n- /old/ovens/\n- "heat"\nurl: /k\n---\nHot.',
        "ash.md": '+++\naliases = ["/old/ash.html", "/dust"]\n+++\nGrey.\n\naliases: [/no]',
        "a.md": "[1](/old/ovens) [2](heat/) [3](/k#x) [4](https://kilns.example/old/ash) [5](/dust) [6](/no)",
    }
    for name, text in pages.items():
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text(text)
    links = [link.target for passage, _ in placed(Corpus([tmp_path / "docs"])) for link in passage.links]
    kilns, ash = "docs/kilns/index.md", "docs/ash.md"
    assert links == [kilns, kilns, f"{kilns}#x", ash, ash, "/no"]


@pytest.mark.parametrize(
    ("base", "href", "target"),
    [
        ("../../", "site/ash.html", "site/ash.html"),
        ("../../", "site/ash.html#dust", "site/ash.html#dust"),
        ("../page/", "b.html", "site/page/b.html"),
        ("../../", "#heat", "site/kilns/a.html#heat"),  # as readers expect
        ("../../", "/rooted.html", "/rooted.html"),
        ("../../", "https://kilns.example/x", "//kilns.example/x"),
        ("https://kilns.example/docs/", "b.html", "//kilns.example/docs/b.html"),
        ("https://kilns.example/docs/", "/b.html", "//kilns.example/b.html"),
        ("https://kilns.example/docs/", "[[Ash]]", "[[Ash]]"),
        ("https://kilns.example/docs/", "http://[bad", ""),  # no address, which does not cost its page
    ],
)
def test_references_are_seen_from_the_base_of_a_page(tmp_path: Path, base: str, href: str, target: str) -> None:
    page = tmp_path / "site" / "kilns" / "a.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<head><base href="{base}"></head><p>The kiln is hot, see <a href="{href}">the ash</a> below.')
    [passage] = [passage for passage, _ in placed(Corpus([tmp_path / "site"]))]
    assert passage.text == "The kiln is hot, see the ash below."
    assert [link.target for link in passage.links] == [target] * bool(target)


PATHS = st.one_of(IDS, IDS.map("/{}".format), IDS.map("//{}".format), SOUP)


@given(st.lists(PATHS, max_size=5), PATHS, PATHS, st.sampled_from(["", "#x"]))
@example(["a"], "a", "", "")
@example(["/x/b", "a"], "docs/a", "//h/x/b", "")
def test_a_map_leads_to_documents_and_changes_no_target_that_names_one(
    ids: list[str], base: str, target: str, fragment: str
) -> None:
    links = LinkMap(ids)
    assert address(links(base, target + fragment)) in {
        address(target),
        *(address(id.replace("#", "%23")) for id in ids),
    }
    for id in ids:
        named = id.replace("#", "%23") + fragment
        assert links(base, named) == named
