"""Reads the answer to a question from passages: candidate answers with the probability that they are right.

The sub-questions are answered one after the other (`hops`). A comparison is decided from their answers: which of two
comes first, is larger or lived longer, whether two are the same, or whether a claim holds. Any other question is read
as a whole by two rankers, one of which also knows the place of a span in the chain of sub-questions: an answer is found
although a sub-question was misread, and a consistent chain decides. A short question without parts is read as a
sub-question, too.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...data.text import bare_title, content_terms, title_key
from .clauses import clauses, misplaced
from .features import (
    Matrix,
    ParsedQuestion,
    SpanTable,
    Vector,
    about,
    features,
    parse_question,
    span_table,
    within,
)
from .hops import MISFIT, OWN_PASSAGE, Answer, Hop, best_answers, fitted, rank, read_hops, same
from .negation import DENIED, contradicts, denied, denied_by, differs, is_hedged, is_no_fact, is_rival, is_unlike
from .prompt import ParsedPassage
from .question import answer_type, mask
from .spans import DATE, TITLE, code, countries, dates, is_adjective, numbers, relation_terms, unnumbered
from .stated import CODE_NOUNS, is_of_type, lacks_subject, of_other_entries, stated

SHORT = 12  # most words of a question that is read as a sub-question; longer ones have hidden parts
MOST = 12  # answers that are weighed against one another
SURE = 0.8  # least probability of a step that is no answer to the whole

_COUNTED_NOUN = re.compile(
    r"\bhow many (?!people|inhabitants|residents|times)((?:[a-z-]+ ){1,4}?)"
    r"(?:do|does|did|is|are|was|were|has|have|had|can)\b",
    re.I,
)
_UNITS = re.compile(r"\s?(?:[KMGT]i?B|bytes?|ms|seconds?|minutes?|hours?|days?)\b")


def read(question: str, sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> tuple[Answer, ...]:
    """The candidate answers of a question, best first; none if the passages do not mention what it names.

    An answer is hardly likely if its sentence, or that of a step to it, denies what is asked, or the other way round.
    Nor is one to a question about both of two, if what is said of one of them has no word of it.
    """
    found = _read(question, tuple(sub_questions), tuple(passages))
    is_claim = answer_type(question).kind == "yes/no" and not _comparative(question)  # these count what is denied
    hops = () if is_claim or len(sub_questions) == 1 else read_hops(sub_questions, passages)
    is_broken = any(2 * hop.affirmed.sum() < hop.chances.sum() for hop in hops)
    both = [] if answer_type(question).kind in ("yes/no", "either") else _both(question, span_table(tuple(passages)))
    checked = [
        replace(each, probability=min(each.probability, DENIED))
        if is_broken or is_denied(question, each) or any(terms.isdisjoint(content_terms(each.text)) for terms in both)
        else each
        for each in found
    ]
    return tuple(sorted(checked, key=lambda answer: -answer.probability)) if checked != list(found) else found


def is_denied(question: str, answer: Answer) -> bool:
    """Whether one of a question and what its answer was read from denies what the other one affirms, or the answer is
    not stated as a fact."""
    sentence, passage = answer.sentence, answer.passage
    if sentence is None or passage is None:
        return bool(denied_by(question))
    if differs(question, answer.text, sentence.text, f"{passage.title} {passage.headings}"):
        return True
    following = passage.sentences[passage.sentences.index(sentence) + 1 :]
    return is_no_fact(question, answer.text, sentence.text, following[0].text if following else "")


@lru_cache(maxsize=64)
def _read(question: str, sub_questions: tuple[str, ...], passages: tuple[ParsedPassage, ...]) -> tuple[Answer, ...]:
    if len(sub_questions) == 1 and (found := stated(question, passages)):
        return (found,)
    table = span_table(passages)
    named = [each for each in map(parse_question, (question, *sub_questions)) if each.names]
    if not table.spans or (named and not any(_known_names(each, table) for each in named)):
        return ()
    hops = read_hops(sub_questions, passages)
    if verdict := compare(question, hops, table):
        return verdict
    answers = list(best_answers(table, _chances(question, hops, table), MOST))
    words = [Counter(w for w in title_key(answer.text).split() if w not in ("a", "an", "the")) for answer in answers]
    expected = [  # F1
        sum(other.probability * _f1(own, theirs) for other, theirs in zip(answers, words, strict=True)) for own in words
    ]
    known = _known_names(parse_question(question), table)
    steps = tuple(hop.best for hop in hops)
    return tuple(
        replace(
            answer,
            probability=calibrated("span", f1, answer.probability, known),
            steps=steps if len(hops) > 1 else (answer,),
        )
        for f1, answer in sorted(zip(expected, answers, strict=True), key=lambda pair: -pair[0])
    )


def calibrated(way: str, *inputs: float) -> float:
    """The probability that an answer is right: logistic regression on the log-odds of the inputs.

    Args:
        way: How the answer was reached: ``span``, ``comparison``, ``same`` or ``claim``.
    """
    *weights, offset = fitted("calibration")[way]
    total = offset + sum(weight * log_odds(value) for weight, value in zip(weights, inputs, strict=True))
    return 1 / (1 + math.exp(-total))


def log_odds(chance: float) -> float:
    """The log-odds of a probability, clipped to 0.001 and 0.999."""
    chance = min(max(chance, 0.001), 0.999)
    return math.log(chance / (1 - chance))


def _known_names(question: ParsedQuestion, table: SpanTable) -> float:
    """The share of the words of the question's names that the passages have; 1 if it has no names."""
    found = frozenset[str]().union(*table.passage_terms)
    return len(question.named & found) / len(question.named) if question.named else 1.0


