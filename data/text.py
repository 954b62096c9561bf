"""Text analysis for the whole package: cleaning, sentences, words, stems, titles.

Word analysis follows Lucene's English analyzer (lower case, possessives, stop words, Porter stems), so that pools in
memory rank like an index.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import Stemmer

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
LUCENE_STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)

# Words without a topic, which unrelated texts share.
FUNCTION_WORDS = LUCENE_STOP_WORDS | frozenset(
    "about above after all also am among any because been before being below between both can could did do does "
    "doing during each few from further had has have having he her here hers him his how i its itself just me more "
    "most my nor now off once only other our out over own same she should so some than them themselves through too "
    "under until up upon us very via we were what when where whether which while who whom whose why would you your "
    "'s s".split()
)

# Letters that Unicode does not decompose into a base letter and a mark.
_LETTERS = str.maketrans(
    {"’": "'", "‘": "'", "ʻ": "'", "ʼ": "'", "Ø": "O", "ø": "o", "Ł": "L", "ł": "l", "ı": "i"}
    | {"Đ": "D", "đ": "d", "Ð": "D", "ð": "d"}
    | {raised: f"^{digit}" for digit, raised in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}  # no part of the number before
    | {"Æ": "Ae", "æ": "ae", "Œ": "Oe", "œ": "oe", "Þ": "Th", "þ": "th", "İ": "I", "Ħ": "H", "ħ": "h"}
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Where a line may or must not be broken, in which direction it runs, what nobody sees.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# But in scripts and emoji where they change what is seen.
_JOINERS = re.compile("(?<![\u0590-\u1cff\ua8e0-\uabff\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])[\u200c\u200d]+")
# Other characters for the same letters: ligatures, Arabic and Hebrew forms, radicals, letters of mathematics, micro.
_LIKE = re.compile("[\u00b5\u2e80-\u2fd5\ufb00-\ufdff\ufe70-\ufefc\U0001d400-\U0001d7ff]+")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")  # of terminals
# Marks that Python's \w excludes although they belong to the letter before: accents, points of Hebrew and Arabic, vowel
# signs of India and Thailand.
_MARKS = r"\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
WORD = re.compile(rf"[\w{_MARKS}]+(?:['’‘.](?=\w)[\w{_MARKS}]+)*")
# Scripts without spaces between words, or with particles at their ends.
UNSPACED = re.compile("[\u0e00-\u0e7f\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_RUN = re.compile(rf"{UNSPACED.pattern}+|(?:(?!{UNSPACED.pattern}).)+")
_HIRAGANA = re.compile("[\u3040-\u309f]+")
# Lucene's StandardTokenizer (Unicode text segmentation): "U.S", "O'Neill", "foo:bar" and "1,000.5" are one word each,
# a Chinese character or a hiragana is a word of its own, superscripts and fractions are none.
_ALONE = r"\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_IN_TERM = rf"(?:[^\W{_ALONE}\u00b2\u00b3\u00b9\u00bc-\u00be]|[{_MARKS}])"
_TERM = re.compile(
    rf"[{_ALONE}]|{_IN_TERM}++(?:(?:(?<=[^\W\d_])[:·.'’‘](?=[^\W\d_])|(?<=\d)[.,;'’‘](?=\d)){_IN_TERM}++)*+"
)
_POSSESSIVE = re.compile(r"['’][sS]$")

_VOWEL_CONSONANT = re.compile(r"[aeiou][^aeiou]|[^aeiou]y[^aeiouy]")  # Porter's measure is positive

_CACHED = 65536
_stemmers = threading.local()  # a PyStemmer object is not thread-safe


def plain(text: str) -> str:
    """The text on one line, without control characters and what cannot be encoded: it must not control a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


_OPENS = re.compile(
    r"(?<=(?<![\w\])])[\[［﹇【])(?=\S)|(?<=\])(?=[(:])|(?<=<)(?=[A-Za-z/!?])|(?<=&)(?=#?\w+;)"
    r"|(?<=[\[［﹇【])(?=\d+[\]］﹈】])"
)


def quoted(text: str) -> str:
    """A text of a document for a place where our own marks, such as "[2]" and "[notes.md]", tell the sources, and which
    may be read as Markdown: on one line, and with a space in what looks like a mark ("[ 2]"), a link or its address
    ("] (", "] :"), or HTML ("< script>", "& #91;"), so that it adds no source and no element. Backticks that
    are not single ones in pairs become apostrophes: code would go on in the next source."""
    text = _OPENS.sub(" ", plain(text))
    runs = re.findall(r"\\?`+", text)
    return text.replace("`", "'") if len(runs) % 2 or set(runs) - {"`"} else text


MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
MONTH = "(?:" + "|".join(f"{month[:3]}(?:{month[3:]})?" for month in MONTHS.split("|")) + r")\.?"  # "Jul" for "July"


_RAISED = str.maketrans("0123456789+-−n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿ")


def raised(text: str) -> str:
    """Digits, signs and "n" as superscripts."""
    return text.translate(_RAISED)


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: ``"1 question"``, ``"2,000 questions"``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def clean(text: str) -> str:
    """The text as it is typed, so that words match: what looks the same is the same. Leaves out what nobody sees (soft
    hyphens, marks of direction, colours of terminals), composes letters and accents, and writes ligatures ("ﬁ") and
    other forms of letters as these. Lone surrogates, which UTF-8 cannot encode, become U+FFFD, and NULs spaces."""
    if "\x00" in text:
        text = text.replace("\x00", " ")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text).replace("\x1b", "")
    if text.isascii():
        return text
    text = _LIKE.sub(lambda form: unicodedata.normalize("NFKC", form[0]), _INVISIBLE.sub("", text))
    text = _JOINERS.sub("", unicodedata.normalize("NFC", text))
    return unicodedata.normalize("NFC", _SURROGATE.sub("\ufffd", text))


@lru_cache(maxsize=4096)
def fold(text: str) -> str:
    """Lower case without accents, to compare names: "Besançon" and "Besancon" are equal."""
    return _fold(text)


def _fold(text: str) -> str:
    # Only runs beyond ASCII are normalized, which is slow.
    return text.lower() if text.isascii() else _NOT_ASCII.sub(lambda run: _fold_run(run.group()), text).lower()


@lru_cache(maxsize=16384)
def _fold_run(run: str) -> str:
    decomposed = unicodedata.normalize("NFKD", run.translate(_LETTERS).casefold()).translate(_LETTERS)  # ℏ: ħ
    return "".join(c for c in decomposed if not unicodedata.combining(c))


@lru_cache(maxsize=_CACHED)
def stem(word: str) -> str:
    """The Porter stem of a lower-case word, with Lucene's two deviations from the paper."""
    if len(word) < 3:
        return word
    stemmer = getattr(_stemmers, "porter", None)
    if stemmer is None:
        stemmer = _stemmers.porter = Stemmer.Stemmer("porter", 0)  # no cache of its own: lru_cache is thread-safe
    stemmed: str = stemmer.stemWord(word)
    if stemmed.endswith("logi") and _VOWEL_CONSONANT.search(stemmed[:-4]):
        return stemmed[:-1]  # "technology" as "technological"
    if stemmed.endswith("bli") and _VOWEL_CONSONANT.search(stemmed[:-3]):
        return str(stemmer.stemWord(f"{stemmed[:-1]}e"))  # "possibly" as "possible"
    return stemmed


class _Terms(dict[str, str]):
    """The terms of words seen before, "" for stop words; several times faster than an lru_cache."""

    def __missing__(self, written: str) -> str:
        if len(self) >= _CACHED:
            self.clear()
        word = _POSSESSIVE.sub("", written).replace("İ", "I").lower()
        term = self[written] = "" if word in LUCENE_STOP_WORDS else stem(word)
        return term


_terms = _Terms()


def terms(text: str) -> list[str]:
    """The index terms of Lucene's English analyzer: no possessives, lower case, no stop words, Porter stems."""
    return [term for word in _TERM.findall(text) if (term := _terms[word])]


_DIVIDED = re.compile(
    r"(?:(?<=[^\W\d_])|\A)([-\u00ad\u2010])[ \t\r]*\n[ \t]*(?=[^\W\d_A-Z]|\Z)"
    r"|(?<=[A-Z])[\u00ad\u2010][ \t\r]*\n[ \t]*(?=[A-Z])"
)
_HYPHENATED, _LONGEST_PART = re.compile(r"[^\W_]-[^\W_]+\Z"), 30  # of a word, at the end of a line


def undivided(text: str, *, typeset: bool) -> str:
    """The text without the ends of lines that divide words. "-" is a part of a word that has one already, and in text
    that people, and no typesetter, have broken into lines."""

    def end(mark: re.Match[str]) -> str:
        before = text[max(0, mark.start() - _LONGEST_PART) : mark.start()]
        return "-" if mark[1] == "-" and (not typeset or _HYPHENATED.search(before)) else ""

    return _DIVIDED.sub(end, text)


_CODE = re.compile(r"[^\W\d]\w*(?:\.\w+)*")  # may have parts

_OPTION = re.compile(r"(?<![\w-])--?([A-Za-z][\w-]*)")


