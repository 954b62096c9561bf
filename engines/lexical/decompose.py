"""Decomposes questions into atomic sub-questions.

The names of the question are masked ("Where was the director of @0 born?"), and rules rewrite it from the inside out:
the innermost relation of a name becomes a sub-question, and a reference (#1) replaces it, until no relation is left.
Comparisons ask the same question about both sides.
"""

from __future__ import annotations

import re

from .question import AUXILIARY, mask
from .spans import FINITE, KIND_NOUNS, PERSON_NOUNS, WH

_NAME = r"(?:@\d+|#\d+)"
_SPECIAL = (
    r"(?:place|date|year|cause|country|city|town|state|month) of (?:birth|death|burial|origin|citizenship|residence)"
)
_NOT_RELATION = (
    rf"(?!(?:{WH}|the|a|an|of|and|or|is|are|was|were|did|does|do|both|from|in|on|at|by|to|with|for|that|one|between|has|have|had|"
    r"as|which|it|its|his|her|their|most|than|into|during|after|before|when|while)\b)"
)
_RELATION = rf"(?:{_SPECIAL}|{_NOT_RELATION}[a-zéè]+(?:[- ]{_NOT_RELATION}[a-zéè]+){{0,2}}?)"
_NOUN = rf"(?:{_NOT_RELATION}[a-z][\w-]* ){{0,3}}?{_NOT_RELATION}[a-z][\w-]*"
_PLAIN = rf"(?:(?!\b{FINITE}\b)[^,?;])*"  # words up to the next finite verb
_OWNED = rf"(?:its|his|her|their)(?: {_NOT_RELATION}[a-z][\w-]*){{1,3}}"  # has *its seat*
_PREPOSED = r"where|in which|for which|to which|from which|on which|at which|from whom|by whom|after whom|for whom"
# The end of a question about the object of a relative clause: the filter that *@0 runs*.
_OBJECT = (
    rf" (?:the )?{_NAME}(?: [a-z]+)? {FINITE}(?: been)?(?: [a-z]+ed)?(?: (?:to|in|by|on|for|with|from))?(?=[,?;]|$)"
)
_RELATIVE = "Which {noun}{owner} {clause}"
_PATTERNS = (  # how to ask for a relation, and how to find it: the most reliable first
    (  # @0's director
        "{who} is {name}'s {relation}",
        rf"(?P<name>{_NAME})['’]s? (?P<relation>{_SPECIAL}|"
        r"(?:(?:first|second|older|younger|former|main|home|native|paternal|maternal) )?[a-z-]+)(?= |$|\?|,|')",
    ),
    (  # the director of the film @0
        "{who} is the {relation} of {kind}{name}",
        rf"\b(?:[Tt]he )?(?P<relation>{_RELATION}) of "
        rf"(?P<kind>(?:the )?(?:{KIND_NOUNS} )?(?:called |named |titled )?)(?P<name>{_NAME})",
    ),
    (  # the inventor of basketball
        "{who} is the {relation} of {name}",
        rf"\b[Tt]he (?P<relation>(?:[a-z]+ )?(?:{'|'.join(sorted(PERSON_NOUNS))})) of "
        rf"(?P<name>(?:the )?{_NOT_RELATION}[a-z]+(?: {_NOT_RELATION}[a-z]+){{0,2}}?)"
        rf"(?= (?:{FINITE}|later|once|first)\b|[,?']|$)",
    ),
    (  # the man that resigned as president of @0
        _RELATIVE,
        rf"(?i)\b(?:the|an?) (?P<noun>{_NOUN}) (?P<pronoun>who|that|which|whose)"
        rf"(?P<clause>{_OBJECT}|(?: (?:{FINITE} ){{0,3}}{_PLAIN}?)(?=\b{FINITE}\b|[,?;]|$))",
    ),
    (  # the state where @0 is located
        "{where} which {noun} {clause}",
        rf"(?i)\b(?:the|an?) (?P<noun>{_NOUN}) (?P<pronoun>{_PREPOSED})(?P<clause> {_PLAIN}{_NAME}{_PLAIN}\b{FINITE}\b"
        rf"(?: {_OWNED}| [a-z]+ed| born| [a-z]+ing| found| held| set| in| for| from)*)",
    ),
    (  # the country containing @0, the film directed by @0
        "Which {noun} {clause}",
        rf"\b[Tt]he (?P<noun>{_NOUN}) (?P<clause>"
        rf"(?:{_NOT_RELATION}[a-z]+(?:ed|ing)|known|born|found|held|written|sung|made|built|set|won)"
        rf"(?: [a-z]+){{0,3}} {_NAME})",
    ),
)
_RELATIONS = [(ask, re.compile(pattern)) for ask, pattern in _PATTERNS]
# "In which version was the option that limits messages | added": the verb at the end is that of the whole question.
_PASSIVE = re.compile(
    r"((?i:when|where|(?:in|since|from|on) (?:which|what) \w+) w(?:as|ere) the .+ (?:that|which) .+)( \w+ed)$"
)
_ASKED = re.compile(rf"\b(?:{WH}|whose|how many)\s*$", re.I)  # "In which department of @0 ..." asks for the department
_INDEFINITE = re.compile(r"\b(?:an?|in|on|as|another)\s*$", re.I)  # "a member of @0", "in charge of @0" name no entity
_COMPARING = re.compile(r"\b(?:same|earlier|later|older|younger|longer|first|last|more)\b", re.I)
_TELLING = re.compile(rf"{_NAME}|\w{{3,}} \w+ \w{{3,}}")
_EMPTY = re.compile(
    rf"{_NAME}|\b(?:{WH}|is|are|was|were|the|a|an|name|of|in|to|did|does|do|by|for|on|at|both)\b|\W", re.I
)


