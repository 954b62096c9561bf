"""What an agent should have replied to what it saw, according to the annotations of the question; and how to say it.

`_RULES` has a rule for each field, so any combination of known fields works, of any program. What the annotations do
not tell stays as the agent has it: an answer, for example, where the passages that it read lack the evidence.

Prompt optimizers that reflect, such as GEPA (`polyhop.optimizers.gepa.feedback_metric`), ask for feedback on one call
of an agent at a time. It is told how the reply differs from the one that the annotations ask for, what the agent was
not shown, and how the question ended. Where the annotations tell nothing of an agent, it gets that for the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import shorten
from typing import Any

import dspy

from ..data.form import references, replace_references
from ..data.passages import Passage
from ..data.sample import SubQuestion
from ..data.text import bare_title, content_terms, title_key
from ..programs.candidates import split_citations
from ..programs.prediction import UNKNOWN
from ..signatures.fields import NumberedPassage, NumberedPassages, read_probability
from .gold import LookUp, gold_candidates, gold_in_passages
from .metrics import Attempt
from .scoring import counted, exact_match, mentions
from .steps import readable

CONFIDENT = 0.95

CALIBRATION = frozenset({"confidence", "accuracy", "sufficiency"})
"""Fields whose faults are of degree."""

_ALIKE = 0.5  # share of topic words that two questions or statements have in common
_ID = re.compile(r"\d+(?:s\d+)?")
_ANSWERED = ("question", "answer", "draft")  # inputs that are no evidence
_MOST_NAMED = 5  # sentences or texts listed in one sentence


class GoldReplies:
    """The annotations of one question.

    Args:
        example: As the loaders give it: ``answers``, ``gold``, ``sub_questions``.
        passages: What the program saw, for a question without passages of its own.
        look_up: Finds the gold passages of such a question.
    """

    def __init__(self, example: dspy.Example, passages: Iterable[Passage] = (), look_up: LookUp | None = None) -> None:
        self.example = example
        passages = [*gold_candidates(example, look_up), *passages]
        self.gold = gold_in_passages(example, passages)
        texts = {passage.id: passage for passage in passages}
        # The gold passages by id, in the order of the annotations; None if the text is not known.
        self.pages: dict[str, Passage | None] = {id: texts.get(id) for id in self.gold.passages}
        pieces = {page.document: id for id, page in reversed(self.pages.items()) if page and page.place}
        self.steps = list[SubQuestion]()
        for step in example.get("sub_questions") or ():
            if isinstance(step, SubQuestion):
                passage_id = pieces.get(step.passage_id or "", step.passage_id)
                self.steps.append(step._replace(question=readable(step.question), passage_id=passage_id))

    def reply(self, signature: type[dspy.Signature], inputs: Mapping[str, Any], actual: Mapping[str, Any]) -> GoldReply:
        """The reply that the annotations ask for.

        Args:
            inputs: What the agent was given; passages as `NumberedPassages`.
            actual: What the agent replied.
        """
        reply = GoldReply(self, inputs, actual)
        for name in signature.output_fields:
            value = _RULES[name](reply) if name in _RULES else None
            if value is not None:
                if name in actual and reply.alike(actual[name], value):
                    value = actual[name]
                reply.annotated[name] = reply.fields[name] = value
        return reply

    def asked(self, n: int) -> str:
        """Sub-question ``n``, from 0, with the answers of earlier ones in place of references."""
        answers = {number: step.answer for number, step in enumerate(self.steps, 1)}
        return replace_references(self.steps[n].question, answers.get)


@dataclass
class GoldReply:
    """What one call should have replied, and what it shows of the gold evidence.

    Attributes:
        actual: The agent's own reply.
        annotated: The fields that the annotations tell. One that is as good stays as the agent has it.
        fields: The whole reply: the agent's own, corrected.
    """

    oracle: GoldReplies
    inputs: Mapping[str, Any]
    actual: Mapping[str, Any]
    annotated: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fields, self.pages, self.steps = dict(self.actual), self.oracle.pages, self.oracle.steps

    def alike(self, actual: Any, right: Any) -> bool:
        """Whether an agent's value of a field is as good as the value that the annotations tell."""
        if isinstance(right, float):
            return bool((read_probability(actual) >= 0.5) == (right >= 0.5))
        if not isinstance(right, list):
            return title_key(str(actual)) == title_key(str(right))
        ours, theirs = [_text(item) for item in actual], [_text(item) for item in right]
        if all(_ID.fullmatch(text) for text in (*ours, *theirs)):
            if not self.oracle.gold.facts:  # passages are gold
                ours, theirs = ([text.partition("s")[0] for text in texts] for texts in (ours, theirs))
            return set(ours) == set(theirs)
        same = len(ours) == len(theirs)
        return same and all(likeness(one, other) >= _ALIKE for one, other in zip(ours, theirs, strict=True))

    # What the call was given.

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
    def shown(self) -> dict[str, NumberedPassage]:
        """The gold passages that are shown, in whole or in part, by id."""
        shown: dict[str, NumberedPassage] = {}
        for passage in self.numbered:
            for id, page in self.pages.items():
                if page is None or passage.title != page.title:
                    continue
                if passage.sentences.items() <= dict(enumerate(page.sentences, 1)).items():
                    shown.setdefault(id, passage)
        return shown

    @cached_property
    def texts(self) -> dict[str, str]:
        """What is shown, by the ids of passages ("2") and of their sentences ("2s1")."""
        texts: dict[str, str] = {}
        for page in self.numbered:
            texts.setdefault(str(page.number), " ".join(page.sentences.values()))
            for n, sentence in page.sentences.items():
                texts.setdefault(f"{page.number}s{n}", sentence)
        return texts

    # The gold evidence in it.

    def ids(self, passage: str | None = None) -> list[str]:
        """The ids of the gold sentences that are shown, of one gold passage or of all; of the passage where no sentence
        is known to be gold."""
        return [text for id in self.pages if passage in (None, id) for text in self._gold(id)[0]]

    def has(self, passage: str) -> bool:
        """Whether all gold sentences of a gold passage are shown."""
        return self._gold(passage)[1]

    def _gold(self, id: str) -> tuple[list[str], bool]:
        """The ids that are shown of one gold passage, and whether these are all."""
        if id not in self.shown:
            return [], False
        page, facts = self.shown[id], self.oracle.gold.facts
        if gold := [fact.sentence + 1 for fact in facts if fact.passage_id == id and fact.sentence is not None]:
            ids = [f"{page.number}s{n}" for n in gold if n in page.sentences]
            return ids, len(ids) == len(gold)
        answers = [step.answer for step in self.steps if step.passage_id == id] or self.oracle.gold.answers
        stating = (n for n, text in page.sentences.items() if mentions(text, answers))
        return [f"{page.number}s{n}" for n in stating][:1] or [str(page.number)], True

    @property
    def complete(self) -> bool:
        """Whether all gold evidence is shown."""
        return bool(self.pages) and all(map(self.has, self.pages))

    # What is asked.

    @cached_property
    def is_main(self) -> bool:
        return title_key(self.text("question")) == title_key(str(self.oracle.example.get("question", "")))

    @cached_property
    def at(self) -> int | None:
        """The index of the sub-question that is asked here; None where it is the question itself or neither."""
        return None if self.is_main else self.step_like(self.text("question"))

    def step_like(self, text: str) -> int | None:
        """The index of the sub-question that a text asks, in its own words or in others."""
        steps = enumerate(self.steps)
        alike = [max(likeness(text, step.question), likeness(text, self.oracle.asked(n))) for n, step in steps]
        return alike.index(max(alike)) if alike and max(alike) >= _ALIKE else None

    @property
    def answers(self) -> tuple[str, ...]:
        """The right answers to what is asked here; empty if they are not known."""
        if self.is_main:
            return self.oracle.gold.answers
        return () if self.at is None else (self.steps[self.at].answer,)

    @property
    def judges_right(self) -> bool:
        """Whether the answer that the agent judges, its own if it is given none, is known to be right."""
        return exact_match(self.text("answer") or str(self.fields.get("answer", "")), self.answers) == 1.0

    @property
    def passage(self) -> str | None:
        """The gold passage of the step that is asked here; None for all of them."""
        return None if self.at is None else self.steps[self.at].passage_id

    @property
    def hops(self) -> int:
        return len(self.steps) or self.oracle.example.get("hops") or len(self.pages)

    @property
    def carried(self) -> bool:
        """Whether the passages state the answer to what is asked here."""
        if not self.is_main:
            return self.passage in self.pages and self.has(self.passage)
        if not self.pages or self.numbered:
            return self.complete or not self.pages
        # Programs that are not polyhop's read plain text.
        read = " ".join(str(text) for name, text in self.inputs.items() if name not in _ANSWERED)
        return mentions(read, self.answers) > 0

    @property
    def lacking(self) -> list[str]:
        """Queries for the gold passages that are not shown and that nothing unknown leads to; none that was tried."""
        if not self.pages:
            return []
        if not self.steps:
            return [title for id in self.pages if not self.has(id) and (title := self._untried(id))]
        facts, has = self.listed("known"), list[bool]()
        for step in self.steps:  # whether its passage is shown, or a known fact states what it says
            answers = [other.answer for other in self.steps if other.passage_id == step.passage_id]
            shown = step.passage_id is None or self.has(step.passage_id)
            has.append(shown or any(mentions(fact, answers) for fact in facts))
        queries = []
        for n, step in enumerate(self.steps):
            if not has[n] and all(has[m - 1] for m in references(step.question) if 0 < m <= len(has)):
                queries.append(self._untried(step.passage_id, self.oracle.asked(n)))
        return [query for query in queries if query]

    def _untried(self, passage: str | None, query: str = "") -> str:
        """The query; if it was tried, the title of the passage, if the agent saw it: one that the agent cannot know
        would make up for a search that failed; else nothing."""
        page = self.pages.get(passage or "")
        title = bare_title(page.title) if page is not None else ""
        texts = [query, title] if title and f" {title_key(title)} " in self._read else [query]
        return next((text for text in texts if text and not self.was_tried(text)), "")

    def was_tried(self, query: str) -> bool:
        tried = [title_key(text) for name in ("queries", "earlier") for text in self.listed(name)]
        return any(text.startswith(title_key(query)) for text in tried)

    @cached_property
    def _read(self) -> str:
        pages = [text for page in self.numbered for text in (page.title, *page.sentences.values())]
        return f" {title_key(' '.join([self.text('question'), *self.listed('known'), *pages]))} "