def code_parts(word: str) -> list[str]:
    """The parts of a word of code: "os.urandom" is of "os" and "urandom", "max_wal_senders" of three; "U.S" of none.

    Lucene's tokenizer keeps such a word whole, so that neither part would find it.
    """
    parts = [part for part in word.replace("_", ".").split(".") if len(part) > 1]
    return parts if parts != [word] and not any(len(part) == 1 and part.isupper() for part in word.split(".")) else []


def with_code_parts(text: str) -> str:
    """A text, and after it the parts of its words of code, and a word for each of its options: of "--dry-run" Lucene's
    tokenizer keeps two common words, and of "-v" a letter."""
    added = list[str]()
    if "." in text or "_" in text:
        added += (part for word in _CODE.findall(text) if "." in word or "_" in word for part in code_parts(word))
    if "-" in text:
        added += (f"option{name.replace('-', '')}" for name in _OPTION.findall(text))
    return f"{text}\n{' '.join(added)}" if added else text


def unspaced_forms(word: str) -> list[str]:
    """The overlapping pairs of characters of a word in a script without spaces, of Thai three; of what else it has, the
    `key_words`; nothing for a word in another script."""
    forms = list[str]()
    for run in _RUN.findall(unicodedata.normalize("NFKC", word)) if UNSPACED.search(word) else ():
        size = 3 if "\u0e00" <= run[0] <= "\u0e7f" else 2
        if UNSPACED.match(run):
            forms += (run[at : at + size] for at in range(max(len(run) - size + 1, 1)))
        else:
            forms += key_words(run)
    return forms


def is_hiragana(form: str) -> bool:
    """Whether it is in Hiragana alone, as Japanese particles and endings are."""
    return bool(_HIRAGANA.fullmatch(form))


@lru_cache(maxsize=4096)
def content_terms(text: str) -> tuple[str, ...]:
    """Accent-folded stems of topic words, which the lexical engine matches; pairs of characters in scripts without
    spaces."""
    if UNSPACED.search(text):
        forms = (form for word in WORD.findall(text) for form in unspaced_forms(word) or key_words(word))
        return tuple(stem(form) for form in forms if form not in FUNCTION_WORDS and not is_hiragana(form))
    words = (_POSSESSIVE.sub("", word) for word in WORD.findall(fold(text)))
    return tuple(stem(word) for word in words if word not in FUNCTION_WORDS)


# --- sentences -------------------------------------------------------------------------------------------------------

# A full stop after one of these does not end a sentence. Compared without the stop.
# Before a name.
_TITLES = frozenset(
    "mr mrs ms dr drs prof profs rev revs fr gen col maj brig capt cpt cpl sgt lt lieut flt sqn pvt pte cmdr cdr adm "
    "det insp supt gov sen rep reps pres rt hon amb cllr messrs mme mlle msgr asst sra srta dra dott frl".split()
)
# Before a number: joined when a digit follows ("No. 29"), otherwise an ordinary word ("She said no. ...").
_COUNTERS = frozenset("no nos vol vols pp op fig figs ch para pop nr abb bd".split())
# In the middle of a sentence, and lower-case only: "c." is circa where "C." is an initial.
_CONNECTIVES = frozenset(
    "v vs cf ca c p approx e.g i.e viz b d r fl aft bef lit transl a.k.a "
    "bzw evtl ggf inkl exkl vgl geb gest gegr bspw".split()
)
# Before or after an ordinal number of German: "3. Oktober", "im 19. Jahrhundert".
_ORDINAL = re.compile(r"\b(?:[Ii]m|[Dd](?:er|as|en|em|es)|[Vv]om|[Zz]u[mr]|[Bb]eim|[Ss]eit|[Bb]is|und)\s+\d{1,3}\Z")
_MONATE = frozenset("januar jänner februar märz mai juni juli oktober dezember".split())  # others are English, too
# After an exclamation mark of a name ("Yahoo! Inc.").
_COMPANIES = frozenset("inc ltd co corp".split())
# May also end a sentence ("... and Sons Ltd."): the next word decides.
_ABBREVIATIONS = _COMPANIES | frozenset(
    "jr sr st ste mt ft ed eds trans al etc bros dept univ est feat spp subsp var ave blvd "
    "jan feb mar apr jun jul aug sep sept oct nov dec ph.d b.sc m.sc ed.d d.phil".split()
)
_DEGREES = frozenset("b d ll m ph sc".split())  # before a further part: "LL. B.", "Ph. D."
_IDENTIFIER = re.compile(r"[a-z]\w*(?:[._]\w|\(|[A-Z])")  # starts a sentence in lower case: "os.path", "max_size"
# Capitalized, these start a sentence: names rarely start with them.
_OPENERS = frozenset(
    "a an the he she it they his her its their this that these those in on at from after before during while when "
    "as since for by with there both one other although though however despite according it's we i you "
    "some many most all no another also and but or between among under following".split()
)