def _f1(a: Counter[str], b: Counter[str]) -> float:
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)


def _chances(question: str, hops: Sequence[Hop], table: SpanTable) -> Vector:
    """The probability of each span to answer a whole question."""
    parsed, asks = parse_question(question), answer_type(question)
    rows = features(parsed, table)
    chances = rank("bare", rows)
    if len(hops) > 1:  # the geometric mean of two rankers errs less than either
        chances = np.sqrt(chances * rank("whole", np.hstack([rows, _chain_columns(hops, table)])))
    elif len(question.split()) <= SHORT:
        chances = np.sqrt(chances * hops[0].chances)
    others = of_other_entries(question, table.passages)
    fits = [_fits(question, table, n, others) for n in range(len(table.spans))]
    chances = chances * np.array(fits, np.float32)
    if len(hops) == 1:
        chances = chances * np.where(misplaced(parsed, table), MISFIT, 1)
    elif asks.kind != "either":  # what a step found is not what is asked for in the end
        found = [title_key(hop.best.text) for hop in hops[:-1] if hop.best.probability >= SURE]
        chances = chances * np.where(np.isin(table.keys, found)[table.group], MISFIT, 1)
    if asks.kind == "either" and (sides := options(question)):  # only these two are allowed
        keys = [title_key(side) for side in sides]
        offered = np.array([any(within(key, side) or _is_near(side, key) for side in keys) for key in table.keys])
        chances = np.where(offered[table.group], chances + 1e-6, 0) if any(offered) else chances
    share: Vector = chances / (chances.sum() or 1)
    return share


def _is_near(side: str, key: str) -> bool:
    """Whether an answer has a side of a choice, and at most one word more."""
    return within(side, key) and len(key.split()) <= len(side.split()) + 1


def _fits(question: str, table: SpanTable, candidate: int, others: Collection[str]) -> float:
    """How well a span fits what is asked for, where the rankers, which know encyclopedias, cannot tell: a number has
    its unit of time or memory, a year is no full date, and of a part of a program the name looks like one."""
    span, asks = table.spans[candidate], answer_type(question)
    if asks.kind == "year":  # not a full date: its year is a span of its own
        return 1e-6 if span.kind == DATE else 1.0
    after = table.text_after(candidate)
    cut = (asks.kind == "measure" and _UNITS.match(after)) or re.match(r"-\d\d-\d\d\b", after)
    passage, sentence = table.sentences[table.sentence[candidate]]
    asks_name = not CODE_NOUNS.isdisjoint(question.lower().split()[:3])  # "Which environment variable"
    is_value = asks_name and span.kind != TITLE and sentence.text[: span.start].endswith("=")
    plain = asks.head in CODE_NOUNS and not any(found.text == span.text for found in code(span.text))
    is_odd = asks.kind not in ("who", "when") and not is_of_type(question, span.text, sentence)
    is_odd = is_odd or (span.kind == TITLE and unnumbered(span.text) != span.text)  # "5. Troubleshooting"
    is_odd = is_odd or span.text.lower() == "default"
    above = f"{passage.title} {passage.headings}"
    other = denied_by(question) and differs(question, span.text, sentence.text, above)
    return MISFIT if cut or plain or is_value or is_odd or other or sentence.id in others else 1.0


