"""Answers that a manual states in a fixed form: definitions, default values, versions, options, authors.

The rankers of the reader know encyclopedias. In a manual the subject of "Default: 30." or "New in version 2.1." often
stands in a heading or an entry above it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from ...data.text import FUNCTION_WORDS, MONTHS, bare_title, content_terms, stem, title_key
from .features import within
from .hops import Answer
from .prompt import ParsedPassage, Sentence
from .question import answer_type, mask
from .spans import code, dates, names, numbers, relation_term, relation_terms, unnumbered

# Probabilities, chosen by hand: of a definition; of what stands beside its subject; below it, and further below.
DEFINED, BESIDE, BELOW, FADES = 0.6, 0.95, 0.9, 0.97
COVERED = 0.7  # least share of the question's words in a passage and its headings

_ASKS_DEFINITION = re.compile(r"what (?:is|are) (?:an? |the )?([^,;?]+)\?", re.I)
_DEFINITION = re.compile(r"(?:an? |the )?([^,;]{2,60}?) (?:is|are) ((?:an? |the )[^.;:]{3,150})[.;:]?", re.I)

_UNIT = (
    r"(?:%|[KMGT]i?B|bytes?|kilobytes?|megabytes?|(?:milli|micro)?seconds?|ms|s|minutes?|hours?|days?|weeks?|months?)"
)
_NUMBER = (
    rf"(?<![\w.])(?<!\w[(/])-?\d(?:[\w.,:]{{0,40}}\w)?(?: ?{_UNIT}(?!\w))?"  # but not the section in "log(3)"
    rf"|(?:one|two|three|five|six|ten|twelve|thirty) {_UNIT}\b"
)
_WORD = r"true|false|yes|no|on|off|none|null|unset|empty|never|always|auto|enabled|disabled"
_QUOTED = r"(?<!\w)[\"“‘'`][^\"”’'`\n]{0,60}[\"”’'`]"
_PATH = r"(?:\w{2,9}:/)?[~$@/][\w/.~$@:\[\]-]{0,80}[\w\]]|(?<![\w/-])[\w-]{1,40}[_/][\w/.-]{0,80}\w|\b[A-Z][A-Z0-9_]+\b"
_LITERAL = rf"{_QUOTED}|{_NUMBER}|(?i:{_WORD})\b(?![\w-]| [a-z])|{_PATH}"
_VALUE = rf"(?P<value>{_LITERAL}|(?!\w+ed\b)[\w-]{{1,60}}(?= *(?:[.,;)]|$)))"
_DEFAULTS = [
    re.compile(pattern)
    for pattern in (
        rf"^\W*Changed? (?:the )?default (?:[\w-]+ ){{1,3}}to {_VALUE}",
        rf"(?<!imum )\b[Dd]efault(?: value)? of (?P<value>{_NUMBER}|(?i:{_WORD})\b)",  # "is used"; no minimum
        rf"\b[Dd]efault(?:s|ing)? to (?:the value )?(?:of )?{_VALUE}",
        rf"\b[Dd]efault(?: (?!is\b|are\b|to\b)[\w-]+){{0,3}}(?: (?:is|are)(?: set to| to| currently)?|:) ?{_VALUE}",
        rf"\b[Dd]efault(?: value)? ?= ?{_VALUE}",
        rf"^[Dd]efault: [A-Za-z][\w.-]+ {_VALUE}",  # "Default: Retries 5", as directives are documented
        rf"^[\w.-]+ = {_VALUE} :(?= |$)",  # the entry of a list of settings; other assignments are examples
        rf"\([Dd]efault:? (?!values?\)){_VALUE}\)",
        rf"\b[Bb]y default,? (?:it |this |that )?(?:is|uses|listens on(?: port)?) {_VALUE}",
        rf"(?P<value>{_LITERAL})(?: \w+)?,? (?:is |are |used )*(?:\((?:the )?default(?: value)?\)|by default)",
    )
]
ASKS_DEFAULT = re.compile(
    r"\b(?:by|is|are|its) default\b|\bdefaults?\W*$|^(?:what|which)(?: is| are)?(?: the)? default", re.I
)
_PRESENT_DEFAULT = re.compile(r"(?<!previous )(?<!former )(?<!old )\bdefault", re.I)
_BARE_DEFAULT = re.compile(r"(?:The )?[Dd]efault(?:s|ing)?(?: value)?(?: is| to|:)")  # its subject stands above

_DATE = r"\d{4}-\d\d-\d\d|[\w ]{3,12},? \d{4}"
_VERSION = r"v?\d+(?:\.\d+)+(?:[\w-]*(?:\.\d+)*\w)?"
_NEW = (
    r"[Nn]ew|[Aa]dd(?:ed|s)?|[Ii]ntroduced|[Aa]vailable|[Aa]ppeared|[Ss]ince|[Aa]s of|[Ss]tarting|[Ff]rom"
    r"|[Cc]hanged(?= in version [\d.]+: [Aa]dd)"
)
_NOTES = {  # how the note of a change begins, by the verb of a question
    **dict.fromkeys(("added", "introduced", "available", "supported", "new", "created", "implemented"), _NEW),
    "changed": r"[Cc]hanged",
    "deprecated": r"[Dd]eprecated",
    "removed": r"[Rr]emoved",
    **dict.fromkeys(("released", "published"), r"[Rr]eleased?"),
}
_ASKS_CHANGE = re.compile(r"(?:(?:in|since|from|as of|with) )?(?:what|which) (?:version|release)\b|when\b", re.I)

ASKS_OPTION = re.compile(
    r"(?:which|what) (?:[\w-]+ )?(?:directive|flag|option|parameter|setting|switch|variable)\b", re.I
)
_ASKS_ENVIRONMENT = re.compile(r"(?:which|what) environment variable\b", re.I)
_ASKS_AUTHOR = re.compile(r"who (?:(?:was|is|first|originally|currently) )*(?:the )?(?P<verb>[a-z]+)\b", re.I)

# What is asked for, not what it is asked of.
_GENERIC = frozenset(
    map(stem, "default value setting use used called option parameter variable version release many large long".split())
)
_GENERIC |= frozenset(map(stem, _NOTES))
_CODE = re.compile(r"^-|\w[._/:-]\w|_|[a-z][\dA-Z]|^[A-Z][A-Z\d]")

_LABEL = re.compile(r"\W{0,4}([\w.-]*\w)(?:[^\w.!?]{0,3}$|: )")  # of an entry: "tls" or "tls: ..."
_REMARKS = frozenset("caution default example important note see since syntax tip type usage value warning".split())
_CLAUSE = re.compile(r"[,;(]")
_OPTION = re.compile(r"[^\w-]*(--?[\w-]+|\w[\w.-]*\w)\W*")
_ENTRY = re.compile(r"\W{0,4}[\w.<>%-]{0,60}[\w>]\W{0,4}(?:$|::| [-–|<=] |:$|\(.*\))")
_ROW = re.compile(r"\W{0,4}[\w.<>%-]{1,60}; [\w ]{1,40}:")  # of a table: an entry for itself


@lru_cache(maxsize=64)
def of_other_entries(question: str, passages: tuple[ParsedPassage, ...]) -> frozenset[str]:
    """The ids of sentences below an entry, as in a list of definitions, that a question for a value does not name,
    although it names another entry: "tls. The standard port is 16514." says nothing of tcp."""
    asks = answer_type(question)
    if asks.kind not in ("number", "measure") and asks.head != "port" and not ASKS_DEFAULT.search(question):
        return frozenset()
    words = {word.strip("`\"',.?").lower() for word in question.split()}
    names_one, found = False, set[str]()
    for passage in passages:
        entry = ""
        for sentence in passage.sentences:
            if (label := _LABEL.match(sentence.text)) and label[1].lower() not in _REMARKS:
                entry = label[1].lower()
                names_one = names_one or entry in words
            if entry and entry not in words:
                found.add(sentence.id)
    return frozenset(found) if names_one else frozenset()


@lru_cache(maxsize=64)
def stated(question: str, passages: tuple[ParsedPassage, ...]) -> Answer | None:
    """The answer to a question without parts that a passage states in one of these forms."""
    found: Answer | None = None
    if asked := _ASKS_DEFINITION.fullmatch(question.strip()):
        found = _define(asked[1], passages)
    if not found and ASKS_DEFAULT.search(question) and answer_type(question).kind not in ("yes/no", "either"):
        found = _nearest(question, passages, _default)
    elif _ASKS_CHANGE.match(question) and (find := _noted(question)):
        found = _nearest(question, passages, find) or _released(question, passages)
    elif asked := ASKS_OPTION.match(question):
        found = _option(question, passages)
    elif asked := _ASKS_AUTHOR.match(question):
        found = _author(question, asked["verb"], passages)
    return replace(found, steps=(found,)) if found else None


def _define(term: str, passages: tuple[ParsedPassage, ...]) -> Answer | None:
    """The answer to "What is a journal?" in a sentence "A journal is a file of bookings."."""
    for passage in passages:
        for sentence in passage.sentences:
            found = _DEFINITION.match(sentence.text)
            if found and title_key(found[1]) == title_key(term):
                return Answer(found[2], DEFINED, sentence, passage)
    return None


# --- values below their subject --------------------------------------------------------------------------------------

Find = Callable[[str], Iterator[re.Match[str]]]


def _default(text: str) -> Iterator[re.Match[str]]:
    """The default values in a text, in order."""
    yield from sorted((m for pattern in _DEFAULTS for m in pattern.finditer(text)), key=lambda match: match.start())


CODE_NOUNS = frozenset(
    "attribute class command constant decorator directive exception field flag function header key keyword library "
    "method module operator option parameter property routine setting signal specifier switch tool variable".split()
)
_DOCUMENT = re.compile(r"\w\.(?:html?|md|pdf|rst|txt)$")
_TIME = re.compile(r"\+?[ -](second|minute|hour|day|week|month|year)s?\b")
_LENGTH = re.compile(
    rf"{_TIME.pattern}|[ -]?(?:ms|s|km|cm|mm|m|feet|foot|ft|inch|inches|miles?|(?:kilo)?met(?:er|re)s?|words?|bytes?)\b"
)
_COUNTED_TIME = re.compile(r"how many (second|minute|hour|day|week|month|year)s\b", re.I)
_QUANTITIES = frozenset("delay duration interval length limit period size timeout".split())
_UNBOUNDED = re.compile(r"unlimited|infinit[ey]|no limit|none|null|nil|undefined|never|disabled|off", re.I)
_NO_PERSON = re.compile(
    r"\b(?:module|documentation|guide|manual|reference|setting|configuration|note|option|directive|command|page|database"
    r"|library|file|script|tool|protocol)s?$",
    re.I,
)
_PREFIX = re.compile(r"(?:Mc|Mac|De|Di|Du|La|Le|Van|O['’])[A-Z]|.*-")  # a name, though it has a capital in its midst
_DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_ASKS_DAY = re.compile(r"(?:on )?(?:which|what) (?:\w+ )?(?:day|date)\b(?P<week> of the week)?", re.I)


def is_of_type(question: str, answer: str, sentence: Sentence | None = None) -> bool:
    """Whether an answer can be one: a number if a question asks how many, how large or for a port, a name that it does
    not have if it asks who, a time if it asks when, and a literal if it asks for a default value, a version, an address
    or an option."""
    asks, asks_default = answer_type(question), ASKS_DEFAULT.search(question)
    if asks_default and sentence and not _PRESENT_DEFAULT.search(sentence.text):
        return False  # an example may assign any value
    after = sentence.text.partition(answer)[2] if sentence else ""
    unit, counted = _TIME.match(after), _COUNTED_TIME.match(question)
    asks_length = re.match(r"how long (?:do|does|did|is|are|will)\b", question, re.I)
    if asks_length and re.fullmatch(r"[\d.]+", answer) and not _LENGTH.match(after):
        return False
    if re.match(r"\.[x*]", after) or (unit and counted and unit[1] != counted[1]):
        return False  # the release 1.3.x is no number; twenty years are no days
    words = {*re.findall(r"\w+|-", question.lower())}
    if re.match(r"--?[A-Za-z]", answer) and words.isdisjoint({"-", "argument", "default", "how", *CODE_NOUNS}):
        return False  # an option
    if answer.lower() == "one" and asks.kind == "number" and not _counts(question, after):
        return False  # "a one-off payment" counts nothing
    if {"memory", "space"} & set(question.lower().split()[:3]) and not re.search(r"[a-zA-Z]{1,9}$", answer):
        return bool(re.match(r"[ -]?(?:[KMGT]i?B|(?:kilo|mega|giga|)bytes?)\b", after))
    if asks.head == "port":
        return answer.isdecimal() and int(answer) < 1 << 16
    if asks.head in ("release", "version"):
        return bool(re.fullmatch(r"v?\d[\w.+~-]*", answer))
    if asks.head in CODE_NOUNS and (_DOCUMENT.search(answer) or f" {title_key(answer)} " in f" {title_key(question)} "):
        return False
    if asks.head in ("address", "uri", "url"):
        return bool(re.search(r"@|\w[.:]+/?/?\w|\d", answer))
    if asked := _ASKS_DAY.match(question):
        return bool(re.search(_DAYS, answer) or (not asked["week"] and (dates(answer) or re.search(MONTHS, answer))))
    if asks.kind in ("number", "measure") or (asks_default and _is_quantity(question)):
        is_sized = (asks_default or asks.kind == "measure") and re.fullmatch(_NUMBER, answer)  # "4GB"
        is_number = any(n.start == 0 for n in numbers(answer)) or is_sized
        is_share = ("%" in answer and "percent" not in question) or re.fullmatch(r"v?\d+(?:\.\d+)+", answer)
        is_vague = is_share if asks.kind == "number" else answer.isalpha()
        return bool((is_number and not is_vague) or (asks_default and _UNBOUNDED.fullmatch(answer)))
    if asks_default and asks.kind in ("noun", "what"):
        return bool(re.fullmatch(_LITERAL, answer)) or len(answer.split()) == 1
    if asks.kind == "when":
        is_version = re.fullmatch(_VERSION, answer) and _verb(question) in ("", "released", "published")
        return not is_version and bool(dates(answer) or re.search(rf"\d\D|\D\d|{MONTHS}", answer))
    if asks.kind == "who":
        own = [name for name in mask(question).names if within(title_key(name), title_key(answer))]
        opens = sentence is not None and " " not in answer and sentence.text.startswith(answer)
        if _NO_PERSON.search(answer) or (" " not in answer and _CODE.search(answer) and not _PREFIX.match(answer)):
            return False
        capitals = [word[0].isupper() for word in answer.split() if word.lower() not in FUNCTION_WORDS]
        return any(capitals) and all(capitals) and not (own or opens or answer.isupper())
    if _ASKS_ENVIRONMENT.match(question):
        return answer.isupper()
    return not ASKS_OPTION.match(question) or any(found.text == answer for found in code(answer))


def _counts(question: str, after: str) -> bool:
    """Whether the next words are those that a question asks to count, or the answer ends there."""
    following = re.match(r"(?:[ -][a-z]+){0,3}", after)
    words = content_terms(following[0]) if following else ()
    return not words or not set(content_terms(question)).isdisjoint(words)


def _is_quantity(question: str) -> bool:
    """Whether a question asks for the value of a size or time, or of a setting with such a name."""
    asks = answer_type(question)
    settings = (key.rstrip("`\"'?") for key in question.split() if _CODE.search(key))
    last = (re.split(r"[\W_]|(?<=[a-z])(?=[A-Z])", key)[-1].lower() for key in settings)
    return not _QUANTITIES.isdisjoint((asks.head, *last)) or not {"maximum", "minimum"}.isdisjoint(asks.modifiers)


def lacks_subject(question: str, answer: Answer) -> bool:
    """Whether an answer that no passage states in a fixed form is a guess: to a question for the default or a change of
    a word of code, or for a default of what its passage and its entry do not name; or to one about a word of code that
    its passage has nowhere."""
    unit = content_terms(answer_type(question).head)  # "how many seconds"
    keys, topic = _code_keys(question), frozenset(content_terms(question)) - _GENERIC - frozenset(unit)
    if keys and answer.passage and len(answer.steps) < 2:
        said = " ".join([answer.passage.title, answer.passage.headings, *(s.text for s in answer.passage.sentences)])
        if not any(key.search(said) for key in keys):
            return True
    if not ASKS_DEFAULT.search(question) and not (answer.sentence and _BARE_DEFAULT.match(answer.sentence.text)):
        return bool(keys and _ASKS_CHANGE.match(question) and _noted(question))
    if keys or not answer.passage or not answer.sentence or not _covers(answer.passage, topic):
        return True
    end = answer.sentence.text.find(answer.text) + len(answer.text)
    return _distance(answer.passage, answer.passage.sentences.index(answer.sentence), end, topic, keys) is None


def _covers(passage: ParsedPassage, topic: frozenset[str]) -> bool:
    """Whether a passage and its headings have most words of a question."""
    return len(topic & _known(passage)) >= COVERED * len(topic)


def _known(passage: ParsedPassage) -> frozenset[str]:
    """The words of a passage and of its headings."""
    return passage.terms.union(content_terms(f"{passage.title} {passage.headings}"))


def _code_keys(question: str) -> list[re.Pattern[str]]:
    """Finds the words of code of a question, which are no part of a longer one."""
    words = (word.strip("`\"'?,-") for word in question.rstrip("? ").split() if _CODE.search(word))
    return [re.compile(rf"(?<![\w-])-{{0,2}}{re.escape(word)}(?![\w-]|\.\w)", re.I) for word in words]


def _verb(question: str) -> str:
    """The verb of change in a question, as "added"."""
    return next((word for word in reversed(re.findall(r"\w+", question.lower())) if word in _NOTES), "")


def _noted(question: str) -> Find | None:
    """Finds the versions in notes such as "New in version 2.1", and the dates of releases; None if the question asks
    about no change."""
    verb = _verb(question)
    if _NOTES.get(verb) == _NOTES["released"]:
        return re.compile(rf"(?:{_NOTES[verb]})(?: date)?\W+(?:on )?(?P<value>{_DATE})").finditer
    if not verb:
        return None
    note = rf"\b(?:{_NOTES[verb]})\b"  # before the version, or in a row of a table behind it
    row = rf"[Vv]ersion: (?={_VERSION}; .*?{note})"
    return re.compile(rf"(?:{note}[^.;:]{{0,60}}?\b|{row})(?P<value>{_VERSION})").finditer


def _released(question: str, passages: tuple[ParsedPassage, ...]) -> Answer | None:
    """The date that a heading of a list of changes has behind the version in question: "1.2.0 - 2024-01-05"."""
    versions = re.findall(_VERSION, question) if _NOTES.get(_verb(question)) == _NOTES["released"] else []
    topic = frozenset(content_terms(re.sub(_VERSION, " ", question))) - _GENERIC
    for passage in passages:
        for version in versions if _covers(passage, topic) else ():
            said = rf"(?<![\w.-])v?{re.escape(version.removeprefix('v'))}(?![\w-]|\.\w)\W+({_DATE})(?!\w)"
            if dated := re.search(said, passage.headings):
                return Answer(dated[1], BESIDE, passage.sentences[0], passage)
            for sentence in passage.sentences:  # a short list of changes is one passage with its headings
                if dated := re.match(rf"(?:[\w-]+ )?\W?{said}", sentence.text):
                    return Answer(dated[1], BESIDE, sentence, passage)
    return None


def _nearest(question: str, passages: tuple[ParsedPassage, ...], find: Find) -> Answer | None:
    """The value that is nearest below what a question asks about, in a passage that has the question's words."""
    topic, keys = frozenset(content_terms(question)) - _GENERIC, _code_keys(question)
    found = list[Answer]()
    others = of_other_entries(question, passages)
    for passage in passages:
        for n, sentence in enumerate(passage.sentences if _covers(passage, topic) else ()):
            if sentence.id in others:
                continue
            values = ((match["value"].strip(" \"“”‘’'`"), match.end()) for match in find(sentence.text))
            value, end = next((pair for pair in values if is_of_type(question, pair[0])), ("", 0))
            end = end if find is _default else len(sentence.text)
            distance = _distance(passage, n, end, topic, keys) if value else None
            if distance is not None:
                share = len(topic & _known(passage)) / max(len(topic), 1)
                chance = BESIDE if topic <= sentence.terms else BELOW * share * FADES**distance
                found.append(Answer(value, chance, sentence, passage))
    # Of several versions the first: later ones tell what else was introduced.
    return max(found, key=lambda answer: (answer.probability, *(-n for n in _parts(answer.text))), default=None)


