"""The keyless engine: it quotes a chain of evidence, and guesses. It is no language model.

It plays every agent from the prompt alone, without a key, a network or labels, in milliseconds, and always the same:

1. It splits the question by patterns: "X's R", "the R of X", "the N that ...", "A or B".
2. It chooses the passages that together have the words of the question, each tied to one before by a title or a name.
3. A guess is a name, a date, a number or a phrase of one sentence. Its confidence is the share of train questions on
   which such a guess was right.
4. Each output field has one rule, by its name if that gives a value of its type, else by its type: so other people's
   DSPy modules run on it, too.

The weights in ``lexical.json`` are fitted on train questions by ``python -m bench.lexical``.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from dspy import lm15

from ..data.form import references, replace_references
from ..data.languages import is_english
from ..data.text import FUNCTION_WORDS, MONTH, MONTHS, content_terms, split_sentences, stem, title_key, title_names
from .replies import as_events, read_request, respond

UNKNOWN = "unknown"
WEIGHTS: dict[str, dict[str, float]] = json.loads((files(__package__) / "lexical.json").read_bytes())


class LexicalEngine:
    """The engine behind ``dspy.LM("lexical", engine=LexicalEngine())``. Stateless: one object serves all threads."""

    writes_prompts = False
    """It plays agents; it cannot write instructions."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Reply to a request in the form of its adapter."""
        system, (*_, task) = read_request(request)
        prompt = read_prompt(system, task.text)
        agent = Agent(prompt)
        values = {name: agent.value(name, type) for name, type in prompt.outputs.items()}
        if prompt.as_json:
            return respond(request, json.dumps(values, ensure_ascii=False))
        reply = ""
        for name, value in [*values.items(), ("completed", "")]:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            reply += f"[[ ## {name} ## ]]\n{text}\n\n"
        return respond(request, reply)

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The reply as events, for `dspy.streamify`."""
        return as_events(self.complete(request))

    def dump_state(self) -> dict[str, Any]:
        """Return no state: DSPy can save a program that carries this engine."""
        return {}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> LexicalEngine:
        return cls()


# --- prompts ----------------------------------------------------------------------------------------------------------

_DECLARED = re.compile(r"^Your input fields are:\n(.*?)^Your output fields are:\n(.*?)^All interactions", re.M | re.S)
_LISTED = re.compile(r"^\d+\. `(\w+)` \((.*?)\)(?::|$)", re.MULTILINE)
_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\]\s*$", re.MULTILINE)
# The adapters' closing sentence, after the last field.
_CLOSING = re.compile(r"\n\nRespond with (?:the corresponding output fields|a JSON object)[^\n]*\Z")
_TITLE = re.compile(r"^\[(\d+)\] (?!«)(.*)$", re.MULTILINE)
_ROW = re.compile(r"^>?(\d+s\d+) ", re.MULTILINE)
_ITEM = re.compile(r"^\[\d+\] «(.*?)»$", re.MULTILINE | re.DOTALL)  # of a list, as DSPy writes it
_LONGEST_ROW = 2000  # characters that are read of a sentence, which may be a whole table


@dataclass(frozen=True)
class Sentence:
    """A sentence with its id in the prompt ("2s3")."""

    id: str
    text: str

    @cached_property
    def terms(self) -> frozenset[str]:
        return _terms(self.text)

    @cached_property
    def key(self) -> str:
        """Its folded words between spaces, to find names in."""
        return f" {title_key(self.text)} "


@dataclass(frozen=True)
class Page:
    """A passage of a prompt; ``headings`` stand above it in its document."""

    number: str
    title: str
    sentences: tuple[Sentence, ...]
    headings: str = ""

    @cached_property
    def title_terms(self) -> frozenset[str]:
        return _terms(f"{self.title} {self.headings}")

    @cached_property
    def terms(self) -> frozenset[str]:
        return self.title_terms.union(*(row.terms for row in self.sentences))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The keys by which other texts may mention its subject, the most specific first."""
        return title_names(self.title)

    @cached_property
    def mentions(self) -> frozenset[str]:
        """The keys of the names in it."""
        return frozenset(
            title_key(row.text[start:end]) for row in self.sentences for start, end in name_places(row.text)
        )


