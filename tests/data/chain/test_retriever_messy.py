"""Chains in messy corpora, and queries that ask for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Passage, Reason
from polyhop.data.pool import PassagePool

from .searching import ids, over
from .world import indexed

_HUGE = "The lighthouse of Skagen was built by Ole Winther. " + "A wave breaks at the quay of Havn. " * 3000
MESSY = [
    *(Passage.of("John Smith", f"He was a baker of loaf number {n}.", id=f"smith-{n}") for n in range(60)),
    Passage.of("John Smith", "He composed three operas and raised owls.", id="smith-composer"),
    Passage.of("Night Garden", "The music of Night Garden was composed by John Smith.", id="garden"),
    Passage.of("", "The ferry Margarethe was bought by the Quandt shipping line.", id="untitled-1"),
    Passage.of("", "Old Quandt kept parrots in Kiel.", id="untitled-2"),
    Passage.of("Lighthouse of Skagen", _HUGE, id="huge"),
    Passage.of("Ole Winther", "He came into the world at Ribe.", id="winther"),
    Passage.of("Солярис", "Кинокартина снята в Москве, режиссёр — Андрей Тарковский.", id="ru-1"),
    Passage.of("Андрей Тарковский", "Появился на свет в деревне Завражье.", id="ru-2"),
    Passage.of("Σολάρις", "Την ταινία σκηνοθέτησε ο Νίκος Παππάς.", id="el-1"),
    Passage.of("Νίκος Παππάς", "Κατάγεται από ένα χωριό.", id="el-2"),
    Passage.of("سولاريس", "أخرج هذا العمل يوسف شاهين", id="ar-1"),
    Passage.of("يوسف شاهين", "جاء إلى الدنيا قرب البحر", id="ar-2"),
    Passage.of("सोलारिस", "इस फ़िल्म के निर्देशक सत्यजित राय थे।", id="hi-1"),
    Passage.of("सत्यजित राय", "उनका घर नदी के पास था।", id="hi-2"),
    Passage.of("東京", "東京は日本の首都です。", id="ja"),
    Passage.of("Empty Hall", "", id="empty"),
    Passage.of("", "", id="nothing"),
    Passage.of("!!!", "A band that plays loudly.", id="marks"),
    Passage.of("The Who", "A group that plays loudly too.", id="stop-words"),
    Passage.of("Broken \ud800", "Half a \udc00 pair and a \x00 null, quixotic.", id="broken"),
]


@pytest.fixture(scope="module", params=["index", "pool"])
def messy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChainRetriever]:
    if request.param == "pool":
        yield ChainRetriever(PassagePool(MESSY))
    else:
        with indexed(MESSY, tmp_path_factory.mktemp("messy")) as index:
            assert len(index) == len(MESSY) - 1  # what has neither title nor text is left out
            yield ChainRetriever(index)


def test_of_sixty_pages_of_one_title_the_right_one_is_found(messy: ChainRetriever) -> None:
    hits = messy.search("How many operas did John Smith compose, who made the music of Night Garden?", 2)
    assert sorted(ids(hits)) == ["garden", "smith-composer"]


@pytest.mark.parametrize(
    ("question", "chain", "name"),
    [
        ("Где родился режиссёр кинокартины Солярис?", ["ru-1", "ru-2"], "андреи тарковскии"),
        ("Πού γεννήθηκε όποιος σκηνοθέτησε το Σολάρις;", ["el-1", "el-2"], "νικοσ παππασ"),
        ("أين ولد مخرج سولاريس؟", ["ar-1", "ar-2"], "يوسف شاهين"),
        ("सोलारिस के निर्देशक कहाँ पैदा हुए?", ["hi-1", "hi-2"], "सतयजित राय"),
    ],
)
def test_chains_in_other_scripts(messy: ChainRetriever, question: str, chain: list[str], name: str) -> None:
    hits = messy.search(question, 2)
    assert ids(hits) == chain
    assert hits[1].reason
    assert (hits[1].reason.via, hits[1].reason.name, hits[1].reason.source) == ("link", name, chain[0])


@pytest.mark.parametrize("query", ["", "   ", "What is it and who are they?", "the of", "?!", "\x00", "\x1b\x07"])
def test_queries_that_ask_for_nothing(messy: ChainRetriever, query: str) -> None:
    """An index has nothing to say to them; a pool is handed out whole, as without chains."""
    hits = messy.search(query, 500)
    assert messy.source
    assert sorted(ids(hits)) == sorted(ids(messy.source.search(query, 500)))
    adaptive = messy.with_weights(messy.weights, adaptive=True).search(query, 500)
    assert adaptive == hits[: len(adaptive)]


@pytest.mark.parametrize("k", [1, 3])
def test_a_corpus_of_one_passage(tmp_path: Path, k: int) -> None:
    only = Passage.of("Moon", "The moon circles the Earth.", id="moon")
    with indexed([only], tmp_path) as index:
        for chain in (ChainRetriever(index), ChainRetriever(index, adaptive=True), over(only)):
            [hit] = chain.search("What does the moon circle?", k)
            assert (hit.passage, hit.rank) == (only, 1)
            assert hit.reason == Reason("named", "moon", None, ("moon", "circle"))
        assert ChainRetriever(index).search("sun", k) == over().search("moon", k) == []