# No step can backtrack far, and matches do not overlap: linear time for any text.
_BOUNDARY = re.compile(
    r"""(?P<end>[.!?…؟۔।॥。！？][.!?…؟۔।॥。！？]*+)"""  # one mark first: the search for a single character is fast
    r"""(?P<close>["'”’»」』）)\]]*+(?:\[\w[\w ]{0,19}\])*+)(?P<space>\s*+)"""  # [\w ]: "[3]", "[citation needed]"
    r"""(?=[\s"'“‘«(\[]*(?P<next>\w++(?:['’]\w++)?|\S|\Z))"""
)
_QUOTATIONS, _LONGEST_QUOTATION = (("「", "」"), ("『", "』"), ("（", "）"), ("„", "“")), 200
_CJK = frozenset("。！？")  # no space follows them
_LONGEST_TOKEN = 20  # no abbreviation is longer
_LAST_TOKEN = re.compile(r"[^\s(\[\"“‘«/–—]++$")
_BREAK = re.compile(r"\n\s*\n|</?(?:br|p|li|ul|ol|div|tr|td|th|table|h[1-6])\b[^<>]{0,99}>", re.IGNORECASE)
_TAGS = re.compile(r"<[^<>]{1,99}>|&\w{2,8};")  # and entities
_NUMBERING = re.compile(r"\d{1,3}[.)]")


def split_sentences(text: str) -> list[str]:
    """Split text into sentences; joined by spaces they equal the text, but for white space.

    Does not split initials ("I. V. Sasi"), titles and abbreviations ("St. Louis", "Cpl. Jennings", "c. 1500"),
    decimals, dotted names and titles with a year ("Help!" (1965)); splits after closing quotes and footnotes, at blank
    lines, HTML breaks and CJK full stops. A piece without a letter belongs to the sentence before it, or after it if
    it is a number ("1.") or the first.
    """
    sentences: list[list[str]] = []
    carried: list[str] = []
    for written in _pieces(text):
        if not (piece := " ".join(written.split())):
            continue
        if any(map(str.isalpha, _TAGS.sub("", piece))):
            sentences.append([*carried, piece])
            carried = []
        elif carried or not sentences or _NUMBERING.fullmatch(piece):
            carried.append(piece)
        else:
            sentences[-1].append(piece)
    if carried:
        sentences[-1:] = [[*(sentences[-1] if sentences else ()), *carried]]
    return [" ".join(pieces) for pieces in sentences]


def _pieces(text: str) -> Iterator[str]:
    """The text cut where a sentence may end."""
    ends = [mark.end() for mark in _BREAK.finditer(text)]
    for first, last in pairwise([0, *ends, len(text)]):
        block, start = text[first:last], 0
        for match in _BOUNDARY.finditer(block):
            if _ends_sentence(block, start, match):
                yield block[start : match.end()]
                start = match.end()
        yield block[start:]


def _is_quoted(block: str, start: int, end: int) -> bool:
    """Whether a quotation or a parenthesis that starts there is open: it is part of what somebody says."""
    return any(block.rfind(opens, start, end) > block.rfind(closes, start, end) for opens, closes in _QUOTATIONS)


def _ends_sentence(block: str, start: int, match: re.Match[str]) -> bool:
    end, close, space, following = match.groups()
    if not following or _is_quoted(block, max(start, match.start() - _LONGEST_QUOTATION), match.end()):
        return False
    if not space:
        # After a quotation goes on what a particle starts: 「行け。」と言った.
        return not _CJK.isdisjoint(end) and following != "（" and not (close and is_hiragana(following[0]))
    at = match.start("next")
    if (following[0].islower() and not _IDENTIFIER.match(block, at)) or following in ",;:)]}–—":
        return False
    if following == ".":
        return block.startswith("...", at)  # a sentence may start with an ellipsis
    opens = following[0].isupper() and following.lower() in _OPENERS
    if following in ("A", "I", "No") and block.startswith(".", match.end("next")):
        opens = False  # "by S. A. Corey", "a U.S. No. 29 hit"
    if end != ".":
        if opens or end in "。۔।॥":
            return True
        # An ellipsis is usually a pause or a cut in a title; "Help! (1965)", "Yahoo! Inc."
        return not ("..." in end or "…" in end or block[match.end()] == "(" or following.lower() in _COMPANIES)
    before = _LAST_TOKEN.search(block[max(start, match.start() - _LONGEST_TOKEN) : match.start()])
    written = before.group() if before else ""
    token = written.lower()
    if token.isdigit() and not opens:
        near = block[max(start, match.start() - _LONGEST_TOKEN) : match.start()]
        if following.lower() in _MONATE or _ORDINAL.search(near):
            return False
    if token in _COUNTERS:
        return not following[0].isdigit()
    if token in _TITLES or written in _CONNECTIVES:
        return False
    if len(token) == 1 and token.isalpha():  # "J. Edgar Hoover" joins; "World War I. The union ..." ends
        return opens
    parts = [part for part in token.split(".") if part]
    initials = "." in token and all(len(part) == 1 and part.isalpha() for part in parts)
    # "J.R.R. Tolkien" and "Acme Inc. (1948)" join, "in the U.S. The ..." ends.
    return opens if token in _ABBREVIATIONS or initials or (token in _DEGREES and len(following) <= 2) else True