@dataclass(frozen=True)
class Prompt:
    """A task: its inputs as text, and its outputs with their types."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    as_json: bool = False

    def listed(self, name: str) -> list[str]:
        """An input of type ``list[str]``: JSON, as DSPy writes it, or one item per line."""
        text = self.inputs.get(name, "").strip()
        if text.startswith('["') and text.endswith("]"):
            return [str(item) for item in json.loads(text)]
        return _ITEM.findall(text) or [
            item for line in text.splitlines() if (item := line.strip(" -*\t")) and item != "[]"
        ]

    @cached_property
    def question(self) -> str:
        """The input of that name, of a like name, or the first that looks like one."""
        named = [self.inputs[name] for name in ("objective", "question", "query", "claim") if name in self.inputs]
        asked = [text for text in self.inputs.values() if text.endswith("?")]
        return [*named, *asked, *self.inputs.values(), ""][0]

    @cached_property
    def pages(self) -> tuple[Page, ...]:
        """The numbered passages, else all other texts as passages. Those of one title are one passage."""
        shown = [page for text in self.inputs.values() for page in read_pages(text)]
        others = [item for name, text in self.inputs.items() if text != self.question for item in self.listed(name)]
        for number, text in enumerate(() if shown else others, 1):
            title, bar, body = text.partition(" | ")
            rows = split_sentences(body if bar else text)
            sentences = tuple(Sentence(f"{number}s{n}", row) for n, row in enumerate(rows, 1))
            shown.append(Page(str(number), title if bar else "", sentences))
        merged: dict[str, Page] = {}
        for page in shown:
            first = merged.setdefault(page.title or page.number, page)
            if first is not page:
                headings = f"{first.headings} {page.headings}".strip()
                merged[page.title] = Page(first.number, page.title, first.sentences + page.sentences, headings)
        return tuple(merged.values())


def read_prompt(system: str, task: str) -> Prompt:
    """Parse a system prompt and its last message.

    Raises:
        ValueError: it is not of `dspy.ChatAdapter` or `dspy.JSONAdapter`.
    """
    declared = _DECLARED.search(system)
    inputs, outputs = (dict(_LISTED.findall(part)) for part in declared.groups()) if declared else ({}, {})
    task = _CLOSING.sub("", task)
    marks = [mark for mark in _FIELD.finditer(task) if mark[1] in inputs]  # any other marker is part of the text
    ends = [mark.start() for mark in marks[1:]] + [len(task)]
    if not outputs or (inputs and not marks):
        raise ValueError("the lexical engine reads prompts of dspy.ChatAdapter and dspy.JSONAdapter only")
    texts = {mark[1]: task[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}
    return Prompt(texts, outputs, "Outputs will be a JSON object" in system)


@lru_cache(maxsize=64)
def read_pages(text: str) -> tuple[Page, ...]:
    """The passages of a field as `NumberedPassages` writes it."""
    _, *parts = _TITLE.split(text)
    pages = []
    for number, head, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        _, *rows = _ROW.split(body)
        title, _, headings = head.partition(" > ")
        pairs = zip(rows[::2], rows[1::2], strict=True)
        sentences = tuple(Sentence(id, row.strip()[:_LONGEST_ROW]) for id, row in pairs)
        pages.append(Page(number, "" if title == "(untitled)" else title, sentences, headings))
    return tuple(pages)


# --- words, names, dates, numbers -------------------------------------------------------------------------------------

# Words of one family name one relation: "Who directed X" is answered by "the director of X".
_FAMILIES = (
    "direct directed director, write wrote written writer author novelist, die died death, bear born birth native, "
    "marry married wife husband spouse, compose composed composer music, found founded founder established, "
    "locate located situated lies stands, sing sang sung singer performer, make made maker created creator, "
    "design designed designer architect, publish published publisher, produce produced producer, build built builder, "
    "play played player starring starred actor actress, release released came premiered, study studied educated, "
    "invent invented inventor, win won winner, discover discovered discoverer, lead led leader headed head, "
    "nationality citizenship country nation, paint painted painter painting, bury buried grave"
).split(", ")
_FAMILY = {stem(word): stem(family.split()[0]) for family in reversed(_FAMILIES) for word in family.split()}

_CAPITAL = r"(?<![a-z0-9_])[A-ZÀ-ÖØ-ÞĀ-ž\u0391-\u03ab\u0400-\u042f][\w'’.\-–+]*"
_JOIN = r"(?:of|the|de|da|di|du|des|del|della|la|le|les|von|van|der|den|bin|ibn|al|el|y|for|à)"
_NAME = re.compile(rf"{_CAPITAL}(?:(?:\s+(?:{_JOIN}\s+){{0,2}}|\s*&\s*){_CAPITAL})*(?: \d{{1,3}}\b)?")
_QUOTED = re.compile(r"[\"“]\s*([^\"”“]{2,80}?)\s*[\"”]")
_KINDS_OF_SPAN = (
    ("date", re.compile(rf"\b(?:\d{{1,2}} {MONTH},? \d{{3,4}}|{MONTH} (?:\d{{1,2}},? )?\d{{4}}|\d{{4}}-\d\d-\d\d)\b")),
    ("year", re.compile(r"(?<![\d,.])(?:1\d|20)\d\d(?![\d%]|[,.]\d|\s*(?:km|m|people|feet|ft)\b)|\b\d{1,4} BCE?\b")),
    ("number", re.compile(r"(?<![\w.,])[£$€]?\d+(?:,\d{3})*(?:\.\d+)*(?: ?(?:%|percent|million|billion))?(?!\w|,\d)")),
    ("number", re.compile(r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty)\b")),
    ("name", re.compile(  # as programs have them: os.environ, compile(), --quiet, max_size, FORCE
        r"(?<![\w.%/:-])(?:--?[a-z][\w-]+|(?:\w+\.)*\w+\(\)|(?:[A-Za-z_]\w*\.)+[a-z_]\w+|\w*[a-z0-9]_\w+|[A-Z][A-Z0-9_]{2,}"
        r"|[a-z]+[A-Z]\w*)(?![\w-])")),
    ("quoted", _QUOTED),
)  # fmt: skip
_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")
_INITIAL = re.compile(r"\b(?:[A-Z]|Jr|Sr)\.$")
_NO_PHRASE = FUNCTION_WORDS | frozenset(
    "became become began born bought brought built called came died found gave given got held kept known led left lost "
    "made met moved named opened played ran released said served set shot starred sold spent stood taken took used "
    "won".split()
)


class Span(NamedTuple):
    """A stretch of a text that may be an answer, and the word before it, in lower case."""

    text: str
    kind: str  # name, quoted, date, year, number, phrase, title
    first: int  # its first and last word
    last: int
    before: str


@lru_cache(maxsize=8192)
def _terms(text: str) -> frozenset[str]:
    """The stems of a text's topic words, with those of one family as one."""
    return frozenset(_FAMILY.get(term, term) for term in content_terms(text))


