"""What an agent should have replied to what it saw, according to the annotations of the question.

`_told` says it field by field, so any combination of known fields works, of any program. What the annotations do not
tell stays as the agent has it: an answer, for example, where the passages that it read lack the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import dspy

from ..data.passages import Passage
from ..data.references import references, replace_references
from ..data.sample import SubQuestion
from ..data.text import bare_title, content_terms, title_key
from ..programs.candidates import split_citations
from ..programs.prediction import UNKNOWN
from ..signatures.fields import NumberedPassage, NumberedPassages, read_probability
from .gold import gold_in_passages
from .scoring import exact_match, mentions

CONFIDENT = 0.95

_ALIKE = 0.5  # share of topic words that two questions or statements have in common
_ID = re.compile(r"\d+(?:s\d+)?")
_UNTOLD = object()
_ANSWERED = ("question", "answer", "proposed_answer", "draft")  # inputs that are no evidence


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
        # The gold passages by id, in the order of the annotations; None if the text is not known.
        self.pages: dict[str, Passage | None] = {id: texts.get(id) for id in self.gold.passages}
        given = [step for step in example.get("sub_questions") or () if isinstance(step, SubQuestion)]
        pieces = {page.document: id for id, page in reversed(self.pages.items()) if page and page.place}
        self.steps = tuple(
            step._replace(passage_id=pieces.get(step.passage_id or "", step.passage_id)) for step in given
        )

    def reply(self, signature: type[dspy.Signature], inputs: Mapping[str, Any], own: Mapping[str, Any]) -> GoldReply:
        """The reply that the annotations ask for.

        Args:
            inputs: What the agent was given; passages as `NumberedPassages`.
            own: What the agent replied.
        """
        reply = GoldReply(self, inputs, dict(own))
        for name in signature.output_fields:
            if (value := _told(reply, name)) is not _UNTOLD:
                kept = name in own and reply.alike(own[name], value)
                reply.told[name] = reply.fields[name] = own[name] if kept else value
        return reply

    def asked(self, n: int) -> str:
        """Sub-question ``n``, from 0, with the answers of earlier ones in place of references."""
        answers = {number: step.answer for number, step in enumerate(self.steps, 1)}
        return replace_references(self.steps[n].question, answers.get)


@dataclass
class GoldReply:
    """What one call should have replied, and what it shows of the gold evidence.

    Attributes:
        fields: The whole reply: the agent's own, corrected.
        told: The fields that the annotations tell. One that is as good stays as the agent has it.
    """

    oracle: GoldReplies
    inputs: Mapping[str, Any]
    fields: dict[str, Any]
    told: dict[str, Any] = field(default_factory=dict)

    def alike(self, own: Any, told: Any) -> bool:
        """Whether an agent's value of a field is as good as the value that the annotations tell."""
        if isinstance(told, float):
            return bool((read_probability(own) >= 0.5) == (told >= 0.5))
        if not isinstance(told, list):
            return title_key(str(own)) == title_key(str(told))
        left, right = [asked(each) for each in own], [asked(each) for each in told]
        if all(_ID.fullmatch(text) for text in (*left, *right)):
            if not self.oracle.gold.facts:  # passages are gold
                left, right = ([text.partition("s")[0] for text in texts] for texts in (left, right))
            return set(left) == set(right)
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
        texts = {id: dict(enumerate(page.sentences, 1)) for id, page in self.oracle.pages.items() if page is not None}
        found: dict[str, NumberedPassage] = {}
        for shown in self.numbered:
            for id, known in texts.items():
                page = self.oracle.pages[id]
                if page is not None and shown.title == page.title and shown.sentences.items() <= known.items():
                    found.setdefault(id, shown)
        return found

    def ids(self, passage: str | None = None) -> list[str]:
        """The ids of the gold sentences that are shown, of one gold passage or of all; of the passage where no sentence
        is known to be gold."""
        return [text for id in self.oracle.pages if passage in (None, id) for text in self._gold(id)[0]]

    def _gold(self, id: str) -> tuple[list[str], bool]:
        """The ids that are shown of one gold passage, and whether these are all."""
        if id not in self.found:
            return [], False
        shown, facts = self.found[id], self.oracle.gold.facts
        if gold := [fact.sentence + 1 for fact in facts if fact.passage_id == id and fact.sentence is not None]:
            ids = [f"{shown.number}s{n}" for n in gold if n in shown.sentences]
            return ids, len(ids) == len(gold)
        answers = [step.answer for step in self.oracle.steps if step.passage_id == id] or self.oracle.gold.answers
        stating = (n for n, text in shown.sentences.items() if mentions(text, answers))
        return [f"{shown.number}s{n}" for n in stating][:1] or [str(shown.number)], True

    def has(self, passage: str) -> bool:
        """Whether all gold sentences of a gold passage are shown."""
        return self._gold(passage)[1]

    @property
    def complete(self) -> bool:
        """Whether all gold evidence is shown."""
        return bool(self.oracle.pages) and all(map(self.has, self.oracle.pages))

    def page(self, id: str) -> NumberedPassage | None:
        """The passage of an id that is shown."""
        number, _, sentence = id.partition("s")
        found = (page for page in self.numbered if _ID.fullmatch(id) and str(page.number) == number)
        return next((page for page in found if not sentence or int(sentence) in page.sentences), None)

    def sentence(self, id: str) -> str:
        """The text of an id that is shown."""
        page, sentence = self.page(id), id.partition("s")[2]
        if page is None:
            raise KeyError(id)
        return page.sentences[int(sentence)] if sentence else " ".join(page.sentences.values())

    @cached_property
    def is_main(self) -> bool:
        return title_key(self.text("question")) == title_key(str(self.oracle.example.get("question", "")))

    @cached_property
    def at(self) -> int | None:
        """The index of the sub-question that is asked here; None where it is the question itself or neither."""
        return None if self.is_main else self.step_like(self.text("question"))

    def step_like(self, text: str) -> int | None:
        """The index of the sub-question that a text asks, in its own words or in others."""
        steps = enumerate(self.oracle.steps)
        alike = [max(likeness(text, step.question), likeness(text, self.oracle.asked(n))) for n, step in steps]
        return alike.index(max(alike)) if alike and max(alike) >= _ALIKE else None

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
            if not self.numbered:  # programs that are not polyhop's read plain text
                read = " ".join(str(text) for name, text in self.inputs.items() if name not in _ANSWERED)
                return not self.oracle.pages or mentions(read, self.answers) > 0
            return self.complete or not self.oracle.pages
        passage = None if self.at is None else self.oracle.steps[self.at].passage_id
        return passage is not None and passage in self.oracle.pages and self.has(passage)

    @property
    def lacking(self) -> list[str]:
        """Queries for the gold passages that are not shown and that nothing unknown leads to; none that was tried."""
        if not self.oracle.pages:
            return []
        if not self.oracle.steps:
            return [title for id in self.oracle.pages if not self.has(id) and (title := self._untried(id))]
        known, has = self.listed("known"), list[bool]()
        for step in self.oracle.steps:  # whether its passage is shown, or a known fact states what it says
            answers = [each.answer for each in self.oracle.steps if each.passage_id == step.passage_id]
            shown = step.passage_id is None or self.has(step.passage_id)
            has.append(shown or any(mentions(text, answers) for text in known))
        return [
            query
            for n, step in enumerate(self.oracle.steps)
            if not has[n]
            and all(has[m - 1] for m in references(step.question) if 0 < m <= len(has))
            and (query := self._untried(step.passage_id, self.oracle.asked(n)))
        ]

    def _untried(self, passage: str | None, query: str = "") -> str:
        """The query; if it was tried, the title of the passage, if the agent saw it: one that the agent cannot know
        would make up for a search that failed; else nothing."""
        page = self.oracle.pages.get(passage or "")
        title = bare_title(page.title) if page is not None else ""
        known = [query, title] if title and f" {title_key(title)} " in self._read else [query]
        return next((text for text in known if text and not self.was_tried(text)), "")

    def was_tried(self, query: str) -> bool:
        tried = [title_key(text) for name in ("queries", "earlier", "searched") for text in self.listed(name)]
        return any(text.startswith(title_key(query)) for text in tried)

    @cached_property
    def _read(self) -> str:
        shown = [text for page in self.numbered for text in (page.title, *page.sentences.values())]
        return f" {title_key(' '.join([self.text('question'), *self.listed('known'), *shown]))} "