def decompose(question: str) -> list[str]:
    """The atomic sub-questions, in order; the question itself if it has no parts."""
    masked = mask(question)
    steps, text = list[str](), masked.text.rstrip("?!. ")
    text = _PASSIVE.sub(r"\1,\2", text)
    while len(steps) < 6 and (found := _innermost(text, f"#{len(steps) + 1}")):
        sub_question, text = found
        steps.append(sub_question)
    text = re.sub(r",( \w+ed)$", r"\1", text)
    steps += _compare(text, len(steps)) or [text]
    steps = [" ".join(step.split()).rstrip(" ,") for step in steps]
    return [masked.unmask(f"{step[:1].upper()}{step[1:]}?") for step in steps]


def _innermost(text: str, reference: str) -> tuple[str, str] | None:
    """A sub-question about the innermost relation, and the text with a reference in its place."""
    for ask, pattern in _RELATIONS:
        for match in pattern.finditer(text):
            before, after = text[: match.start()], text[match.end() :]
            indefinite = not match[0].lower().startswith("the ") and _INDEFINITE.search(before)
            clause = match["clause"] if ask == _RELATIVE else ""
            vague = clause and (_COMPARING.search(clause) or not _TELLING.search(clause))
            rest = f"{before}{reference}{' ' if after[:1].isalnum() else ''}{after}"
            # "What is #1" and "#1" ask nothing.
            if not (_ASKED.search(before) or indefinite or vague) and _EMPTY.sub("", rest):
                return _sub_question(ask, match), rest
    return None


def _sub_question(ask: str, match: re.Match[str]) -> str:
    part = {name: text or "" for name, text in match.groupdict().items()}
    noun, pronoun = part.get("relation", "").split()[-1:], part.get("pronoun", "").lower()
    return ask.format(
        **part,
        who="Who" if PERSON_NOUNS.intersection(word for each in noun for word in (each, each.rstrip("s"))) else "What",
        owner="'s" if pronoun == "whose" else "",
        where="In" if pronoun == "where" else pronoun.partition(" ")[0].capitalize(),
    )


# --- comparisons -----------------------------------------------------------------------------------------------------