def _distance(
    passage: ParsedPassage, n: int, end: int, topic: frozenset[str], keys: list[re.Pattern[str]]
) -> int | None:
    """How many sentences above a value that ends in sentence ``n`` its subject stands, a heading as above the first;
    None if it is another subject: nothing from the entry's own sentence to the end of the value's clause names what is
    asked about."""

    def names_it(text: str, terms: frozenset[str]) -> bool:
        return all(key.search(text) for key in keys) if keys else 2 * len(topic & terms) > len(topic)

    own = passage.sentences[n]
    entry = _OPTION.match(own.text)
    if entry and _CODE.search(entry[1]) and not keys and len(_words(entry[1]) - topic) > 1 and not topic <= own.terms:
        return None  # "max_tag_count: the number of tags" is no number of lines
    said = own.text[:end] + _CLAUSE.split(own.text[end:], maxsplit=1)[0]
    if names_it(said, frozenset(content_terms(said))):
        return 0
    for at in range(n, -1, -1):
        sentence = passage.sentences[at]
        if at < n and names_it(sentence.text, sentence.terms):
            return n - at
        if _ROW.match(sentence.text):
            return None
        if _ENTRY.match(sentence.text) and not (at and _ENTRY.match(passage.sentences[at - 1].text)):
            return None
    heading = (passage.headings or passage.title).rpartition(" > ")[2]
    return n + 1 if names_it(heading, frozenset(content_terms(heading))) else None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version))) if re.fullmatch(_VERSION, version) else ()