# --- rules: what a field should be, or None if the annotations do not tell -------------------------------------------


def _query(reply: GoldReply) -> str | None:
    fields = reply.fields
    if fields.get("action") == "answer" or ("action" not in fields and fields.get("route") == "plan"):
        return "none"
    if "action" not in fields or not reply.lacking:
        return None
    query = str(fields.get("query", ""))
    words = set(content_terms(query))
    as_good = any((terms := set(content_terms(text))) and terms <= words for text in reply.lacking)
    return query if as_good and not reply.was_tried(query) else reply.lacking[0]


def _add(reply: GoldReply) -> list[str] | None:
    selected = set(reply.listed("selected"))
    return [id for id in reply.ids() if selected.isdisjoint((id, id.partition("s")[0]))] if reply.pages else None


def _new_facts(reply: GoldReply) -> list[str] | None:
    facts = " ".join(map(title_key, reply.listed("known")))
    texts = [(id, reply.texts[id]) for id in reply.ids()]
    return [f"{text} ({id})" for id, text in texts if title_key(text) not in facts] if reply.pages else None


def _supported(reply: GoldReply) -> list[str] | None:
    """The statements that repeat a gold sentence, besides the agent's own choice."""
    shown = [reply.texts[id] for id in reply.ids()]
    statements = [text.partition(". ") for text in reply.listed("statements")]
    repeated = [n for n, _, text in statements if any(likeness(text, sentence) >= _ALIKE for sentence in shown)]
    chosen = [str(entry) for name in ("supported", "relevant") for entry in reply.fields.get(name, ())]
    return list(dict.fromkeys([*chosen, *repeated])) if repeated else None


