"""Simulated agents: each field of a reply is made from the annotations, with errors at stated rates.

An agent is the set of its output fields; any combination of known fields works.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeVar

from ....data.references import replace_references
from ....data.text import title_key
from ....engines.lexical.prompt import ParsedPassage, ParsedPrompt, parse_passages
from ....eval.scoring import exact_match
from .annotations import Annotated, GoldPage

T = TypeVar("T")


@dataclass(frozen=True)
class Rates:
    """Error probabilities of agents.

    Attributes:
        miss: Selector and Adder overlook a piece of gold evidence (each independently); an answerer does not cite it,
            and half the time cites another sentence in its place.
        false_keep: The Selector keeps the first sentence of a non-gold passage (each independently); the Adder adds one
            such passage per call.
        wrong_verdict: A judgement is inverted: what is still required, whether an answer is right or supported, and how
            confident the answerer is.
        wrong_answer: The answer is wrong although the evidence is complete.
        lucky: The answer is right although the evidence is incomplete.
        wrong_plan: A planner loses a sub-question (each independently), and no agent looks for what it asks; a router
            takes the question for an easy one.
    """

    miss: float = 0.0
    false_keep: float = 0.0
    wrong_verdict: float = 0.0
    wrong_answer: float = 0.0
    lucky: float = 0.1
    wrong_plan: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 <= getattr(self, field.name) <= 1:
                raise ValueError(f"{field.name} must be between 0 and 1, got {getattr(self, field.name)}")

    @classmethod
    def alike(cls, rate: float) -> Rates:
        """The same rate for all agents but planners."""
        return cls(rate, rate, rate, rate)

    @classmethod
    def by_call(cls, rate: float) -> Rates:
        """Errors at about this rate in a reply; each of many passages that do not matter is kept at a tenth of it."""
        return cls(rate, rate / 10, rate, rate, wrong_plan=rate)


PROFILES = {"weak": Rates.by_call(0.3), "middling": Rates.by_call(0.1), "strong": Rates.by_call(0.03)}
"""Assumed models, weak to strong. No measured model has these rates."""

LOST_STEP = "What else is there to know?"
"""What a planner writes in place of a sub-question that it loses."""


class Scene:
    """A call: the prompt, the gold, and pseudo-random numbers, which depend only on the seed, the fields of the prompt
    and their purpose."""

    def __init__(
        self, prompt: ParsedPrompt, known: Annotated, rates: Rates, seed: int, step: int | None = None
    ) -> None:
        self.prompt, self.known, self.rates, self.step = prompt, known, rates, step
        given = [text for item in sorted(prompt.inputs.items()) for text in item]
        self._key = blake2b("\0".join((str(seed), *prompt.outputs, *given)).encode("utf-8", "replace"))

    def draw(self, *purpose: str) -> float:
        """A number in [0, 1)."""
        dice = self._key.copy()
        dice.update("\n".join(("", *purpose)).encode())
        return int.from_bytes(dice.digest()[:8]) / 2**64

    def errs(self, rate: str, *purpose: str) -> bool:
        return self.draw(rate, *purpose) < float(getattr(self.rates, rate))

    def one_of(self, items: Sequence[T], *purpose: str) -> T:
        return items[int(self.draw("one of", *purpose) * len(items))]

    # --- the prompt ---------------------------------------------------------------------------------------

    @cached_property
    def shown(self) -> dict[str, ParsedPassage]:
        """All passages of the prompt by number."""
        pages: dict[str, ParsedPassage] = {}
        for text in self.prompt.inputs.values():
            for page in parse_passages(text):
                pages.setdefault(page.number, page)
        return pages

    @cached_property
    def gold(self) -> list[tuple[GoldPage, tuple[str, ...]]]:
        """The gold passages in the benchmark's order, each with the ids of its evidence that the prompt shows."""
        found = self._gold_numbers
        return [(page, page.ids(self.shown[found[n]]) if n in found else ()) for n, page in enumerate(self.known.pages)]

    @cached_property
    def others(self) -> list[ParsedPassage]:
        """The passages that are not gold."""
        gold = set(self._gold_numbers.values())
        return [page for number, page in self.shown.items() if number not in gold and page.sentences]

    @cached_property
    def _gold_numbers(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for n, gold in enumerate(self.known.pages):
            for number, page in self.shown.items():
                if gold.is_shown_as(page):
                    found[n] = number
                    break
        return found

    @cached_property
    def complete(self) -> bool:
        """Whether all gold evidence is shown; of one step of a plan its own, if it has the right earlier answers."""
        if self.lost:
            return False
        if self.step is not None:
            page, ids = self.gold[self.step]
            asked = f" {title_key(self.prompt.question)} "
            return has_all(page, ids) and all(
                f" {title_key(self.known.pages[n].answer)} " in asked for n in page.behind if "#" in page.sub_question
            )
        return all(has_all(page, ids) for page, ids in self.gold)

    @property
    def lost(self) -> bool:
        """Whether the prompt is about a step of a plan that asks for no gold passage."""
        return self.step is not None and self.step >= len(self.known.pages)

    @property
    def answers(self) -> tuple[str, ...]:
        """The right answers to what is asked."""
        if self.lost:
            return ("unknown",)
        return self.known.answers if self.step is None else (self.known.pages[self.step].answer,)

    @cached_property
    def planned(self) -> list[bool]:
        """For each gold passage whether the plan in the prompt asks for it; all for a plan that nobody simulated."""
        plan = {" ".join(text.split()) for name in ("sub_questions", "roadmap") for text in self.prompt.listed(name)}
        asked = [" ".join(page.sub_question.split()) in plan for page in self.known.pages]
        return asked if any(asked) or LOST_STEP in plan else [True] * len(asked)

    @cached_property
    def selected(self) -> frozenset[str]:
        marked = {sentence.id for page in self.shown.values() for sentence in page.sentences if sentence.selected}
        return frozenset(marked.union(self.prompt.listed("selected")))

    @cached_property
    def covered(self) -> list[bool]:
        """Whether the evidence has each gold passage after this reply."""
        evidence = self.selected | frozenset(keep(self))
        return [bool(ids) and all(has(evidence, id) for id in ids) for _, ids in self.gold]

    @property
    def judged(self) -> str:
        """The answer to judge.

        Raises:
            ValueError: the prompt has none.
        """
        for name in ("proposed_answer", "answer"):
            if name in self.prompt.inputs:
                return self.prompt.inputs[name]
        raise ValueError("a judge needs the field proposed_answer or answer")


def has_all(page: GoldPage, ids: Sequence[str]) -> bool:
    return len(ids) >= max(1, len(page.sentences))


def has(ids: frozenset[str], id: str) -> bool:
    """Whether some evidence covers a gold sentence or passage."""
    number, _, sentence = id.partition("s")
    return id in ids or number in ids or (not sentence and any(other.partition("s")[0] == number for other in ids))


# --- fields ----------------------------------------------------------------------------------------------------------


def sub_questions(scene: Scene) -> list[str]:
    return [LOST_STEP if scene.errs("wrong_plan", text) else text for text in scene.known.sub_questions]


def steps(scene: Scene) -> list[dict[str, str]]:
    """The sub-questions; a lost one with the mark of its question (`annotations.marked`)."""
    return [
        {"thought": "", "question": _lost_step(scene) if text == LOST_STEP else text} for text in sub_questions(scene)
    ]


def _lost_step(scene: Scene) -> str:
    return f"{LOST_STEP} {scene.known.mark(len(scene.known.pages))}"


def refined_question(scene: Scene) -> str:
    """The next question with the answers that the trajectory has."""
    said = dict(re.findall(r"#(\d+) .* -> (.*)", "\n".join(scene.prompt.listed("trajectory"))))
    text = replace_references(scene.prompt.text("next_question"), lambda n: said.get(str(n)))
    return _lost_step(scene) if scene.errs("wrong_plan") else text


def route(scene: Scene) -> str:
    """A router, which writes a query, errs; a planner that also routes does not."""
    return "single" if "query" in scene.prompt.outputs and scene.errs("wrong_plan", "route") else "plan"


def useful(scene: Scene) -> list[str]:
    """The numbers of the passages to keep."""
    return list(dict.fromkeys(id.partition("s")[0] for id in keep(scene)))


def action(scene: Scene) -> str:
    done = all(has_all(page, ids) for (page, ids), asked in zip(scene.gold, scene.planned, strict=True) if asked)
    return "answer" if done != scene.errs("wrong_verdict", "action") else "retrieve"


def query(scene: Scene) -> str:
    """A decider's query for what is missing, in new words if it was tried; a router's is the question."""
    if "action" not in scene.prompt.outputs:
        return scene.prompt.question if route(scene) == "single" else "none"
    if action(scene) == "answer":
        return "none"
    there = [has_all(page, ids) for page, ids in scene.gold]
    missing = [
        page.query
        for n, (page, _) in enumerate(scene.gold)
        if not there[n] and scene.planned[n] and all(there[other] for other in page.behind)
    ]
    return next(iter(missing), scene.prompt.question) + " again" * len(scene.prompt.listed("queries"))


def keep(scene: Scene) -> list[str]:
    """The gold candidates that are not missed, and false ones."""
    pairs = zip(scene.gold, scene.planned, strict=True)
    found = [id for (_, ids), asked in pairs if asked for id in ids if not scene.errs("miss", id)]
    return found + [page.sentences[0].id for page in scene.others if scene.errs("false_keep", page.number)]


def add(scene: Scene) -> list[str]:
    """The gold candidates that were not selected and are not missed again, and sometimes a false one."""
    pairs = zip(scene.gold, scene.planned, strict=True)
    missing = [id for (_, ids), asked in pairs if asked for id in ids if not has(scene.selected, id)]
    found = [id for id in missing if not scene.errs("miss", id)]
    left = [page.sentences[0].id for page in scene.others if not has(scene.selected, page.number)]
    if left and scene.errs("false_keep"):
        found.append(scene.one_of(left))
    return found


def answers(scene: Scene) -> list[str]:
    """For each sub-question the answer and its sentence if the evidence has it, else "unknown".

    A wrong verdict takes an answer for unknown, or the title of another passage for an answer.
    """
    by_question = {page.sub_question: n for n, (page, _) in enumerate(scene.gold)}
    return [
        _sub_answer(scene, n) if n is None or scene.planned[n] else "unknown"
        for n in map(by_question.get, scene.known.sub_questions)
    ]


def _sub_answer(scene: Scene, n: int | None) -> str:
    if n is None:
        return "yes"  # a step without a passage of its own
    page, ids = scene.gold[n]
    errs = scene.errs("wrong_verdict", "answers", page.sub_question)
    if scene.covered[n] and not errs:
        lines = scene.shown[ids[0].partition("s")[0]].sentences
        stating = [line.id for line in lines if title_key(page.answer) in line.key]
        return f"{page.answer} [{[*stating, *(line.id for line in lines)][0]}]"
    if errs and not scene.covered[n] and scene.others:
        other = scene.one_of(scene.others, "answers", page.sub_question)
        return f"{other.title} [{other.sentences[0].id}]"
    return "unknown"


def required(scene: Scene) -> list[str]:
    """A query for each gold passage that is unknown and whose leading passages the evidence has, in new words."""
    said = dict(zip(scene.known.sub_questions, answers(scene), strict=True))
    tries = len(scene.prompt.listed("searched"))
    return [
        page.query + " again" * tries
        for n, (page, _) in enumerate(scene.gold)
        if scene.planned[n]
        and said.get(page.sub_question) == "unknown"
        and all(scene.covered[other] for other in page.behind)
    ]


def answer(scene: Scene) -> str:
    if scene.complete:
        right = not scene.errs("wrong_answer")
    else:
        right = scene.errs("lucky")
    return scene.answers[0] if right else _wrong_answer(scene)


def confidence(scene: Scene) -> float:
    """Of the answer in the same reply."""
    return _certainty(scene, _is_right(scene, answer(scene)), "confidence")


def citations(scene: Scene) -> list[str]:
    """The gold evidence that is shown and not missed, of a step its own; and sentences cited in place of it."""
    gold = [id for n, (_, ids) in enumerate(scene.gold) if scene.step in (None, n) for id in ids]
    others = [sentence.id for page in scene.others for sentence in page.sentences]
    missed = [id for id in gold if scene.errs("miss", id)]
    false = [scene.one_of(others, "cited", id) for id in missed if others and scene.draw("replaced", id) < 0.5]
    return [*(id for id in gold if id not in missed), *false]


def decision(scene: Scene) -> str:
    return "revised" if scene.complete != scene.errs("wrong_verdict", "decision") else "unconfident"


def known_answer(scene: Scene) -> str:
    """An answerer's answer; of a reviser that is unconfident the draft."""
    if "decision" in scene.prompt.outputs and decision(scene) == "unconfident":
        return scene.prompt.text("draft")
    return answer(scene)


def accuracy(scene: Scene) -> float:
    """Near 1 for a right answer, near 0 for a wrong one."""
    return _certainty(scene, _is_right(scene, scene.judged), "accuracy")


def attribution(scene: Scene) -> str:
    """Attributable if all gold evidence is shown and the answer is right; contradictory if the answer is wrong."""
    right = _is_right(scene, scene.judged)
    carried = scene.complete and right
    if scene.errs("wrong_verdict", "attribution"):
        carried = not carried
    if carried:
        return "attributable"
    return "contradictory" if scene.complete and not right else "extrapolatory"


def correction(scene: Scene) -> str:
    """The judged answer if the verdict is positive, else an answerer's."""
    return scene.judged if accuracy(scene) >= 0.5 else answer(scene)


FIELDS: dict[str, Callable[[Scene], Any]] = {
    "route": route,
    "query": query,
    "roadmap": sub_questions,
    "steps": steps,
    "refined_question": refined_question,
    "thought": lambda scene: "Simulated.",
    "thoughts": lambda scene: "Simulated.",
    "reason": lambda scene: "Simulated.",
    "action": action,
    "useful": useful,
    "cited": citations,
    "decision": decision,
    "sub_questions": sub_questions,
    "keep": keep,
    "add": add,
    "answers": answers,
    "required": required,
    "reasoning": lambda scene: "Simulated.",
    "answer": known_answer,
    "citations": citations,
    "confidence": confidence,
    "accuracy": accuracy,
    "attribution": attribution,
    "correction": correction,
}
"""The functions that fill the fields of replies."""


def certainty(right: Any, noise: Any) -> Any:
    """A judge's confidence: in [0.8, 1) for yes and [0, 0.2) for no, with noise in [0, 1)."""
    return 0.8 * right + 0.2 * noise


def _certainty(scene: Scene, right: bool, what: str) -> float:
    return round(float(certainty(right != scene.errs("wrong_verdict", what), scene.draw("noise", what))), 3)


def _is_right(scene: Scene, answer: str) -> bool:
    return exact_match(answer, scene.answers) > 0


def _wrong_answer(scene: Scene) -> str:
    """The other of yes and no, else the title of a passage that is shown."""
    titles = [page.title for page in scene.shown.values()]
    wrong = [text for text in ("yes", "no") if scene.answers[0] in ("yes", "no")] or titles
    wrong = [text for text in wrong if text and not _is_right(scene, text)]
    return scene.one_of(wrong, "wrong answer") if wrong else "something else"
