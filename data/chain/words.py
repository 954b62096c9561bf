"""The words of passages and questions as numbers, which are small on disk and fast to compare.

A word is a 32-bit number: 22 bits of a hash of its stem, 7 bits of a hash of its folded form, and three flags. Function
words have stems below `TOPIC`. 0 ends the title and each sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from html import unescape
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..languages import CASELESS, ENGLISH, LANGUAGES, NOUNS, function_words, spoken, stem
from ..links import address, file_words
from ..passages import MOST_LINKS, Passage
from ..text import (
    UNSPACED,
    WORD,
    bare_title,
    clean,
    code_parts,
    fold,
    is_hiragana,
    join_initials,
    key_words,
    short_title,
    unspaced_forms,
)

if TYPE_CHECKING:
    from .store import Store

Words = NDArray[np.uint32]
Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STARTS = 1  # flag: a name may start here (no lower-case letter)
FIRST, INSIDE = 2, 4  # flags: the first word of a capitalized name, a further one; both: without case, in no name
FORM_BITS, STEM_BITS = 3, 10  # a word without its flags, and its stem, are what remains after this shift
TOPIC = 512  # the least stem of a topic word
TOPIC_WORD = TOPIC << (STEM_BITS - FORM_BITS)  # the least number of a topic word, without flags
LONGEST_NAME = 12  # words; of a longer name the beginning is compared
LINK = np.dtype([("start", "u4"), ("end", "u4"), ("document", "u8"), ("anchor", "u4"), ("kind", "u1")])
LINK_KINDS = ("text", "see", "contents")
_MOST = 255  # words of a title or a file's name that count
_JOINING = frozenset("of the and de la le du des del della di da von van der den for in".split())
_JOINING_NOUNS = frozenset(["von", "zu"])
_CACHED = 200_000
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|\w{2,8});")
_AND = re.compile(r"\s*&\s*")
_FACTORS = np.random.default_rng(20).integers(1, 2**63, LONGEST_NAME, np.uint64) | np.uint64(1)
_MARKS = 4096
_MOST_WORDS = 300  # of a question
_NEAR = 3  # words between which two of a question are neighbours
_AGENT = re.compile(r".{2,}tor")  # who does what the word says without "or": not Tor


class Word(NamedTuple):
    """A word as written, its folded forms (rarely more than one), and the numbers of these.

    Attributes:
        upper: It starts with a capital.
        starts: It does not start with a lower-case letter.
        joins: It may stand inside a name, as "of" does.
    """

    written: str
    forms: tuple[str, ...]
    numbers: tuple[int, ...]
    upper: bool
    starts: bool
    joins: bool


def _tells_name(word: Word, language: str) -> bool:
    """Whether a word of a question starts a name, by its first letter or, in German, by another capital or a digit."""
    if language in CASELESS:
        return word.upper or word.written[0].isdigit()
    return word.starts and (language != NOUNS or any(c.isupper() or c.isdigit() for c in word.written[1:]))


def _side_by_side(text: str) -> set[int]:
    """Which words of a German text have a capital, as one beside them does."""
    text = _prepared(clean(text))
    words = list(WORD.finditer(text))
    pairs = (
        {at, at + 1}
        for at, (one, other) in enumerate(pairwise(words))
        if at and one[0][0].isupper() and other[0][0].isupper() and text[one.end() : other.start()] == " "
    )
    return set[int]().union(*pairs)


class _Known(dict[str, Word]):
    """Words of a language seen before; several times faster than an lru_cache."""

    def __init__(self, language: str) -> None:
        self._language = language

    def __missing__(self, written: str) -> Word:
        if len(self) >= _CACHED:
            self.clear()
        forms: tuple[str, ...] = (written.lower(),)
        if not (written.isascii() and written.isalnum()):
            forms = tuple(unspaced_forms(written)) or (
                *key_words(written),
                *(part.lower() for part in code_parts(written)),
            )
        starts = not written[0].islower()
        numbers = tuple(number(form, self._language, written) | (STARTS if starts else 0) for form in forms)
        joins = len(forms) == 1 and forms[0] in _JOINING
        self[written] = Word(written, forms, numbers, written[0].isupper(), starts, joins)
        return self[written]


_known = {language: _Known(language) for language in LANGUAGES}


def number(form: str, language: str = ENGLISH, written: str = "") -> int:
    """The number of a folded word, of which the stem is perhaps better found as it is written."""
    if form in function_words(language) or is_hiragana(form):
        return (1 + crc32(form.encode()) % (TOPIC - 1)) << STEM_BITS
    stemmed = stem(form, language)
    if language != ENGLISH and fold(written) == form:  # with accents
        stemmed = fold(stem(written.lower(), language))
    slot = TOPIC + crc32(stemmed.encode()) % ((1 << 32 - STEM_BITS) - TOPIC)
    flags = 0 if form.islower() else FIRST | INSIDE  # a number, or a script without capitals
    return slot << STEM_BITS | (crc32(form.encode(), 1) & 127) << FORM_BITS | flags


def _prepared(text: str) -> str:
    """A text without HTML entities, which HotpotQA's titles have, with "and" for "&", and with joined initials."""
    if "&" in text:
        text = _AND.sub(" and ", _ENTITY.sub(lambda entity: unescape(entity.group()), text))
    return join_initials(text)