def name_places(text: str) -> Iterator[tuple[int, int]]:
    """Where the capitalized names of a text are, without a function word that opens the sentence."""
    for match in _NAME.finditer(text):
        start, end = match.span()
        while end > start and text[end - 1] in ".,;:'’-–&" and not _INITIAL.search(text[start:end]):
            end -= 1
        end -= 2 * text[start:end].endswith(("'s", "’s"))
        first, blank, _ = text[start:end].partition(" ")
        if not text[:start].strip(" \"'“(") and first.lower() in FUNCTION_WORDS - {"the", "a", "an"}:
            start += len(first) + len(blank)
        name = text[start:end]
        if (
            len(name) > 1
            and name[0].isupper()
            and name.lower() not in FUNCTION_WORDS
            and not re.fullmatch(MONTHS, name)
        ):
            yield start, end


@lru_cache(maxsize=2048)
def spans(text: str) -> tuple[Span, ...]:
    """The stretches of a sentence that may be answers."""
    places: dict[tuple[int, int], str] = {}
    for kind, pattern in _KINDS_OF_SPAN:
        for match in pattern.finditer(text):
            if kind == "year" or not any(start <= match.start() and match.end() <= end for start, end in places):
                places.setdefault(match.span(match.lastindex or 0), kind)
    for start, end in name_places(text):
        places.setdefault((start, end), "name")
        for inner in re.finditer(r" (?:of|and|the|de|for) (?:the )?|, |(?<=^The) ", text[start:end]):
            places.setdefault((start, start + inner.start()), "name")
            places.setdefault((start + inner.end(), end), "name")
        if place := re.match(r", [A-Z][\w-]+(?: [A-Z][\w-]+)*", text[end:]):
            places.setdefault((start, end + place.end()), "name")
    words = [(match.start(), match.end(), match[0].lower()) for match in _WORD.finditer(text)]
    run: list[tuple[int, int, str]] = []
    for start, end, word in [*words, (len(text), len(text), "")]:
        is_content = bool(word) and word not in _NO_PHRASE
        if not is_content or (run and text[run[-1][1] : start].strip()):
            for skipped in range(max(0, len(run) - 4), len(run)):
                places.setdefault((run[skipped][0], run[-1][1]), "phrase")
            run = []
        run += [(start, end, word)] * is_content
    stretches = []
    for (start, end), kind in sorted(places.items()):
        inside = [n for n, (at, _, _) in enumerate(words) if start <= at < end]
        if inside:
            mark = text[:start].rstrip()[-1:]
            before = words[inside[0] - 1][2] if inside[0] and mark.isalnum() else mark
            stretches.append(Span(text[start:end], kind, inside[0], inside[-1], before))
    return tuple(stretches)


# --- questions --------------------------------------------------------------------------------------------------------

