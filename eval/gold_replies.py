"""What an agent should have replied to what it saw, according to the annotations of the question.

A field of a reply has a function here, so any combination of known fields works, of any program. What the annotations
do not tell stays as the agent has it: an answer, for example, where the passages that it read lack the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dspy

from ..data.passages import Passage
from ..data.references import references, replace_references
from ..data.sample import SubQuestion
from ..data.text import bare_title, content_terms, title_key
from ..programs.candidates import split_citations
from ..programs.prediction import UNKNOWN
from ..signatures.fields import NumberedPassage, NumberedPassages
from ..signatures.replies import read_probability
from .gold import gold_in_passages
from .scoring import exact_match

CONFIDENT = 0.95

_ALIKE = 0.5  # share of topic words that two questions or statements have in common
_ID = re.compile(r"\d+(?:s\d+)?")
_UNTOLD = object()

Field = Callable[["Sight"], Any]
FIELDS: dict[str, Field] = {}
"""The functions by the name of the output field; each returns the value, or `_UNTOLD`."""


class GoldReplies:
    """The annotations of one question.

    Args:
        example: As the loaders give it: ``answers``, ``gold``, ``sub_questions``.
        passages: What the program saw, for a question without passages of its own.
    """

    def __init__(self, example: dspy.Example, passages: Iterable[Passage] = ()) -> None:
        self.example = example
        known = [*(example.get("pool") or ()), *passages]
        self.gold = gold_in_passages(example, known)
        texts = {passage.id: passage for passage in known}
        self.pages: dict[str, Passage | None] = {id: texts.get(id) for id in self.gold.passages}
        """The gold passages by id, in the order of the annotations; None if the text is not known."""
        given = [step for step in example.get("sub_questions") or () if isinstance(step, SubQuestion)]
        pieces = {page.document: id for id, page in reversed(self.pages.items()) if page and page.place}
        self.steps = tuple(
            step._replace(passage_id=pieces.get(step.passage_id or "", step.passage_id)) for step in given
        )

    def reply(self, signature: type[dspy.Signature], inputs: Mapping[str, Any], own: Mapping[str, Any]) -> Reply:
        """The reply that the annotations ask for. A field that is as good stays as the agent has it.

        Args:
            inputs: What the agent was given; passages as `NumberedPassages`.
            own: What the agent replied.
        """
        sight = Sight(self, inputs, dict(own))
        told: dict[str, Any] = {}
        for name in signature.output_fields:
            if name in FIELDS and (value := FIELDS[name](sight)) is not _UNTOLD:
                told[name] = sight.own[name] = own[name] if name in own and sight.alike(own[name], value) else value
        return Reply(told, dict(own), sight)

    def asked(self, n: int) -> str:
        """Sub-question ``n``, from 0, with the answers of earlier ones in place of references."""
        answers = {number: step.answer for number, step in enumerate(self.steps, 1)}
        return replace_references(self.steps[n].question, answers.get)


@dataclass(frozen=True)
class Reply:
    """The fields that the annotations tell, some of them equal to the agent's own, and the agent's own."""

    told: Mapping[str, Any]
    own: Mapping[str, Any]
    sight: Sight

    @property
    def fields(self) -> dict[str, Any]:
        """The whole reply."""
        return {**self.own, **self.told}


class Sight:
    """What one call shows of the gold evidence. ``own`` is the agent's reply, corrected field by field."""

    def __init__(self, oracle: GoldReplies, inputs: Mapping[str, Any], own: dict[str, Any]) -> None:
        self.oracle, self.inputs, self.own = oracle, inputs, own

    def alike(self, own: Any, told: Any) -> bool:
        """Whether an agent's value of a field is as good as the value that the annotations tell."""
        if isinstance(told, float):
            return bool((read_probability(own) >= 0.5) == (told >= 0.5))
        if not isinstance(told, list):
            return title_key(str(own)) == title_key(str(told))
        left, right = [asked(each) for each in own], [asked(each) for each in told]
        if all(_ID.fullmatch(text) for text in (*left, *right)):
            by_passage = not self.oracle.gold.facts
            return {_id(text, by_passage) for text in left} == {_id(text, by_passage) for text in right}
        same = len(left) == len(right)
        return same and all(likeness(one, other) >= _ALIKE for one, other in zip(left, right, strict=True))

    def text(self, *names: str) -> str:
        return next((str(self.inputs[name]) for name in names if name in self.inputs), "")

    def listed(self, name: str) -> list[str]:
        value = self.inputs.get(name)
        return [str(item) for item in value] if isinstance(value, list | tuple) else []

    @cached_property
    def numbered(self) -> list[NumberedPassage]:
        lists = [value for value in self.inputs.values() if isinstance(value, NumberedPassages)]
        return [page for value in lists for page in value.passages]

    @cached_property
    def found(self) -> dict[str, NumberedPassage]:
        """The gold passages that are shown, in whole or in part, by id."""
        pages = [(id, page) for id, page in self.oracle.pages.items() if page is not None]
        found: dict[str, NumberedPassage] = {}
        for shown in self.numbered:
            for id, page in pages:
                if _shows(shown, page):
                    found.setdefault(id, shown)
        return found

    def ids(self, passage: str | None = None) -> list[str]:
        """The ids of the gold sentences that are shown, of one gold passage or of all; of the passage where no sentence
        is known to be gold."""
        wanted = [id for id in self.oracle.pages if passage in (None, id)]
        return [text for id in wanted if id in self.found for text in self._ids(id)]

    def _ids(self, id: str) -> list[str]:
        shown = self.found[id]
        gold = [fact.sentence for fact in self.oracle.gold.facts if fact.passage_id == id]
        if sentences := [n + 1 for n in gold if n is not None]:
            return [f"{shown.number}s{n}" for n in sentences if n in shown.sentences]
        answers = [step.answer for step in self.oracle.steps if step.passage_id == id] or self.oracle.gold.answers
        stating = (n for n, text in shown.sentences.items() if _mentions(text, answers))
        return [f"{shown.number}s{n}" for n in stating][:1] or [str(shown.number)]

    def has(self, passage: str) -> bool:
        """Whether all gold sentences of a gold passage are shown."""
        gold = [fact for fact in self.oracle.gold.facts if fact.passage_id == passage and fact.sentence is not None]
        return passage in self.found and len(self._ids(passage)) >= max(1, len(gold))

    @property
    def complete(self) -> bool:
        """Whether all gold evidence is shown."""
        return bool(self.oracle.pages) and all(map(self.has, self.oracle.pages))

    @cached_property
    def at(self) -> int | None:
        """The index of the sub-question that is asked here; None where it is the question itself or neither."""
        question = self.text("question")
        if title_key(question) == title_key(self.oracle.example.question):
            return None
        return self.step_like(question)

    def step_like(self, text: str) -> int | None:
        """The index of the sub-question that a text asks, in its own words or in others."""
        known = [(step.question, self.oracle.asked(n)) for n, step in enumerate(self.oracle.steps)]
        alike = [max(likeness(text, form) for form in forms) for forms in known]
        best = max(range(len(alike)), key=alike.__getitem__, default=None)
        return best if best is not None and alike[best] >= _ALIKE else None

    @cached_property
    def is_main(self) -> bool:
        return title_key(self.text("question")) == title_key(self.oracle.example.question)

    @property
    def answers(self) -> tuple[str, ...]:
        """The right answers to what is asked here; empty if they are not known."""
        if self.is_main:
            return self.oracle.gold.answers
        return () if self.at is None else (self.oracle.steps[self.at].answer,)

    @property
    def carried(self) -> bool:
        """Whether the passages state the answer to what is asked here."""
        if self.is_main:
            return self.complete or not self.oracle.pages
        passage = None if self.at is None else self.oracle.steps[self.at].passage_id
        return passage is not None and passage in self.oracle.pages and self.has(passage)

    @property
    def right(self) -> bool:
        """Whether the answer that is judged here is right."""
        return exact_match(self.text("proposed_answer", "answer"), self.answers) > 0

    @property
    def lacking(self) -> list[str]:
        """Queries for the gold passages that are not shown and that nothing unknown leads to; none that was tried."""
        if not self.oracle.pages:
            return []
        if not self.oracle.steps:
            return [title for id in self.oracle.pages if not self.has(id) and (title := self._untried(id))]
        has = [step.passage_id is None or self._knows(step.passage_id) for step in self.oracle.steps]
        return [
            query
            for n, step in enumerate(self.oracle.steps)
            if not has[n]
            and all(has[m - 1] for m in references(step.question) if 0 < m <= len(has))
            and (query := self._untried(step.passage_id, self.oracle.asked(n)))
        ]

    def _untried(self, passage: str | None, query: str = "") -> str:
        """The query; if it was tried, the title of the passage, if the agent saw the title; else nothing.

        A title that the agent cannot know would make up for a search that failed.
        """
        page = self.oracle.pages.get(passage or "")
        title = bare_title(page.title) if page is not None else ""
        known = [query, title] if title and f" {title_key(title)} " in self._read else [query]
        return next((text for text in known if text and not self.was_tried(text)), "")

    def was_tried(self, query: str) -> bool:
        tried = [title_key(text) for name in ("queries", "earlier", "searched") for text in self.listed(name)]
        return any(text.startswith(title_key(query)) for text in tried)

    @cached_property
    def _read(self) -> str:
        """What the agent was asked and shown, to look for a title."""
        shown = [text for page in self.numbered for text in (page.title, *page.sentences.values())]
        return f" {title_key(' '.join([self.text('question'), *self.listed('known'), *shown]))} "

    def _knows(self, passage: str) -> bool:
        """Whether a gold passage is shown, or a known fact states what it says."""
        answers = [step.answer for step in self.oracle.steps if step.passage_id == passage]
        return self.has(passage) or any(_mentions(text, answers) for text in self.listed("known"))

    def page(self, id: str) -> NumberedPassage | None:
        """The passage of an id that is shown."""
        number, _, sentence = id.partition("s")
        found = (page for page in self.numbered if _ID.fullmatch(id) and str(page.number) == number)
        return next((page for page in found if not sentence or int(sentence) in page.sentences), None)

    def sentence(self, id: str) -> str:
        page, sentence = self.page(id), id.partition("s")[2]
        if page is None:
            raise KeyError(id)
        return page.sentences[int(sentence)] if sentence else " ".join(page.sentences.values())


