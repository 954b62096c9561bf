"""The language of texts and questions, and what is indexed and found in each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.chain.words import may_be_names, read, stem_of, wording
from polyhop.data.errors import PolyhopError
from polyhop.data.languages import LANGUAGES, function_words, language_of, spoken, stem
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.data.lucene.jvm import analyzer
from polyhop.data.lucene.update import update_index
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool

TEXTS = {
    "en": "The mill stands by the river, and its owner has lived there for thirty years.",
    "de": "Die Mühle steht am Fluss, und ihr Besitzer wohnt dort schon seit dreißig Jahren.",
    "fr": "Le moulin se trouve au bord de la rivière, et son propriétaire y habite depuis trente ans.",
    "es": "El molino está junto al río, y su dueño vive allí desde hace más de treinta años.",
    "ru": "Мельница стоит у реки, и её владелец живёт там уже больше тридцати лет.",
    "uk": "Млин стоїть біля річки, і його власник живе там уже понад тридцять років.",
    "ar": "تقع الطاحونة على ضفة النهر، ويعيش صاحبها هناك منذ أكثر من ثلاثين سنة.",
    "hi": "चक्की नदी के किनारे है और उसका मालिक वहाँ तीस साल से रहता है।",
    "th": "โรงสีตั้งอยู่ริมแม่น้ำและเจ้าของอาศัยอยู่ที่นั่นมาสามสิบปีแล้ว",
    "ja": "水車小屋は川のそばにあり、持ち主は三十年前からそこに住んでいます。",
    "zh": "磨坊位于河边，磨坊的主人在那里已经住了三十多年了，每天都在工作。",
    "ko": "방앗간은 강가에 있으며 주인은 그곳에서 삼십 년 넘게 살고 있습니다.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_the_language_is_told_from_the_text(language: str) -> None:
    assert language_of(TEXTS[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ada Berg",
        "Gauß",
        "max_wal_senders = 10\nwal_level = replica",
        "log_level = DEBUG; timeout_ms = 300; path = /var/lib/data",
        "Café Müller (Wuppertal), Théâtre de la Ville (Paris), Teatro alla Scala (Milano)",  # names alone
        "1998 1999 2000 2001 12.5 % 300 km",
    ],
)
def test_what_has_no_prose_is_in_the_language_before(text: str) -> None:
    assert [language_of(text, before) for before in ("en", "de", "ja")] == ["en", "de", "ja"]


def test_a_question_is_in_a_language_of_the_collection() -> None:
    assert spoken(TEXTS["de"], ["en", "de"]) == "de"
    asked = "In Writer habe ich das so benannt, dass niemand die Einträge ändert: wo steht das in der Liste?"
    assert spoken(asked, ["en", "de"]) == "de"  # with "in", "so", "in"
    assert spoken(TEXTS["de"], ["en", "fr"]) == "en"
    assert spoken("Kestrel Mill?", ["fr", "en"]) == "fr"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_an_analyzer_stop_words_and_stems(language: str) -> None:
    assert analyzer(language)
    assert function_words(language) or language in ("ko", "pl", "zh")
    assert stem("mill", language)


def test_words_with_accents_have_the_stem_of_what_is_written() -> None:
    def same(one: str, other: str, language: str) -> bool:
        stems = {stem for text in (one, other) for word in read(text, language) for stem in word.stems}
        return len(stems) == 1

    assert same("Häuser", "Haus", "de")
    assert same("créations", "création", "fr")
    assert same("домами", "домов", "ru")
    assert not same("Häuser", "Maus", "de")


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("数据库", ["数据", "据库"]),
        ("データ", ["デー", "ータ"]),
        ("水", ["水"]),
        ("Writerで文書", ["writer", "で文", "文書"]),
        ("ＰＤＦファイル", ["pdf", "ファ", "ァイ", "イル"]),
        ("한국어를", ["한국", "국어", "어를"]),
        ("โรงสี", ["โรง", "รงส", "งสี"]),
    ],
)
def test_scripts_without_spaces_have_pairs_of_characters(text: str, forms: list[str]) -> None:
    words = read(text)
    assert [form for word in words for form in word.forms] == forms
    spelled = wording(words, 0, len(forms))
    assert spelled.replace(" ", "") in (text, text.lower(), "writerで文書", "ＰＤＦファイル")


def test_a_part_of_a_word_is_told_without_spaces() -> None:
    assert wording(read("関係データベース"), 2, 6) == "データベー"


def test_hiragana_alone_is_no_topic() -> None:
    assert stem_of("から") == stem_of("of") == ""
    assert stem_of("文書") == "文書"


@pytest.mark.parametrize(
    ("question", "language", "names"),
    [
        ("Wo liegt die Mühle von Ada Berg?", "de", ["ada", "berg"]),
        ("Welche Datei öffnet LibreOffice mit dem Writer-Brief?", "de", ["libreoffice"]),
        ("Where is the mill of Ada?", "en", ["where", "ada"]),
        ("Is Ada the owner of a mill?", "en", ["is", "ada"]),
        ("アダの Writer はどこですか", "ja", ["writer"]),
        ("where is the mill?", "en", ["where", "is", "the", "mill"]),
    ],
)
def test_which_words_of_a_question_may_be_names(question: str, language: str, names: list[str]) -> None:
    words = read(question, language)
    may_be = may_be_names(question, words, language)
    assert [word.forms[0] for word, is_name in zip(words, may_be, strict=True) if is_name] == names


def test_the_words_of_a_pool_are_those_of_its_language() -> None:
    """A passage may be in pools of several languages, and what is known of it in one is not taken for another."""
    shared = Passage.of("Ada Berg", "Häuser Dateien")
    german = [Passage.of(f"Mühle {n}", f"{TEXTS['de']} Es sind {n}.") for n in range(3)]
    english = [Passage.of(f"Mill {n}", f"{TEXTS['en']} There are {n}.") for n in range(3)]
    pools = [PassagePool([*others, shared]) for others in (english, german, english)]
    assert [pool.store.idf("haus") > 0 for pool in pools] == [False, True, False]
    assert [pool.search("Ada", 1)[0].passage.language for pool in pools] == ["en", "de", "en"]
    assert PassagePool([*german, shared]).search("das Haus", 1)[0].passage.id == shared.id


# --- an index of several languages -----------------------------------------------------------------------------------

NOTES = {
    "muehle.md": f"# Mühle\n\n{TEXTS['de']} Die Besitzerin heißt Ada Berg. Sie backt auch Brote.",
    "berg.md": "# Ada Berg\n\nAda Berg wurde in einem kleinen Dorf am See geboren und hat dort eine Schule besucht.",
    "mill.md": f"# Mill\n\n{TEXTS['en']} She bakes breads.",
    "suisha.md": f"# 水車小屋\n\n{TEXTS['ja']} 持ち主の名前は山田花子です。",
    "yamada.md": "# 山田花子\n\n彼女は小さな村で生まれ、湖のそばの学校に通いました。",
    "mofang.md": f"# 磨坊\n\n{TEXTS['zh']}",
}


def notes(parent: Path) -> Path:
    home = parent / "notes"
    home.mkdir()
    for name, text in NOTES.items():
        (home / name).write_text(text, encoding="utf-8")
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return notes(tmp_path)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BM25Index]:
    home = notes(tmp_path_factory.mktemp("languages"))
    manifest = build_index([home], home.parent / "ix")
    assert set(manifest.languages) == {"de", "en", "ja", "zh"}
    with BM25Index(home.parent / "ix") as opened:
        yield opened


def first(index: BM25Index | ChainRetriever, question: str) -> str:
    return index.search(question, 1)[0].passage.document


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("Wer bewohnt die Mühlen am Flusse?", "notes/muehle.md"),  # other endings
        ("Who has been living in the mills by the rivers?", "notes/mill.md"),
        ("水車小屋は誰の物ですか", "notes/suisha.md"),
        ("磨坊的主人住了多久？", "notes/mofang.md"),
    ],
)
def test_documents_are_found_in_the_language_of_the_question(index: BM25Index, question: str, document: str) -> None:
    assert first(index, question) == document
    assert first(ChainRetriever(index), question) == document


@pytest.mark.parametrize(
    ("question", "chain"),
    [
        ("Wo wurde die Besitzerin der Mühle geboren?", ["notes/muehle.md", "notes/berg.md"]),
        ("水車小屋の持ち主はどこで生まれましたか", ["notes/suisha.md", "notes/yamada.md"]),
    ],
)
def test_a_chain_follows_names_in_every_language(index: BM25Index, question: str, chain: list[str]) -> None:
    hits = ChainRetriever(index).search(question, 2)
    assert [hit.passage.document for hit in hits] == chain
    assert hits[1].reason is not None
    assert hits[1].reason.via in ("link", "back", "shared")
    assert hits[1].reason.name in ("ada berg", "山田花子")


def test_the_language_can_be_given_and_stays_in_updates(folder: Path) -> None:
    manifest = build_index([folder], folder.parent / "ix", language="de")
    assert (manifest.language, manifest.languages, manifest.analyzer) == ("de", ("de",), "Anserini de")
    (folder / "new.md").write_text("# Kühe\n\nDie Kühe grasen auf der Weide.", encoding="utf-8")
    changed = update_index(folder.parent / "ix", folders=[folder]).manifest
    assert changed.languages == ("de",)
    with BM25Index(folder.parent / "ix") as index:
        assert first(index, "die Kuh") == "notes/new.md"
    with pytest.raises(PolyhopError, match="no language 'xx': choose auto or one of en ar"):
        build_index([folder], folder.parent / "ix", language="xx")


def test_an_update_adds_a_language(folder: Path) -> None:
    (folder / "mofang.md").unlink()
    build_index([folder], folder.parent / "ix")
    (folder / "mlyn.md").write_text(f"# Мельница\n\n{TEXTS['ru']}", encoding="utf-8")
    assert update_index(folder.parent / "ix", folders=[folder]).manifest.languages[-1] == "ru"
    with BM25Index(folder.parent / "ix") as index:
        assert first(index, "Где стоят мельницы?") == "notes/mlyn.md"
        assert index.search("Где стоят мельницы?", 1)[0].passage.language == "ru"


def test_the_language_of_most_passages_stays_the_first_one(folder: Path) -> None:
    for n in range(3):
        (folder / f"de{n}.md").write_text(f"# Nummer {n}\n\n{TEXTS['de']} Es sind {n}.", encoding="utf-8")
    assert build_index([folder], folder.parent / "ix").languages[0] == "de"
    for n in range(9):
        (folder / f"en{n}.md").write_text(f"# Number {n}\n\n{TEXTS['en']} There are {n}.", encoding="utf-8")
    assert update_index(folder.parent / "ix", folders=[folder]).manifest.languages[0] == "de"


def test_an_english_index_says_nothing_of_languages_in_its_passages(folder: Path) -> None:
    manifest = build_index([folder / "mill.md"], folder.parent / "ix")
    assert (manifest.languages, manifest.analyzer) == (("en",), "Anserini DefaultEnglishAnalyzer (Porter)")
    with BM25Index(folder.parent / "ix") as index:
        passage = index.search("mill", 1)[0].passage
        assert "language" not in passage.to_record()
    german = Passage.from_record({"id": "a", "text": "Die Kuh.", "language": "de"})
    assert german.language == "de"
    assert Passage.from_record(german.to_record()) == german
    assert Passage.from_record({"id": "a", "text": "x", "language": "Elvish"}).language == "en"
