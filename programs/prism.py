"""PRISM (arXiv 2510.14278): Question Analyzer, Selector <-> Adder, Answer Generator.

The Selector works for precision, the Adder for recall; both see the question, all sub-questions, all candidates and the
evidence so far.

What the paper does and the defaults do not is a choice; `Prism.paper_values` has all of them:
- ``stop``: the paper always runs N rounds. By default a round that changes nothing is the last.
- ``guided``: the paper's answerer reads the evidence. By default it also reads the sub-questions.

Remaining deviations:
- The prompts are our own.
- The paper does not say how rounds are merged. Here the Selector judges all candidates anew in every round, so it may
  drop what an earlier round kept; the Adder completes its choice from all candidates; the union is the evidence of the
  next round.
- The paper does not say whether a fact is a sentence or a passage (``unit``), nor how large the pool is (``search.k``).
- If the search finds nothing, the answer is unknown, without a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import dspy

from ..data.passages import Evidence, Retriever
from ..signatures import (
    AddEvidence,
    AnalyzeQuestion,
    AnswerFromContext,
    AnswerFromEvidence,
    SelectAnswers,
    SelectEvidence,
)
from .agent import Agent, Conditions
from .candidates import Candidates, facts, whole
from .complexity import estimate_complexity
from .exemplars import Exemplars, as_demos
from .prediction import conclude, decomposed, nothing_found, read_answer
from .program import Program, register
from .run import Pool, record
from .search import Search
from .trace import Added, Recalled, Selected
from .tunable import choice, integer


@register("prism")
class Prism(Program):
    """Decompose the question, select and add evidence from one candidate pool for up to N rounds, then answer.

    2 LM calls plus up to 2 per round, all sequential; 1 search.

    Args:
        retriever: For questions without a pool of their own.
        k: Size of the candidate pool.
        rounds: The paper's N.
        stop: What ends the loop early: "stable", a round that changes nothing, as the next would be the same;
            "complete", also an Adder that finds nothing missing; "fixed", nothing, as published.

    The paper's ablations are tunables: ``analyze``, ``select`` and ``add`` switch an agent off; without ``bridging``
    the Selector is called with `SelectAnswers`. ``unit`` is what evidence consists of: sentences or passages. Without
    ``guided`` the answerer reads the question and the evidence, not the sub-questions. ``exemplars`` are shown to the
    analyzer, by default none.
    """

    shown_exemplars = ("analyzer",)
    paper_retriever = "bm25"
    conditions: ClassVar[Conditions] = {
        "stop": ("rounds", (2, 3, 4, 5, 6)),
        "bridging": ("select", (True,)),
        "exemplars.*": ("analyze", (True,)),
    }
    paper_values: ClassVar[Mapping[str, Any]] = {"stop": "fixed", "guided": False}

    def __init__(self, retriever: Retriever | None = None, k: int = 20, rounds: int = 3, stop: str = "stable") -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.rounds = integer(rounds, 1, 6)
        self.stop = choice(stop, ("stable", "complete", "fixed"))
        self.analyze = choice(True, (True, False))
        self.select = choice(True, (True, False))
        self.add = choice(True, (True, False))
        self.bridging = choice(True, (True, False))
        self.guided = choice(True, (True, False))
        self.unit = choice("sentence", ("sentence", "passage"))
        self.exemplars = Exemplars(mode="none")
        self.analyzer = Agent(AnalyzeQuestion)
        self.selector = Agent(SelectEvidence)
        self.adder = Agent(AddEvidence)
        self.answerer = Agent(AnswerFromEvidence)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        sub_questions = self._analyze(question)
        hits = self.search(question)
        if not hits:
            return nothing_found()
        candidates = Candidates(hit.passage for hit in hits)
        task: dict[str, object] = {
            "question": question,
            "sub_questions": sub_questions,
            "candidates": candidates.show(),
        }

        evidence: list[Evidence] = []
        stop = "rounds"
        for n in range(1, self.rounds.value + 1):
            kept = self._select(n, task, candidates, evidence)
            merged = self._add(n, task, candidates, kept)
            stable = set(facts(merged)) == set(facts(evidence))
            complete = self.add.value and len(merged) == len(kept)
            evidence = merged
            if (stable and self.stop.value != "fixed") or (complete and self.stop.value == "complete"):
                stop = "stable" if stable else "complete"
                break

        shown = candidates.show(evidence)
        guide = {"sub_questions": sub_questions} if self.guided.value else {}
        reply = self.answerer(question=question, **guide, evidence=shown, signature=self.sent_signature("answerer"))
        answer, confidence = read_answer(reply)
        return conclude(answer, confidence, evidence=evidence, stop=stop)

    def _analyze(self, question: str) -> list[str]:
        """The sub-questions in order; the question itself if there are none."""
        if not self.analyze.value:
            return [question]
        exemplars = self.exemplars(question, estimate_complexity(question))
        if exemplars:
            record(Recalled(tuple(exemplar.question for exemplar in exemplars)))
        reply = self.analyzer(question=question, demos=[*self.analyzer.demos, *as_demos(exemplars)])
        return decomposed(reply.sub_questions) or [question]

    def _select(
        self, n: int, task: dict[str, object], candidates: Candidates, evidence: list[Evidence]
    ) -> list[Evidence]:
        """The Selector's choice, given the evidence so far."""
        if not self.select.value:
            return evidence
        signature = self.sent_signature("selector")
        reply = self.selector(**task, selected=candidates.ids(evidence), signature=signature)
        kept, invalid = candidates.resolve(reply.keep)
        kept = self._in_units(kept)
        record(Selected(n, facts(kept), invalid))
        return kept

    def sent_signature(self, agent: str) -> type[dspy.Signature]:
        """That of an ablated Selector or answerer is another one, even if its own instruction was optimized."""
        if agent == "selector" and not self.bridging.value:
            return SelectAnswers
        if agent == "answerer" and not self.guided.value:
            return AnswerFromContext
        return super().sent_signature(agent)

    def _add(self, n: int, task: dict[str, object], candidates: Candidates, kept: list[Evidence]) -> list[Evidence]:
        """The Selector's choice with the Adder's additions."""
        if not self.add.value:
            return kept
        reply = self.adder(**task, selected=candidates.ids(kept))
        merged, invalid = candidates.resolve([*candidates.ids(kept), *reply.add])
        merged = self._in_units(merged)
        had = set(facts(kept))
        record(Added(n, tuple(fact for fact in facts(merged) if fact not in had), invalid))
        return merged

    def _in_units(self, evidence: list[Evidence]) -> list[Evidence]:
        return evidence if self.unit.value == "sentence" else whole(evidence)