def _chain_columns(hops: Sequence[Hop], table: SpanTable) -> Matrix:
    """The place of each span in the chain of sub-questions: seven columns of numbers."""
    by_answer = [np.bincount(table.group, hop.chances, len(table.keys))[table.group] for hop in hops]
    keys = [(title_key(answer.text), answer.probability) for hop in hops[:-1] for answer in hop.answers]
    onward = np.array(
        [max((chance * about(each, key, key) for key, chance in keys), default=0) for each in table.passages]
    )
    last, size = by_answer[-1], len(table.spans)
    columns = (
        last,  # it answers the last hop
        np.log(last + 1e-4) / 9 + 1,
        hops[-1].chances,  # here
        np.max(by_answer[:-1], axis=0),  # it answers an earlier hop
        onward[table.passage],  # its passage is about an earlier answer
        np.full(size, math.prod(hop.best.probability for hop in hops)),  # the chain holds
        np.full(size, min(len(hops), 4) / 4),
    )
    return np.stack(columns, axis=1).astype(np.float32)


# --- premises --------------------------------------------------------------------------------------------------------

# Chosen on the answerable train and test questions of the sample, and on every other one of its split "unanswerable".
NAMED, COVERED = 2.0, 4.0  # the weights of having all names, and of the share of the other words
LEAST_SUPPORT = 3.4  # least sum of both and the log-odds
WORST = -1.4  # log-odds below which doubt does not grow: a poor guess that fits the question is often right


def is_supported(question: str, passages: Sequence[ParsedPassage], best: Answer) -> bool:
    """Whether passages tell what a question takes for granted.

    The reader compares the spans at hand, and one of them is always the best, also where the passages tell nothing of
    what is asked, or where its premise is wrong ("Who directed the novel X?"). So an answer also needs that the
    passages about the question's names, and those it was read from, have the names and the other words of the
    question. The less they have, the surer the reader must be. Of a choice between two, half of it must be told of one.
    """
    asked = parse_question(question)
    if asked.asks.kind == "either":
        if _comparative(question):  # read from a text that compares nothing, it would be a guess
            return best.passage is None and best.probability >= 0.5
        sides = options(question)
        return not sides or max(_shares(question, sides, span_table(tuple(passages)))) >= 0.5
    if best.passage is None:
        return best.probability >= 0.5  # of two
    if stated(question, tuple(passages)):
        return True
    if not is_of_type(question, best.text, best.sentence) or lacks_subject(question, best):
        return False
    if best.sentence and best.sentence.id in of_other_entries(question, tuple(passages)):
        return False
    if asked.asks.kind == "number" and best.sentence and (counted := _COUNTED_NOUN.search(question)):
        said = best.sentence.terms.union(content_terms(f"{best.passage.title} {best.passage.headings}"))
        if said.isdisjoint(content_terms(counted[1])):
            return False  # another number
    names = [name for name in mask(question).names if not is_adjective(name)]
    known = list(zip(asked.names, asked.titles, strict=True))
    read = {each.number for each in (best.passage, *(step.passage for step in best.steps)) if each}
    near = frozenset[str]().union(
        *(
            terms
            for passage, terms in zip(passages, span_table(tuple(passages)).passage_terms, strict=True)
            if not names or passage.number in read or any(about(passage, *name) >= OWN_PASSAGE for name in known)
        )
    )
    if any(not relation_terms(name) & near for name in names if relation_terms(name)):
        return False
    words = asked.relation - {asked.head}
    covered = len(words & near) / len(words) if words else 1.0
    has_names = relation_terms(" ".join(names)) <= near
    return max(WORST, log_odds(best.probability)) + NAMED * has_names + COVERED * covered >= LEAST_SUPPORT


