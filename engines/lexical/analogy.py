"""Learns decomposition patterns from solved questions (analogy-based translation, Nagao 1984).

"How tall is whoever painted the Mona Lisa?" with the plan "Who painted the Mona Lisa?", "How tall is #1?" gives two
patterns. The whole question: "how tall is whoever VERB NAME" gets the same plan. And a part of it: "whoever VERB NAME"
asks "Who VERB NAME?" in any question. Names and the words that the plan repeats are variables; all other words must
match. A plan that adds words of its own gives no pattern, since they would be put into other questions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...data.text import FUNCTION_WORDS
from .question import mask
from .vocabulary import relation_terms

_TOKEN = re.compile(r"[@#]\d+|['’]s?(?!\w)|\w+(?:['’.-]\w+)*|[^\w\s]")
_SLOT = re.compile(r"[@#]\d+")
_ARTICLE = re.compile(r"\b(?:the|an?)\s+(?=[@#]\d)", re.IGNORECASE)  # optional before a name
_WORD = r"[a-zà-ÿ][a-zà-ÿ-]*"
_LONGEST = 40  # tokens of a question to learn from
_SIMILAR = 0.45  # least similarity of a phrase to the step that asks for it
_REPEATED = 0.7  # least similarity of the last step to the question around the phrase
_RELATIVES = frozenset("that where which who whom whose".split())
# A phrase that a reference can replace starts like a noun phrase, not like a clause or a preposition.
_DETERMINERS = frozenset("the a an all both that these this those what where which who whom whose".split())


@dataclass(frozen=True)
class Pattern:
    """A phrase in masked questions and the sub-questions that it asks."""

    phrase: re.Pattern[str]
    asks: tuple[str, ...]  # with the groups of the match in braces
    example: str  # the phrase that it was learned from

    def fill(self, match: re.Match[str]) -> list[str]:
        return [ask.format(**match.groupdict()) for ask in self.asks]

    def fill_first(self, match: re.Match[str]) -> str:
        return self.fill(match)[0]


@dataclass(frozen=True)
class Lesson:
    """The patterns of one solved question."""

    whole: Pattern | None  # the question with its plan; None if the plan does not follow from its words
    parts: tuple[Pattern, ...]  # phrases that ask one sub-question each, the innermost first


@lru_cache(maxsize=4096)
def learn(question: str, plan: tuple[str, ...]) -> Lesson:
    """Learn patterns from a question and its plan; a plan in the words of the question gives more of them."""
    masked = mask(question)
    text = _tokens(masked.text)
    steps = [_tokens(_masked_step(step, masked.names)) for step in plan]
    if not text or len(text) > _LONGEST or any(mask(" ".join(step)).names for step in steps):
        return Lesson(None, ())  # too long, or a step has a name that the question does not have
    return Lesson(_pattern(text, steps, whole=True), tuple(_parts(text, steps)))


def _tokens(text: str) -> list[str]:
    tokens = _TOKEN.findall(_ARTICLE.sub("", text.rstrip("?!. ")))
    return [tokens[0].lower(), *tokens[1:]] if tokens else []


def _masked_step(step: str, names: Sequence[str]) -> str:
    """The step with the question's names masked as in the question."""
    for n in sorted(range(len(names)), key=lambda n: -len(names[n])):
        step = re.sub(rf"(?<!\w){re.escape(names[n])}(?!\w)", f"@{n}", step, flags=re.IGNORECASE)
    return step[:1].lower() + step[1:] if step[1:2].islower() else step


def _parts(text: list[str], steps: list[list[str]], outermost: bool = True) -> list[Pattern]:
    """The last step is the text with a reference in place of a phrase, which the steps before it ask for."""
    found = _phrase(text, steps, outermost) if len(steps) > 1 else None
    inner = _parts(text[slice(*found)], steps[:-1], outermost=False) if found else []
    if found:
        text = [*text[: found[0]], f"#{len(steps) - 1}", *text[found[1] :]]
    elif len(steps) > 1:
        return inner
    pattern = None if outermost else _pattern(text, steps[-1:], whole=False)
    return [*inner, pattern] if pattern else inner


