"""Which span of the evidence answers a sub-question.

A sub-question has anchors (the names in it, and the answers that its references stand for), relation words (the rest of
it) and an answer type. A line is good if it belongs to or mentions the anchors and shares the relation; a span of it is
good if it is of the type, is none of the anchors, and stands close to the relation's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...data.text import bare_title, content_terms, fold, title_key
from .gazetteer import countries, is_adjective, is_country
from .question import DATE, NUMBER, PERSON, PLACE, YES_NO, answer_type, head_noun, mask
from .reading import Line, Page, Span, dates, names, numbers, quoted
from .relations import FAMILIES, relation_terms, word_terms
from .vocabulary import KINDS

_REFERENCE = re.compile(r"#(\d+)")
_KIND_OF_NAME = re.compile(rf"\b{KINDS}(?= @)")  # "the film @0": says what the name is, not what is asked


# Tuned for answer F1 on train questions of the sample, 2WikiMultihopQA, HotpotQA and MuSiQue.
NEAR = 1.0  # weight of a line's closeness to the anchors
RELATION = 0.4  # weight of the share of the relation's words that a line has
OPENS = 0.2  # what the first line of a page has ahead: it tells what its subject is
CLOSE = 0.55  # weight of a span's closeness to the relation's words
UNRELATED = 0.15  # what a line loses that shares no word of the relation; dates of birth stand without one
MISSING = 0.45  # what it loses where the relation has a name that is known in all its forms ("spouse")
FURTHER = 0.95  # closeness to the question's names of a page that neither bears nor mentions them


@dataclass(frozen=True)
class Answer:
    """A span that answers a sub-question; ``score`` is about 0 (a guess) to 3 (anchor, relation and type agree)."""

    text: str
    score: float
    line: Line | None = None
    page: Page | None = None


NONE = Answer("", 0.0)


def resolve(sub_questions: Sequence[str], pages: Sequence[Page]) -> list[Answer]:
    """Answer the sub-questions one after the other, each with the answers of those it refers to."""
    return [max(found, key=lambda answer: answer.score, default=NONE) for found in _resolved(sub_questions, pages)]


def support(sub_questions: Sequence[str], pages: Sequence[Page]) -> dict[str, float]:
    """How much each line is needed to answer the sub-questions: 1 for the best line of one, less for its rivals."""
    needed: dict[str, float] = {}
    for found in _resolved(sub_questions, pages):
        top = max((answer.score for answer in found), default=0.0)
        for answer in found:
            if answer.line and top:
                needed[answer.line.id] = max(needed.get(answer.line.id, 0.0), answer.score / top)
    return needed


def _resolved(sub_questions: Sequence[str], pages: Sequence[Page]) -> Iterator[list[Answer]]:
    """The candidate answers of each sub-question in turn; none where one that it refers to has none."""
    answers: list[Answer] = []
    for text in sub_questions:
        question, anchors, broken = _bind(text, answers)
        found = [] if broken else list(candidates(question, anchors, pages, whole=len(sub_questions) == 1))
        answers.append(max(found, key=lambda answer: answer.score, default=NONE))
        yield found


def _bind(text: str, answers: Sequence[Answer]) -> tuple[str, tuple[str, ...], bool]:
    """A sub-question with the earlier answers put in, its anchors, and whether one of those answers is missing."""
    numbers_ = [int(n) for n in _REFERENCE.findall(text)]
    referred = [answers[n - 1] for n in numbers_ if 0 < n <= len(answers)]
    bound = _REFERENCE.sub(lambda m: answers[int(m[1]) - 1].text if 0 < int(m[1]) <= len(answers) else "", text)
    anchors = (*(answer.text for answer in referred if answer.text), *_anchors(_REFERENCE.sub(" ", text)))
    return bound, anchors, any(not answer.text for answer in referred)


def _anchors(text: str) -> tuple[str, ...]:
    return tuple(name.strip('"“” ') for name in mask(text).names)


def candidates(question: str, anchors: Sequence[str], pages: Sequence[Page], whole: bool = False) -> Iterator[Answer]:
    """Every span that could answer a sub-question, with its score.

    A question that could not be decomposed (``whole``) may be answered further along the chain than its names reach.
    """
    kind, head = answer_type(question), head_noun(question)
    anchor_terms = frozenset(term for anchor in anchors for term in content_terms(anchor))
    wanted = relation_terms(_KIND_OF_NAME.sub(" ", mask(question).text)) - relation_terms(" ".join(anchors))
    keys = [title_key(bare_title(anchor)) for anchor in anchors if title_key(anchor)]
    full = [title_key(anchor) for anchor in anchors if title_key(anchor)]
    subject = {
        page.number: max((_about(page, key, whole) for key, whole in zip(keys, full, strict=True)), default=0.0)
        for page in pages
    }
    lines = [line for page in pages for line in page.lines]
    if keys and not any(subject.values()) and not any(_mentions(line, key) for line in lines for key in keys):
        return  # nobody here knows whom the question is about
    # What other pages say of an anchor counts for less where a page of its own can be read.
    aside = 0.6 if any(about >= 0.9 for about in subject.values()) else 0.9
    further = _further(wanted, subject, pages) if whole else 0.0
    choice = " or " in question  # then the answer is one that the question names
    asked = frozenset[str]() if choice else frozenset(content_terms(question))
    for page in pages:
        about = subject[page.number]
        for position, line in enumerate(page.lines):
            mentioned = max((_mentions(line, key) for key in keys), default=0.0)
            near = max(about, aside * mentioned, further)
            if keys and not near:
                continue
            shared = wanted & relation_terms(line.text)
            relation = len(shared) / max(len(wanted), 1)
            base = NEAR * near + RELATION * relation + OPENS * (position == 0)
            if wanted and not shared and kind != DATE:
                base -= MISSING if wanted & FAMILIES else UNRELATED
            for span, fit in spans(line, kind, head, question):
                if _is_anchor(span.text, keys, anchor_terms) or asked.issuperset(content_terms(span.text)):
                    continue  # an answer says more than the question
                yield Answer(span.text, base + fit + CLOSE * _closeness(line, span, shared), line, page)
            if about < 0.5 and mentioned and kind not in (DATE, NUMBER, YES_NO):
                # The line tells about the anchor, so what is asked for may be the page's subject.
                name = bare_title(page.title)
                fit = _title_fit(page, kind, head)
                if fit >= 0.4 and not _is_anchor(name, keys, anchor_terms):
                    yield Answer(name, NEAR * aside * mentioned + RELATION * relation + fit, line, page)


def _further(wanted: frozenset[str], subject: Mapping[str, float], pages: Sequence[Page]) -> float:
    """Closeness of pages that the question's names do not reach: less, the more the names' own pages tell."""
    own = (line for page in pages if subject[page.number] >= 0.9 for line in page.lines)
    told = max((len(wanted & relation_terms(line.text)) / max(len(wanted), 1) for line in own), default=0.0)
    return FURTHER * (1 - told) + 0.5 * told


def _about(page: Page, key: str, whole: str) -> float:
    """How surely a page is about an anchor."""
    if whole in page.names[:1]:
        return 1.0
    if key in page.names:
        return 0.9
    title = page.names[1] if len(page.names) > 1 else (page.names[0] if page.names else "")
    if title and (_within(key, title) or _within(title, key)):
        return 0.7
    # "Farrow" for "John Farrow", "Bjarne Stroustrup" for "B. Stroustrup"
    if (
        title
        and key
        and key.split()[-1] == title.split()[-1]
        and len(key.split()) > 1
        and key.split()[0][0] == title.split()[0][0]
    ):
        return 0.6
    return 0.0


def _within(part: str, whole: str) -> bool:
    return bool(content_terms(part)) and f" {part} " in f" {whole} "


def _mentions(line: Line, key: str) -> float:
    if f" {key} " in line.key:
        return 1.0
    last = key.split()[-1] if " " in key else ""
    return 0.6 if len(last) > 3 and f" {last} " in line.key else 0.0


def _is_anchor(text: str, keys: Sequence[str], anchor_terms: frozenset[str]) -> bool:
    key = title_key(text)
    return not key or any(key == k or _within(key, k) for k in keys) or frozenset(content_terms(text)) <= anchor_terms


def _closeness(line: Line, span: Span, shared: frozenset[str]) -> float:
    """1 next to a word of the relation, falling with the distance in characters."""
    distance = min(
        (
            min(abs(span.start - end), abs(start - span.end))
            for start, end, term in word_terms(line.text)
            if term in shared and not span.start <= start < span.end
        ),
        default=None,
    )
    return 0.0 if distance is None else 1.0 / (1.0 + distance / 15.0)


# --- spans of a type -------------------------------------------------------------------------------------------------


def spans(line: Line, kind: str, head: str, question: str) -> Iterator[tuple[Span, float]]:
    """The spans of a line that can be an answer of a type, each with how well it fits (about 0 to 1)."""
    lowered = question.lower()
    if kind == DATE:
        yield from _dates(line, lowered)
    elif kind == NUMBER:
        yield from _numbers(line, lowered)
    elif head in ("nationality", "country", "nation") or "nationality" in lowered or "which country" in lowered:
        yield from _countries(line)
    elif kind == PERSON:
        yield from _persons(line, lowered)
    elif kind == PLACE:
        yield from _places(line, head)
    else:
        yield from _things(line, head)


_LIFE = re.compile(r"\(([^()]*\d{3,4}[^()]*)\)")


def _dates(line: Line, question: str) -> Iterator[tuple[Span, float]]:
    life = _LIFE.search(line.text)  # "(12 May 1901 – 3 June 1980)"
    found = dates(line.text)
    in_life = [date for date in found if life and life.start() <= date.start < life.end()]
    born, died = re.search(r"\bborn\b|\bbirth", question), re.search(r"\bdie\b|\bdied\b|\bdeath\b", question)
    for date in found:
        before = line.text[max(0, date.start - 45) : date.start]
        fit = 0.3 if date in in_life else 0.5
        if born:
            opens = in_life and date is in_life[0] and not re.search(r"\bdied\b|\bd\.", before)
            fit = 1.0 if opens or "born" in before else 0.2 if date in in_life else 0.5
        elif died:
            closes = len(in_life) > 1 and date is in_life[-1]
            fit = 1.0 if closes or re.search(r"\b(?:died|death|killed)\b", before) else 0.1 if date in in_life else 0.5
        if "year" in question and date.key[1]:
            year = str(date.key[0])
            start = line.text.index(year, date.start)
            yield Span(year, start, start + len(year)), fit
        else:
            yield date, fit


def _numbers(line: Line, question: str) -> Iterator[tuple[Span, float]]:
    for number in numbers(line.text):
        after = line.text[number.end : number.end + 30].lower()
        fit = 0.6 if any(term in question for term in re.findall(r"[a-z]{4,}", after)[:2]) else 0.4
        unit = re.match(r"\s*(?:kilometres|kilometers|km|miles|metres|meters|m|feet|ft|people|inhabitants)\b", after)
        if unit and re.search(
            r"how (?:long|high|tall|far|deep|wide)|length|height|population|people|inhabitants", question
        ):
            fit = 0.8
            if not re.search(r"people|inhabitants", unit.group()):
                yield (
                    Span(line.text[number.start : number.end + unit.end()], number.start, number.end + unit.end()),
                    fit,
                )
                continue
        yield number, fit


def _countries(line: Line) -> Iterator[tuple[Span, float]]:
    for position, mention in enumerate(countries(line.text)):
        stated = re.search(r"\b(?:in|of|from)\s+(?:the )?$", line.text[max(0, mention.start - 10) : mention.start])
        span = Span(mention.written, mention.start, mention.start + len(mention.written))
        yield span, 0.8 - 0.1 * position + (0.25 if stated else 0.0)


_NOT_PERSON = re.compile(
    r"\b(?:University|College|Award|Prize|Academy|Film|Festival|County|City|River|Street|School|Records|Company|Studios?|Pictures|"
    r"Orchestra|Party|Church|Museum|Bridge|Battle|Opera|Theatre|Institute|League|Club|Band|War|Kingdom|Republic|States?|Islands?|"
    r"English|French|German|American|British|Italian|Indian|Spanish|Mount|Lake|North|South|East|West)\b"
)


_BEFORE_PERSON = re.compile(
    r"\bby (?:(?:the|an?) )?(?:[\w-]+ ){0,5}$|"
    r"\b(?:wife|husband|father|mother|son|daughter|married|director|author|founder|composer),? $"
)


def _persons(line: Line, question: str) -> Iterator[tuple[Span, float]]:
    for name in names(line.text):
        if is_adjective(name.text):
            continue
        words = name.text.split()
        if _NOT_PERSON.search(name.text) or is_country(name.text):
            fit = 0.1
        elif 2 <= len(words) <= 5:
            fit = 0.8
        else:
            fit = 0.45
        before = line.text[max(0, name.start - 40) : name.start].lower()
        if "mother" in question and before.endswith(" and "):
            fit += 0.15
        if _BEFORE_PERSON.search(before):
            fit += 0.2
        elif re.search(r"\b(?:in|at|near|from)\s+(?:the )?$", before):
            fit -= 0.35
        yield name, fit


def _places(line: Line, head: str) -> Iterator[tuple[Span, float]]:
    found = [name for name in names(line.text) if not is_adjective(name.text)]
    for i, name in enumerate(found):
        before = line.text[max(0, name.start - 12) : name.start].lower()
        fit = 0.8 if re.search(r"\b(?:in|at|near|from|to|of)\s+(?:the )?$", before) else 0.0
        if head and head in fold(name.text):
            fit += 0.3
        yield name, fit
        if i + 1 < len(found) and line.text[name.end : found[i + 1].start] == ", " and fit > 0.5:
            pair = Span(line.text[name.start : found[i + 1].end], name.start, found[i + 1].end)
            yield pair, fit - 0.05


def _things(line: Line, head: str) -> Iterator[tuple[Span, float]]:
    for name in (*names(line.text), *quoted(line.text)):
        if is_adjective(name.text) and head != "language":
            continue
        fit = 0.45
        around = line.text[max(0, name.start - 25) : name.end + 20].lower()
        if head and head in fold(name.text):
            fit = 0.9
        elif head and head in around:
            fit = 0.7
        yield name, fit


def _title_fit(page: Page, kind: str, head: str) -> float:
    """How well a page's subject fits as the answer."""
    first = page.lines[0].text.lower() if page.lines else ""
    if head and re.search(rf"\b{re.escape(head)}s?\b", f"{page.title.lower()} {first}"):
        return 0.9
    if kind == PERSON:
        return (
            0.7
            if re.search(r"\(.*\d{4}|\bborn\b|\b(?:was|is) an? [\w -]*(?:er|or|ist|ian|man|woman|king|queen)\b", first)
            else 0.2
        )
    if kind == PLACE:
        return (
            0.6
            if re.search(r"\b(?:city|town|village|country|state|region|province|county|island|municipality)\b", first)
            else 0.2
        )
    return 0.4


@lru_cache(maxsize=4096)
def same(a: str, b: str, as_country: bool = False) -> bool:
    """Whether two answers name the same thing: one name within the other or, ``as_country``, the same country."""
    ca, cb = countries(a), countries(b)
    if as_country and ca and cb:
        return bool({mention.country for mention in ca} & {mention.country for mention in cb})
    ka, kb = title_key(a), title_key(b)
    return bool(ka and kb) and (ka == kb or _within(ka, kb) or _within(kb, ka))