def likeness(one: str, other: str) -> float:
    """The share of topic words that two texts have in common."""
    left, right = frozenset(content_terms(one)), frozenset(content_terms(other))
    return len(left & right) / len(left | right) if left | right else float(title_key(one) == title_key(other))


def _names_all(own: str, query: str) -> bool:
    """Whether a query has all topic words of another one."""
    words = set(content_terms(query))
    return bool(words) and words <= set(content_terms(own))


def asked(item: Any) -> str:
    """A text of a list without the ids that it cites; of a step its question."""
    text = str(item["question"] if isinstance(item, dict) else item)
    return split_citations(text)[0] or text


def _id(text: str, by_passage: bool) -> str:
    return text.partition("s")[0] if by_passage else text


def _mentions(text: str, answers: Iterable[str]) -> bool:
    key = f" {title_key(text)} "
    return any(f" {title_key(answer)} " in key for answer in answers)


def _shows(shown: NumberedPassage, page: Passage) -> bool:
    sentences = page.sentences
    return shown.title == page.title and all(
        n <= len(sentences) and text == sentences[n - 1] for n, text in shown.sentences.items()
    )


# --- fields ----------------------------------------------------------------------------------------------------------


def field(*names: str) -> Callable[[Field], Field]:
    """Register what the annotations tell of some output fields."""

    def add(function: Field) -> Field:
        FIELDS.update(dict.fromkeys(names, function))
        return function

    return add


