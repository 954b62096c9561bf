"""Negation: whether a sentence denies what a question affirms, affirms what it denies, states the opposite, or says it
of somebody else or as no fact."""

from __future__ import annotations

import re
from functools import lru_cache

from .question import mask
from .spans import quoted, relation_term, relation_terms

DENIED = 0.2  # most probability of an answer from a sentence that denies something else than the question

_CUES = (
    r"not (?:allowed|permitted|possible|supposed) to(?: be)?|not(?! only\b| to be confused)|never|cannot"
    r"|no(?: longer)?|without|neither|nor|none of|except(?: for)?|other than"
    r"|apart from|besides|unable to|(?:refus|fail|declin)(?:es?|ed|s)? to"
)
_CUE = re.compile(rf"(?:n['’]t|\b(?=[a-z]|\w+ [a-z]|Besides|Except|Apart)(?i:{_CUES}))\b")
_CONDITION = re.compile(r"\b(?:if|when|whenever|where|unless|until|whether)\b[^,.;:()]*$", re.I)  # "if it is not set"
_ENDS = re.compile(r"[.?!](?: |$)|[;:()]|, |\b(?:but|while|whereas|although|though)\b")


@lru_cache(maxsize=2048)
def denied(text: str) -> frozenset[str]:
    """The terms that a text denies or excludes: the first behind each "not", "without" or "other than"."""
    found = set[str]()
    for cue in _CUE.finditer(text):
        if not _CONDITION.search(text[: cue.start()]):
            behind = re.findall(r"\w+", _ENDS.split(text[cue.end() :], maxsplit=1)[0])
            terms = [term for word in behind if not word.endswith("ly") and (term := relation_term(word))]
            found.update(terms[:1])
    return frozenset(found)


def denied_by(question: str) -> frozenset[str]:
    """The terms that a question denies outside of quotations."""
    for title in quoted(question):
        question = question.replace(title.text, " ")
    return denied(question)


_OPPOSITES = (("on", "off"), ("enabled", "disabled"), ("true", "false"), ("required", "optional"))
_SWITCH = re.compile(r"\b(on|off)\b(?=\W*$| by default| unless| if| when)", re.I)  # else a preposition
_FIGURE = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?!\w)")


def contradicts(question: str, sentence: str) -> bool:
    """Whether a sentence has the opposite of a state that a question asks about ("off", not "on"), or only other
    numbers."""
    asked, said = (set(re.findall(r"\w+", text.lower())) for text in (question, sentence))
    asked = asked - {"on", "off"} | {match[1].lower() for match in _SWITCH.finditer(question)}
    pairs = [*_OPPOSITES, *(pair[::-1] for pair in _OPPOSITES)]
    if any({a} <= asked - said and {b} <= said - asked for a, b in pairs):
        return True
    figures, others = set(_FIGURE.findall(question)), set(_FIGURE.findall(sentence))
    return bool(figures and others) and figures.isdisjoint(others)


# Of these verbs one is not said where another one is meant, as far as they share a clause.
_RIVALS = tuple(
    relation_terms(words)
    for words in ("directed produced written", "founded closed dissolved demolished", "married divorced")
)
_VERBS = frozenset[str]().union(*_RIVALS)


def rivals(question: str) -> frozenset[str]:
    """The verbs that say another thing of a subject than what is asked: "produced" and "written" for "directed"."""
    asked = relation_terms(question)
    return frozenset[str]().union(*(verbs - asked for verbs in _RIVALS if verbs & asked))


def is_rival(question: str, clause: str) -> bool:
    """Whether a clause has one of the `rivals`, and not the verb that is asked for."""
    said = relation_terms(clause)
    return not said.isdisjoint(rivals(question)) and said.isdisjoint(relation_terms(question) & _VERBS)