def read(text: str, language: str = ENGLISH) -> list[Word]:
    """The words of a title or a sentence."""
    known = _known[language]
    return [known[written] for written in WORD.findall(_prepared(text))]


def folded(text: str) -> list[str]:
    """The folded words of a title or a sentence."""
    return [form for word in read(text) for form in word.forms]


def wording(words: Sequence[Word], start: int, end: int) -> str:
    """The forms from ``start`` to ``end`` of some words: of code or a number that is whole there, as written; pairs of
    characters are joined."""
    parts: list[str] = []
    at = 0
    for word in words:
        forms = word.forms[max(start - at, 0) : max(end - at, 0)]
        code = len(word.forms) > 1 or any(map(str.isdigit, word.written))
        if code and forms and forms == word.forms:
            parts.append(word.written)
        elif forms and UNSPACED.match(forms[0]):
            parts.append(forms[0] + "".join(form[-1] if UNSPACED.match(form) else form for form in forms[1:]))
        else:
            parts += forms
        at += len(word.forms)
    return " ".join(parts)


# --- passages --------------------------------------------------------------------------------------------------------


class Record(NamedTuple):
    """What a `Store` keeps of a passage.

    Attributes:
        words: With flags.
        head: The number of words in the title; without its disambiguation; up to its first comma; the first word and
            the end of the title as others write it, see `short_title`, 0 and 0 for the same; the number of words in the
            name of the file, which follow the title; 1 if it is not its very beginning.
        document: The number of its document.
        links: To other documents, an array of `LINK`: where in the words; the document; the anchor there, 0 for none;
            and which of `LINK_KINDS`.
        places: By which links name it: the numbers of a document and of an anchor in it, 0 for its opening.
    """

    words: Words
    head: tuple[int, ...]
    document: int
    links: NDArray[Any]
    places: tuple[tuple[int, int], ...]


def record_of(passage: Passage) -> Record:
    """The record of a passage in a `Store`."""
    title, file, texts = _prepared(passage.title), file_words(passage.document), texts_of(passage)
    document = document_number(passage.document.replace("#", "%23"))
    forms, numbers, starts = list[str](), list[int](), list[int]()
    for text in texts:
        starts.append(len(forms))
        _add_words(forms, numbers, _prepared(text), passage.language, names=len(starts) > 1)
    bare = bare_title(title)
    whole, named, comma = (len(folded(text)) for text in (title, bare, bare.split(",")[0] if "," in title else ""))
    before, short = (len(folded(text)) for text in short_title(title))
    shortened = (before, before + short) if 0 < short < named and before + short <= _MOST else (0, 0)
    first = len(texts) - len(passage.sentences)
    links = [
        (
            *_span(forms, starts[min(first + link.sentence, len(starts) - 1)], folded(link.text)),
            target,
            anchor_number(link.target),
            LINK_KINDS.index(link.kind),
        )
        for link in passage.links[:MOST_LINKS]
        if (target := document_number(link.target)) != document
    ]
    places = {(document, anchor_number(f"#{anchor}")) for anchor in passage.anchors}
    if passage.opens:
        # Wikis link by the title or the name of the file.
        names = f"[[{passage.title}]]", f"[[{PurePosixPath(passage.document).stem}]]"
        places |= {(number, 0) for number in (document, *(map(document_number, names) if file else ()))}
    is_below = bool(passage.place and passage.place.sentence)  # a heading at least: names lead to no such opening
    counts = whole, named, comma, *shortened, len(folded(file))
    head = *(min(count, _MOST) for count in counts), int(is_below)
    return Record(np.array(numbers, np.uint32), head, document, np.array(links, LINK), tuple(sorted(places)))


