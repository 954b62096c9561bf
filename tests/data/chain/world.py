"""A small world for the chain retriever: every question in it has one right chain, and BM25 misses a part of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.data.passages import Passage, Reason


class Case(NamedTuple):
    """A question, the ids of its gold passages, and why one of them, which BM25 misses, belongs to the chain."""

    question: str
    gold: tuple[str, ...]
    target: str
    reason: Reason


_TEXTS: dict[str, tuple[str, str]] = {
    # a film and its director, whose page shares no word with the question
    "solaris": ("Solaris", "A film of 1972 about an ocean that thinks. Its director was Andrei Tarkovsky."),
    "tarkovsky": ("Andrei Tarkovsky", "He came into the world at Zavrazhye, a village by the Volga."),
    # a novel that does not name its author, whose page names the novel
    "orchard": ("The Glass Orchard", "A novel about a family of apple growers, printed in 1931."),
    "marsh": ("Ivo Marsh", "Marsh taught Latin at Harrow Hill. The Glass Orchard made him famous."),
    # a painter who has no page of her own
    "mural": ("Harbour Mural", "The mural in the harbour of Ostrova. Its painter was Lena Quist."),
    "palette": ("Silver Palette", "In 1988 the jury honoured Lena Quist."),
    # two films with a director each
    "harvest": ("Red Harvest Moon", "Red Harvest Moon is a film of 1951, and Nils Aker was its director."),
    "aker": ("Nils Aker", "Aker lives in Bergen with four dogs."),
    "ferry": ("The Last Ferry", "The Last Ferry is a film of 1964, and Pia Lund was its director."),
    "lund": ("Pia Lund", "Lund lives in Malmö and keeps bees."),
    # one name, three works
    "help-film": ("Help! (film)", "Help! is a film. Its director was Richard Lester."),
    "help-album": ("Help! (album)", "Help! is an album. Its producer was George Martin."),
    "help-song": ("Help! (song)", "Help! is a song. Its writer was John Lennon."),
    "lester": ("Richard Lester", "Lester went to school in Philadelphia."),
    "martin": ("George Martin", "Martin went to school in Bromley."),
    # several passages of one title
    "nordlicht": ("Nordlicht", "Nordlicht is a shipyard. Its founder was Anna Berg."),
    "berg-1": ("Anna Berg", "Her childhood was spent in a mill."),
    "berg-2": ("Anna Berg", "She was given the Oresund prize in 1999."),
    "berg-3": ("Anna Berg", "Her house is a museum now."),
    # a comma in a title, and another place of that name
    "wells": ("Dry Wells", "Dry Wells is a band. Its home is Paris, Texas."),
    "paris-texas": ("Paris, Texas", "The Cotton Belt line reached it in 1876."),
    "paris": ("Paris", "The capital of France has a tower of iron."),
    # accents in a title and in a mention
    "besancon": ("Besançon", "It lies on the Doubs."),
    "stellar": ("Stellar Dust", "Stellar Dust is a musical. Its soprano was Chloé Béjart."),
    "bejart": ("Chloé Béjart", "She grew up in Amiens."),
    # words of many questions
    "director": ("Director", "A director leads the actors of a film."),
    "film": ("Film", "A film is a work of moving pictures."),
    "school": ("School", "A school is where children learn."),
    "prize": ("The Prize", "A prize is won."),
}
_NEAR = [
    ("Directors born in {0}", "The director was born in {0}. Each director of a film who was born in {0} won a prize."),
    ("Novelists of {0}", "The author of the novel about {0} taught at a school. The author of another novel did not."),
    ("Painters of {0}", "The painter of the mural in {0} won an award. The painter of the harbour won it too."),
    ("Countries and {0}", "The films of {0} and the directors of the same films come from the same country."),
    ("Founders in {0}", "The founder of the shipyard in {0} received a prize. The founder of the mill received it."),
    ("Bands of {0}", "The home of the band from {0} is served by a railway. The railway serves each home."),
    ("Rivers of {0}", "The river flows through {0}. Which river flows where, {0} knows: the river flows through it."),
    ("Sopranos of {0}", "The soprano of the opera, the soprano of the operetta, and of the musical: born in {0}."),
]
_NAMES = " It was told in Upper {0}, Lower {0} and Lake {0} by the {0} Herald, the {0} Mail and the {0} Post."
_BEGINNINGS = "Arns Bell Crest Dun Elms Far Grim".split()
_ENDINGS = "dorf moor haven mere worth wick sel ford".split()

WORLD: list[Passage] = [Passage.of(title, text, id=id) for id, (title, text) in _TEXTS.items()] + [
    Passage.of(
        title.format(beginning + ending), (text + _NAMES).format(beginning + ending), id=beginning.lower() + ending
    )
    for ending, (title, text) in zip(_ENDINGS, _NEAR, strict=True)
    for beginning in _BEGINNINGS
]
"""The chains, with a crowd of passages around them that have more words of the questions, and many names."""

CASES: dict[str, Case] = {
    "link": Case(
        "Where was the director of Solaris born?",
        ("solaris", "tarkovsky"),
        "tarkovsky",
        Reason("link", "andrei tarkovsky", "solaris", ("director",)),
    ),
    "back-link": Case(
        "Where did the author of the novel about a family of apple growers teach?",
        ("orchard", "marsh"),
        "marsh",
        Reason("back", "the glass orchard", "orchard", ()),
    ),
    "shared name": Case(
        "Which award did the painter of the mural in the harbour of Ostrova receive?",
        ("mural", "palette"),
        "palette",
        Reason("shared", "lena quist", "mural", ()),
    ),
    "comparison": Case(
        "Do the directors of the films Red Harvest Moon and The Last Ferry come from the same country?",
        ("harvest", "ferry", "aker", "lund"),
        "aker",
        Reason("link", "nils aker", "harvest", ("directors", "films", "Red", "Harvest", "Moon")),
    ),
    "ambiguous title": Case(
        "Where did the director of the film Help! go to school?",
        ("help-film", "lester"),
        "lester",
        Reason("link", "richard lester", "help-film", ("director",)),
    ),
    "several passages of a title": Case(
        "In which year did the founder of the Nordlicht shipyard receive the Oresund prize?",
        ("nordlicht", "berg-2"),
        "berg-2",
        Reason("link", "anna berg", "nordlicht", ("founder",)),
    ),
    "comma in a title": Case(
        "Which railway serves the home of the band Dry Wells?",
        ("wells", "paris-texas"),
        "paris-texas",
        Reason("link", "paris texas", "wells", ("home",)),
    ),
    "accents in both": Case(
        "Where was the soprano of the musical Stellar Dust born?",
        ("stellar", "bejart"),
        "bejart",
        Reason("link", "chloe bejart", "stellar", ("soprano",)),
    ),
}


def indexed(passages: Iterable[Passage], folder: Path) -> BM25Index:
    """An index of some passages, with all that reading a corpus does to them."""
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(passage.to_record()) + "\n" for passage in passages))
    build_index([corpus], folder / "ix", max_words=0)
    return BM25Index(folder / "ix")