_PEOPLE = (
    "actor|actress|architect|artist|author|brother|child|composer|creator|daughter|designer|director|discoverer|employer|"
    "father|founder|grandfather|grandmother|husband|inventor|king|leader|mother|musician|owner|painter|performer|"
    "president|producer|queen|ruler|scientist|screenwriter|sister|singer|son|spouse|wife|winner|writer"
)
_FINITE = (
    "am|are|be|been|can|could|did|do|does|had|has|have|is|may|might|must|should|was|were|will|would|became|began|belongs|"
    "built|came|comes|died|fell|flows|gave|held|holds|lies|made|named|opened|owns|plays|ran|runs|stands|stars|took|won|wrote"
)
_WH = "who|whom|whose|what|which|where|when|how|why"
_REF = r"(?:@\d+|#\d+)"
_NOT = rf"(?!(?:{_WH}|the|a|an|of|and|or|is|are|was|were|did|do|both|from|in|on|at|by|to|with|for|that|one|has|had)\b)"
_NOUN = rf"{_NOT}[a-z][\w-]*(?: {_NOT}[a-z][\w-]*){{0,2}}?"
_OF_BIRTH = "(?:place|date|year|country|city|cause) of [a-z]+"
_KIND = r"(?:the )?(?:(?:film|movie|book|novel|song|album|band|city|town|river|company|opera|play|series|painting) )?"
_PLAIN = rf"(?:(?!\b(?:{_FINITE})\b)[^,?;])*"
_RELATIONS = (  # how to ask for a relation, and how to find it
    ("{who} is {x}'s {noun}", re.compile(rf"(?P<x>{_REF})['’]s? (?P<noun>{_OF_BIRTH}|[a-z-]+)(?= |$|\?|,|')")),
    ("{who} is the {noun} of {kind}{x}", re.compile(
        rf"\b(?:[Tt]he )?(?P<noun>{_OF_BIRTH}|{_NOUN}) of (?P<kind>{_KIND})(?P<x>{_REF})")),
    ("Which {noun} {clause}", re.compile(
        rf"(?i:\b(?:the|an?) )(?P<noun>{_NOUN}) (?:who|that|which) "
        rf"(?P<clause>(?:(?:{_FINITE}) ){{0,3}}{_PLAIN}?)(?=\b(?:{_FINITE})\b|[,?;]|$)")),
    ("Which {noun} {clause}", re.compile(
        rf"\b[Tt]he (?P<noun>{_NOUN}) "
        rf"(?P<clause>(?:{_NOT}[a-z]+(?:ed|ing)|known|born|held|written|made|built|won)(?: [a-z]+){{0,3}} {_REF})")),
)  # fmt: skip
_ASKED = re.compile(rf"\b(?:{_WH}|how many|an?|in|on|as|another)\s*$", re.IGNORECASE)
_EMPTY = re.compile(
    rf"{_REF}|\b(?:{_WH}|is|are|was|were|the|a|an|name|of|in|to|did|does|do|by|for|on|at|both)\b|\W", re.I
)
_WHETHER = re.compile(r"(?:is|are|was|were|did|do|does|has|have|had|can|could|will|would)\b", re.IGNORECASE)
_SIDES = re.compile(
    rf"[,:]? ?(?:\bbetween )?(?:the )?{_KIND}(?P<a>{_REF}),? (?:or|and) (?:the )?{_KIND}(?P<b>{_REF})\s*,?"
)
_JOINT = re.compile(r"\b(?:both|same|in common|share)\b|^(?:is|are|was|were|did|do|does|have)\b", re.IGNORECASE)
_COMPARES = re.compile(r"\b(?:same|earlier|later|older|younger|longer|first|last|more)\b")
_ROLE = re.compile(r"\b(?:director|performer|composer|author|writer|founder|producer|singer|architect|designer)\b")
_KINDS = (  # what a question asks for: the first that applies
    ("number", r"\bhow (?:many|much|tall|high|long|far|old|large|big|deep|fast)\b|\bwhat (?:number|population)\b"),
    ("year", r"\b(?:what|which)(?: \w+)? (?:year|decade|century)\b|\byear of\b"),
    ("date", r"\bwhen\b|\bdate of\b|\b(?:what|which) (?:date|day|month)\b"),
    ("place", r"\bwhere\b|\bplace of\b|\b(?:what|which) (?:[\w-]+ )?(?:city|town|village|country|state|region)\b"),
    ("person", rf"\bwhom?\b|\b(?:what|which) (?:[\w-]+ )?(?:{_PEOPLE})\b|\bwhose\b"),
    ("thing", r"\b(?:what|which)\b"),
)  # fmt: skip
_ASKED_NOUN = re.compile(
    rf"\b(?:what|which)(?: (?:is|was|are|were))?(?: the)? ({_NOUN})(?= (?:{_FINITE}|of|in|that|who|by)\b|\W|$)", re.I
)


@lru_cache(maxsize=512)
def mask(question: str) -> tuple[str, tuple[str, ...]]:
    """A question with @0, @1, ... for its names and quoted titles, and these."""
    question = question.replace("@", " ")
    places = [match.span() for match in _QUOTED.finditer(question)]
    places += [place for place in name_places(question) if not any(a < place[1] and place[0] < b for a, b in places)]
    text, named, end = "", list[str](), 0
    for start, stop in sorted(places):
        if bracket := re.match(r" \([^()]*\)", question[stop:]):
            stop += bracket.end()
        text += f"{question[end:start]}@{len(named)}"
        named.append(question[start:stop].strip('"“”'))
        end = stop
    return text + question[end:], tuple(named)


@lru_cache(maxsize=512)
def plan(question: str) -> tuple[str, ...]:
    """The sub-questions, in order; #1 is the answer of the first. The question itself if it has no parts."""
    text, named = mask(question)
    text, steps = text.rstrip("?!. ？！。؟"), list[str]()
    while len(steps) < 5 and (step := _innermost(text, f"#{len(steps) + 1}")):
        asked, text = step
        steps.append(asked)
    steps += _both(text, len(steps)) or [text]
    unmasked = [re.sub(r"@(\d+)", lambda match: named[int(match[1])], " ".join(step.split())) for step in steps]
    return tuple(f"{step[:1].upper()}{step[1:]}".rstrip(" ,") + "?" for step in unmasked)


def _innermost(text: str, reference: str) -> tuple[str, str] | None:
    """A sub-question about one relation, and the text with a reference in its place."""
    for asks, pattern in _RELATIONS:
        for match in pattern.finditer(text):
            parts = {"kind": "", "x": "", "clause": "", **match.groupdict()}
            before, after = text[: match.start()], text[match.end() :]
            rest = f"{before}{reference}{' ' * after[:1].isalnum()}{after}"
            clause = parts["clause"]
            vague = clause and (_COMPARES.search(clause) or not re.search(rf"{_REF}|\w{{3,}} \w+ \w{{3,}}", clause))
            indefinite = _ASKED.search(before) and not match[0].lower().startswith("the ")
            if not vague and not indefinite and _EMPTY.sub("", rest):
                person = re.fullmatch(rf"(?:{_PEOPLE})s?", parts["noun"].split()[-1])
                return asks.format(**parts, who="Who" if person else "What"), rest
    return None


def _both(text: str, taken: int = 0) -> list[str]:
    """The question for each side of "... @0 or @1" or "both @0 and @1"; ``taken`` sub-questions come before them."""
    sides = _SIDES.search(text)
    if not sides or not (" or " in sides[0] or _JOINT.search(text)):
        return []
    names, steps = [sides["a"], sides["b"]], list[str]()
    if role := _ROLE.search(text):  # "Which film has the director who was born first, @0 or @1"
        steps = [f"Who is the {role[0]} of {name}" for name in names]
        names = [f"#{taken + 1}", f"#{taken + 2}"]
    whether, before = _WHETHER.match(text), text[: sides.start()]
    before = f"What of{before[whether.end() :]}" if whether else before
    return [*steps, *(f"{before} {name} {text[sides.end() :]}" for name in names)]