def likeness(one: str, other: str) -> float:
    """The share of topic words that two texts have in common."""
    left, right = frozenset(content_terms(one)), frozenset(content_terms(other))
    return len(left & right) / len(left | right) if left | right else float(title_key(one) == title_key(other))


def asked(item: Any) -> str:
    """A text of a list without the ids that it cites; of a step its question."""
    text = str(item["question"] if isinstance(item, dict) else item)
    return split_citations(text)[0] or text


def _told(reply: GoldReply, name: str) -> Any:
    """What an output field should be; `_UNTOLD` if the annotations do not tell. Earlier fields are corrected."""
    oracle, own, answers = reply.oracle, reply.fields, reply.answers
    pages, steps = oracle.pages, oracle.steps
    judged = reply.text("proposed_answer", "answer")
    match name:
        # Plans
        case "sub_questions" | "roadmap" | "requirements" if steps:
            return [step.question for step in steps]
        case "steps" if steps:
            return [{"thought": "", "question": step.question} for step in steps]
        case "route" if reply.is_main and (hops := len(steps) or oracle.example.get("hops") or len(pages)):
            return "plan" if hops > 1 else "single"
        case "refined_question" if (n := reply.step_like(reply.text("next_question"))) is not None:
            return oracle.asked(n)
        # Searches
        case "action" if reply.complete or reply.lacking:
            return "answer" if reply.complete else "retrieve"
        case "query" if own.get("action") == "answer" or ("action" not in own and own.get("route") == "plan"):
            return "none"
        case "query" if "action" in own and reply.lacking:
            query = str(own.get("query", ""))
            words = set(content_terms(query))
            as_good = any((terms := set(content_terms(each))) and terms <= words for each in reply.lacking)
            return query if as_good and not reply.was_tried(query) else reply.lacking[0]
        case "queries" | "required" | "gaps" if reply.lacking:
            return reply.lacking
        case "required" | "gaps" if reply.complete:
            return []
        case "missing" if reply.complete or reply.lacking:
            return "none" if reply.complete else reply.lacking[0]
        # Evidence
        case "keep" if pages:
            return reply.ids()
        case "add" if pages:
            selected = set(reply.listed("selected"))
            return [id for id in reply.ids() if id not in selected and id.partition("s")[0] not in selected]
        case "useful" | "chosen" if pages:
            return [str(page.number) for page in reply.found.values()]
        case "spans" if pages:
            return [f"{id} {reply.sentence(id)}" for id in reply.ids()]
        case "new_facts" if pages:
            known = " ".join(map(title_key, reply.listed("known")))
            texts = [(id, reply.sentence(id)) for id in reply.ids()]
            return [f"{text} ({id})" for id, text in texts if title_key(text) not in known]
        case "sufficiency" if pages:
            return sum(map(reply.has, pages)) / len(pages)
        case "citations" | "cited" if reply.carried and pages:
            return reply.ids() if reply.at is None else reply.ids(steps[reply.at].passage_id)
        case "supported" | "relevant":  # the statements that repeat a gold sentence, besides the agent's own choice
            shown = [reply.sentence(id) for id in reply.ids()]
            statements = [text.partition(". ") for text in reply.listed("statements")]
            repeated = [n for n, _, text in statements if any(likeness(text, each) >= _ALIKE for each in shown)]
            chosen = [str(entry) for entry in (*own.get("supported", ()), *own.get("relevant", ()))]
            return list(dict.fromkeys([*chosen, *repeated])) if repeated else _UNTOLD
        # Answers
        case "answers" | "doubtful" if steps:
            asked_here = reply.listed("sub_questions")
            same = len(asked_here) == len(steps)
            found = [n if same else reply.step_like(text) for n, text in enumerate(asked_here)]
            if None in found:
                return _UNTOLD
            return [_answered(reply, n) for n in found if n is not None] if name == "answers" else []
        case "answer" if answers and reply.carried:
            said = str(own.get("answer", UNKNOWN))
            return said if exact_match(said, answers) else answers[0]
        case "answer" if answers:  # no reply is better than the agent's own
            return reply.text("draft") if "decision" in own else str(own.get("answer", UNKNOWN))
        case "decision" if answers:
            return "revised" if reply.carried else "unconfident"
        case "next_thought":  # the next gold sentence that is shown and was not thought; at the end the answer
            thoughts = " ".join(map(title_key, reply.listed("thoughts")))
            new = [text for id in reply.ids() if title_key(text := reply.sentence(id)) not in thoughts]
            if new or (reply.complete and answers):
                return new[0] if new else f"So the answer is: {answers[0]}"
        # Judgements
        case "confidence" if answers:
            return CONFIDENT if exact_match(str(own.get("answer")), answers) else 1 - CONFIDENT
        case "accuracy" if answers:
            return CONFIDENT if exact_match(judged, answers) else 1 - CONFIDENT
        case "attribution" if answers and reply.carried:
            return "attributable" if exact_match(judged, answers) else "contradictory"
        case "attribution" if answers:
            return "extrapolatory"
        case "correction" if answers and exact_match(judged, answers):
            return reply.text("proposed_answer")
        case "correction" if answers and reply.carried:
            return answers[0]
    return _UNTOLD


def _answered(reply: GoldReply, n: int) -> str:
    step = reply.oracle.steps[n]
    ids = reply.ids(step.passage_id) if step.passage_id in reply.found else []
    return f"{step.answer} [{ids[0]}]" if ids else step.answer if step.passage_id is None else UNKNOWN
