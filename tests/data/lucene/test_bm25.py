"""The index searched: Anserini's own scores, any thread, any query."""

from __future__ import annotations

import json
import pickle
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.errors import IndexFault
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.data.lucene.jvm import autoclass, call
from polyhop.data.passages import Hit, Passage
from polyhop.data.pool import PassagePool

_chance = random.Random(0)
_words = (
    "moon river stone castle film director novel singer river's running Runs the of coast born died city 1923".split()
)
RECORDS: list[dict[str, Any]] = [
    {"id": f"d{n:03}", "title": f"Title {n % 40}", "text": " ".join(_chance.choices(_words, k=_chance.randint(3, 60)))}
    for n in range(400)
] + [
    {"id": "help-film", "title": "Help! (film)", "text": "Help! is a film with the Beatles."},
    {"id": "help", "title": "Help!", "text": "Help is assistance."},
    {"id": "besançon", "title": "Besançon", "sentences": ["Besançon is a city.", "It lies on the Doubs."]},
    {"id": "untitled", "text": "A passage without a title, about zebras."},
    {"id": "empty", "title": "Only a Title", "text": ""},
    {"id": "cjk", "title": "東京", "text": "東京は日本の首都です。"},
    {"id": "broken", "title": "Broken \ud800", "text": "Half a \udc00 pair and a \x00 null, quixotic."},
]
QUERIES = ["moon river", "the director of the film", "Castle castle castle coast", "running", "born 1923 died"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bm25") / "corpus.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


@pytest.fixture(scope="module")
def index(corpus: Path) -> Iterator[BM25Index]:
    build_index([corpus], corpus.parent / "ix", max_words=0, language="en")
    with BM25Index(corpus.parent / "ix") as opened:
        yield opened


def found(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


def assert_same(ours: list[Hit], theirs: list[Any]) -> None:
    """The same passages in the same order with the same scores.

    Anserini rounds its scores to four decimals, less 0.000001 for each hit that ties with the one before.
    """
    assert [hit.passage.id for hit in ours] == [hit.docid for hit in theirs]
    assert [hit.score for hit in ours] == pytest.approx(
        [hit.score for hit in theirs], abs=0.00006 + 0.000001 * len(ours)
    )


# --- ranking ---------------------------------------------------------------------------------------------------------


def test_ranks_and_scores_are_anserinis(index: BM25Index, tmp_path: Path) -> None:
    indexer = autoclass("io.anserini.index.SimpleIndexer")(str(tmp_path / "anserini"))
    for record in RECORDS:
        passage = Passage.from_record(record)
        call(indexer, "addRawDocument", json.dumps({"id": passage.id, "contents": f"{passage.title}\n{passage.text}"}))
    call(indexer, "close")
    searcher = autoclass("io.anserini.search.SimpleSearcher")(str(tmp_path / "anserini"))
    for k1, b in ((0.9, 0.4), (1.7, 0.8)):
        call(searcher, "set_bm25", k1, b)
        for query in [*QUERIES, "zebras", "東京", "quixotic"]:
            theirs = call(searcher, "search", query, 50)
            assert theirs
            assert_same(index.with_bm25(k1, b).search(query, 50), theirs)


def test_anserini_opens_the_index(index: BM25Index) -> None:
    searcher = autoclass("io.anserini.search.SimpleSearcher")(str(index.path))
    assert_same(index.search("moon river", 10), call(searcher, "search", "moon river", 10))
    stored = json.loads(call(searcher, "doc_raw", "help"))
    assert stored.pop("crc32")
    assert stored == RECORDS[401]


def test_ties_go_by_id(tmp_path: Path) -> None:
    ids = [f"{n:02}" for n in range(60)] + ["a", "é", "Z", "\uffee", "\U0001f600"]
    records = [{"id": id, "title": "Same", "text": "The very same text."} for id in ids]
    _chance.shuffle(records)
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    build_index([tmp_path / "c.jsonl"], tmp_path / "ix")
    with BM25Index(tmp_path / "ix") as tied:
        assert [id for id, _ in found(tied.search("same text", 99))] == sorted(ids)
        assert [id for id, _ in found(tied.search("same text", 10))] == sorted(ids)[:10]


# --- queries ---------------------------------------------------------------------------------------------------------


def test_words_of_code_are_found_by_their_parts_in_an_index_and_in_a_pool(tmp_path: Path) -> None:
    texts = {
        "one": "Call os.urandom for some bytes.",
        "two": "The setting max_wal_senders limits them.",
        "three": "A mayor of the U.S. left.",
        "four": "A path of s and u.",
    }
    (tmp_path / "docs").mkdir()
    for name, text in texts.items():
        (tmp_path / f"docs/{name}-file.md").write_text(text)
    build_index([tmp_path / "docs"], tmp_path / "ix")
    with BM25Index(tmp_path / "ix") as index:
        pool = PassagePool(index.stored(range(len(index))))
        for query, names in {
            "urandom": ["one"],
            "os.urandom": ["one"],
            "os urandom": ["one"],
            "wal": ["two"],
            "senders max": ["two"],
            "max_wal_senders": ["two"],
            "max_idle_senders": ["two"],
            "U.S.": ["three"],
            "two file": ["two", "four", "one", "three"],  # equal but for their names
        }.items():
            hits = [hit for hit in index.search(query, 9) if hit.score]
            assert [hit.passage.id.removeprefix("docs/").removesuffix("-file.md") for hit in hits][:1] == names[:1]
            assert {hit.passage.id for hit in hits} == {f"docs/{name}-file.md" for name in names}
            ranked = [(hit.passage.id, pytest.approx(hit.score, abs=1e-5)) for hit in pool.search(query, len(hits))]
            assert dict(found(hits)) == dict(ranked)


def test_very_long_queries_and_pages_past_the_end(index: BM25Index) -> None:
    assert index.search(" ".join(f"term{n} moon" for n in range(10_000)), 3)
    assert index.search("moon" * 50_000 + " zebras", 3)[0].passage.id == "untitled"
    assert index.search("quixotic", 10_000) == index.search("quixotic", 1) != []
    assert index.search("quixotic", 10, 1) == []


# --- look-ups --------------------------------------------------------------------------------------------------------


def test_passages_come_back_whole(index: BM25Index) -> None:
    assert len(index) == len(RECORDS)
    expected = [Passage.from_record(record) for record in RECORDS]
    assert index.passages([passage.id for passage in expected]) == expected
    assert index.passages(["help", "d001", "help"]) == [expected[401], expected[1], expected[401]]
    assert index.passage("besançon").sentences == ("Besançon is a city.", "It lies on the Doubs.")
    assert index.passages([]) == []
    assert index.passage("broken").title == "Broken \ufffd"
    for missing in ("nothing", "", "\ud800"):
        with pytest.raises(KeyError):
            index.passage(missing)


def test_titles(index: BM25Index) -> None:
    def titled(title: str) -> list[str]:
        return [passage.id for passage in index.titled(title)]

    assert titled("Help!") == titled("HELP") == ["help"]
    assert titled("help (film)") == ["help-film"]
    assert titled("Besancon") == ["besançon"]
    assert titled("title 3") == [f"d{n:03}" for n in range(3, 400, 40)]
    assert titled("東京") == ["cjk"]
    assert titled("") == titled("?!") == titled("Nowhere") == titled("x" * 50_000) == []


# --- threads, copies, processes --------------------------------------------------------------------------------------


def test_settings_do_not_mix(index: BM25Index) -> None:
    """32 threads, each with its own k1 and b, switching as often as Python can."""
    settings = [(0.1 + n / 10, n / 32) for n in range(32)]
    expected = {
        setting: [found(index.with_bm25(*setting).search(query, 10)) for query in QUERIES] for setting in settings
    }
    assert len({str(hits) for hits in expected.values()}) == 32

    def right(setting: tuple[float, float]) -> bool:
        for _ in range(3):
            view = index.with_bm25(*setting)
            if [found(view.search(query, 10)) for query in QUERIES] != expected[setting]:
                return False
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(32) as pool:
            assert all(pool.map(right, settings))
    finally:
        sys.setswitchinterval(interval)
    assert (index.k1, index.b) == (0.9, 0.4)
    assert index.with_bm25(k1=1.5).b == 0.4


def test_a_pickle_keeps_the_parameters_and_is_closed_alone(index: BM25Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a relative path, though Java knows only the directory in which it was started."""
    monkeypatch.chdir(index.path.parent)
    sent = pickle.dumps(BM25Index(Path(index.path.name), 1.2, 0.7))
    monkeypatch.chdir("/")
    again = pickle.loads(sent)
    assert (again.path, again.k1, again.b) == (index.path, 1.2, 0.7)
    assert again.search("moon", 1)
    again.close()
    with pytest.raises(IndexFault, match="closed"):
        again.search("moon", 1)
    assert index.search("moon", 1)


# --- what chains ask -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["moon river", "castle", "xyzzy", "", "the"])
def test_rankings_have_the_scores_of_hits_which_know_their_rows(index: BM25Index, query: str) -> None:
    """And a row says nothing about whether two hits are equal."""
    hits, ranking = index.search(query, 30, 5), index.ranking(query, 30, 5)
    assert [score for _, score in ranking] == pytest.approx([hit.score for hit in hits])
    assert len({row for row, _ in ranking}) == len(ranking)
    assert index.stored([hit.document for hit in hits if hit.document is not None]) == [hit.passage for hit in hits]
    assert hits == [Hit(hit.passage, hit.score, hit.rank) for hit in hits]
