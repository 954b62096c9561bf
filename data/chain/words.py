"""The words and the names of passages and questions, in the forms in which the chain retriever compares them.

A form is a folded word ("besancon"), a name is forms with spaces between them ("university of amsterdam"). A stem
stands for all forms of a word; function words have the stem "".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from html import unescape
from itertools import accumulate, pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from ..languages import CASELESS, ENGLISH, LANGUAGES, NOUNS, function_words, stem
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

END = "\n"  # stands as a word after the title and after each sentence
_END_ROW = END, "", False, False
LONGEST_NAME = 12  # words; of a longer title the beginning is compared
SEARCHED_FORMS = 4  # of `title_forms`, those by which an index finds a title
_CACHED = 200_000  # words
_JOINING = frozenset("of the and de la le du des del della di da von van der den for in".split())
_JOINING_NOUNS = frozenset(["von", "zu"])
_ARTICLES = frozenset(["the", "a", "an"])
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|\w{2,8});")
_AND = re.compile(r"\s*&\s*")


class Word(NamedTuple):
    """A word as written, its forms (rarely more than one), and their stems.

    Attributes:
        upper: It starts with a capital.
        starts: A name may start with it: it does not start with a lower-case letter.
        rows: Of each form: the form, its stem, `starts`, and whether it has no lower case, as numbers and many scripts
            have none.
    """

    written: str
    forms: tuple[str, ...]
    stems: tuple[str, ...]
    upper: bool
    starts: bool
    rows: tuple[tuple[str, str, bool, bool], ...]


class _Vocabulary(dict[str, Word]):
    """The words of a language that were read before; several times faster than an lru_cache."""

    def __init__(self, language: str) -> None:
        self._language = language

    def __missing__(self, written: str) -> Word:
        if len(self) >= _CACHED:
            self.clear()
        forms: tuple[str, ...] = (written.lower(),)
        if not (written.isascii() and written.isalnum()):
            parts = (part.lower() for part in code_parts(written))
            forms = tuple(unspaced_forms(written)) or (*key_words(written), *parts)
        stems = tuple(stem_of(form, self._language, written) for form in forms)
        starts = not written[0].islower()
        rows = tuple((form, stem, starts, not form.islower()) for form, stem in zip(forms, stems, strict=True))
        self[written] = Word(written, forms, stems, written[0].isupper(), starts, rows)
        return self[written]


_vocabularies = {language: _Vocabulary(language) for language in LANGUAGES}


def stem_of(form: str, language: str = ENGLISH, written: str = "") -> str:
    """The stem of a form, which with accents is better found as it is written; "" for a function word."""
    if form in function_words(language) or is_hiragana(form):
        return ""
    if language != ENGLISH and fold(written) == form:
        return fold(stem(written.lower(), language))
    return stem(form, language)


def prepared(text: str) -> str:
    """A text without HTML entities, which HotpotQA's titles have, with "and" for "&", and with joined initials."""
    if "&" in text:
        text = _AND.sub(" and ", _ENTITY.sub(lambda entity: unescape(entity.group()), text))
    return join_initials(text)


def read(text: str, language: str = ENGLISH) -> list[Word]:
    """The words of a title or a sentence."""
    vocabulary = _vocabularies[language]
    return [vocabulary[written] for written in WORD.findall(prepared(text))]


def folded(text: str) -> list[str]:
    """The forms of a title or a sentence."""
    return [form for word in read(text) for form in word.forms]


def wording(words: Sequence[Word], start: int, end: int) -> str:
    """The forms from ``start`` to ``end`` of some words: of code or a number that is whole there, as written; pairs of
    characters are joined."""
    parts: list[str] = []
    at = 0
    for word in words:
        forms = word.forms[max(start - at, 0) : max(end - at, 0)]
        is_code = len(word.forms) > 1 or any(map(str.isdigit, word.written))
        if is_code and forms and forms == word.forms:
            parts.append(word.written)
        elif forms and UNSPACED.match(forms[0]):
            parts.append(forms[0] + "".join(form[-1] if UNSPACED.match(form) else form for form in forms[1:]))
        else:
            parts += forms
        at += len(word.forms)
    return " ".join(parts)


# --- passages --------------------------------------------------------------------------------------------------------