@field("sub_questions", "roadmap", "requirements")
def _plan(sight: Sight) -> Any:
    return [step.question for step in sight.oracle.steps] or _UNTOLD


@field("steps")
def _steps(sight: Sight) -> Any:
    return [{"thought": "", "question": step.question} for step in sight.oracle.steps] or _UNTOLD


@field("route")
def _route(sight: Sight) -> Any:
    if not sight.is_main:
        return _UNTOLD
    hops = len(sight.oracle.steps) or sight.oracle.example.get("hops") or len(sight.oracle.pages)
    return _UNTOLD if not hops else "plan" if hops > 1 else "single"


@field("query")
def _query(sight: Sight) -> Any:
    if "action" in sight.own:
        if sight.own["action"] == "answer":
            return "none"
        own = str(sight.own.get("query", ""))
        as_good = not sight.was_tried(own) and any(_names_all(own, query) for query in sight.lacking)
        return own if as_good else next(iter(sight.lacking), _UNTOLD)
    return "none" if sight.own.get("route") == "plan" else _UNTOLD


@field("action")
def _action(sight: Sight) -> Any:
    if sight.complete:
        return "answer"
    return "retrieve" if sight.lacking else _UNTOLD


@field("refined_question")
def _refined(sight: Sight) -> Any:
    n = sight.step_like(sight.text("next_question"))
    return _UNTOLD if n is None else sight.oracle.asked(n)


@field("queries")
def _queries(sight: Sight) -> Any:
    return sight.lacking or _UNTOLD


@field("required", "gaps")
def _open(sight: Sight) -> Any:
    return sight.lacking or ([] if sight.complete else _UNTOLD)


@field("keep")
def _keep(sight: Sight) -> Any:
    return sight.ids() if sight.oracle.pages else _UNTOLD


@field("add")
def _add(sight: Sight) -> Any:
    if not sight.oracle.pages:
        return _UNTOLD
    selected = set(sight.listed("selected"))
    return [id for id in sight.ids() if id not in selected and id.partition("s")[0] not in selected]