_OR = re.compile(
    rf"(?:[,:]|\bbetween\b|--?)\s*(?:the )?(?P<a>[^,]*{_NAME}[^,]*?),? or (?:the )?(?P<b>[^,]*{_NAME}[^,]*)$"
    rf"|(?P<c>{_NAME}),? or (?:the )?(?P<d>{_NAME})\s*,?"
    rf"|\b[Bb]etween (?:the )?(?P<e>{_NAME}) and (?:the )?(?P<f>{_NAME})\s*,?"
)
_AND = re.compile(
    rf"(?:the )?(?:{KIND_NOUNS}s?,? )?(?P<a>{_NAME}),? and (?:the )?(?:{KIND_NOUNS} )?(?P<b>{_NAME})\s*,?"
)
_THAN = re.compile(
    rf"(?P<a>{_NAME})(?= ).* (?:than|before|after) (?:the )?(?:(?:{KIND_NOUNS}) )?(?P<b>{_NAME})"
    r"(?: [a-z]+)?$"
)
_ROLE = re.compile(
    r"\b(director|performer|composer|author|writer|founder|producer|singer|architect|designer|creator|screenwriter)s?\b"
)
_EARLIER = re.compile(
    r"\b(?:first|earlier|later|earliest|latest|older|younger|oldest|youngest|sooner|last|recently|longer|recent)\b",
    re.I,
)
_JOINT = re.compile(r"\b(?:both|in common|same|share|respective)", re.I)
_ATTRIBUTES = (  # what a comparison asks about either side
    (r"\bborn\b|\bage\b", "When was {} born"),
    (r"\bdied\b|\bdie\b|\bdeath\b", "When did {} die"),
    (r"\bnationality\b", "What is the nationality of {}"),
    (r"\bcountry\b|\bnation\b|\bcountries\b", "In which country is {}"),
    (r"\bsame (?:city|town|state|province|county|continent|district|region)\b", "In which city, state or region is {}"),
    (r"\bsame (?:museum|university|school|genus|family|club)\b", "In which museum, university or group is {}"),
    (r"\bcame out\b|\brelease[ds]?\b|\bcome out\b|\bpremiered\b|\baired\b|\bpublished\b", "When was {} released"),
    (r"\bfounded\b|\bestablished\b|\bformed\b|\bcreated\b|\bstarted\b|\bhistory\b", "When was {} founded"),
    (r"\bopened\b|\bbuilt\b|\bcompleted\b|\bfinished\b", "When was {} opened"),
    (r"\bmembers\b", "How many members does {} have"),
    (r"\bpopulation\b|\binhabitants\b", "What is the population of {}"),
    (r"\btaller\b|\bhigher\b|\bheight\b|\btallest\b|\bhighest\b", "How high is {}"),
    (r"\b(?:river|bridge|lake|road)\b.*\blonger\b|\blonger\b.*\b(?:river|bridge)\b|\blength\b", "How long is {}"),
    (r"\blarger\b|\bbigger\b|\barea\b", "How large is {}"),
)


def _compare(text: str, taken: int) -> list[str]:
    """The sub-questions of a comparison of two sides, if it is one; ``taken`` sub-questions precede them."""
    found = _OR.search(text)
    if not found or not (re.match(rf"(?:{WH}|between|of|out of|in|on|at)\b", text, re.I) or _EARLIER.search(text)):
        found = _AND.search(text) if AUXILIARY.match(text) or _JOINT.search(text) else None
    than = _THAN.search(text) if re.match(r"(?:is|are|was|were|did|does|has)\b", text, re.I) else None
    if not (found := than or found):
        return []
    sides = [re.sub(rf"^(?:{KIND_NOUNS}) (?=@)", "", side.strip()) for side in found.groups() if side]
    rest = (text if than else f"{text[: found.start()]} {text[found.end() :]}").lower()
    steps: list[str] = []
    role = _ROLE.search(rest)
    if role and re.search(r"\bwhose\b|\bhas\b|\bhave\b|\bwith\b|\bof\b", rest) and not re.search(r"\bare both\b", rest):
        steps = [f"Who is the {role[1]} of {side}" for side in sides]
        sides = [f"#{taken + 1}", f"#{taken + 2}"]
    person = steps or re.search(r"\bwhom?\b", rest) or not PERSON_NOUNS.isdisjoint(rest.split())
    asked = next((question for pattern, question in _ATTRIBUTES if re.search(pattern, rest)), "")
    if counted := re.search(rf"\b(?:more|fewer) ({_NOUN}) than\b", rest):
        asked = f"How many {counted[1]} does {{}} have"
    elif same := re.search(r"\b([a-z]+ed|written|made|built|sung) by the same\b", rest):
        asked = f"By whom was {{}} {same[1]}"
    if not asked and (verb := re.search(r"\b(?:was|were|been) (?:first )?([a-z]+ed|fought|held|set|sung|won)\b", rest)):
        asked = f"When was {{}} {verb[1]}"
    elif not asked and _EARLIER.search(rest):
        asked = "When was {} born" if person or than else "When was {} founded or opened"
    if than and not asked:
        return []
    return [*steps, *((asked or "What is {}").format(side) for side in sides)]
