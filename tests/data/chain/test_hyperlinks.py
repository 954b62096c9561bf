"""Hyperlinks between passages of documents, and how the passages of one document are ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.documents.split import Document, Line, split
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.data.lucene.update import update_index
from polyhop.data.passages import Hit, Link, Passage, Place, Reason
from polyhop.data.pool import PassagePool

from .searching import over


def part(
    document: str,
    number: int,
    title: str,
    *sentences: str,
    links: Sequence[tuple[str, str] | tuple[str, str, str]] = (),
    anchors: Sequence[str] = (),
) -> Passage:
    """The passage of this number of a document; links are targets, texts, and kinds."""
    found = []
    for target, text, *kind in links:
        [at] = [n for n, sentence in enumerate(sentences) if text in sentence]
        found.append(Link(target, text, at, *kind))  # type: ignore[arg-type]
    return replace(
        Passage.of(title, sentences=sentences, id=f"{document}#{number}" if number else document),
        place=Place(document, 10 * number),
        links=tuple(found),
        anchors=tuple(anchors),
    )


# --- edges -----------------------------------------------------------------------------------------------------------

SECTIONS = {"spur": "wax", "worm": "tallow", "crown": "linseed"}
GEARS = '<h1 id="top">Cogs and wheels</h1><p>They carry force in a mill. Rub them with soap.</p>' + "".join(
    f'<h2 id="{id}">Form {number}</h2><p>Rub it with {grease}. {"It is made of wood that is old. " * 8}</p>'
    for number, (id, grease) in enumerate(SECTIONS.items())
)
# Of each document that links to another: its name, how it is linked, and what stands in the passage to which it leads.
TARGETS = {
    "Arnhop": ("(parts/cogs.html#worm)", "tallow"),
    "Belldrift": ("(parts/cogs.html#crown)", "linseed"),
    "Crestley": ("(parts/cogs.html)", "soap"),
    "Elmsby": ("(https://mills.example/v2/parts/cogs/#spur)", "wax"),
    "Fargate": ("[Cogs and wheels|", "soap"),
    "Hollin": ("[Cogs and wheels#worm|", "tallow"),
}
ANCHOR = "regulator below the floor"


def mill(name: str) -> str:
    target, _ = TARGETS[name]
    link = f"[{target}{ANCHOR}]]" if target.startswith("[") else f"[{ANCHOR}]{target}"
    return f"# {name}\n\n{name} is a mill by the river. The speed of the stones depends on the {link}."


MILLS = {
    "parts/cogs.html": GEARS,
    **{f"{name.lower()}.md": mill(name) for name in TARGETS},
    "tower.md": "# Bell Tower\n\nThe tower of Ostrova has no clock.",
    "ivo.md": "# Ivo\n\nIvo has a stall beside [the landmark](tower.md).",
    # Many documents that have the words of the questions.
    **{
        f"{name}.md": f"# Mill {name}\n\nThe speed of {name} is what a wind needs. The tower stands near a stall."
        for name in (
            f"{one}{other}" for one in "Ost West Nord Sud Mid Alt".split() for other in "au eck tal ried".split()
        )
    },
    **{f"{name}.md": f"# Stall {name}\n\nThe stall of {name} is beside the mill." for name in "KLMNOPQRSTUV"},
}


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def mills(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BM25Index]:
    folder = tmp_path_factory.mktemp("links")
    build_index([put(folder / "mills", MILLS)], folder / "ix", max_words=70)
    with BM25Index(folder / "ix") as index:
        yield index


@pytest.fixture(scope="module", params=["index", "pool", "few"])
def follows(request: pytest.FixtureRequest, mills: BM25Index) -> ChainRetriever:
    """In an index, in a pool, and in a pool whose passages are all candidates."""
    passages = mills.stored(range(len(mills)))
    few = [passage for passage in passages if not passage.title.startswith(("Mill ", "Stall "))]
    return ChainRetriever(mills) if request.param == "index" else over(*(few if request.param == "few" else passages))


def asked(name: str) -> str:
    return f"What does the part need on which the speed of the stones of {name} depends?"


@pytest.mark.parametrize("name", TARGETS)
def test_a_link_leads_to_the_place_that_it_names(follows: ChainRetriever, name: str) -> None:
    first, second = follows.search(asked(name), 2)
    assert first.passage.title == name
    assert (second.passage.document, TARGETS[name][1] in second.passage.text) == ("mills/parts/cogs.html", True)
    assert second.reason == Reason("hyperlink", ANCHOR, first.passage.id, ("speed", "stones", "depends"))


def test_a_passage_is_found_by_what_it_links_to(follows: ChainRetriever) -> None:
    hits = {hit.passage.title: hit for hit in follows.search("Who has a stall beside the Bell Tower?", 3)}
    assert {"Bell Tower", "Ivo"} < hits.keys()
    assert hits["Ivo"].reason == Reason("linked", "the landmark", "mills/tower.md", ("stall", "beside"))


def test_a_page_that_begins_with_headings_is_opened_by_what_is_below_them() -> None:
    headings = [Line("Kinds", ("Kinds",), is_heading=True), Line("Reed", ("Kinds", "Reed"), is_heading=True)]
    lines = [Line(f"Bundles are tied {n} times.", ("Kinds", "Reed")) for n in range(40)]
    hall = part("b.html", 0, "Orchard Hall", "Orchard Hall has a roof like this.", links=[("a.html", "like this")])
    pages = split(Document("a.html", "Thatch", [*headings, *lines]))
    assert [page.opens for page in pages] == [True, False]
    first, second = over(hall, *pages).search("How is the roof of Orchard Hall tied?", 2)
    assert (first.passage, second.passage, second.reason and second.reason.via) == (hall, pages[0], "hyperlink")


def test_a_page_does_not_lead_to_itself() -> None:
    pages = [
        part("a.html", 0, "Orchard Hall", "Anna Berg owns it.", links=[("a.html#x", "it")], anchors=["top"]),
        part("a.html", 1, "Orchard Hall", "Orchard Hall has a roof that Anna Berg made.", links=[("[[a]]", "a roof")]),
        part("b.html", 0, "Roofs", "Anna Berg makes roofs.", links=[("a.html", "roofs")]),
    ]
    hits = {hit.passage.id: hit.reason for hit in over(*pages).search("Who made the roof of Orchard Hall?", 3)}
    document = {page.id: page.document for page in pages}
    sources = {(document[id], document[reason.source]) for id, reason in hits.items() if reason and reason.source}
    assert sources <= {("b.html", "a.html"), ("a.html", "b.html")}
    assert sources


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("text", "contents"), "one"),
        (("contents", "text"), "two"),
    ],
)
def test_a_link_of_a_table_of_contents_counts_less(kinds: tuple[str, str], expected: str) -> None:
    hall = part(
        "hall.html",
        0,
        "Orchard Hall",
        "Orchard Hall is near the eastern wing and the western wing.",
        links=[("one.html", "eastern wing", kinds[0]), ("two.html", "western wing", kinds[1])],
    )
    wings = [part(f"{name}.html", 0, "", f"{text} lead to it.") for name, text in (("one", "Stairs"), ("two", "Steps"))]
    first, second, _ = over(hall, *wings).search("What leads to Orchard Hall?", 3)
    assert (first.passage.id, second.passage.id) == ("hall.html", f"{expected}.html")


# --- a living index --------------------------------------------------------------------------------------------------


def led_to(index: Path) -> set[str]:
    """The grease in the passages to which a hyperlink leads."""
    with BM25Index(index) as opened:
        hits = ChainRetriever(opened).search(asked("Arnhop"), 3)
    assert hits[0].passage.title == "Arnhop"
    texts = [hit.passage.text for hit in hits if hit.reason and hit.reason.via == "hyperlink"][:1]
    return {grease for text in texts for grease in SECTIONS.values() if grease in text}


def test_links_survive_the_changes_of_an_index(tmp_path: Path) -> None:
    notes = {f"{name}.md": f"# {name}\n\nA note on the wind." for name in "abcdefghij"}  # few changes do not compact
    folder = put(tmp_path / "notes", {"parts/cogs.html": GEARS, "arnhop.md": mill("Arnhop"), **notes})
    index = tmp_path / "ix"
    build_index([folder], index, max_words=70)
    assert led_to(index) == {"tallow"}
    # The page that links is in a new segment, then the page to which it links.
    put(folder, {"arnhop.md": mill("Arnhop").replace("#worm", "#crown")})
    update_index(index, folders=[folder])
    assert led_to(index) == {"linseed"}
    put(folder, {"parts/cogs.html": GEARS.replace('"crown"', '"other"').replace('"spur"', '"crown"')})
    update_index(index, folders=[folder])
    assert led_to(index) == {"wax"}
    update_index(index, compact=True)
    assert led_to(index) == {"wax"}
    update_index(index, delete=["cogs.html"], compact=True)
    assert led_to(index) == set()


# --- names of documents ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "document", "question", "name"),
    [
        ("hop — Access to wells", "lib/x.html", "What does hop return?", "hop"),
        ("20.5. Water Settings", "x.html", "Which of the Water Settings is new?", "water settings"),
        ("hop(1) Manual Page", "x.html", "What does hop print?", "hop"),
        ("Hops", "cmd/well-no-dry.md", "What does WELL NO-DRY do?", "well no dry"),
        ("Start", "guide/moons/index.html", "What is in Moons?", "moons"),
        # as before
        ("Help! (film)", "q1", "Who made Help?", "help"),
        ("John Ronald Tolkien", "q1", "Who knew John Tolkien?", "john tolkien"),
        ("The Prize", "q1", "Who won a prize?", "prize"),
        # a part of a title is no name, and what is not the name of a file
        ("Spider-Man", "q1", "What does a spider eat?", ""),
        ("Hops", "cmd-well", "What does CMD-WELL do?", ""),
    ],
)
def test_a_document_is_named_as_people_write_it(title: str, document: str, question: str, name: str) -> None:
    others = [Passage.of(f"Note {n}", f"A note {n}, of some other place.", id=f"n{n}") for n in range(5)]
    hits = over(part(document, 0, title, "It is old."), *others).search(question, 6)
    named = [(hit.passage.id, hit.reason.name) for hit in hits if hit.reason and hit.reason.via == "named"]
    assert named == ([(document, name)] if name else [])


# --- passages of one document ----------------------------------------------------------------------------------------

WELL = "The well of the village gives clear water"
QUESTION = "Which well of the village gives clear water?"


def manual(name: str, *sentences: str) -> list[Passage]:
    return [part(f"{name}.html", n, name, text, "It is read.") for n, text in enumerate(sentences)]


def documents(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.document for hit in hits]


def test_the_first_hits_are_of_several_documents() -> None:
    pages = [
        *manual("Arn", "The pump takes seed oil.", "The crane has a brass valve.", "The winch has a hemp rope."),
        *manual("Bel", "A pump takes oil.", "A crane has a valve.", "A winch has a rope."),
    ]
    question = "What do a pump of seed oil, a crane with a brass valve and a winch with a hemp rope do?"
    assert documents(over(*pages).search(question, 5)[:2]) == ["Arn.html", "Bel.html"]


def test_documents_come_before_their_other_passages() -> None:
    good = [manual(f"Arn{name}", f"{WELL} daily.", f"The village well: clear water {name}.") for name in "ABCDEFGHIJ"]
    weak = [manual(f"Bel{name}", f"A village {name}.", f"A well {name}.") for name in "ABCD"]
    pages = [page for pages in (*good, *weak) for page in pages]
    hits = documents(over(*pages).search(QUESTION, len(pages)))
    assert len(set(hits[:10])) == 10


ASKED = "What does the pump take in winter at the Oil Mill?"
TELLS = "The pump takes seed oil in winter."
CARE = "Ida cleans its valves with sand, soap, brushes and hot water."
NOTES = [
    part(f"{n}.html", 0, f"Note {n}", f"The Oil Mill of note {n} has a pump, and winter is long.") for n in range(9)
]


def test_of_a_page_that_is_named_two_passages_are_found() -> None:
    """The question's words are in one later passage; other pages mention the page and share the words."""
    page = manual("Oil Mill", "The mill is old.", "It has a wheel.", TELLS, "A pump that Ida bought in Vale shines.")
    hits = over(*page, *NOTES).search(ASKED, 5)
    bm25 = [hit for hit in PassagePool([*page, *NOTES]).search(ASKED, 99) if hit.passage in page]
    assert hits[0].passage.document == hits[4].passage.document == "Oil Mill.html"
    assert hits[4].passage == next(hit.passage for hit in bm25 if hit.passage not in [hit.passage for hit in hits[:4]])
    assert documents(hits).count("Oil Mill.html") == 2
    chain = ChainRetriever(PassagePool([*page, *NOTES]), adaptive=True).search(ASKED, 5)
    assert documents(chain).count("Oil Mill.html") == 1