def _answer(reply: GoldReply) -> str | None:
    answer = str(reply.fields.get("answer", UNKNOWN))
    if not reply.answers:
        return None
    if reply.carried:
        return answer if exact_match(answer, reply.answers) else reply.answers[0]
    return reply.text("draft") if "decision" in reply.fields else answer  # no reply is better than the agent's own


def _next_thought(reply: GoldReply) -> str | None:
    """The next gold sentence that is shown and was not thought; at the end the answer."""
    thoughts = " ".join(map(title_key, reply.listed("thoughts")))
    for id in reply.ids():
        if title_key(text := reply.texts[id]) not in thoughts:
            return text
    return f"So the answer is: {reply.answers[0]}" if reply.complete and reply.answers else None


def _attribution(reply: GoldReply) -> str | None:
    stated = "attributable" if reply.judges_right else "contradictory"
    return (stated if reply.carried else "extrapolatory") if reply.answers else None


def _sure(right: bool | float) -> float:
    return CONFIDENT if right else 1 - CONFIDENT


_RULES: dict[str, Callable[[GoldReply], Any]] = {
    # plans
    **dict.fromkeys(
        ("sub_questions", "roadmap", "requirements"), lambda r: [step.question for step in r.steps] or None
    ),
    "route": lambda r: ("plan" if r.hops > 1 else "single") if r.is_main and r.hops else None,
    "refined_question": lambda r: None if (n := r.step_like(r.text("next_question"))) is None else r.oracle.asked(n),
    # searches
    "action": lambda r: "answer" if r.complete else "retrieve" if r.lacking else None,
    "query": _query,
    "queries": lambda r: r.lacking or None,
    "gaps": lambda r: r.lacking or ([] if r.complete else None),
    "missing": lambda r: "none" if r.complete else next(iter(r.lacking), None),
    # evidence
    **dict.fromkeys(("keep", "spans"), lambda r: r.ids() if r.pages else None),
    "add": _add,
    **dict.fromkeys(
        ("useful", "chosen"), lambda r: [str(page.number) for page in r.shown.values()] if r.pages else None
    ),
    "new_facts": _new_facts,
    "sufficiency": lambda r: sum(map(r.has, r.pages)) / len(r.pages) if r.pages else None,
    **dict.fromkeys(("citations", "cited"), lambda r: r.ids(r.passage) if r.carried and r.pages else None),
    **dict.fromkeys(("supported", "relevant"), _supported),
    # answers
    "answer": _answer,
    "decision": lambda r: ("revised" if r.carried else "unconfident") if r.answers else None,
    "next_thought": _next_thought,
    # judgements
    "confidence": lambda r: _sure(exact_match(str(r.fields.get("answer")), r.answers)) if r.answers else None,
    "accuracy": lambda r: _sure(r.judges_right) if r.answers else None,
    "attribution": _attribution,
}


