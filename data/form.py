"""The form of a question, independent of its topic.

`features` counts kinds of words, for a classifier; `masked` replaces names by one symbol, for comparisons. The features
ignore case, final punctuation and names: "who wrote solaris" equals "Who wrote Solaris?". `references` are those to
earlier answers: "#1" in "Where was #1 born?" is the answer to the first sub-question.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .text import FUNCTION_WORDS, title_key

NAME = "@"
"""Replaces a name in a masked question."""

_OWNER = re.compile(r"(?:'s|(?<=s)')$")
_PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})
_CAPITAL = r"(?:(?<!\w)[^\W\d_a-zß-öø-ÿ][\w'’.&+-]*)"
_NAMED = re.compile(
    r'["“][^"”“]{2,80}["”]'
    rf"|{_CAPITAL}(?:\s+(?:(?:of|the|de|da|di|du|del|la|le|von|van|der)\s+){{0,2}}(?:{_CAPITAL}|\d+\b))*"
    r"|\b\d[\w,.]*"
)
_ENDING = re.compile(r"['’]s$")
_REFERENCE = re.compile(r"#(\d{1,9})\b")  # "#1s" is a name
_WORD = re.compile(r"[^\W_]+(?:['.-][^\W_]+)*'?")

_PLACE = (
    "area birthplace borders capital city continent country county department district hometown island kingdom located "
    "location municipality nation place province region river state territory town village"
)
_MAKER = (
    "actor actress architect artist author band cast composer creator designer developer director distributor editor "
    "founder host inventor label manufacturer musician novelist owner painter performer producer publisher "
    "screenwriter singer star songwriter writer"
)
_KIN = "brother child children daughter family father husband mother parent parents sibling sister son spouse wife"
_KIN_OF_KIN = (  # two steps in one word
    "aunt brother-in-law child-in-law cousin daughter-in-law father-in-law granddaughter grandfather grandmother "
    "grandson maternal mother-in-law nephew niece paternal sister-in-law son-in-law stepchild stepfather stepmother "
    "uncle"
)
_KINDS: dict[str, str] = {
    "wh words": "how what when who whom why",
    "relative words": "that when where which who whom whose",  # not counted as the first word
    "prepositions": (
        "about after against along among around as at before behind beside between by during for from in inside into "
        "near on over through to under with within"
    ),
    "auxiliaries": (
        "am are be been being can could did do does had has have is may might was were will would should must"
    ),
    "the": "the",
    "a": "a an",
    "of": "of",
    "and": "and",
    "or": "or",
    "both": "both common either neither same share shared shares",
    "comparatives": (
        "bigger biggest earlier earliest fewer first higher highest larger largest last later latest least less longer "
        "longest more most older oldest recent recently shorter smaller sooner taller tallest younger youngest"
    ),
    "places": _PLACE,
    "makers": _MAKER,
    "kin": _KIN,
    "kin of kin": _KIN_OF_KIN,
    "works": (
        "album book club college company film game group magazine movie newspaper novel organization party school "
        "series show song team university"
    ),
    "life": "birth born buried citizen citizenship death died educated lived married nationality attended studied",
    "pronouns": "he her him his it its she their them these they this those there",
    "measures": "date far high large long many much old tall time year",
}
_MEMBERS = {kind: frozenset(members.split()) for kind, members in _KINDS.items()}
_OPENINGS = ("how", "what", "when", "where", "which", "who")
_RELATIONS = frozenset(f"{_PLACE} {_MAKER} {_KIN} {_KIN_OF_KIN}".split())
_AGENT = re.compile(r"[^\W\d_]{2,}(?:[eo]r|ist|man)s?")  # "presenter", "librettist"
_NO_AGENTS = frozenset(
    "after before earlier either ever fewer former her higher however human larger later latter longer never neither "
    "number offer older order other over rather river shorter smaller together under water whether winter woman younger"
    .split()
)  # fmt: skip
_CLAUSE = "(?:that|which|where|when|who|whose|(?:in|to|from|for|on|at) which|containing|located)"
_PATTERNS: dict[str, re.Pattern[str]] = {
    "nested of": re.compile(r"\bof (?:the |an? )?(?:[\w-]+ ){1,3}of\b"),
    "described by a clause": re.compile(rf"\bthe (?:[\w-]+ ){{1,3}}?{_CLAUSE}\b"),
    "asks inside": re.compile(r"(?<=\S\s)(?:(?:of|in|for|to|by|from|at|on|with) )?(?:wh(?:at|ich|om?|ere|en))\b"),
    "commas": re.compile(","),
    "quotation marks": re.compile('"'),
    "alternative": re.compile(r",? or \w"),
}

FEATURES: tuple[str, ...] = (
    "words",
    *_KINDS,
    "agents",
    "a relation of",
    "possessives",
    "possessed relations",
    "described relations",
    "numbers",
    "words in -ed",
    "words in -ing",
    *_PATTERNS,
    *(f"begins with {word}" for word in _OPENINGS),
    "begins with an auxiliary",
    "begins with a preposition",
    "ends with a preposition",
)
"""The names of the features, in order."""


def features(question: str) -> list[float]:
    """How often each of `FEATURES` occurs in a question."""
    text = question.lower().translate(_PLAIN)
    written = _WORD.findall(text)
    words = [_OWNER.sub("", word) for word in written]
    counts = dict.fromkeys(FEATURES, 0.0)
    counts["words"] = float(len(words))
    for kind, members in _MEMBERS.items():
        counts[kind] = float(sum(word in members for word in words[kind == "relative words" :]))
    for at, word in enumerate(words):
        counts["possessives"] += word != written[at]
        counts["agents"] += (agent := bool(_AGENT.fullmatch(word)) and word not in _NO_AGENTS)
        if agent or word in _RELATIONS:
            counts["a relation of"] += words[at + 1 : at + 2] == ["of"]
            counts["described relations"] += at > 1 and words[at - 1] == "the"
            counts["possessed relations"] += words[max(at - 2, 0) : at] != written[max(at - 2, 0) : at]
        counts["numbers"] += word[0].isdigit()
        counts["words in -ed"] += word.endswith("ed")
        counts["words in -ing"] += word.endswith("ing")
    counts |= {name: float(len(pattern.findall(text))) for name, pattern in _PATTERNS.items()}
    if words:
        first, last = words[0], words[-1]
        counts |= {f"begins with {word}": float(first == word) for word in _OPENINGS}
        counts["begins with an auxiliary"] = float(first in _MEMBERS["auxiliaries"])
        counts["begins with a preposition"] = float(first in _MEMBERS["prepositions"] or first == "of")
        counts["ends with a preposition"] = float(last in _MEMBERS["prepositions"])
    return list(counts.values())


def masked(question: str) -> str:
    """The question in lower case, with `NAME` for each quoted title, number and run of capitalized words.

    A function word at the start stays: "Who wrote @".
    """
    shown = _NAMED.sub(lambda name: NAME + "".join(_ENDING.findall(name.group())), _opened(question))
    return " ".join(shown.lower().rstrip("?!. ").split())


def names(question: str) -> list[str]:
    """What `masked` replaces, in order, without possessive endings."""
    return [_ENDING.sub("", name.group()) for name in _NAMED.finditer(_opened(question))]


def _opened(question: str) -> str:
    """The question with a function word at its start in lower case, so that it is no name."""
    text = question.strip()
    opening = re.match(r"\w+", text)
    return text[:1].lower() + text[1:] if opening and opening.group().lower() in FUNCTION_WORDS else text


# --- the kind of answer that a question asks for ----------------------------------------------------------------------

_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)"
_ASKS = r"(?:wh(?:at|ich|om?|ose|ere|en|y)|how)"
_WHETHER = re.compile(rf"(?:\A|[.;:]\s+){_AUXILIARY}\b(?:(?!\b{_ASKS}\b)[^?])*\?*\s*\Z", re.IGNORECASE)
_OFFERS = re.compile(r"\bor\b|\bbetween\b[^?]+\band\b[^?]+,\s+(?:which|who|what)\b", re.IGNORECASE)
_PART = re.compile(
    r"\b(?:which|what)\s+(?:\w+\s+)?(borough|county|department|district|municipality|parish|prefecture|province)\b",
    re.IGNORECASE,
)
_DATE = re.compile(rf"\bwhen {_AUXILIARY}\b|\b(?:what|which) (?:year|date|day|month|decade|century)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\bhow (?:many|much|long|tall|high|old|large|big|far|deep|often)\b|"
    r"\bwhat (?:is|was) the (?:population|number|height|length|area|age|elevation)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\s*whom?\b", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"\b\d{4}\b")
_TIMES = frozenset(
    "january february march april may june july august september october november december spring summer autumn winter "
    "century age era during before after today never".split()
)
_NUMBER_WORDS = frozenset(
    "zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy "
    "eighty ninety hundred thousand million billion once twice dozen".split()
)


def fits(question: str, answer: str) -> bool:
    """Whether an answer is of the kind that a question asks for, as far as the question's form tells: "yes" or "no", a
    date, a number, a name; and not something that the question names itself, unless it offers that. Of a question that
    is not English every answer is."""
    key, offers, asks_whether = title_key(answer), _OFFERS.search(question), _WHETHER.search(question)
    if key in ("yes", "no"):
        return asks_whether is not None
    if asks_whether and not offers:
        return False
    if not offers and f" {key} " in f" {title_key(question)} ":
        return False
    if _DATE.search(question):
        return _DIGIT.search(answer) is not None or not _TIMES.isdisjoint(key.split())
    if _NUMBER.search(question):
        return _DIGIT.search(answer) is not None or not _NUMBER_WORDS.isdisjoint(key.split())
    return not (_PERSON.match(question) and _YEAR.search(answer))


def is_called(question: str, answer: str, text: str) -> bool:
    """Whether an answer, or a text that has it, calls it what a question asks for: "Kent" of "Which county is it?" if
    the text says "Kent County" or "the county of Kent". True of a question that does not ask for a part of a country
    whose name usually says what it is."""
    if not (asked := _PART.search(question)):
        return True
    kind, key, words = asked[1].lower(), title_key(answer), f" {title_key(text)} "
    return (
        kind in key.split() or f" {key} {kind} " in words or f" {kind} of {key} " in words.replace(" of the ", " of ")
    )


def references(text: str) -> list[int]:
    """The distinct numbers that a text refers to, in order."""
    return list(dict.fromkeys(map(int, _REFERENCE.findall(text))))


def replace_references(text: str, answer: Callable[[int], str | None]) -> str:
    """The text with each reference replaced by its answer, unless that is None."""

    def put(reference: re.Match[str]) -> str:
        replacement = answer(int(reference[1]))
        return reference.group() if replacement is None else replacement

    return _REFERENCE.sub(put, text)