@lru_cache(maxsize=1024)
def asked_for(question: str) -> tuple[str, str]:
    """What a question asks for: a kind of `_KINDS`, "verdict" or "other"; and the stem of the noun after "which"."""
    text, _ = mask(question)
    if _WHETHER.match(text) or _both(text):
        return "verdict", ""
    noun = _ASKED_NOUN.search(text)
    kind = next((kind for kind, pattern in _KINDS if re.search(pattern, text, re.IGNORECASE)), "other")
    return kind, stem(noun[1].split()[-1]) if noun else ""


def _relation(question: str) -> frozenset[str]:
    """The terms of a question without those of its names."""
    return _terms(question) - _terms(" ".join(mask(question)[1]))


# --- the chain of evidence --------------------------------------------------------------------------------------------

_LONGEST = 6  # passages of a chain
_EXPLAINED = 0.44  # share of a word's weight that it keeps once a chosen passage has it
_CERTAINTY = (1.0, 0.9, 0.6, 0.6)  # that each of a passage's names means the passage


class Chain:
    """The passages of a prompt that form a chain of evidence for a question.

    It grows by one passage at a time: all others compete with the end of the chain, by a conditional logit.
    """

    def __init__(self, question: str, steps: Sequence[str], pages: Sequence[Page]) -> None:
        self.pages, self.steps = tuple(pages), tuple(steps)
        self.terms, self.key = _terms(question), f" {title_key(question)} "
        self._holders = Counter(term for page in pages for term in page.terms)
        self._bearers = Counter(name for page in pages for name in {*page.names, *page.mentions})
        self._total = self.worth(self.terms) or 1.0
        self._names = {title_key(name) for name in mask(question)[1]}
        self._joint = bool(_JOINT.search(question) or " or " in question)

    def worth(self, terms: Iterable[str], taken: Mapping[str, int] | None = None) -> float:
        """The sum of BM25's inverse frequencies of some terms among the passages; less of those that are taken."""
        held = [(self._holders[term], (taken or {}).get(term, 0)) for term in terms if self._holders[term]]
        return math.fsum(math.log(1 + (len(self.pages) - n + 0.5) / (n + 0.5)) * _EXPLAINED**times for n, times in held)

    def extend(self, chosen: Sequence[Page]) -> list[Page]:
        """The passages that extend the chosen ones, in the order of the choice."""
        grown = list(chosen)
        while len(grown) < min(_LONGEST, len(self.pages)):
            options = self.options(grown)
            scores = [weighted(features, "chain") for _, features in options]
            best = max(range(len(options) - 1), key=scores.__getitem__)
            likely = 1 / sum(math.exp(min(score - scores[best], 700.0)) for score in scores) >= WEIGHTS["least"]["next"]
            if not (likely if grown else self.terms & options[best][0].terms):
                break
            grown.append(options[best][0])
        return grown[len(chosen) :]

    def options(self, chosen: Sequence[Page]) -> list[tuple[Any, dict[str, float]]]:
        """The features of each passage that may come next, and last those of the end, which is None."""
        taken = Counter(term for page in chosen for term in page.terms & self.terms)
        taken_names = [f" {name} " for page in chosen if (name := self._asked_name(page)[0])]
        options: list[tuple[Any, dict[str, float]]] = []
        for rank, page in enumerate(self.pages, 1):
            if page in chosen:
                continue
            name, certainty = self._asked_name(page)
            again = any(f" {name} " in other or other in f" {name} " for other in taken_names)
            named = self._rarity(name) * certainty
            cover = self.worth(page.terms & self.terms, taken) / self._total
            lines = [self.worth((row.terms | page.title_terms) & self.terms, taken) for row in page.sentences] or [0.0]
            features = {
                "rank": math.log(rank),
                "cover": cover,
                "line": max(lines) / self._total,
                "opening": lines[0] / self._total,
                "new": len(page.terms & self.terms - taken.keys()) / max(len(self.terms), 1),
                "named": named * (not again),
                "whole": float(name in self._names and not again),
            }
            if chosen:
                link = max(self._mention(other, page) for other in chosen)
                back = max(self._mention(page, other) for other in chosen)
                shared = max(self._shared(other, page) for other in chosen)
                features |= {"again": named * again, "link": link, "back": back, "shared": shared}
            phase = ("joint" if self._joint else "next") if chosen else "first"
            options.append((page, {f"{phase} {feature}": value for feature, value in features.items()}))
        size, steps, left = len(chosen), max(len(self.steps), 2), self.worth(self.terms, taken) / self._total
        end = {"end": 1.0, "end alone": size == 1, "end early": size < steps, "end late": max(0, size - steps)}
        return [*options, (None, end | {"end joint": self._joint, "end left": left, "end names": len(self._names)})]

    def _asked_name(self, page: Page) -> tuple[str, float]:
        """The name of a passage that the question has, and how certainly it means the passage; empty for none."""
        pairs = zip(page.names, _CERTAINTY, strict=False)
        return next((pair for pair in pairs if f" {pair[0]} " in self.key), ("", 0.0))

    def _rarity(self, name: str) -> float:
        rare = max((self.worth([term]) for term in _terms(name)), default=0.0)
        return rare / (rare + 1) / math.pow(max(self._bearers[name], 1), 0.28)

    def _mention(self, page: Page, other: Page) -> float:
        """How strongly a passage mentions another one: by a rare name, beside words of the question."""
        strongest = 0.0
        for name, certainty in zip(other.names, _CERTAINTY, strict=False):
            cues = [self.worth(self.terms & row.terms) for row in page.sentences if f" {name} " in row.key]
            strength = certainty * self._rarity(name) * (0.4 if f" {name} " in self.key else 1.0)
            strongest = max(strongest, strength * (1 + 2 * max(cues) / self._total) if cues else 0.0)
        return strongest

    def _shared(self, page: Page, other: Page) -> float:
        """How strongly two passages share a name that the question does not have."""
        common = page.mentions & {*other.mentions, *other.names}
        return max((self._rarity(name) for name in common if f" {name} " not in self.key), default=0.0)

    def sentences(self, pages: Sequence[Page], chosen: Sequence[Page]) -> list[Sentence]:
        """The sentences of some of the chosen passages that carry the chain, by words of the question and names of
        other chosen passages; at least one of each passage."""
        asked = self.terms.union(*(_terms(replace_references(step, lambda _: " ")) for step in self.steps))
        total, carrying = self.worth(asked) or 1.0, list[Sentence]()
        for page in pages:
            others = [other for other in chosen if other is not page and not self._asked_name(other)[0]]
            scores = []
            for row in page.sentences:
                leads = any(f" {name} " in row.key for other in others for name in other.names if len(name) > 2)
                words = self.worth((asked & row.terms) - page.title_terms) / total
                scores.append(words + leads + 0.08 * (row is page.sentences[0]))
            pairs = zip(page.sentences, scores, strict=True)
            carrying += [row for row, score in pairs if score >= 0.92 * max(scores)]
        return carrying