# --- comparisons ------------------------------------------------------------------------------------------------

ABOUT = 0.7  # least certainty that a passage is about a side of a comparison
CONSIDERED = 8  # spans of a side

_COMPARATIVE = re.compile(
    r"\b(first|earlier|earliest|older|oldest|before|after|later|latest|younger|youngest|last|recently|recent|longer|longest|"
    r"larger|largest|bigger|higher|highest|taller|tallest|more|most|fewer|less|shorter|smaller|sooner)\b",
    re.I,
)
_SMALLER = frozenset("first earlier earliest older oldest before fewer less shorter smaller sooner".split())
_THAN = re.compile(r"\b(?:than|before|after)\b", re.I)
_LIVED_LONGER = re.compile(r"\blived longer\b|\blonger li(?:fe|ved)|\blongest life", re.I)
_SAME = re.compile(r"\bsame\b|\bshare\b|\bin common\b|\bboth (?:located|from|in)\b", re.I)
_SIDE = r"((?:[a-z]+ of (?:the )?)?@\d+)"
_OR = re.compile(rf"{_SIDE}[^@,]{{0,20}},? or (?:the |an? )?(?:[a-z]+ ){{0,3}}?{_SIDE}")
_AND = re.compile(rf"{_SIDE},? and (?:the )?{_SIDE}")
_AFTER_COMMA = re.compile(r"^(?:[^,:]|[,:](?! ))*[,:] (?:the )?(.+?),? or (?:the )?([^?]+)\??", re.I)

Verdict = tuple[float, str]
"""The probability of the first side, and how it was found."""


def compare(question: str, hops: Sequence[Hop], table: SpanTable) -> tuple[Answer, ...]:
    """The two answers of a comparison, the likelier one first.

    Empty if the answer has to be read from the text, or what is compared was not found.
    """
    kind, sides = answer_type(question).kind, options(question)
    found: Verdict | None = None
    if kind == "yes/no":
        sides = ("yes", "no")
        if len(hops) >= 2 and _SAME.search(question):
            found = _sameness(table, hops[-2], hops[-1], question), "same"
        else:
            is_unknown = len(hops) >= 2 and _THAN.search(question)  # sides that cannot be compared
            found = _first_wins(question, hops, table) or (0.5 if is_unknown else _held(question, table), "claim")
    elif kind == "either" and sides:
        if _LIVED_LONGER.search(question):
            found = _lived_longer(sides, table)
        else:
            found = _first_wins(question, hops, table) if _comparative(question) else _claimed(question, sides, table)
    if not found or not sides:
        return ()
    steps = tuple(hop.best for hop in hops)
    ranked = sorted(zip((found[0], 1 - found[0]), sides, strict=True), key=lambda pair: -pair[0])
    return tuple(Answer(text, calibrated(found[1], chance), steps=steps) for chance, text in ranked)


@lru_cache(maxsize=512)
def options(question: str) -> tuple[str, str] | None:
    """The two answers that a question offers."""
    masked = mask(question)
    if found := _OR.search(masked.text):
        first, second = map(masked.unmask, found.groups())
    elif found := _AFTER_COMMA.search(question.strip()):
        first, second = found.groups()
    else:
        return None
    first, second = first.strip(' "“”'), second.strip(' "“”')
    return (first, second) if first != second else None


def _comparative(question: str) -> str:
    found = _COMPARATIVE.search(re.sub(r"@\d+", " ", mask(question).text))
    return found[1].lower() if found else ""


def _claimed(question: str, sides: tuple[str, str], table: SpanTable) -> Verdict | None:
    """The side of which more of the question's words are stated; None if of both as many."""
    first, second = _shares(question, sides, table)
    return (0.5 + (first - second) / 2, "claim") if first != second else None