def likeness(one: str, other: str) -> float:
    """The share of topic words that two texts have in common."""
    left, right = frozenset(content_terms(one)), frozenset(content_terms(other))
    return len(left & right) / len(left | right) if left | right else float(title_key(one) == title_key(other))


def _text(item: Any) -> str:
    """A text of a list without the ids that it cites; of a step its question."""
    text = str(item["question"] if isinstance(item, dict) else item)
    return split_citations(text)[0] or text


# --- feedback --------------------------------------------------------------------------------------------------------


def explain(attempt: Attempt, reply: GoldReply | None = None) -> str:
    """What is right and what is missing: of one call of an agent, as far as the annotations tell, or else of the whole
    program."""
    if reply is not None and reply.annotated:
        texts = faults(reply).values() or ["This reply has no fault."]
        return " ".join(filter(None, [*texts, _not_shown(reply), _on_answer(attempt)]))
    return " ".join(filter(None, (_on_answer(attempt), _on_evidence(attempt))))


def _on_answer(attempt: Attempt) -> str:
    answer, answers = attempt.output.answer, attempt.gold.answers
    if exact_match(answer, answers):
        return f'The answer "{answer}" is right.'
    verdict = (
        f'The answer "{answer}" is wrong: expected {_listed((f"{text!r}" for text in answers), " or ") or "none"}.'
    )
    more = " It shares words with that: give exactly the name, date or phrase that is asked for."
    return verdict + (more if attempt.values["answer_f1"] else "")