def test_the_best_passage_of_bm25_is_the_fourth_if_the_chain_leaves_it() -> None:
    mill = manual("Oil Mill", "The mill is old, as is the Brass Pump.", "It has a wheel.")
    pump = manual(
        "Brass Pump",
        "The pump takes oil in winter at the Oil Mill.",
        f"Winter pump. {4 * 'The pump takes oil. '}{CARE}",
    )
    pool = PassagePool([*mill, *pump, *NOTES])
    question = "What does the Brass Pump take in winter at the Oil Mill?"
    assert pool.search(question, 1)[0].passage == pump[1]
    hits = ChainRetriever(pool).search(question, 5)
    assert hits[3].passage == pump[1]


def test_no_copy_of_a_chosen_passage_comes_fourth() -> None:
    """BM25's best one may be a version of what the chain has."""
    text = f"Winter pump, a pump in winter. {CARE}"
    new = part("new.html", 0, "Brass Pump", f"{text} Somebody wrote this down once more.")
    old = part("old.html", 1, "Brass Pump", text)
    pool = PassagePool([new, old, *NOTES])
    question = "What does the Brass Pump take in winter?"
    assert pool.search(question, 1)[0].passage == old
    hits = [hit.passage for hit in ChainRetriever(pool).search(question, 5)]
    assert hits[0] == new
    assert old not in hits