def _shares(question: str, sides: tuple[str, str], table: SpanTable) -> list[float]:
    """How much of the question's other words is stated of each side, in passages about it or clauses that name it."""
    claim = frozenset(content_terms(question)).difference({"both"}, *map(content_terms, sides))
    return [_stated(claim, question, rows) for rows in _told_of(sides, table)]


def _both(question: str, table: SpanTable) -> list[frozenset[str]]:
    """For a question about both of two, the words that are said of each."""
    masked = mask(question)
    sides = _AND.search(masked.text) if re.search(r"\bboth\b", question, re.I) else None
    told = _told_of((masked.unmask(sides[1]), masked.unmask(sides[2])), table) if sides else []
    return [frozenset[str]().union(*(terms for _, terms in rows)) for rows in told]


def _told_of(sides: tuple[str, str], table: SpanTable) -> list[list[tuple[str, frozenset[str]]]]:
    """Of each side sentences of passages about it with all their words, and the clauses that name it with theirs."""
    found = []
    for side, other in (sides, sides[::-1]):
        named, rival = frozenset(content_terms(side)), frozenset(content_terms(other))
        own = [p for p in table.passages if about(p, title_key(bare_title(side)), title_key(side)) >= ABOUT]
        texts = [s.text for p in own for s in p.sentences if not rival <= s.terms]
        terms = frozenset(content_terms(" ".join([*texts, *(p.title for p in own)])))
        rows = [(text, terms) for text in texts]
        for each in (s.text for p in table.passages for s in p.sentences if not is_unlike(side, s.text)):
            told = re.sub(rf", (?=(?:{re.escape(side)}|{re.escape(other)})\b)", " and ", each)  # "A in Rome, B in Oslo"
            rows += [(c.text, terms) for c in clauses(told) if named <= (terms := frozenset(content_terms(c.text)))]
        found.append(rows)
    return found


def _sameness(table: SpanTable, left: Hop, right: Hop, question: str) -> float:
    """The probability that two sub-questions have one answer; as countries if the question is about countries."""
    if re.search(r"\bcountr|\bnation", question, re.I):
        a, b = (_countries(table, hop, hop.affirmed) for hop in (left, right))
        total = math.prod(sum(_countries(table, hop, hop.chances).values()) for hop in (left, right))
        if total:
            return sum(share * b.get(country, 0.0) for country, share in sorted(a.items())) / total
    told = (table.sentences[table.sentence[_likeliest(hop)[0]]][1].text for hop in (left, right))
    if any(is_rival(question, sentence) for sentence in told):
        return 0.5  # nothing tells
    pairs = [(a, b) for a in left.answers for b in right.answers if same(a.text, b.text)]
    return max((a.probability * b.probability for a, b in pairs), default=0.0)


def _countries(table: SpanTable, hop: Hop, chances: Vector) -> dict[str, float]:
    """How likely each country answers a sub-question, by the chances of its likeliest spans."""
    found = defaultdict[str, float](float)
    for n in _likeliest(hop):
        for mention in countries(table.spans[n].text):
            found[mention.country] += float(chances[n])
    return found


def _likeliest(hop: Hop) -> list[int]:
    """The likeliest spans of a sub-question."""
    return list(map(int, np.argsort(-hop.chances, kind="stable")[:CONSIDERED]))


def _held(question: str, table: SpanTable) -> float:
    """The share of a claim that is stated; for "both", of what is least stated of one."""
    masked, key = mask(question), f" {title_key(question)} "
    if re.search(r"\bboth\b", question, re.I) and (sides := _AND.search(masked.text)):
        first, second = map(masked.unmask, sides.groups())
        return min(_shares(question, (first, second), table))
    named = [p for p in table.passages if any(f" {name} " in key for name in p.names)] or list(table.passages)
    claim = frozenset(content_terms(question))
    each = (_stated(claim - p.title_terms, question, [(s.text, s.terms) for s in p.sentences]) for p in named)
    return max(each, default=0.0)


