"""A folder of documents about an invented region, and questions over two or three of them.

People, companies, services and towns each have a document of 1 to 40 pages: PDF, HTML, Markdown or Word. The facts
stand somewhere among sentences that say nothing, so that a document is found by its subject, and a fact by its words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from .files import write_docx, write_pdf

_FIRST = (
    "Ada Otto Ines Bruno Clara Emil Greta Hugo Ilse Jonas Karla Lars Mira Nils Olga Piet Rosa Sven Tilda Udo".split()
)
_LAST = "Berg Lind Falk Moll Voss Kern Haas Brandt Riis Dahl Stern Vogt Holm Krog Lund".split()
_BEGIN = "Ar Bel Cor Dun El Fen Gar Hol Is Jor Kel Lor Mar Nor Or Pel Quin Ros Sal Tor".split()
_TOWN = "burg ford haven mouth stead wick".split()
_FIRM = "Works,Mills,Instruments,Shipping,Foods,Optics".split(",")
_SERVICE = "Ledger Kiln Heron Anvil Lantern Sluice Quarry Beacon Harvest Compass".split()
_TOPICS = "training,storage,visitors,weather,equipment,archives,meetings,safety,transport,maintenance".split(",")
_WORDS = (
    "annual autumn bench board budget catalogue committee corridor diagram drawer exercise folder garden inventory "
    "kitchen ladder manual margin notice office paper pattern period pocket record report review room routine schedule "
    "season sheet shelf signal summary table ticket window workshop"
).split()


class Page(NamedTuple):
    """The document of a subject; a fact is a sentence."""

    file: str
    title: str
    facts: tuple[str, ...]


def write_world(folder: Path, documents: int = 200, questions: int = 60, seed: int = 0) -> list[dict[str, object]]:
    """Write the documents into a folder, and return the questions in the format of own questions."""
    chance = random.Random(seed)
    count = documents // 4
    people = chance.sample([f"{first} {last}" for first in _FIRST for last in _LAST], count)
    towns = chance.sample([begin + end for begin in _BEGIN for end in _TOWN], count)
    firms = chance.sample([f"{begin}{end} {kind}" for begin in _BEGIN for end in ("en", "ia") for kind in _FIRM], count)
    services = chance.sample(
        [f"{name} {number}" for name in _SERVICE for number in range(2, 20)], documents - 3 * count
    )
    home, founder, seat, owner, user, mayor = (
        dict(zip(keys, chance.choices(values, k=len(keys)), strict=True))
        for keys, values in (
            (people, towns), (firms, people), (firms, towns), (services, people), (services, firms), (towns, people),
        )
    )  # fmt: skip
    said: dict[str, tuple[str, ...]] = {
        **{each: (f"{each} lives in {home[each]}.",) for each in people},
        **{each: (f"{each} was founded by {founder[each]}.", f"Its seat is in {seat[each]}.") for each in firms},
        **{each: (f"{each} is owned by {owner[each]}.", f"It is used by {user[each]}.") for each in services},
        **{each: (f"The mayor of {each} is {mayor[each]}.",) for each in towns},
    }
    subjects = sorted(said)
    chance.shuffle(subjects)
    pages: dict[str, Page] = {}
    for number, subject in enumerate(subjects):
        suffix = (".pdf", ".html", ".md", ".docx")[number % 4]
        pages[subject] = Page(f"{subject.lower().replace(' ', '-')}{suffix}", subject, said[subject])
        length = 40 if number % 40 == 0 else min(40, 1 + int(chance.expovariate(0.25)))
        _WRITERS[suffix](folder / pages[subject].file, subject, _sections(pages[subject], length, chance))
    forms: list[Callable[[], tuple[str, str, list[str]]]] = [
        lambda: _hop(chance, services, owner, home, "In which town does the owner of {} live?"),
        lambda: _hop(chance, firms, founder, home, "In which town does the founder of {} live?"),
        lambda: _hop(chance, services, user, founder, "Who founded the company that uses {}?"),
        lambda: _hop(chance, services, user, seat, "Where is the seat of the company that uses {}?"),
        lambda: _hop(chance, firms, seat, mayor, "Who is the mayor of the town where {} has its seat?"),
    ]
    asked: dict[str, dict[str, object]] = {}
    while len(asked) < questions:
        question, answer, path = forms[len(asked) % len(forms)]()
        asked[question] = {"question": question, "answer": answer, "gold": [pages[each].file for each in path]}
    return list(asked.values())


def _hop(
    chance: random.Random, subjects: Sequence[str], first: dict[str, str], second: dict[str, str], form: str
) -> tuple[str, str, list[str]]:
    subject = chance.choice(subjects)
    return form.format(subject), second[first[subject]], [subject, first[subject]]


def _sections(page: Page, length: int, chance: random.Random) -> list[tuple[str, list[str]]]:
    """Headings and paragraphs of some pages of 350 words, with the facts in one of them each."""
    sections = []
    for number in range(max(2, 2 * length)):
        topic = chance.choice(_TOPICS)
        sentences = [_sentence(chance) for _ in range(14)]
        sections.append((f"{topic.capitalize()} {number + 1}", sentences))
    for fact in page.facts:
        _, sentences = chance.choice(sections)
        subject = fact if page.title in fact else f"{page.title} is described here. {fact}"
        sentences.insert(chance.randrange(len(sentences)), subject)
    return [(heading, [" ".join(s[:7]), " ".join(s[7:])]) for heading, s in sections]


def _sentence(chance: random.Random) -> str:
    one, two, three, four = chance.sample(_WORDS, 4)
    return f"The {one} and the {two} of the {three} are kept beside the {four}."


def _pdf(path: Path, title: str, sections: list[tuple[str, list[str]]]) -> None:
    paragraphs = [each for heading, texts in sections for each in (heading, *texts)]
    write_pdf(path, [title, *paragraphs], header="Regional archive")


def _html(path: Path, title: str, sections: list[tuple[str, list[str]]]) -> None:
    body = "".join(f"<h2>{heading}</h2>" + "".join(f"<p>{escape(t)}</p>" for t in texts) for heading, texts in sections)
    links = "".join(f"<li><a href=/{n}>Page {n}</a></li>" for n in range(30))
    path.write_text(
        f"<html><head><title>{title} | Archive</title><script>x = 1</script></head><body><nav><ul>{links}</ul></nav>"
        f"<main><h1>{title}</h1>{body}</main><footer>Regional archive</footer></body></html>"
    )


def _markdown(path: Path, title: str, sections: list[tuple[str, list[str]]]) -> None:
    body = "\n\n".join(f"## {heading}\n\n" + "\n\n".join(texts) for heading, texts in sections)
    path.write_text(f"---\ntitle: {title}\nsource: archive\n---\n\n{body}\n\n```sh\narchive --list\n```\n")


def _word(path: Path, title: str, sections: list[tuple[str, list[str]]]) -> None:
    blocks = [("heading 2", heading) if n == 0 else ("", text)
              for heading, texts in sections for n, text in enumerate((heading, *texts))]  # fmt: skip
    write_docx(path, [("Title", title), *blocks])


_WRITERS = {".pdf": _pdf, ".html": _html, ".md": _markdown, ".docx": _word}


def write_questions(path: Path, questions: list[dict[str, object]]) -> None:
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(question) + "\n" for question in questions))