def _words(key: str) -> frozenset[str]:
    """The words of a name of code: those of "maxRetries"."""
    return frozenset(stem(word.lower()) for word in re.findall(r"[A-Z]?[a-z]{2,}", key))


def _option(question: str, passages: tuple[ParsedPassage, ...]) -> Answer | None:
    """The option whose description, beside or below it, has most words of a question, and the headings the others."""
    topic, found = frozenset(content_terms(question)) - _GENERIC, list[tuple[int, Answer]]()
    for passage in passages:
        above = frozenset(content_terms(f"{passage.title} {passage.headings}"))
        for n, sentence in enumerate(passage.sentences):
            entry = _OPTION.match(sentence.text)
            if entry and _CODE.search(entry[1]) and (entry[1].isupper() or not _ASKS_ENVIRONMENT.match(question)):
                alone = entry.end() == len(sentence.text)
                said = sentence.terms.union(*(below.terms for below in passage.sentences[n + 1 : n + 2] if alone))
                if topic <= said | above and topic & said:
                    found.append((len(topic & said), Answer(entry[1], BESIDE, sentence, passage)))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _author(question: str, verb: str, passages: tuple[ParsedPassage, ...]) -> Answer | None:
    """Who did something: the name below a heading such as "Author", in a document about what the question names."""
    relation = relation_term(verb)
    topic = relation_terms(question) - {relation}
    for passage in passages if topic and relation else ():
        title = relation_terms(unnumbered(bare_title(passage.title)))
        is_about = title <= topic or topic <= title | relation_terms(passage.headings)
        heading = unnumbered(passage.headings.rpartition(" > ")[2])
        opening = passage.sentences[:1] if is_about and relation_terms(heading) == {relation} else ()
        for name in (name for sentence in opening for name in names(sentence.text) if " " in name.text):
            return Answer(name.text, BELOW, passage.sentences[0], passage)
    return None