class LinkPlace(NamedTuple):
    """A hyperlink to another document: where it stands among the words, and what it names (see `place_of`)."""

    start: int
    end: int
    document: int
    anchor: str
    is_contents: bool  # of a table of contents


class Words:
    """The words of a question or a passage.

    Attributes:
        forms, stems: Of all words.
        starts: Whether a name may start at a word.
        cased: Whether a word is in a capitalized name, or has no lower-case form.
        joined: The forms with spaces between and around them.
    """

    forms: list[str]
    stems: list[str]
    starts: list[bool]
    cased: list[bool]
    joined: str

    def find(self, name: str) -> list[int]:
        """The places of a name: the numbers of its first words."""
        places, wanted = list[int](), f" {name} "
        at = self.joined.find(wanted) if name else -1
        while at >= 0:
            places.append(self.joined.count(" ", 0, at))
            at = self.joined.find(wanted, at + 1)
        return places

    def name(self, start: int, end: int) -> str:
        return " ".join(self.forms[start:end][:LONGEST_NAME])


class PassageWords(Words):
    """The words of a passage: of its title, its file's name, the headings above it, and its sentences.

    Attributes:
        texts: Those texts; the words of each are followed by `END`.
        sentence: The number of the text of each word.
        names: The (start, end) of the capitalized names.
        titles: The `title_forms`, "" for one without a topic word.
        links: To other documents.
    """

    def __init__(self, passage: Passage) -> None:
        self.texts, self.language = texts_of(passage), passage.language
        vocabulary = _vocabularies[self.language]
        rows, self.sentence = list[tuple[str, str, bool, bool]](), list[int]()
        self.names, self._sentence_starts = list[tuple[int, int]](), list[int]()
        for number, text in enumerate(self.texts):
            text, first = prepared(text), len(rows)
            words = list(map(vocabulary.__getitem__, WORD.findall(text)))
            if number and (spans := list(self._names_of(text, words))):
                places = list(accumulate((len(word.rows) for word in words), initial=first))
                self.names += [(places[start], places[end]) for start, end in spans]
            rows += [row for word in words for row in word.rows]
            rows.append(_END_ROW)
            self.sentence += [number] * (len(rows) - first)
            self._sentence_starts.append(first)
        self.forms, self.stems, self.starts, self.cased = map(list, zip(*rows, strict=True))  # faster than four lists
        for start, end in self.names:
            self.cased[start:end] = [True] * (end - start)
        self.joined = f" {' '.join(self.forms)} "
        self.title_length = self.forms.index(END)
        self.titles = tuple(form if self._has_topic(form) else "" for form in title_forms(passage))
        self.links = list(self._links_of(passage))

    def wording(self, start: int, end: int) -> str:
        """Some words of one text as people read them."""
        text = self.sentence[start]
        before = self._sentence_starts[text]
        return wording(read(self.texts[text], self.language), start - before, end - before)

    def _names_of(self, text: str, words: Sequence[Word]) -> Iterator[tuple[int, int]]:
        """The capitalized names of a text, as numbers of its words: "University of Amsterdam" is one, "Moore, Smith"
        are two.

        A single word at the start is none: every sentence starts with a capital. Nor is any in German, where all nouns
        do.
        """
        starts = [number for number, word in enumerate(words) if word.upper]
        if starts in ([], [0]):
            return  # most sentences
        matches = list(WORD.finditer(text))
        german = self.language == NOUNS
        within = " \u00a0" if german else " \u00a0-–"  # stands between the words of a name
        joining = _JOINING_NOUNS if german else _JOINING
        at = 0
        for start in starts:
            if start < at:
                continue  # it is in the name before
            at = end = start
            while at < len(words) and (words[at].upper or (end > start and words[at].written in joining)):
                if end > start:
                    gap = text[matches[at - 1].end() : matches[at].start()].strip(within)
                    before = matches[at - 1][0]
                    is_initial = len(before) == 1 or "." in before
                    if gap and not (gap == "." and is_initial):
                        break
                at += 1
                end = at if words[at - 1].upper else end
            while start < end and not any(words[start].stems):
                start += 1
            if end > start + 1 or (end > start and start > 0 and not german):
                yield start, end

    def _has_topic(self, name: str) -> bool:
        return any(stem_of(form, self.language) for form in name.split())

    def _links_of(self, passage: Passage) -> Iterator[LinkPlace]:
        document = document_of(passage)
        above = len(self.texts) - len(passage.sentences)
        for link in passage.links[:MOST_LINKS]:
            target, anchor = place_of(link.target)
            if target != document:
                text = min(above + link.sentence, len(self.texts) - 1)
                linked = folded(link.text)[:LONGEST_NAME]
                places = [place for place in self.find(" ".join(linked)) if self.sentence[place] == text]
                start = places[0] if places else self._sentence_starts[text]
                yield LinkPlace(start, start + len(linked) * bool(places), target, anchor, link.kind == "contents")


