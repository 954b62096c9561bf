"""The chain retriever: what BM25 misses is found, with the right reason, over an index and over a pool alike."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyhop.data.chain import ChainRetriever, ChainWeights
from polyhop.data.chain import retriever as chosen
from polyhop.data.dense import DenseIndex, embed_index
from polyhop.data.documents.split import Document, Line, split
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.passages import Passage, Reason
from polyhop.data.pool import PassagePool

from .searching import GENERIC, QUESTIONS, ids, over
from .world import CASES, WORLD, Case, indexed

# --- chains ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_whole_chain_is_found_where_bm25_misses_a_part(
    source: BM25Index | PassagePool, retriever: ChainRetriever, case: Case
) -> None:
    """The reason says what led there; a page about a common word of the question does not come first."""
    hits = retriever.search(case.question, 8)
    assert case.target not in ids(source.search(case.question, 5))
    assert set(case.gold) <= set(ids(hits[:5]))
    assert [hit.reason for hit in hits[:5] if hit.passage.id == case.target] == [case.reason]
    assert GENERIC.isdisjoint(ids(hits[:2]))
    assert hits[0].reason
    assert hits[0].reason.source is None
    for hit in hits:
        assert hit.reason
        assert (hit.reason.source is None) == (hit.reason.via in ("words", "named"))
        assert hit.reason.source is None or hit.reason.source in ids(hits[: hit.rank - 1])
        assert (hit.reason.name == "") == (hit.reason.via == "words")
        assert all(word in case.question for word in hit.reason.words)


def test_the_order_of_a_chain(retriever: ChainRetriever) -> None:
    """Both films before their directors, a mention in full before a part of it, the words of the question first."""
    for name, before, after in (
        ("comparison", ("harvest", "ferry"), ("aker", "lund")),
        ("several passages of a title", ("berg-2",), ("berg-1", "berg-3")),
        ("comma in a title", ("paris-texas",), ("paris",)),
    ):
        found = ids(retriever.search(CASES[name].question, 30))
        assert max(map(found.index, before)) < min(found.index(other) for other in after if other in found)
    reasons = {hit.passage.id: hit.reason for hit in retriever.search(CASES["comparison"].question, 5)}
    assert [reason and reason.source for reason in map(reasons.get, ("aker", "lund"))] == ["harvest", "ferry"]
    [hit] = retriever.search("What did the jury do in 1988?", 1)
    assert (hit.passage.id, hit.reason) == ("palette", Reason("words", "", None, ("jury", "1988")))


# --- as many passages as the chain needs -----------------------------------------------------------------------------


@pytest.mark.parametrize("question", [*QUESTIONS, "What did the jury do in 1988?", "moon"])
@pytest.mark.parametrize("k", [1, 4, 20])
def test_an_adaptive_ranking_is_the_beginning_of_the_whole(retriever: ChainRetriever, question: str, k: int) -> None:
    whole = retriever.search(question, k)
    found = retriever.with_weights(retriever.weights, adaptive=True).search(question, k)
    assert found == whole[: len(found)]
    assert bool(found) == bool(whole)


def test_the_threshold_decides_how_far_the_chain_goes(retriever: ChainRetriever) -> None:
    question = CASES["comparison"].question
    lengths = [
        len(retriever.with_weights(ChainWeights(enough=enough), adaptive=True).search(question, 4))
        for enough in (0.0, 0.3, 1.0, 3.0)
    ]
    assert lengths == sorted(lengths, reverse=True)
    adaptive = retriever.with_weights(retriever.weights, adaptive=True)
    one, two = adaptive.search("What did the jury do in 1988?", 10), adaptive.search(question, 10)
    assert len(one) < len(two) < 10
    assert (lengths[0], lengths[-1]) == (4, 1)


# --- vectors ---------------------------------------------------------------------------------------------------------


NEAR_WORLD = [
    Passage.of("Kestrel Mill", "The old mill at the weir was bought by a painter."),
    Passage.of("Weirs", "An old mill stands at many a weir."),
    Passage.of("Oil on Canvas", "She grew up among sheep, in a hut far above the valley."),
    Passage.of("Salt", "Salt is traded in sacks."),
]


class Scripted:
    """Of each text, the vector of the first key that it starts with, or else of the first that is in it."""

    name = "tests/scripted"

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors = vectors
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str], /) -> Any:
        self.asked += texts
        keys = sorted(self.vectors, key=len, reverse=True)
        return np.array([self.vectors[next(key for key in keys if text.startswith(key))] for text in texts])


def test_the_vector_of_the_question_and_a_chosen_passage_leads_on(tmp_path: Path) -> None:
    question = "Where did the owner of the mill spend her childhood?"
    encoder = Scripted(
        {
            "Kestrel Mill. ": [1.0, 0.0, 0.0],
            "Weirs": [0.9, 0.1, 0.0],
            "Oil on Canvas": [0.0, 1.0, 0.0],
            "Salt": [0.0, 0.0, 1.0],
            question: [0.8, 0.1, 0.0],
            f"{question} Kestrel Mill": [0.2, 1.0, 0.0],
            f"{question} Oil": [0.1, 1.0, 0.0],
            f"{question} Weirs": [0.8, 0.2, 0.0],
        }
    )
    with indexed(NEAR_WORLD, tmp_path) as index:
        embed_index(index.path, encoder)
        with DenseIndex(index.path, encoder) as vectors:
            plain = ChainRetriever(index).search(question, 4)
            found = ChainRetriever(index, ChainWeights(near=3.0), vectors=vectors).search(question, 4)
            weightless = ChainWeights(near=0.0)
            without = ChainRetriever(index, weightless, vectors=vectors).search(question, 2)
    assert "Oil on Canvas" not in [hit.passage.title for hit in plain]  # it shares no word and no name
    assert [hit.passage.title for hit in found[:2]] == ["Kestrel Mill", "Oil on Canvas"]
    assert found[1].reason == Reason("near", "", found[0].passage.id, ())
    assert found[1].reason.told({found[0].passage.id: "Kestrel Mill"}) == "near to the question after Kestrel Mill"
    assert [hit.passage.title for hit in without] == ["Kestrel Mill", "Weirs"]
    assert next(text for text in encoder.asked if text.startswith(question)) == question
    assert f"{question} Kestrel Mill. The old mill at the weir was bought by a painter." in encoder.asked


# --- passages of documents -------------------------------------------------------------------------------------------


def test_a_name_leads_to_the_opening_passage_of_a_document() -> None:
    """All passages of a document have its title, which means the first of them rather than another."""
    life = ["Mira Holm was born in Dunburg in 1931.", *(f"She painted harbour number {n} then." for n in range(30))]
    first, *later = split(Document("holm.md", "Mira Holm", [Line(text) for text in life]), 20)
    film = Passage.of("The Ferry", "The Ferry is a film directed by Mira Holm.")
    pool = PassagePool([*later, first, film, *(Passage.of(f"Harbour {n}", f"It is harbour {n}.") for n in range(30))])
    question = "Where was the director of The Ferry from?"
    assert ids(ChainRetriever(pool).search(question, 2)) == [film.id, first.id]


# --- pages, processes, settings ---------------------------------------------------------------------------------------


def test_another_process_finds_the_same(tmp_path: Path, printed: Callable[[str], set[str]]) -> None:
    """Whatever the order of sets there; and a pickle keeps what was set."""
    chain = ChainRetriever(PassagePool(WORLD).with_bm25(1.2, 0.7), ChainWeights(link=1.0), adaptive=True)
    expected = [[[hit.passage.id, hit.score] for hit in chain.search(question, 10)] for question in QUESTIONS]
    pickled = tmp_path / "chain.pickle"
    pickled.write_bytes(pickle.dumps((chain, QUESTIONS)))
    code = (
        "import json, pickle\n"
        f"chain, questions = pickle.load(open({str(pickled)!r}, 'rb'))\n"
        "print(json.dumps([[[h.passage.id, h.score] for h in chain.search(q, 10)] for q in questions]))"
    )
    (found,) = printed(code)
    assert json.loads(found) == expected
    again = pickle.loads(pickle.dumps(chain))
    assert (again.k1, again.b, again.weights, again.adaptive) == (1.2, 0.7, chain.weights, True)


def test_settings_of_bm25_reach_the_source_and_leave_the_original_alone(retriever: ChainRetriever) -> None:
    before = retriever.search(QUESTIONS[0], 5)
    view = retriever.with_bm25(k1=3.0, b=1.0)
    assert (view.k1, view.b) == (3.0, 1.0)
    assert (retriever.k1, retriever.b) == (0.9, 0.4)
    assert retriever.with_bm25(b=0.1).k1 == 0.9
    assert view.search(QUESTIONS[0], 5) != before
    assert view.search(QUESTIONS[0], 5) == ChainRetriever(view.source).search(QUESTIONS[0], 5)
    other = retriever.with_weights(ChainWeights(link=0, shared=0), adaptive=True)
    assert (other.weights.link, other.adaptive) == (0, True)
    assert (retriever.weights, retriever.adaptive) == (ChainWeights(), False)
    assert retriever.search(QUESTIONS[0], 5) == before


def test_with_bm25_alone_the_ranking_is_bm25s(source: BM25Index | PassagePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the order of equals."""
    monkeypatch.setattr(chosen, "_LENGTH_LOSS", 0.0)
    monkeypatch.setattr(chosen, "_SURPLUS_LOSS", 0.0)
    alone = ChainWeights(**{weight.name: float(weight.name == "bm25") for weight in fields(ChainWeights)})
    for question in QUESTIONS:
        theirs = source.search(question, 50)
        ours = ChainRetriever(source, alone).search(question, 7)
        assert [hit.score for hit in ours] == pytest.approx([hit.score / theirs[0].score for hit in theirs[:7]])
        better = {hit.passage.id for hit in theirs if hit.score > theirs[6].score}
        assert better <= set(ids(ours)) <= {hit.passage.id for hit in theirs if hit.score >= theirs[6].score}