_NO_FACT = re.compile(
    r"\b(?:rumou?r|myth|hoax|respectively|alleged|supposedly|fictional|in the novel|untrue|lied|falsely"
    r"|nearly|hardly|doubts?|anyone but|vice|nominated|w(?:as|ere) to be"
    r"|claim(?:s|ed)? (?:to|that)|would have|(?:want|plann?|hope?|intend)(?:s|e?d) to|ran for|deputy)|\?[\"”]?$",
    re.I,
)
_TAKEN_BACK = re.compile(r"(?:That|This)(?: (?:claim|statement|story))? (?:is|was) (?:untrue|false|wrong|not true)\W*$")
_KIN = re.compile(
    r"\b(?:his|her|their|\w+['’]s) (?:\w+ ){0,2}?((?:grand)?(?:father|mother|son|daughter)|brother|sister|wife|husband"
    r"|spouse|uncle|aunt|cousin|nephew|niece)\b[^,;]*$",
    re.I,
)
_RELATED = re.compile(r"\bthe (?!number|order|center|river|tower|member)([a-z]+(?:er|or|ary)) of ([^,;]*)$", re.I)


# What a question asks of a name, and how a sentence says it of that name instead.
_ROLES = tuple(
    (re.compile(asked, re.I), said)
    for asked, said in (
        (r"who (?P<verb>(?!is|was|are|were|did)[a-z]+) (?P<name>@\d+)", r"{name} {verb}\b(?! by\b)"),
        (r"who (?:is|was|were|are) (?P<verb>[a-z]+) by (?P<name>@\d+)", r"{name} (?:is|was|were) {verb} by\b"),
        (r"who (?:is|was) the (?P<verb>[a-z]+) of (?P<name>@\d+)", r"{name} (?:is|was) (?:the|an?) {verb} of\b"),
    )
)


def reverses(question: str, sentence: str) -> bool:
    """Whether a sentence says of the named one what the question asks of others: "Ann sued Tom" for "Who sued Ann?"."""
    masked = mask(question)
    for asked, said in _ROLES:
        if found := asked.match(masked.text):
            name, verb = re.escape(masked.unmask(found["name"])), found["verb"]
            return bool(re.search(said.format(name=name, verb=verb), sentence))
    return False


def is_hedged(question: str, sentence: str) -> bool:
    """Whether a sentence is a rumour, a plan or a question, unless the question asks for it as such."""
    told = (found[0].lower() for found in _NO_FACT.finditer(sentence))
    return any("?" in each or each not in question.lower() for each in told)


def is_unlike(name: str, sentence: str) -> bool:
    """Whether a sentence says of others what is not so of a name."""
    return re.search(rf"\b[Uu]nlike (?:the )?{re.escape(name)}", sentence) is not None


def is_no_fact(question: str, answer: str, sentence: str, following: str = "") -> bool:
    """Whether a sentence, or the one that follows, does not state what it has: a rumour, a plan, a question; or whether
    it speaks of a relative, or of the supplier of what the question names, or says it the other way round."""
    if reverses(question, sentence) or _TAKEN_BACK.match(following) or is_hedged(question, sentence):
        return True
    before, terms = _ENDS.split(sentence.partition(answer)[0])[-1], relation_terms(question)
    if (kin := _KIN.search(before)) and relation_term(kin[1]) not in terms:
        return True
    names = mask(question).names
    if any(is_unlike(name, sentence) for name in names):
        return True
    related = _RELATED.search(before)
    return bool(related and any(name in related[2] for name in names) and relation_term(related[1]) not in terms)


def differs(question: str, answer: str, sentence: str, above: str = "") -> bool:
    """Whether one of a question and the sentence with its answer denies what the other one affirms.

    ``above`` are the headings: what they deny, the sentences below deny, too. Of a sentence that is read for a question
    without a negation only the clause with the answer counts.
    """
    if terms := denied_by(question):
        is_said = not terms.isdisjoint(relation_terms(sentence))
        return terms.isdisjoint(denied(sentence) if is_said else denied(above))
    before, _, after = sentence.partition(answer)
    value = "" if _CUE.search(answer) else answer  # "no limit" denies nothing
    clause = f"{_ENDS.split(before)[-1]} {value} {_ENDS.split(after, maxsplit=1)[0]}"
    asked = re.sub(r"@[0-9]+", " ", mask(question).text)
    if is_rival(asked, clause) or is_rival(asked, " ".join(before.split()[-3:])):  # "directed by A and produced by B"
        return True
    return not denied(clause).isdisjoint(relation_terms(f"{asked} {value}"))
