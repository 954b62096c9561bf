"""Languages of documents and questions: which one a text is in, its function words and its stems.

BM25 analyzes a passage with the Lucene analyzer that Anserini has for its language. The chain retriever compares words
by Snowball's stems, without Lucene's stop words; Chinese, Japanese, Korean and Thai, whose words have no spaces between
them or particles at their ends, by overlapping pairs of characters.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any
from unicodedata import category
from zipfile import ZipFile

import Stemmer

from . import text
from .errors import PolyhopError
from .lucene.jvm import anserini_jar

ENGLISH = "en"
AUTO = "auto"
"""The language is told from the text."""
_STOP_WORDS_AND_STEMMERS = {
    "ar": ("ar/stopwords", "arabic"), "bn": ("bn/stopwords", ""), "da": ("snowball/danish_stop", "danish"),
    "de": ("snowball/german_stop", "german"), "es": ("snowball/spanish_stop", "spanish"),
    "fa": ("fa/stopwords", "persian"), "fi": ("snowball/finnish_stop", "finnish"),
    "fr": ("snowball/french_stop", "french"), "hi": ("hi/stopwords", "hindi"),
    "hu": ("snowball/hungarian_stop", "hungarian"), "id": ("snowball/indonesian_stop", "indonesian"),
    "it": ("snowball/italian_stop", "italian"), "ja": ("ja/stopwords", ""), "ko": ("", ""),
    "nl": ("snowball/dutch_stop", "dutch"), "no": ("snowball/norwegian_stop", "norwegian"), "pl": ("", "polish"),
    "pt": ("snowball/portuguese_stop", "portuguese"), "ru": ("snowball/russian_stop", "russian"),
    "sv": ("snowball/swedish_stop", "swedish"), "te": ("te/stopwords", ""), "th": ("th/stopwords", ""),
    "tr": ("tr/stopwords", "turkish"), "uk": ("uk/stopwords", ""), "zh": ("", ""),
}  # fmt: skip
LANGUAGES = (ENGLISH, *_STOP_WORDS_AND_STEMMERS)
"""ISO 639-1 codes of the languages that Anserini has an analyzer for."""
CASELESS = frozenset("ar bn fa hi ja ko te th zh".split())
"""The languages whose scripts have no capitals."""

NOUNS = "de"
"""The language in which all nouns have a capital: a name has two of them, or another one inside."""
PAIRED = frozenset("ja ko th zh".split())
"""The languages whose words are pairs of characters, which overlap."""

_stemmers = threading.local()  # a PyStemmer object is not thread-safe
_loading = threading.Lock()

_SAMPLE = 1000  # characters of a text that tell its language
_SHORT = 8  # letters of a question that may tell it
_SURE = 0.9  # least probability
_PROSE = 0.15  # share of function words from which on a text is in their language
_ENGLISH_PROSE, _PERHAPS_ENGLISH = 0.25, 0.11  # of English ones: for sure, and unless another language has
_MORE = 3  # times as many
_LATIN = "\u024f"  # its last letter
_WEIGHT = 4  # letters that one of these characters counts for


def check_language(language: str) -> None:
    """Raises `PolyhopError` for another language than `LANGUAGES` and `AUTO`."""
    if language not in (AUTO, *LANGUAGES):
        raise PolyhopError(f"no language {language!r}: choose {AUTO} or one of {' '.join(LANGUAGES)}")


@cache
def function_words(language: str) -> frozenset[str]:
    """Folded words without a topic: Lucene's stop words of the language."""
    if language == ENGLISH:
        return text.FUNCTION_WORDS
    name, _ = _STOP_WORDS_AND_STEMMERS[language]
    if not name:
        return frozenset()
    with ZipFile(anserini_jar()) as jar:
        lines = jar.read(f"org/apache/lucene/analysis/{name}.txt").decode().splitlines()
    written = (line.partition("|")[0].partition("#")[0].split() for line in lines)  # both start a comment
    return frozenset(form for words in written for word in words for form in text.key_words(word))


@lru_cache(maxsize=65536)
def stem(word: str, language: str) -> str:
    """The stem of a folded word; the word itself where there is no stemmer."""
    if language == ENGLISH:
        return text.stem(word)
    _, name = _STOP_WORDS_AND_STEMMERS[language]
    if not name:
        return word
    stemmers: dict[str, Any] = _stemmers.__dict__
    if name not in stemmers:
        stemmers[name] = Stemmer.Stemmer(name, 0)
    stemmed: str = stemmers[name].stemWord(word)
    return stemmed


@cache
def _identifier() -> Any:
    langid = import_module("py3langid.langid")
    identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def language_of(written: str, otherwise: str = ENGLISH, among: Sequence[str] = LANGUAGES, least: int = 40) -> str:
    """The language of a text, or another one if it has too little prose to tell.

    Args:
        among: The languages that it may be in.
        least: Letters that it has at least, or less of a script without spaces.
    """
    sample = written[:_SAMPLE]
    unspaced = len(text.UNSPACED.findall(sample))
    words = [] if len(sample) == unspaced else text.key_words(sample)
    english = _share(words, ENGLISH) if ENGLISH in among and unspaced * _WEIGHT < len(sample) else 0.0
    if english >= _ENGLISH_PROSE:
        return ENGLISH
    undecided = ENGLISH if english >= _PERHAPS_ENGLISH else otherwise
    letters = [character for character in sample if category(character)[0] in "LM"]  # with the vowels of India
    if len(letters) + (_WEIGHT - 1) * unspaced < least:
        return undecided
    with _loading:
        ranked = [(language, share) for language, share in _identifier().rank(sample) if language in among]
    language, probability = ranked[0]
    if language == ENGLISH:
        return undecided
    if sum(letter > _LATIN for letter in letters) > len(letters) / 2:
        return str(language)
    # In Latin letters, names and code look like any language.
    is_sure = probability >= _SURE * sum(share for _, share in ranked)
    is_prose = _share(words, language) >= max(_PROSE, _MORE * english) or not function_words(language)
    return str(language) if is_sure and is_prose else undecided


def spoken(question: str, languages: Sequence[str]) -> str:
    """The language of a question, of those of a collection; the first where it does not tell."""
    return languages[0] if len(languages) == 1 else language_of(question, languages[0], languages, _SHORT)


def is_english(question: str) -> bool:
    return spoken(question, LANGUAGES) == ENGLISH


def _share(words: list[str], language: str) -> float:
    common = function_words(language)
    return sum(word in common for word in words) / len(words) if words else 0.0