cached_record = lru_cache(maxsize=2048)(record_of)  # passages of pools are read again by the next search


def texts_of(passage: Passage) -> tuple[str, ...]:
    """The title of a passage; the words of its file's name, and the headings above it as one sentence, if any; and its
    own sentences."""
    headings = " ".join(passage.place.headings) if passage.place else ""
    return passage.title, *filter(None, (file_words(passage.document), headings)), *passage.sentences


def document_number(target: str) -> int:
    """A 64-bit number of the document that a target or an id names, see `address`."""
    return int.from_bytes(blake2b(address(target).encode(), digest_size=8).digest(), "little")


def anchor_number(target: str) -> int:
    """A 30-bit number of the letters and digits of a target's fragment, in which site generators agree; 0 for none."""
    fragment = target.partition("#")[2].lower()
    letters = re.sub(r"[\W_]+", "", fragment) or fragment
    return crc32(letters.encode()) >> 2 or 1 if fragment else 0


def _add_words(forms: list[str], numbers: list[int], text: str, language: str, *, names: bool) -> None:
    """Add the words of a text, with the flags of its names: "University of Amsterdam" is one, "Moore, Smith" are two.

    A single word at the start does not count: every sentence starts with a capital. Nor does any in German, where all
    nouns do.
    """
    known, function, nouns = _known[language], function_words(language), language == NOUNS
    first, start, end, after, initials = len(forms), -1, -1, 0, False  # start, end: of the name; after: characters

    def flag() -> None:
        begin = start
        while begin < end and forms[begin] in function:
            begin += 1
        if begin < end and ((begin, end) != (first, first + 1) if not nouns else end > begin + 1):
            for at in range(begin, end):
                numbers[at] = numbers[at] & ~(FIRST | INSIDE) | (INSIDE if at > begin else FIRST)

    for match in WORD.finditer(text):
        written = match.group()
        word = known[written]
        if start >= 0:
            gap = text[after : match.start()].strip(" \u00a0" if nouns else " \u00a0-–")
            joins = word.joins and (not nouns or word.forms[0] in _JOINING_NOUNS)
            if (gap and not (gap == "." and initials)) or not (word.upper or joins):
                flag()
                start = -1
        if word.upper and names:
            start, end = (start if start >= 0 else len(forms)), len(forms) + len(word.forms)
        forms += word.forms
        numbers += word.numbers
        after, initials = match.end(), len(written) == 1 or "." in written
    if start >= 0:
        flag()
    forms.append("")
    numbers.append(0)


def _span(forms: Sequence[str], start: int, wanted: Sequence[str]) -> tuple[int, int]:
    """Where words are in the text that begins at ``start``; its first word if they are not there."""
    wanted = wanted[:LONGEST_NAME]
    for at in range(start, forms.index("", start) - len(wanted) + 1) if wanted else ():
        if forms[at : at + len(wanted)] == wanted:
            return at, at + len(wanted)
    return start, start


# --- words as numbers ------------------------------------------------------------------------------------------------


def without_flags(words: Words) -> Words:
    return np.right_shift(words, FORM_BITS)


def stems_of(words: Words) -> Words:
    """The stems of words with flags."""
    return np.right_shift(words, STEM_BITS)