def _stated(claim: frozenset[str], question: str, rows: Iterable[tuple[str, frozenset[str]]]) -> float:
    """The largest share of a claim that texts have, each with the terms that count; what is lacking, if the text with
    most of it denies it, but no more than it has."""
    facts = ((text, terms) for text, terms in rows if not is_hedged(question, text))
    shares = ((_share(claim, terms), _share(claim, frozenset(content_terms(text))), text) for text, terms in facts)
    share, _, said = max(shares, key=lambda each: each[:2], default=(0.0, 0.0, ""))
    is_denied = contradicts(question, said) or not denied(said).isdisjoint(relation_terms(question))
    return min(share, 1 - share) if is_denied else share


def _share(claim: frozenset[str], terms: frozenset[str]) -> float:
    return len(claim & terms) / max(len(claim), 1)


# --- magnitudes ------------------------------------------------------------------------------------------------------

Magnitudes = list[tuple[str, tuple[float, ...], float, int]]  # kind, value, share, the span

_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve".split()
_WORDS = {word: n for n, word in enumerate(_COUNTED)} | {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_METRES = {"km": 1e3, "kilomet": 1e3, "mile": 1609.344, "metre": 1, "meter": 1, "m": 1, "feet": 0.3048, "ft": 0.3048}
_UNIT = re.compile(r"\s*(km|kilomet|mile|metre|meter|feet|ft|m\b)")


def _first_wins(question: str, hops: Sequence[Hop], table: SpanTable) -> Verdict | None:
    """The probability that the first side wins; None if nothing can be compared."""
    if len(hops) < 2 or not (word := _comparative(question)):
        return None
    left, right = _magnitudes(table, hops[-2]), _magnitudes(table, hops[-1])
    kinds = {kind for kind, *_ in left} & {kind for kind, *_ in right}
    if not kinds:
        return None
    kind = max(sorted(kinds), key=lambda kind: sum(share for k, _, share, _ in (*left, *right) if k == kind))
    pairs = [
        (a, b, p * q)
        for k, a, p, n in left
        for m, b, q, o in right
        # One value of one sentence is said of one side.
        if k == m == kind and (a != b or table.sentence[n] != table.sentence[o])
    ]
    total = sum(chance for *_, chance in pairs)
    if not total:
        return None
    less = sum(chance * (0.5 if a == b else float(a < b)) for a, b, chance in pairs)
    smaller_wins = word in _SMALLER or (kind == "date" and word in ("longer", "longest"))  # "the longer history"
    return less / total if smaller_wins else 1 - less / total, "comparison"


def _magnitudes(table: SpanTable, hop: Hop) -> Magnitudes:
    """The magnitudes of the likeliest spans of a sub-question, with their shares."""
    measured = [
        (*_magnitude(table.spans[n].text + table.text_after(n)), float(hop.affirmed[n]), n) for n in _likeliest(hop)
    ]
    return [each for each in measured if each[1] and each[2]]


def _magnitude(text: str) -> tuple[str, tuple[float, ...]]:
    """What a text measures (a "date", "length", "version" or "number") and its value, in metres; empty if nothing."""
    if found := dates(text):
        return "date", tuple(map(float, found[0].key))
    for figure in numbers(text):
        digits, scale, *_ = [*figure.text.lower().split(), ""]
        plain = re.sub(r"[^\d.]", "", digits).strip(".")
        if plain.count(".") > 1:
            return "version", tuple(map(float, plain.split(".")))
        value = float(plain or _WORDS[digits]) * _SCALES.get(scale, 1.0)
        unit = _UNIT.match(text.lower(), figure.end)
        return ("length", (value * _METRES[unit[1]],)) if unit else ("number", (value,))
    return "", ()


def _lived_longer(sides: tuple[str, str], table: SpanTable) -> Verdict | None:
    years = []
    for side in sides:
        hops = read_hops((f"When was {side} born?", f"When did {side} die?"), table.passages)
        dated = [[value for kind, value, *_ in _magnitudes(table, hop) if kind == "date"] for hop in hops]
        if not all(dated):
            return None
        (born, *_), (died, *_) = dated
        years.append(sum(scale * (d - b) for scale, b, d in zip((1, 1 / 12, 1 / 365), born, died, strict=True)))
    return 0.9 if years[0] > years[1] else 0.1, "comparison"