def _on_evidence(attempt: Attempt) -> str:
    """The passages that were not retrieved, not kept, and kept in vain."""
    gold, output = attempt.gold.passages, attempt.output
    passages = [*(attempt.example.get("pool") or ()), *output.passages]
    titles = {counted(gold, passage): passage.title for passage in passages}
    retrieved = {counted(gold, passage) for passage in output.passages}
    kept = dict.fromkeys(counted(gold, item.passage) for item in output.evidence)
    lost = [id for id in gold if id not in retrieved]
    unkept = [id for id in gold if id in retrieved and id not in kept]
    texts = [
        ("The search did not find {}: ask for what these are about by name.", lost),
        ("The final evidence misses {}.", unkept),
        ("It contains what the answer does not need: {}.", [id for id in kept if id not in gold]),
    ]
    faults = [text.format(_listed(f'"{titles.get(id, id)}"' for id in ids)) for text, ids in texts if ids]
    return " ".join(faults) or ("The evidence is complete, and nothing in it is irrelevant." if gold else "")


def faults(reply: GoldReply) -> dict[str, str]:
    """What is wrong with a reply, by output field; empty if nothing is, or if the annotations do not tell."""
    different = {name: right for name, right in reply.annotated.items() if reply.actual.get(name) != right}
    return {name: _fault(name, reply.actual.get(name), right, reply) for name, right in different.items()}


def _fault(name: str, actual: Any, right: Any, reply: GoldReply) -> str:
    if isinstance(right, float):
        distance = "low" if right > float(actual) else "high"
        return f"{name} {float(actual):g} is too {distance}: {right:.2g} would be right."
    if not isinstance(right, list):
        return f'{name} should be "{right}", not "{actual}".'
    chosen = [_text(item) for item in (actual if isinstance(actual, list | tuple) else [actual]) if item is not None]
    wanted = [_text(item) for item in right]
    whole = {id.partition("s")[0] for id in wanted if id in reply.texts}
    with_passage = [id for id in wanted if id in reply.texts and id.partition("s")[0] in chosen]
    left_out = [id for id in wanted if id not in chosen and id not in with_passage]
    vain = [id for id in chosen if id not in wanted and id not in whole]
    texts = [
        f"{name} left out {_listed(_shown(id, reply) for id in left_out)}." if left_out else "",
        f"{name} has what is not needed: {_listed(_shown(id, reply) for id in vain)}." if vain else "",
    ]
    return " ".join(filter(None, texts)) or f"{name} should be {_listed(wanted)}."


def _not_shown(reply: GoldReply) -> str:
    lacking = [page.title if page else id for id, page in reply.oracle.pages.items() if not reply.has(id)]
    return f"It was not shown all that the answer needs of {_listed(lacking)}." if reply.numbered and lacking else ""


def _shown(text: str, reply: GoldReply) -> str:
    quote = shorten(reply.texts.get(text, text), 204, placeholder=" ...")
    titles = (page.title for page in reply.numbered if str(page.number) == text.partition("s")[0])
    return f'[{text}] "{next(titles)}" ({quote})' if text in reply.texts else quote


def _listed(names: Iterable[str], between: str = ", ") -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _MOST_NAMED} more" if len(distinct) > _MOST_NAMED else ""
    return between.join(distinct[:_MOST_NAMED]) + more
