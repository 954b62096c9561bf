"""The chain retriever: what BM25 misses is found, with the right reason, over an index and over a pool alike."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.data.bm25 import BM25Index
from polyhop.data.chain import ChainRetriever, ChainWeights
from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Hit, Passage, Reason, Retriever
from polyhop.data.pool import PassagePool

from .world import CASES, WORLD, Case, indexed

QUESTIONS = [case.question for case in CASES.values()]
GENERIC = {"director", "film", "school", "prize"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BM25Index]:
    with indexed(WORLD, tmp_path_factory.mktemp("world")) as index:
        yield index


@pytest.fixture(scope="module", params=["index", "pool"])
def source(request: pytest.FixtureRequest, world: BM25Index) -> BM25Index | PassagePool:
    return world if request.param == "index" else PassagePool(WORLD)


@pytest.fixture(scope="module")
def retriever(source: BM25Index | PassagePool) -> ChainRetriever:
    return ChainRetriever(source)


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def over(*passages: Passage) -> ChainRetriever:
    return ChainRetriever(PassagePool(passages))


# --- chains ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_whole_chain_is_found_where_bm25_misses_a_part(
    source: BM25Index | PassagePool, retriever: ChainRetriever, case: Case
) -> None:
    assert case.target not in ids(source.search(case.question, 5))
    assert set(case.gold) <= set(ids(retriever.search(case.question, 5)))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_reason_says_what_led_there(retriever: ChainRetriever, case: Case) -> None:
    hits = retriever.search(case.question, 5)
    assert [hit.reason for hit in hits if hit.passage.id == case.target] == [case.reason]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_reasons_name_passages_of_higher_rank_and_words_of_the_question(retriever: ChainRetriever, case: Case) -> None:
    hits = retriever.search(case.question, 8)
    assert hits[0].reason
    assert hits[0].reason.via in ("words", "named")
    for hit in hits:
        assert hit.reason
        assert (hit.reason.source is None) == (hit.reason.via in ("words", "named"))
        assert hit.reason.source is None or hit.reason.source in ids(hits[: hit.rank - 1])
        assert (hit.reason.name == "") == (hit.reason.via == "words")
        assert all(word in case.question for word in hit.reason.words)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_page_about_a_common_word_of_the_question_does_not_come_first(retriever: ChainRetriever, case: Case) -> None:
    assert GENERIC.isdisjoint(ids(retriever.search(case.question, 2)))


def test_both_films_of_a_comparison_come_before_their_directors(retriever: ChainRetriever) -> None:
    found = ids(retriever.search(CASES["comparison"].question, 5))
    assert max(found.index("harvest"), found.index("ferry")) < min(found.index("aker"), found.index("lund"))


def test_each_director_is_tied_to_the_own_film(retriever: ChainRetriever) -> None:
    reasons = {hit.passage.id: hit.reason for hit in retriever.search(CASES["comparison"].question, 5)}
    assert [(reason.via, reason.source) for id in ("aker", "lund") if (reason := reasons[id])] == [
        ("link", "harvest"),
        ("link", "ferry"),
    ]


@pytest.mark.parametrize(
    ("kind", "role", "first", "second"),
    [("film", "director", "help-film", "lester"), ("album", "producer", "help-album", "martin")],
)
def test_of_pages_with_one_title_the_question_chooses(
    retriever: ChainRetriever, kind: str, role: str, first: str, second: str
) -> None:
    hits = retriever.search(f"Where did the {role} of the {kind} Help! go to school?", 3)
    assert ids(hits)[:2] == [first, second]
    assert hits[0].reason
    assert (hits[0].reason.via, hits[0].reason.name, hits[0].reason.words) == ("named", "help", (role, kind, "Help"))


def test_of_several_passages_of_a_title_the_one_with_the_questions_words_comes_first(retriever: ChainRetriever) -> None:
    found = ids(retriever.search(CASES["several passages of a title"].question, 10))
    assert found.index("berg-2") < min(found.index(other) for other in ("berg-1", "berg-3") if other in found)


def test_the_mention_in_full_goes_before_a_part_of_it(retriever: ChainRetriever) -> None:
    found = ids(retriever.search(CASES["comma in a title"].question, 30))
    assert found.index("paris-texas") < found.index("paris")


@pytest.mark.parametrize("written", ["Besancon", "Besanc\u0327on", "BESANCON"])
def test_a_title_in_the_question_is_found_however_its_accents_are_written(
    source: BM25Index | PassagePool, retriever: ChainRetriever, written: str
) -> None:
    question = f"Which river flows through {written}?"
    assert "besancon" not in ids(source.search(question, 5))
    reasons = {hit.passage.id: hit.reason for hit in retriever.search(question, 5)}
    assert reasons["besancon"] == Reason("named", "besancon", None, (written,))


@pytest.mark.parametrize("written", ["Besançon", "BESANÇON", "Besançon's bridges"])
def test_a_title_with_accents_counts_like_any_other(retriever: ChainRetriever, written: str) -> None:
    hit = retriever.search(f"Which river flows through {written}?", 1)[0]
    assert hit.passage.id == "besancon"
    assert hit.reason
    assert (hit.reason.via, hit.reason.name) == ("named", "besancon")


def test_a_question_of_one_hop_is_answered_by_its_passage_first(retriever: ChainRetriever) -> None:
    [hit] = retriever.search("What did the jury do in 1988?", 1)
    assert hit.passage.id == "palette"
    assert hit.reason == Reason("words", "", None, ("jury", "1988"))


def test_the_same_reading_serves_three_hops() -> None:
    chain = over(
        Passage.of("Solaris", "Its director was Andrei Tarkovsky.", id="film"),
        Passage.of("Andrei Tarkovsky", "He married Irma Rausch.", id="director"),
        Passage.of("Irma Rausch", "She came into the world at Saratov.", id="wife"),
        Passage.of("Saratov", "A port on the Volga.", id="town"),
        *(passage for passage in WORLD if passage.id.endswith(("dorf", "ford"))),
    )
    hits = chain.search("Where was the wife of the director of Solaris born?", 4)
    assert ids(hits)[:3] == ["film", "director", "wife"]
    assert [hit.reason.source for hit in hits[:3] if hit.reason] == [None, "film", "director"]


# --- the protocol ----------------------------------------------------------------------------------------------------


def test_it_is_a_retriever(retriever: ChainRetriever) -> None:
    assert isinstance(retriever, Retriever)


@settings(deadline=None, max_examples=20)
@given(question=st.sampled_from(QUESTIONS), k=st.integers(1, 25), offset=st.integers(0, 25))
def test_pages_are_slices_of_the_whole(retriever: ChainRetriever, question: str, k: int, offset: int) -> None:
    assert retriever.search(question, k, offset) == retriever.search(question, 50)[offset : offset + k]


def test_pages_are_slices_of_a_long_whole_too() -> None:
    places = [f"{a}{b}" for a in "Anna Bert Carl Dora Emil Fritz Gerd".split() for b in "berg feld haus thal".split()]
    chain = over(
        *(
            Passage.of(f"{place} {n}", f"The film of {places[n * 5 % 28]} and {places[n * 3 % 28]}. Film {n}." + end)
            for n, place in enumerate(places * 5)
            for end in (" Its director is old.", "")
        )
    )
    whole = ids(chain.search("Who is the director of the film of Annaberg?", 1000))
    assert len(whole) == 280
    for k, offset in ((5, 0), (50, 0), (60, 0), (100, 0), (20, 40), (20, 60), (100, 100)):
        assert (
            ids(chain.search("Who is the director of the film of Annaberg?", k, offset)) == whole[offset : offset + k]
        )


@pytest.mark.parametrize("question", [*QUESTIONS, "", "What is it?", "moon"])
def test_ranks_count_from_1_scores_never_rise_and_no_passage_comes_twice(
    retriever: ChainRetriever, question: str
) -> None:
    hits = retriever.search(question, 60)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(set(ids(hits))) == len(hits)


def test_more_than_there_is(source: BM25Index | PassagePool, retriever: ChainRetriever) -> None:
    hits = retriever.search(QUESTIONS[0], 10**9)
    assert len(hits) <= len(WORLD)
    assert set(ids(hits)) >= set(ids(source.search(QUESTIONS[0], 10**9)))
    assert retriever.search(QUESTIONS[0], 3, len(hits)) == []
    assert retriever.search(QUESTIONS[0], 3, 10**9) == []


def test_a_pool_is_ranked_whole() -> None:
    assert sorted(ids(ChainRetriever(PassagePool(WORLD)).search("moon", 1000))) == sorted(p.id for p in WORLD)


@pytest.mark.parametrize(("k", "offset"), [(0, 0), (-1, 0), (1, -1)])
def test_impossible_pages(retriever: ChainRetriever, k: int, offset: int) -> None:
    with pytest.raises(ValueError, match=f"k must be positive and offset not negative, got k={k}, offset={offset}"):
        retriever.search(QUESTIONS[0], k, offset)


def test_many_questions_at_once(retriever: ChainRetriever) -> None:
    questions = [*QUESTIONS, "", QUESTIONS[0]]
    assert retriever.search_many(questions, 6) == [retriever.search(question, 6) for question in questions]
    assert retriever.search_many([], 6) == []


def test_sixteen_threads_find_what_one_finds(source: BM25Index | PassagePool) -> None:
    expected = [ChainRetriever(source).search(question, 6) for question in QUESTIONS]
    shared = ChainRetriever(source)  # knows nothing yet
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda question: shared.search(question, 6), QUESTIONS * 4))
    finally:
        sys.setswitchinterval(interval)
    assert found == expected * 4


def test_another_process_finds_the_same(tmp_path: Path, printed: Callable[[str], set[str]]) -> None:
    """Whatever the order of sets there."""
    chain = ChainRetriever(PassagePool(WORLD))
    expected = [[[hit.passage.id, hit.score] for hit in chain.search(question, 10)] for question in QUESTIONS]
    assert expected == [[[hit.passage.id, hit.score] for hit in chain.search(question, 10)] for question in QUESTIONS]
    pickled = tmp_path / "chain.pickle"
    pickled.write_bytes(pickle.dumps((ChainRetriever(PassagePool(WORLD)), QUESTIONS)))
    code = (
        "import json, pickle\n"
        f"chain, questions = pickle.load(open({str(pickled)!r}, 'rb'))\n"
        "print(json.dumps([[[h.passage.id, h.score] for h in chain.search(q, 10)] for q in questions]))"
    )
    (found,) = printed(code)
    assert json.loads(found) == expected


def test_copies_are_the_retriever_itself(retriever: ChainRetriever) -> None:
    assert copy.copy(retriever) is copy.deepcopy(retriever) is retriever


def test_a_pickle_keeps_what_was_set(source: BM25Index | PassagePool) -> None:
    chain = ChainRetriever(source.with_bm25(1.2, 0.7), ChainWeights(link=2.5), adaptive=True)
    again = pickle.loads(pickle.dumps(chain))
    assert (again.k1, again.b, again.weights, again.adaptive) == (1.2, 0.7, ChainWeights(link=2.5), True)
    assert again.search_many(QUESTIONS, 5) == chain.search_many(QUESTIONS, 5)


# --- settings --------------------------------------------------------------------------------------------------------


def test_settings_of_bm25_reach_the_source_and_leave_the_original_alone(retriever: ChainRetriever) -> None:
    before = retriever.search(QUESTIONS[0], 5)
    view = retriever.with_bm25(k1=3.0, b=1.0)
    assert (view.k1, view.b) == (3.0, 1.0)
    assert (retriever.k1, retriever.b) == (0.9, 0.4)
    assert retriever.with_bm25(b=0.1).k1 == 0.9
    assert view.search(QUESTIONS[0], 5) != before
    assert view.search(QUESTIONS[0], 5) == ChainRetriever(view.source).search(QUESTIONS[0], 5)
    assert retriever.search(QUESTIONS[0], 5) == before


def test_other_weights_leave_the_original_alone(retriever: ChainRetriever) -> None:
    before, weights = retriever.search(QUESTIONS[0], 5), retriever.weights
    plain = ChainWeights(bm25=1, coverage=0, sentence=0, named=0, link=0, back=0, shared=0)
    view = retriever.with_weights(plain, adaptive=False)
    assert view.weights == plain
    assert "tarkovsky" not in ids(view.search(QUESTIONS[0], 5))
    assert (retriever.weights, retriever.adaptive) == (weights, False)
    assert retriever.search(QUESTIONS[0], 5) == before
    assert retriever.with_weights(weights, adaptive=True).adaptive


def test_with_bm25_alone_the_ranking_is_bm25s(source: BM25Index | PassagePool) -> None:
    alone = ChainWeights(bm25=1, coverage=0, sentence=0, named=0, link=0, back=0, shared=0)
    for question in QUESTIONS:
        theirs = source.search(question, 7)
        ours = ChainRetriever(source, alone).search(question, 7)
        assert ids(ours) == ids(theirs)
        assert [hit.score for hit in ours] == pytest.approx([hit.score / theirs[0].score for hit in theirs])


@pytest.mark.parametrize(
    ("weight", "case"), [("link", "link"), ("back", "back-link"), ("shared", "shared name"), ("link", "comparison")]
)
def test_a_tie_that_is_worth_nothing_leads_nowhere(retriever: ChainRetriever, weight: str, case: str) -> None:
    question, target = CASES[case].question, CASES[case].target
    ties: dict[str, float] = {"link": 0.0, "back": 0.0, "shared": 0.0}
    without = retriever.with_weights(ChainWeights(**ties), adaptive=False)
    only = retriever.with_weights(ChainWeights(**{**ties, weight: 2.0}), adaptive=False)
    assert target not in ids(without.search(question, 5))
    assert target in ids(only.search(question, 5))


def test_a_name_that_several_pages_bear_counts_less_and_one_that_a_single_page_bears_as_much(
    retriever: ChainRetriever,
) -> None:
    def best(case: str, ambiguity: float) -> float:
        view = retriever.with_weights(ChainWeights(ambiguity=ambiguity), adaptive=False)
        return view.search(CASES[case].question, 1)[0].score

    assert best("ambiguous title", 2.0) < best("ambiguous title", 0.0)
    assert best("link", 2.0) == best("link", 0.0)


def test_another_collection_is_searched_with_the_same_settings(source: BM25Index | PassagePool) -> None:
    weights = ChainWeights(link=2.5)
    own = PassagePool([Passage.of("Moon", "The moon is old."), Passage.of("Sun", "The sun is older.")])
    chain = ChainRetriever(source, weights, vectors=Fixed({}, source), adaptive=True)  # type: ignore[arg-type]
    other = chain.over(own)
    assert (other.source, other.weights, other.adaptive, other.vectors) == (own, weights, True, None)
    assert other.search("How old is the moon?", 1)[0].passage.title == "Moon"
    assert chain.source is source


def test_without_anything_to_search_the_message_says_what_to_do() -> None:
    with pytest.raises(PolyhopError, match="nothing to search: give ChainRetriever an index, or each question its own"):
        ChainRetriever().search("moon", 1)
    assert ChainRetriever().over(PassagePool(WORLD)).search("Solaris", 1)[0].passage.id == "solaris"
    assert (ChainRetriever().k1, ChainRetriever().b) == (0.9, 0.4)


WEIGHTS = [(weight.name, weight.metadata["low"], weight.metadata["high"]) for weight in fields(ChainWeights)]


@pytest.mark.parametrize(("name", "low", "high"), WEIGHTS, ids=[name for name, _, _ in WEIGHTS])
def test_weights_have_a_range(name: str, low: float, high: float) -> None:
    assert getattr(ChainWeights(**{name: low}), name) == low
    assert getattr(ChainWeights(**{name: high}), name) == high
    for value in (low - 0.01, high + 0.01, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"{name} must be in {low}..{high}, got {value}"):
            ChainWeights(**{name: value})


# --- as many passages as the chain needs -----------------------------------------------------------------------------


@pytest.mark.parametrize("question", [*QUESTIONS, "What did the jury do in 1988?", "moon"])
@pytest.mark.parametrize("k", [1, 4, 20])
def test_an_adaptive_ranking_is_the_beginning_of_the_whole(retriever: ChainRetriever, question: str, k: int) -> None:
    whole = retriever.search(question, k)
    found = retriever.with_weights(retriever.weights, adaptive=True).search(question, k)
    assert found == whole[: len(found)]
    assert bool(found) == bool(whole)


def test_one_hop_takes_fewer_passages_than_two(retriever: ChainRetriever) -> None:
    adaptive = retriever.with_weights(retriever.weights, adaptive=True)
    one = adaptive.search("What did the jury do in 1988?", 10)
    two = adaptive.search(CASES["comparison"].question, 10)
    assert ids(one)[0] == "palette"
    assert len(one) < len(two) < 10
    assert {"harvest", "ferry"} <= set(ids(two))


def test_the_threshold_decides_how_far_the_chain_goes(retriever: ChainRetriever) -> None:
    question = CASES["comparison"].question
    lengths = [
        len(retriever.with_weights(ChainWeights(enough=enough), adaptive=True).search(question, 4))
        for enough in (0.0, 0.3, 1.0, 3.0)
    ]
    assert lengths == sorted(lengths, reverse=True)
    assert (lengths[0], lengths[-1]) == (4, 1)


# --- vectors ---------------------------------------------------------------------------------------------------------


class Fixed:
    """Vectors of an index, whose cosine with any question is known by document."""

    def __init__(self, cosines: dict[int, float], source: BM25Index | PassagePool) -> None:
        self.cosines = cosines
        self.manifest = getattr(source, "manifest", None)
        self.asked: list[tuple[str, int]] = []

    def similarities(self, query: str, documents: Sequence[int]) -> Any:
        self.asked += [(query, document) for document in documents]
        return np.array([self.cosines.get(document, 0.0) for document in documents], np.float32)


def test_similar_vectors_count_as_much_as_their_weight(world: BM25Index) -> None:
    question = CASES["shared name"].question
    document = next(hit.document for hit in world.search(question, 9) if hit.passage.id == "cresthaven")
    assert document is not None
    vectors: Any = Fixed({document: 1.0}, world)
    for weight, changes in ((3.0, True), (0.0, False)):
        weights = ChainWeights(similarity=weight)
        found = ChainRetriever(world, weights, vectors=vectors).search(question, 9)
        plain = ChainRetriever(world, weights).search(question, 9)
        assert (ids(found) != ids(plain)) == changes
        assert (found[0].passage.id == "cresthaven") == changes
    assert {query for query, _ in vectors.asked} == {question}
    asked = [document for _, document in vectors.asked]
    assert len(set(asked)) == len(asked) // 2  # each once a search
    assert set(asked) <= set(range(len(world)))


def test_passages_that_bm25_does_not_find_have_similarities_too(world: BM25Index) -> None:
    question = CASES["link"].question
    [document] = [hit.document for hit in world.search("Zavrazhye", 1)]
    assert document is not None
    vectors: Any = Fixed({document: 1.0}, world)
    weights = ChainWeights(similarity=3.0)
    with_, without = (ChainRetriever(world, weights, vectors=some).search(question, 2) for some in (vectors, None))
    assert ids(with_) == ids(without) == ["solaris", "tarkovsky"]
    assert with_[1].score > without[1].score


def test_vectors_of_another_index_are_refused(world: BM25Index) -> None:
    vectors: Any = Fixed({}, world)
    with pytest.raises(ValueError, match="the vectors are of another index"):
        ChainRetriever(PassagePool(WORLD), vectors=vectors)


# --- messy corpora ---------------------------------------------------------------------------------------------------

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


def test_passages_without_titles_are_tied_by_what_they_mention(messy: ChainRetriever) -> None:
    hits = messy.search("Which animals had the owner of the line that bought the ferry Margarethe?", 3)
    assert ids(hits)[:2] == ["untitled-1", "untitled-2"]
    assert hits[1].reason
    assert (hits[1].reason.via, hits[1].reason.name, hits[1].reason.source) == ("shared", "quandt", "untitled-1")


def test_a_passage_of_100000_characters_is_followed(messy: ChainRetriever) -> None:
    assert len(_HUGE) > 100_000
    hits = messy.search("Where was the builder of the Lighthouse of Skagen born?", 2)
    assert ids(hits) == ["huge", "winther"]
    assert hits[1].reason
    assert (hits[1].reason.via, hits[1].reason.name) == ("link", "ole winther")


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


def test_text_without_spaces_is_found_as_bm25_finds_it(messy: ChainRetriever) -> None:
    assert ids(messy.search("日本の首都はどこですか", 1)) == ["ja"]


def test_a_passage_without_text_is_found_by_its_title(messy: ChainRetriever) -> None:
    hits = messy.search("Who built the Empty Hall?", 1)
    assert ids(hits) == ["empty"]
    assert hits[0].reason == Reason("named", "empty hall", None, ("Empty", "Hall"))


def test_titles_without_letters_or_of_stop_words_are_found_by_their_text(messy: ChainRetriever) -> None:
    assert set(ids(messy.search("Which band or group, !!! or The Who, plays loudly?", 2))) == {"marks", "stop-words"}


@pytest.mark.parametrize("query", ["", "   ", "What is it and who are they?", "the of", "?!", "\x00", "\x1b\x07"])
def test_queries_that_ask_for_nothing(messy: ChainRetriever, query: str) -> None:
    """An index has nothing to say to them; a pool is handed out whole, as without chains."""
    hits = messy.search(query, 500)
    assert messy.source
    assert sorted(ids(hits)) == sorted(ids(messy.source.search(query, 500)))
    adaptive = messy.with_weights(messy.weights, adaptive=True).search(query, 500)
    assert adaptive == hits[: len(adaptive)]


@pytest.mark.parametrize("query", ["quixotic\x00null", "quixotic \ud800 null", "\ufeffquixotic\x1b null", "quixotic\n"])
def test_queries_with_oddities(messy: ChainRetriever, query: str) -> None:
    hits = messy.search(query, 3)
    assert hits[0].passage.id == "broken"
    assert hits[0].reason
    assert hits[0].reason.words[0] == "quixotic"
    "".join(hits[0].reason.words).encode()


def test_a_query_of_3000_words(messy: ChainRetriever) -> None:
    query = "Who composed the music of Night Garden? " + " ".join(f"filler{n} loaf" for n in range(1500))
    hits = messy.search(query, 5)
    assert len(hits) == 5
    assert "garden" in ids(hits)


@pytest.mark.parametrize("k", [1, 3])
def test_a_corpus_of_one_passage(tmp_path: Path, k: int) -> None:
    only = Passage.of("Moon", "The moon circles the Earth.", id="moon")
    with indexed([only], tmp_path) as index:
        for chain in (ChainRetriever(index), ChainRetriever(index, adaptive=True), over(only)):
            [hit] = chain.search("What does the moon circle?", k)
            assert (hit.passage, hit.rank) == (only, 1)
            assert hit.reason == Reason("named", "moon", None, ("moon", "circle"))
        assert ChainRetriever(index).search("sun", k) == []


def test_an_empty_pool_has_nothing() -> None:
    assert over().search("moon", 3) == []
    assert ChainRetriever(PassagePool([]), adaptive=True).search("moon", 3) == []


def test_identical_texts_under_several_ids_are_all_ranked() -> None:
    twins = [Passage.of("Moon", "The moon circles the Earth.", id=f"twin-{n}") for n in range(3)]
    assert sorted(ids(over(*twins).search("What does the moon circle?", 5))) == ["twin-0", "twin-1", "twin-2"]