def names_in(words: Words) -> Ints:
    """The (start, end) of the capitalized names among words with flags."""
    state = words & (FIRST | INSIDE)
    start, ends = np.flatnonzero(state == FIRST), np.flatnonzero(np.append(state, 0) != INSIDE)
    return np.stack([start, ends[np.searchsorted(ends, start + 1)]], axis=1)


def hash_names(names: Words) -> Hashes:
    """The hashes of names, rows of words without flags that end in zeros: multilinear modulo 2^64."""
    return (names.astype(np.uint64) * _FACTORS[: names.shape[-1]]).sum(axis=-1, dtype=np.uint64)


def place_numbers(documents: Any, anchors: Any) -> Hashes:
    """The numbers of places in documents, that of a document for the anchor 0."""
    return np.asarray(documents, np.uint64) + np.asarray(anchors, np.uint64) * _FACTORS[1]


def hash_runs(words: Words, longest: int) -> list[Hashes]:
    """For each length from 1, the hashes of the runs of words without flags that start at each word."""
    padded = np.concatenate([words, np.zeros(longest, np.uint32)]).astype(np.uint64)
    total = np.zeros(len(words), np.uint64)
    hashes = []
    for at in range(longest):
        total = total + padded[at : at + len(words)] * _FACTORS[at]
        hashes.append(total)
    return hashes


def counted(names: Hashes) -> tuple[Hashes, Ints]:
    """The distinct names, in order, and how often each occurs."""
    return np.unique(names, return_counts=True)


def occurrences(names: Hashes, among: tuple[Hashes, Ints]) -> Floats:
    """How often each name is among `counted` ones, at least 1."""
    distinct, counts = among
    if not len(distinct):
        return np.ones(len(names))
    at = np.minimum(np.searchsorted(distinct, names), len(distinct) - 1)
    return np.where(distinct[at] == names, counts[at], 1.0)


def is_among(values: Hashes, ordered: Hashes) -> Bools:
    """Which values are among others, at least one, that are in order."""
    return ordered[np.minimum(ordered.searchsorted(values), len(ordered) - 1)] == values


def _likely(values: Words, keys: Words) -> Ints:
    """The places of values that may be among the keys: a test that is fast for many values and few keys."""
    marked = np.zeros(_MARKS, bool)
    marked[keys & (_MARKS - 1)] = True
    return marked[values & (_MARKS - 1)].nonzero()[0]


def find_names(names: Words, words: Words) -> tuple[Ints, Ints]:
    """The occurrences of names (rows that end in zeros, or are zero) among words, both without flags: which, where."""
    first = names[:, 0]
    rows = first.argsort(kind="stable")
    rows = rows[len(rows) - np.count_nonzero(first) :]
    first = first[rows]
    places = _likely(words, first)
    values = words[places]
    low = first.searchsorted(values)
    count = first.searchsorted(values, "right") - low
    which, place = rows[spread(low, count)], places.repeat(count)
    end = len(words) - 1
    for at in range(1, LONGEST_NAME):
        wanted = names[which, at]
        if not wanted.any():
            break
        after = place + at
        same = (wanted == 0) | ((words[np.minimum(after, end)] == wanted) & (after <= end))
        which, place = which[same], place[same]
    return which, place


def spread(first: Ints, count: Ints) -> Ints:
    """The numbers from each ``first``, ``count`` of them, one after another."""
    ends = count.cumsum()
    return np.arange(ends[-1] if len(ends) else 0) + (first - ends + count).repeat(count)


def spanned(words: Words, spans: Ints) -> Words:
    """The words of spans (start, end) as rows that end in zeros, shape (spans, `LONGEST_NAME`)."""
    at = spans[:, :1] + np.arange(LONGEST_NAME)
    return np.where(at < spans[:, 1:], words[np.minimum(at, max(len(words) - 1, 0))], 0).astype(np.uint32)


# --- questions -------------------------------------------------------------------------------------------------------


