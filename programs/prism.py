"""PRISM (arXiv 2510.14278): Question Analyzer, Selector <-> Adder, Answer Generator.

The Selector guards precision, the Adder recall; both see the question, all sub-questions, the whole candidate pool and
the evidence so far. What the paper leaves open is decided here: in every round the Selector judges all candidates anew
(so it may also drop what an earlier round kept), the Adder completes its choice from all candidates, and the union of
the two is the evidence that the next round starts from. Where the search finds nothing there is nothing to select from
and nothing to read: the answer is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import dspy

from ..data.errors import PolyhopError
from ..data.passages import Evidence, Passage, Retriever
from ..data.pool import PassagePool
from ..signatures import AddEvidence, AnalyzeQuestion, AnswerFromEvidence, SelectEvidence
from ..signatures.evidence import BRIDGING
from .agent import Agent
from .candidates import Candidates, facts
from .prediction import check_question, conclude, decomposed, nothing_found, read_answer
from .program import Program
from .search import Search
from .trace import Added, Selected, Trace
from .tunables import choice, integer

_BRIDGING = re.compile("|".join(r"\s+".join(map(re.escape, clause.split())) for clause in BRIDGING))


class Prism(Program):
    """Decompose the question, then select and add evidence from one BM25 pool for up to N rounds, then answer.

    2 LM calls plus up to 2 a round, all sequential; 1 search.

    Args:
        retriever: Where to search when a question brings no pool of its own.
        k: Size of the candidate pool.
        rounds: The paper's N.
        stop: What ends the loop before N rounds: "stable", a round that changes nothing, for the agents would be asked
            the same again; "complete", also an Adder that finds nothing missing; "never".

    The paper's ablations are tunables: ``analyze``, ``select`` and ``add`` switch an agent off (without the Selector
    the evidence only grows; without the Adder it is the Selector's choice), ``bridging`` the clauses in the Selector's
    instruction that have it keep bridging facts. ``unit`` is what evidence is made of: sentences, or their passages.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 20, rounds: int = 3, stop: str = "stable") -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.rounds = integer(rounds, 1, 6)
        self.stop = choice(stop, ("stable", "complete", "never"))
        self.analyze = choice(True, (True, False))
        self.select = choice(True, (True, False))
        self.add = choice(True, (True, False))
        self.bridging = choice(True, (True, False))
        self.unit = choice("sentence", ("sentence", "passage"))
        self.analyzer = Agent(AnalyzeQuestion)
        self.selector = Agent(SelectEvidence)
        self.adder = Agent(AddEvidence)
        self.answerer = Agent(AnswerFromEvidence)

    def forward(self, question: str, pool: Sequence[Passage] | PassagePool | None = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        question, trace = check_question(question), Trace()
        sub_questions = self._analyze(question, trace)
        hits = self.search(question, pool, trace)
        if not hits:
            return nothing_found(trace)
        candidates = Candidates(hit.passage for hit in hits)
        task: dict[str, object] = {
            "question": question,
            "sub_questions": sub_questions,
            "candidates": candidates.show(),
        }

        evidence: list[Evidence] = []
        stop = "rounds"
        for n in range(1, self.rounds.value + 1):
            kept = self._select(n, task, candidates, evidence, trace)
            merged = self._add(n, task, candidates, kept, trace)
            stable = set(facts(merged)) == set(facts(evidence))
            complete = self.add.value and len(merged) == len(kept)
            evidence = merged
            if (stable and self.stop.value != "never") or (complete and self.stop.value == "complete"):
                stop = "stable" if stable else "complete"
                break

        shown = candidates.show(evidence)
        reply = self.answerer(question=question, sub_questions=sub_questions, evidence=shown)
        answer, confidence = read_answer(reply, trace)
        return conclude(answer, confidence, trace, evidence=evidence, seen=hits, stop=stop)

    def _analyze(self, question: str, trace: Trace) -> list[str]:
        """The ordered sub-questions; the question itself where the analyzer finds none, or is switched off."""
        if not self.analyze.value:
            return [question]
        return decomposed(self.analyzer(question=question).sub_questions, trace) or [question]

    def _select(
        self, n: int, task: dict[str, object], candidates: Candidates, evidence: list[Evidence], trace: Trace
    ) -> list[Evidence]:
        """The Selector's choice, given the evidence so far."""
        if not self.select.value:
            return evidence
        signature = self.sent_signature("selector")
        reply = self.selector(**task, selected=candidates.ids(evidence), signature=signature)
        kept, invalid = candidates.resolve(reply.keep)
        kept = self._in_units(kept)
        trace.add(Selected(n, facts(kept), invalid))
        return kept

    def sent_signature(self, agent: str) -> type[dspy.Signature]:
        """The Selector's is without the clauses on bridging facts, if that is switched off."""
        signature = super().sent_signature(agent)
        if agent != "selector" or self.bridging.value:
            return signature
        instructions, left_out = _BRIDGING.subn("", signature.instructions)
        if not left_out:
            raise PolyhopError("bridging=False leaves out clauses that the Selector's instruction no longer has")
        bridged: type[dspy.Signature] = signature.with_instructions(instructions)
        return bridged

    def _add(
        self, n: int, task: dict[str, object], candidates: Candidates, kept: list[Evidence], trace: Trace
    ) -> list[Evidence]:
        """The Selector's choice with the Adder's additions."""
        if not self.add.value:
            return kept
        reply = self.adder(**task, selected=candidates.ids(kept))
        merged, invalid = candidates.resolve([*candidates.ids(kept), *reply.add])
        merged = self._in_units(merged)
        had = set(facts(kept))
        trace.add(Added(n, tuple(fact for fact in facts(merged) if fact not in had), invalid))
        return merged

    def _in_units(self, evidence: list[Evidence]) -> list[Evidence]:
        if self.unit.value == "sentence":
            return evidence
        return list(dict.fromkeys(Evidence(item.passage) for item in evidence))