words_of = lru_cache(maxsize=4096)(PassageWords)  # a question's searches find the same passages


def texts_of(passage: Passage) -> tuple[str, ...]:
    """The title of a passage; the words of its file's name, and the headings above it as one sentence, if any; and its
    own sentences."""
    headings = " ".join(passage.place.headings) if passage.place else ""
    return passage.title, *filter(None, (file_words(passage.document), headings)), *passage.sentences


def title_forms(passage: Passage) -> tuple[str, ...]:
    """Forms in which others write a title, "" for the same: whole, without disambiguation, short, the file's name, to
    the first comma, without article, first and last name."""
    title = prepared(passage.title)
    whole, bare = folded(title), folded(bare_title(title))
    short = folded(short_title(title)[1])
    comma = folded(bare_title(title).split(",")[0]) if "," in title else []
    forms = (
        whole,
        bare if bare != whole else [],
        short if len(short) < len(bare) else [],
        folded(file_words(passage.document)),
        comma,
        bare[1:] if bare[:1] and bare[0] in _ARTICLES else [],
        [bare[0], bare[-1]] if len(bare) > 2 and stem_of(bare[0], passage.language) else [],
    )
    return tuple(" ".join(form[:LONGEST_NAME]) for form in forms)


def number_of(text: str) -> int:
    """A 64-bit hash."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def document_of(passage: Passage) -> int:
    """The number of the document of a passage, a hash of its `address`."""
    return number_of(address(passage.document.replace("#", "%23")))


def place_of(target: str) -> tuple[int, str]:
    """The number of the document that a target names, and the anchor in it: the letters and digits of its fragment, in
    which site generators agree, "" for none."""
    fragment = target.partition("#")[2].lower()
    return number_of(address(target)), re.sub(r"[\W_]+", "", fragment) or fragment


def place_key(document: int, anchor: str = "") -> str:
    """By which an index finds a place in a document, or its opening; differs from all titles."""
    return f"{document}\n{anchor}"


def keys_of(passage: Passage) -> set[str]:
    """By which an index finds a passage: its titles and its places."""
    document = document_of(passage)
    keys = {place_key(document, place_of(f"#{anchor}")[1]) for anchor in passage.anchors}
    if passage.opens:
        keys.add(place_key(document))
        if file_words(passage.document):  # wikis link by the title or the name of the file
            names = passage.title, PurePosixPath(passage.document).stem
            keys.update(place_key(place_of(f"[[{name}]]")[0]) for name in names)
    return keys.union(filter(None, title_forms(passage)[:SEARCHED_FORMS]))


# --- questions -------------------------------------------------------------------------------------------------------


def may_be_names(text: str, words: Sequence[Word], language: str) -> list[bool]:
    """Whether the capital or digit at the start of each word of a question tells a name; all may be names in a question
    without capitals. In German a single noun's capital tells nothing, two side by side or one inside do."""
    is_caseless = language in CASELESS
    if not is_caseless and not any(word.upper for word in words[1:]):  # the first word always has a capital
        return [True] * len(words)
    if is_caseless:
        return [word.upper or word.written[0].isdigit() for word in words]
    if language != NOUNS:
        return [word.starts for word in words]
    inside = [any(c.isupper() or c.isdigit() for c in word.written[1:]) for word in words]
    beside = _side_by_side(text)
    return [(word.starts and inside[at]) or at in beside for at, word in enumerate(words)]


def _side_by_side(text: str) -> set[int]:
    """Which words of a German text have a capital, as one beside them does."""
    text = prepared(clean(text))
    words = list(WORD.finditer(text))
    numbers = set[int]()
    for at, (one, other) in enumerate(pairwise(words)):
        is_pair = one[0][0].isupper() and other[0][0].isupper() and text[one.end() : other.start()] == " "
        if at and is_pair:
            numbers |= {at, at + 1}
    return numbers