class Question:
    """The words of a question, with weights from the frequencies of a collection.

    Attributes:
        language: Of the question.
        numbers: All words as numbers, without flags.
        capital: Whether each starts with a capital or a digit; all do in a question without capitals.
        written: All words.
        words: The distinct topic words, as written; a word of code once for each of its parts.
        idf, weights: Their IDF, 1 for a word of a single passage; and as shares of the sum, shape (words,).
        pairs: Weights of pairs of neighbouring words, as shares of the sum, shape (pairs,).
    """

    def __init__(self, text: str, store: Store) -> None:
        self.text = text
        language = self.language = spoken(text, store.languages)
        self.written = written = read(clean(text), language)[:_MOST_WORDS]
        words = [
            (word, form, number) for word in written for form, number in zip(word.forms, word.numbers, strict=True)
        ]
        numbers = np.array([number for _, _, number in words], np.uint32)
        # The capital of the first word carries no information, nor does that of a single German noun.
        cased = any(word.upper for word in written[1:]) or language in CASELESS
        tells = [not cased or _tells_name(word, language) for word in written]
        if language == NOUNS:
            beside = _side_by_side(text)
            tells = [told or at in beside for at, told in enumerate(tells)]
        self.capital: Bools = np.array(
            [told for word, told in zip(written, tells, strict=True) for _ in word.forms], bool
        )
        self.numbers, stems = without_flags(numbers), stems_of(numbers)
        topical = np.flatnonzero(stems >= TOPIC)
        at = topical[np.sort(np.unique(stems[topical], return_index=True)[1])]
        self.words = [
            words[place][1] if UNSPACED.match(words[place][1]) else words[place][0].written for place in at.tolist()
        ]
        self.idf = store.idf(stems[at])
        self.weights = self.idf / (self.idf.sum() or 1.0)
        # "directed" counts for "director": Porter's stems differ, unlike those of "composed" and "composer".
        agents = [which for which, place in enumerate(at.tolist()) if _AGENT.fullmatch(words[place][1])]
        verbs = stems_of(np.array([number(words[at[which]][1][:-2]) for which in agents], np.uint32))
        new = np.flatnonzero(~np.isin(verbs, stems[at]))
        known, which = np.append(stems[at], verbs[new]), np.append(np.arange(len(at)), np.array(agents, np.int64)[new])
        order = np.argsort(known)
        self._stems, self._word = known[order], which[order]
        first = np.flatnonzero(np.diff(at) <= _NEAR)
        self.pairs = self.weights[first] + self.weights[first + 1]
        self.pairs /= self.pairs.sum() or 1.0
        self._pair = np.full((len(at), len(at)), -1)
        self._pair[first, first + 1] = self._pair[first + 1, first] = np.arange(len(first))

    def places(self, words: Words) -> tuple[Ints, Ints]:
        """Where the question's words are among those of passages, with flags: which place, which word."""
        stems = stems_of(words)
        places = _likely(stems, self._stems)
        which = np.minimum(self._stems.searchsorted(stems[places]), len(self._stems) - 1)
        right = self._stems[which] == stems[places] if len(places) else np.zeros(0, bool)
        return places[right], self._word[which[right]]

    def occurrences(self, words: Words, sentence: Ints, sentences: int) -> tuple[Bools, Bools]:
        """Which words and which pairs are in each sentence: shapes (sentences, words) and (sentences, pairs).

        Args:
            words: The words of passages, with flags.
            sentence: The number of the sentence of each.
            sentences: The number of sentences.
        """
        has, near = np.zeros((sentences, len(self.words)), bool), np.zeros((sentences, len(self.pairs)), bool)
        place, which = self.places(words)
        has[sentence[place], which] = True
        pair = self._pair[which[:-1], which[1:]]
        is_pair = (pair >= 0) & (np.diff(place) <= _NEAR) & (np.diff(sentence[place]) == 0)
        near[sentence[place[:-1][is_pair]], pair[is_pair]] = True
        return has, near


def specificity(rarity: Floats, half: float) -> Floats:
    """How specific names are, 0 to 1: 0.5 at the rarity ``half``."""
    return np.divide(rarity, rarity + half, out=np.zeros_like(rarity), where=rarity > 0)