@field("useful", "chosen")
def _useful(sight: Sight) -> Any:
    return [str(page.number) for page in sight.found.values()] if sight.oracle.pages else _UNTOLD


@field("spans")
def _spans(sight: Sight) -> Any:
    return [f"{id} {sight.sentence(id)}" for id in sight.ids()] if sight.oracle.pages else _UNTOLD


@field("new_facts")
def _new_facts(sight: Sight) -> Any:
    if not sight.oracle.pages:
        return _UNTOLD
    known = " ".join(map(title_key, sight.listed("known")))
    told = [(id, sight.sentence(id)) for id in sight.ids()]
    return [f"{text} ({id})" for id, text in told if title_key(text) not in known]


@field("supported", "relevant")
def _stated(sight: Sight) -> Any:
    """The statements that repeat a gold sentence, besides the agent's own choice."""
    gold = [sight.sentence(id) for id in sight.ids()]
    statements = [text.partition(". ") for text in sight.listed("statements")]
    numbers = [number for number, _, text in statements if any(likeness(text, other) >= _ALIKE for other in gold)]
    own = [str(entry) for entry in (*sight.own.get("supported", ()), *sight.own.get("relevant", ()))]
    return list(dict.fromkeys([*own, *numbers])) if numbers else _UNTOLD


@field("sufficiency")
def _sufficiency(sight: Sight) -> Any:
    pages = sight.oracle.pages
    return sum(map(sight.has, pages)) / len(pages) if pages else _UNTOLD


@field("answers")
def _answers(sight: Sight) -> Any:
    """An answer to each sub-question of the prompt, if all of them are annotated."""
    asked, steps = sight.listed("sub_questions"), sight.oracle.steps
    same = len(asked) == len(steps)
    found = [n if same else sight.step_like(text) for n, text in enumerate(asked)]
    if not steps or None in found:
        return _UNTOLD
    told = []
    for n in found:
        step = steps[n or 0]
        ids = sight.ids(step.passage_id) if step.passage_id in sight.found else []
        told.append(f"{step.answer} [{ids[0]}]" if ids else step.answer if step.passage_id is None else UNKNOWN)
    return told


@field("doubtful")
def _doubtful(sight: Sight) -> Any:
    """None: the annotated answers are stated by what they cite."""
    return [] if _answers(sight) is not _UNTOLD else _UNTOLD


@field("missing")
def _missing(sight: Sight) -> Any:
    return "none" if sight.complete else next(iter(sight.lacking), _UNTOLD)


@field("answer")
def _answer(sight: Sight) -> Any:
    """The right answer where the passages carry it. Else no reply is better than the agent's own."""
    if not sight.answers:
        return _UNTOLD
    own = str(sight.own.get("answer", UNKNOWN))
    if sight.carried:
        return own if exact_match(own, sight.answers) else sight.answers[0]
    return sight.text("draft") if "decision" in sight.own else own


@field("citations", "cited")
def _cited(sight: Sight) -> Any:
    if not sight.carried or not sight.oracle.pages:
        return _UNTOLD
    return sight.ids() if sight.at is None else sight.ids(sight.oracle.steps[sight.at].passage_id)


@field("confidence")
def _confidence(sight: Sight) -> Any:
    if not sight.answers:
        return _UNTOLD
    right = exact_match(str(sight.own.get("answer")), sight.answers) > 0
    return CONFIDENT if right else 1 - CONFIDENT


@field("accuracy")
def _accuracy(sight: Sight) -> Any:
    return _UNTOLD if not sight.answers else CONFIDENT if sight.right else 1 - CONFIDENT


@field("attribution")
def _attribution(sight: Sight) -> Any:
    if not sight.answers:
        return _UNTOLD
    if sight.carried:
        return "attributable" if sight.right else "contradictory"
    return "extrapolatory"


@field("correction")
def _correction(sight: Sight) -> Any:
    if not sight.answers:
        return _UNTOLD
    if sight.right:
        return sight.text("proposed_answer")
    return sight.answers[0] if sight.carried else _UNTOLD


@field("decision")
def _decision(sight: Sight) -> Any:
    return _UNTOLD if not sight.answers else "revised" if sight.carried else "unconfident"


@field("next_thought")
def _thought(sight: Sight) -> Any:
    """The next gold sentence that is shown and was not thought; at the end the answer."""
    thoughts = " ".join(map(title_key, sight.listed("thoughts")))
    new = [text for id in sight.ids() if title_key(text := sight.sentence(id)) not in thoughts]
    if new:
        return new[0]
    return f"So the answer is: {sight.answers[0]}" if sight.complete and sight.answers else _UNTOLD