# --- other corpora ---------------------------------------------------------------------------------------------------

SCRIPTS = [
    (("Солярис", "Кинокартина снята в Москве, режиссёр — Андрей Тарковский."), ("Андрей Тарковский", "Из Завражья.")),
    (("Σολάρις", "Την ταινία σκηνοθέτησε ο Νίκος Παππάς."), ("Νίκος Παππάς", "Κατάγεται από ένα χωριό.")),
    (("سولاريس", "أخرج هذا العمل يوسف شاهين"), ("يوسف شاهين", "جاء إلى الدنيا قرب البحر")),
    (("सोलारिस", "इस फ़िल्म के निर्देशक सत्यजित राय थे।"), ("सत्यजित राय", "उनका घर नदी के पास था।")),
]
SMITHS = [Passage.of("John Smith", f"He was a baker of loaf number {n}.", id=f"smith-{n}") for n in range(60)]


@pytest.mark.parametrize(
    ("question", "number", "name"),
    [
        ("Где родился режиссёр кинокартины Солярис?", 0, "андреи тарковскии"),
        ("Πού γεννήθηκε όποιος σκηνοθέτησε το Σολάρις;", 1, "νικοσ παππασ"),
        ("أين ولد مخرج سولاريس؟", 2, "يوسف شاهين"),
        ("सोलारिस के निर्देशक कहाँ पैदा हुए?", 3, "सतयजित राय"),
    ],
)
def test_chains_in_other_scripts(question: str, number: int, name: str) -> None:
    pages = [Passage.of(*text, id=text[0]) for pair in SCRIPTS for text in pair]
    film, maker = over(*pages, *SMITHS).search(question, 2)
    assert [film.passage.id, maker.passage.id] == [title for title, _ in SCRIPTS[number]]
    assert maker.reason == Reason("link", name, film.passage.id, maker.reason.words if maker.reason else ())


def test_of_sixty_pages_of_one_title_the_right_one_is_found() -> None:
    composer = Passage.of("John Smith", "He composed three operas and raised owls.", id="composer")
    garden = Passage.of("Night Garden", "The music of Night Garden was composed by John Smith.", id="garden")
    hits = over(*SMITHS, composer, garden).search("How many operas did John Smith, who made Night Garden, compose?", 2)
    assert sorted(ids(hits)) == ["composer", "garden"]
    assert over(composer).search("Who composed operas?", 3)[0].passage == composer
    assert over().search("moon", 1) == []