# --- titles ----------------------------------------------------------------------------------------------------------

_PARENTHESES = re.compile(r"\([^()]*\)\s*$")
_INITIALS = re.compile(r"\b(\w\.)\s+(?=\w\.)")
_TWO_STOPS = re.compile(r"\.\s+\w\.")  # found much faster
_ASCII_WORD = re.compile(r"[a-z0-9_]+(?:['.][a-z0-9_]+)*")  # `WORD` in folded ASCII, twice as fast


def bare_title(title: str) -> str:
    """The title without its disambiguation: "Help! (film)" -> "Help!"."""
    return _PARENTHESES.sub("", title).strip() or title.strip()


_NUMBER = re.compile(
    r"(?:(?:chapter|section|appendix|part)\s+)?(?:\d+(?:\.\d+)+\.?|\d+[.)]|[A-Z](?:\.\d+)+\.?)\s+", re.IGNORECASE
)
_REST = re.compile(r"(?<!\s)\s++(?:[—–|-]+\s|\(\d\w{0,2}\))|:\s|\(\d\w{0,2}\)")


def short_title(title: str) -> tuple[str, str]:
    """What stands before a title's name, such as a section number, and the name alone, as others write it.

    "20.5. Configuration" is ("20.5. ", "Configuration"), "time — Access to time" is ("", "time"), and "ls(1) Manual
    Page" is ("", "ls").
    """
    number = mark.end() if (mark := _NUMBER.match(title)) else 0
    rest = _REST.search(title, number)
    return title[:number], title[number : rest.start() if rest and rest.start() > number else len(title)].strip()


def join_initials(text: str) -> str:
    """Initials as one word: "J. R. R. Tolkien" -> "J.R.R. Tolkien"."""
    return _INITIALS.sub(r"\1", text) if _TWO_STOPS.search(text) else text


def key_words(text: str) -> list[str]:
    """The words of a text in the form of a `title_key`; not cached, since texts rarely repeat."""
    folded = join_initials(_fold(text))
    words = (_ASCII_WORD if folded.isascii() else WORD).findall(folded)
    return [w if w.isalnum() else _POSSESSIVE.sub("", w).replace("'", "").replace(".", "") for w in words]


@lru_cache(maxsize=16384)
def title_key(title: str) -> str:
    """The form in which titles are compared: accents, case and punctuation folded.

    "Paris, Texas" equals "paris texas", and "J. R. R. Tolkien" equals "J.R.R. Tolkien". A title without letters and
    digits ("!!!") is its own key.
    """
    return " ".join(key_words(title)) or " ".join(fold(title).split())


def has_phrase(text: str, phrase: str) -> bool:
    """Whether a text has the words of a phrase one after the other, compared as titles are."""
    return f" {title_key(phrase)} " in f" {title_key(text)} "


@lru_cache(maxsize=8192)
def title_names(title: str) -> tuple[str, ...]:
    """The keys by which other texts may mention a title's subject: in full, without parentheses, up to a comma
    ("Paris, Texas" -> "paris"), without an article."""
    keys = [title_key(title), title_key(bare_title(title))]
    if "," in title:
        keys.append(title_key(bare_title(title).split(",")[0]))
    for article in ("the ", "a ", "an "):
        if keys[1].startswith(article) and len(keys[1]) > len(article) + 3:
            keys.append(keys[1][len(article) :])
    return tuple(dict.fromkeys(key for key in keys if key))


def ends_path(path: str, name: str) -> bool:
    """Whether a name, as a person writes it, is a path or the end of one: "a/b.md" of "notes/a/b.md"."""
    return f"/{path}".endswith(f"/{name.strip().removeprefix('./')}")