def weighted(features: Mapping[str, float], model: str) -> float:
    weights = WEIGHTS[model]
    return math.fsum(value * weights.get(name, 0.0) for name, value in features.items())


# --- guesses ----------------------------------------------------------------------------------------------------------

_BEFORE = frozenset('by in at of from as the a an to for with on is was were ( called named near and , " than'.split())


class Guess(NamedTuple):
    """An answer with its probability, and the sentence and the passage that it was read from."""

    text: str = UNKNOWN
    probability: float = 0.0
    sentence: Sentence | None = None
    page: Page | None = None

    def __bool__(self) -> bool:
        return self.text != UNKNOWN

    def __str__(self) -> str:
        return f"{self.text} [{self.sentence.id}]" if self.sentence else self.text


NONE = Guess()


def candidates(chain: Chain, question: str, chosen: Sequence[Page]) -> Iterator[tuple[Guess, dict[str, float]]]:
    """The spans that may answer a question about the chosen passages of a chain, or others; with their features."""
    kind, noun = asked_for(question)
    asked, relation, names = _terms(question), _relation(question), [title_key(name) for name in mask(question)[1]]
    total, wanted = chain.worth(asked) or 1.0, chain.worth(relation) or 1.0
    key = f" {title_key(question)} {chain.key} "
    openings = {name: page.sentences[0].terms for page in chain.pages if page.sentences for name in page.names[:2]}
    for page in chain.pages:
        is_about = any(name in page.names for name in names)
        place = min(chosen.index(page), 3) if page in chosen else -1
        title = Span(re.sub(r"\s*\([^()]*\)$", "", page.title), "title", -9, -9, "")
        for row in page.sentences:
            opens = row is page.sentences[0]
            seen, has_name = row.terms | page.title_terms, is_about or any(f" {name} " in row.key for name in names)
            words = [_FAMILY.get(stem(word), stem(word)) for word in _WORD.findall(row.text.lower())]
            at = [n for n, word in enumerate(words) if word in relation]
            shared = {
                f"chain {place}": 1.0,
                "share": chain.worth(asked & seen) / total,
                "relation": chain.worth(relation & seen) / wanted,
                "about": float(is_about),
                "has name": float(has_name),
                "opens": float(opens),
            }
            dates = [span.text for span in spans(row.text) if span.kind in ("date", "year")][:2]
            for span in (*spans(row.text), *([title] if opens and not is_about else [])):
                if not (text := title_key(span.text)):
                    continue
                terms = _terms(span.text)
                near = min((max(span.first - n, n - span.last, 1) for n in at), default=20)
                size = f"{min(len(span.text.split()), 5)} words, {'phrase' if span.kind == 'phrase' else 'name'}"
                features = shared | {
                    f"{kind} {span.kind}": 1.0,
                    f"{kind} after {span.before}": float(span.before in _BEFORE),
                    size: 1.0,
                    "near": 1 / near,
                    "near, with name": has_name / near,
                    "asked": float(f" {text} " in key),
                    "overlaps": len(terms & asked) / max(len(terms), 1),
                    "noun beside": float(noun in words[max(0, span.first - 3) : max(0, span.last + 4)]),
                    "noun inside": float(noun in terms),
                    "noun of its page": float(noun in openings.get(text, ())),
                }
                if span.text in dates:  # of birth, then of death
                    features[f"date {dates.index(span.text)}{' of death' * ('die' in relation)}"] = 1.0
                yield Guess(span.text, 0.0, row, page), features