def _phrase(text: list[str], steps: list[list[str]], outermost: bool) -> tuple[int, int] | None:
    """Find the phrase that the last step replaces by a reference: the rest of the text is most similar to that step,
    and the phrase to the steps before it. It has all names of those, and none of the last step's.

    Args:
        outermost: The text is the question, which the last step repeats; else it is a phrase of it, which the last
            step rewords as a question.
    """
    last, before = steps[-1], [token for step in steps[:-1] for token in step]
    if [token for token in last if token.startswith("#")] != [f"#{len(steps) - 1}"]:
        return None
    inside, outside = ({token for token in some if token.startswith("@")} for some in (before, last))
    places = [at for at, token in enumerate(text) if token in inside]
    if not places or not inside <= set(text):
        return None
    # "the country in which [the birthplace of X] lies": words that the steps lack belong to the rest.
    said = set(map(_stem, before)) - {"is", "are", "was", "were"}
    best, where = (3 if outermost else 2) * _SIMILAR, None
    for start, end, phrase, left in _similarity(text, before, last):
        if start > places[0] or end <= places[-1] or not outside.isdisjoint(text[start:end]):
            continue
        if not _is_phrase(text, start) or (left < _REPEATED if outermost else _stem(text[end - 1]) not in said):
            continue
        similarity = phrase + left * (2 if outermost else 1)
        if similarity > best:
            best, where = similarity, (start, end)
    if where and where[0] and text[where[0] - 1] in ("the", "a", "an"):
        return where[0] - 1, where[1]
    return where


def _is_phrase(text: list[str], start: int) -> bool:
    first = text[start]
    if _SLOT.fullmatch(first):
        return text[start + 1 : start + 2] in (["'s"], ["’s"], ["'"], ["’"])
    return first in _DETERMINERS or first not in FUNCTION_WORDS


def _similarity(text: list[str], inner: list[str], outer: list[str]) -> Iterator[tuple[int, int, float, float]]:
    """For each phrase of the text (start, end): its similarity to ``inner``, and that of the text with a reference in
    its place to ``outer``; both as the share of common words."""
    stems, within, around = (list(map(_stem, tokens)) for tokens in (text, inner, outer))
    for start in range(len(stems)):
        wanted, kept, left = Counter(within), Counter(around), Counter(stems)
        inside, outside = 0, 1 + (left & kept).total()  # 1 is the reference
        for end in range(start + 1, len(stems) + (start > 0)):
            stem, length = stems[end - 1], end - start
            inside += wanted[stem] > 0
            wanted[stem] -= 1
            outside -= left[stem] <= kept[stem]
            left[stem] -= 1
            rest = len(stems) - length + 1
            yield start, end, 2 * inside / (length + len(within)), 2 * outside / (rest + len(around))


@lru_cache(maxsize=8192)
def _stem(token: str) -> str:
    return min(relation_terms(token), default=token.lower()).removesuffix("ever")  # whoever asks who


def _pattern(text: list[str], steps: list[list[str]], *, whole: bool) -> Pattern | None:
    """The text as a pattern and the steps with its groups; None if a step adds words, or a name would be lost."""
    said = {token for step in steps for token in step}
    names = {token for token in text if _SLOT.fullmatch(token)}
    if not names or not {name for name in names if name[0] == "@" or not whole} <= said:
        return None
    known = frozenset().union(*(relation_terms(token) for token in text if token not in names))
    # "Who" or "what" depends on the noun.
    persons = {token for step in steps if step[:2] == ["who", "is"] for token in step[2:4]}
    groups: dict[str, str] = {}
    for token in dict.fromkeys(text):
        if token in names:
            groups[token] = f"n{len(groups)}"
        elif token in said - persons and re.fullmatch(_WORD, token) and token not in FUNCTION_WORDS:
            groups[token] = f"w{len(groups)}"
    for token in said - groups.keys():
        if not token.startswith("#") and not relation_terms(token) <= known:
            return None
    if not whole and text[-2:-1] and text[-2] in _RELATIVES and _SLOT.fullmatch(text[-1]):
        return None  # "the country where X": an unfinished clause
    if not any(token.isalpha() and token not in ("the", "a", "an") for token in text if token not in groups):
        return None  # all words are variables: it would match anything
    phrase = r"\s*".join(_as_pattern(text, groups))  # words end at word boundaries, so no two run together
    asks = tuple(_template(step, groups) for step in steps)
    return Pattern(
        re.compile(rf"\A{phrase}\Z" if whole else rf"(?<!\w){phrase}(?![\w'’])", re.IGNORECASE), asks, " ".join(text)
    )


def _as_pattern(text: list[str], groups: dict[str, str]) -> Iterator[str]:
    met: set[str] = set()
    for token in text:
        if token not in groups:
            yield re.escape(token) + r"(?!\w)" * token[-1].isalnum()
        elif token in met:
            yield f"(?P={groups[token]})"
        else:
            met.add(token)
            yield f"(?P<{groups[token]}>{_NAME if _SLOT.fullmatch(token) else _VARIABLE})"


_NAME = r"(?:(?:the|an?)\s+)?[@#]\d+"
_VARIABLE = rf"\b(?!(?:{'|'.join(sorted(filter(str.isalpha, FUNCTION_WORDS)))})\b){_WORD}\b"


def _template(step: list[str], groups: dict[str, str]) -> str:
    text = " ".join(
        f"{{{groups[token]}}}" if token in groups else token.replace("{", "{{").replace("}", "}}") for token in step
    )
    return re.sub(r"\s+(?=['’,;:.])", "", text)