def read(chain: Chain, question: str, chosen: Sequence[Page]) -> Guess:
    """The likeliest span, for an English question; all spellings of one answer count together."""
    scored = [(weighted(features, "span"), guess) for guess, features in candidates(chain, question, chosen)]
    scored.sort(key=lambda pair: -pair[0])
    odds, best = Counter[str](), dict[str, Guess]()
    for score, guess in scored:
        key = title_key(guess.text)
        odds[key] += math.exp(score - scored[0][0])  # type: ignore[assignment]
        best.setdefault(key, guess)
    if not scored or not is_english(question):
        return NONE
    key = max(odds, key=odds.__getitem__)
    return best[key]._replace(probability=odds[key] / odds.total())


class Step(NamedTuple):
    """A sub-question with earlier answers in place of its references, and its own guess; `NONE` if it is open."""

    question: str
    guess: Guess


class Reading:
    """What the passages of a prompt tell about a question."""

    def __init__(self, question: str, steps: Sequence[str], pages: Sequence[Page], kept: Sequence[Page] = ()) -> None:
        self.question, self.planned, self.kept = question, tuple(steps) or plan(question), list(kept)
        self.chain = Chain(question, self.planned, pages)
        self.added = self.chain.extend(self.kept)
        self.chosen = self.kept + self.added
        self.chosen_terms = frozenset[str]().union(*(page.terms for page in self.chosen))

    @cached_property
    def steps(self) -> list[Step]:
        """Every sub-question, answered in order. One whose names the chain does not have is open."""
        answers, steps = dict[int, str](), list[Step]()
        for number, planned in enumerate(self.planned, 1):
            question, guess = replace_references(planned, answers.get), NONE
            names = mask(question)[1]
            if not references(question) and (not names or any(_terms(name) <= self.chosen_terms for name in names)):
                guess = read(self.chain, question, self.chosen)
            if guess:
                answers[number] = guess.text
            steps.append(Step(question, guess))
        return steps

    @cached_property
    def raw(self) -> Guess:
        """The answer, with its share among all candidates. Comparisons and verdicts are for a language model."""
        if asked_for(self.question)[0] == "verdict":
            return NONE
        return self.steps[-1].guess or read(self.chain, self.question, self.chosen)

    @cached_property
    def guess(self) -> Guess:
        """The answer, with the probability that it is right."""
        return self.raw and self.raw._replace(probability=1 / (1 + math.exp(-weighted(self.signs(), "right"))))

    def signs(self) -> dict[str, float]:
        """The features of the answer by which its probability is told."""
        row, page = self.raw.sentence, self.raw.page
        asked, relation = self.chain.terms, _relation(self.steps[-1].question)
        seen = row.terms | page.title_terms if row and page else frozenset()
        share = min(max(self.raw.probability, 0.01), 0.99)
        return {
            "always": 1.0,
            "share": math.log(share / (1 - share)),
            "told": len(asked & self.chosen_terms) / max(len(asked), 1),
            "relation": len(relation & seen) / max(len(relation), 1),
            "steps": len(self.planned) - 1.0,
            "strange name": float(any(not _terms(name) <= self.chosen_terms for name in mask(self.question)[1])),
            f"asks {asked_for(self.question)[0]}": 1.0,
        }


# --- one rule for each output field -----------------------------------------------------------------------------------


class Agent:
    """What an agent is asked, and what its passages tell."""

    def __init__(self, prompt: Prompt) -> None:
        self.prompt = prompt
        steps = prompt.listed("sub_questions") or prompt.listed("roadmap")
        selected = set[str]() if "keep" in prompt.outputs else set(prompt.listed("selected"))  # a Selector judges again
        numbers = {id.partition("s")[0] for id in selected}
        kept = [page for page in prompt.pages if any(row.id.partition("s")[0] in numbers for row in page.sentences)]
        self.reading = Reading(prompt.question, steps, prompt.pages, kept)

    @cached_property
    def open(self) -> list[str]:
        return [step.question for step in self.reading.steps if not step.guess and not references(step.question)]

    def rows(self, pages: Sequence[Page]) -> list[Sentence]:
        return self.reading.chain.sentences(pages, self.reading.chosen)

    @cached_property
    def evidence(self) -> list[Sentence]:
        return self.rows(self.reading.chosen)

    @property
    def added(self) -> list[str]:
        return [row.id for row in self.rows(self.reading.added)]

    @property
    def cited(self) -> list[str]:
        """The sentence of the answer, then those of the chain."""
        sentence = self.reading.guess.sentence
        return list(dict.fromkeys(row.id for row in ([sentence] if sentence else []) + self.evidence))

    @cached_property
    def next_query(self) -> str:
        """The question, then once each open sub-question; empty if all were searched for."""
        earlier = " ".join(self.prompt.listed("queries"))
        return next((text for text in (self.prompt.question, *self.open) if text not in earlier), "")

    @property
    def agrees(self) -> bool:
        """Whether a proposed answer is this engine's."""
        texts = (self.prompt.inputs.get(name) for name in ("answer", "draft"))
        ours, theirs = (f" {title_key(text)} " for text in (self.reading.guess.text, next(filter(None, texts), "")))
        return bool(theirs.strip()) and (ours in theirs or theirs in ours)

    def queries(self) -> list[str]:
        """Each gap, the names in it, and these with the question; what was asked before is left out."""
        required = [gap for gap in self.prompt.listed("required") if not references(gap)]
        gaps = required or self.open or [self.prompt.question]
        named = [" ".join(mask(gap)[1]) for gap in gaps]
        forms = [*gaps, *named, *(f"{self.prompt.question.strip(' ?')} {name}" for name in named)]
        earlier = self.prompt.listed("earlier")
        return [form for form in dict.fromkeys(forms) if form and form not in earlier][:9]

    def refined(self) -> str:
        entries = (re.fullmatch(r"#(\d{1,9}) .* -> (.*)", text, re.S) for text in self.prompt.listed("trajectory"))
        answers = {int(entry[1]): entry[2] for entry in entries if entry and entry[2] != UNKNOWN}
        return replace_references(self.prompt.inputs.get("next_question", ""), answers.get)

    def next_thought(self) -> str:
        for step in self.reading.steps:
            asked = step.question.rstrip("? ")
            thought = f"{asked}: {step.guess.text}." if step.guess else f"It is missing here: {asked}."
            if not references(asked) and thought not in self.prompt.listed("thoughts"):
                return thought
        return f"So the answer is: {self.reading.guess.text}."

    def supported(self) -> list[Any]:
        """Statements, or sentences of the evidence that state something known: most words are in one sentence."""
        seen = {row.id: row.terms | page.title_terms for page in self.prompt.pages for row in page.sentences}
        if statements := self.prompt.listed("statements"):
            return [n for n, text in enumerate(statements, 1) if any(_most(text, terms) for terms in seen.values())]
        return [row.id for row in self.evidence if any(_most(it, seen[row.id]) for it in self.prompt.listed("known"))]

    def value(self, name: str, type: str) -> Any:
        """The value of an output field: by its name, unless somebody else's field of that name has another type."""
        if name in RULES and _is_of(value := RULES[name](self), type):
            return value
        return self.of_type(type)

    def of_type(self, type: str) -> Any:
        """The value of a field that has no rule."""
        answer = self.reading.guess.text
        if type.startswith("Literal"):
            options = _options(type)
            evidence = " ".join(row.text for row in self.evidence).lower()
            return next((option for option in options if option.lower() in evidence), options[0])
        if type in ("int", "float"):
            number = re.search(r"\d+", answer)
            return int(number[0]) if number else 0
        if type == "bool":
            return bool(self.reading.guess)
        if type.startswith("list[str]"):
            return [row.text for row in self.evidence] or [answer]
        return [] if type.startswith("list") else {} if type.startswith("dict") else answer


def _options(type: str) -> list[str]:
    """The values of a type such as Literal['a', 'b']."""
    return re.findall(r"'((?:[^'\\]|\\.)*)'", type) or [""]


_TYPES = {"str": str, "bool": bool, "int": int, "float": int | float}


def _is_of(value: Any, type: str) -> bool:
    """Whether a value is of a type, as a prompt names it."""
    if type.startswith("Literal"):
        return value in _options(type)
    if type.startswith("list"):
        item = _TYPES.get(type[len("list[") : -1], object)
        return isinstance(value, list) and all(isinstance(part, item) for part in value)
    return isinstance(value, dict if type.startswith("dict") else _TYPES.get(type, object))


def _most(statement: str, seen: frozenset[str]) -> bool:
    return 5 * len(_terms(statement) & seen) >= 3 * max(len(_terms(statement)), 1)


RULES: dict[str, Callable[[Agent], Any]] = {
    # plans
    **dict.fromkeys(("sub_questions", "roadmap", "requirements"), lambda agent: list(agent.reading.planned)),
    "route": lambda agent: "plan" if len(agent.reading.planned) > 1 else "single",
    "refined_question": Agent.refined,
    # of dspy.ReAct: one search, then the answer
    "next_tool_name": lambda agent: (
        "finish" if agent.prompt.inputs.get("trajectory") else _options(agent.prompt.outputs["next_tool_name"])[0]
    ),
    "next_tool_args": lambda agent: {} if agent.prompt.inputs.get("trajectory") else {"query": agent.prompt.question},
    "action": lambda agent: "retrieve" if agent.next_query else "answer",
    "query": lambda agent: (
        agent.next_query if "queries" in agent.prompt.inputs else [*agent.open, agent.prompt.question][0]
    ),
    "queries": Agent.queries,
    "diversity": lambda agent: 0.5,
    "next_thought": Agent.next_thought,
    **dict.fromkeys(("thought", "thoughts", "reason", "missing"), lambda agent: ""),
    # evidence
    **dict.fromkeys(("keep", "add"), lambda agent: agent.added),
    "spans": lambda agent: [f"{row.id} {row.text}" for row in agent.evidence],
    "gaps": lambda agent: agent.open,
    "new_facts": lambda agent: [f"{row.text} ({row.id})" for row in agent.evidence],
    "supported": Agent.supported,
    "relevant": lambda agent: [*range(1, len(agent.prompt.listed("statements")) + 1)],
    "sufficiency": lambda agent: sum(bool(step.guess) for step in agent.reading.steps) / len(agent.reading.steps),
    # answers
    "reasoning": lambda agent: " ".join(f"{step.question} {step.guess}." for step in agent.reading.steps),
    "answer": lambda agent: agent.reading.guess.text,
    "confidence": lambda agent: round(agent.reading.guess.probability, 2),
    "citations": lambda agent: agent.cited,
    **dict.fromkeys(("useful", "chosen", "cited"), lambda agent: [int(page.number) for page in agent.reading.chosen]),
    "accuracy": lambda agent: round(agent.reading.guess.probability, 2) if agent.agrees else 0.0,
    "attribution": lambda agent: "extrapolatory",  # to agree with itself is no proof
    "decision": lambda agent: "unconfident",
}
