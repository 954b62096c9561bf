"""PRISM (arXiv 2510.14278): Question Analyzer, Selector <-> Adder, Answer Generator. docs/programs.md says what the
paper leaves open, and what is different here.

The Selector works for precision, the Adder for recall; both see the question, all sub-questions, all candidates, also
those that were rejected, and the evidence so far. In every round the Selector judges all candidates anew, and the Adder
completes its choice. The answer generator reads the evidence.
"""

from __future__ import annotations

import dspy

from ..data.passages import Evidence, Fact, Retriever
from ..signatures import AddEvidence, AnalyzeQuestion, AnswerFromContext, SelectAnswers, SelectEvidence
from .agent import Agent
from .candidates import Candidates, ids
from .prediction import conclude, decomposed, nothing_found, read_answer
from .program import Program, register
from .run import Pool, record
from .search import Search
from .trace import Added, Selected
from .tunable import choice, integer, switch


@register("prism")
class Prism(Program):
    """Decompose the question, select and add evidence from one candidate pool for up to N rounds, then answer.

    2 LM calls plus 2 per round, all sequential; 1 search.

    Args:
        k: Size of the candidate pool.
        rounds: The paper's N, all of which are run unless ``stop`` ends them earlier: "stable" after a round that
            leaves the evidence as it was, "gain" after one in which the Adder adds nothing that is new.

    The paper's ablations are tunables: ``analyze``, ``select`` and ``add`` switch an agent off; without a Selector all
    candidates are kept. Without ``bridging`` the Selector is not told to keep bridging facts.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 20, rounds: int = 3) -> None:
        super().__init__(abstain_below=0.0)
        self.search = Search(retriever, k)
        self.rounds = integer(rounds, 1, 6)
        self.stop = choice("rounds", ("rounds", "stable", "gain"))
        self.analyze, self.select, self.add = switch(True), switch(True), switch(True)
        self.bridging = switch(True, needs=("select", (True,)))
        self.analyzer = Agent(AnalyzeQuestion)
        self.selector = Agent(SelectEvidence)
        self.selector_without_bridging = Agent(SelectAnswers)
        self.adder = Agent(AddEvidence)
        self.answerer = Agent(AnswerFromContext)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        sub_questions = [question]
        if self.analyze.value:
            sub_questions = decomposed(self.analyzer(question=question).sub_questions) or [question]
        candidates = Candidates(hit.passage for hit in self.search(question))
        if not candidates.passages:
            return nothing_found()
        task = {"question": question, "sub_questions": sub_questions, "candidates": candidates.show()}
        selector = self.selector if self.bridging.value else self.selector_without_bridging

        evidence: list[Evidence] = []
        collected = set[Fact]()  # in any round
        stop = "rounds"
        for n in range(1, self.rounds.value + 1):
            before, evidence = evidence, [Evidence(passage) for passage in candidates.passages]
            if self.select.value:
                evidence, invalid = candidates.resolve(selector(**task, selected=candidates.ids(before)).keep)
                record(Selected(n, ids(evidence), invalid))
            added: tuple[Fact, ...] = ()
            if self.add.value:
                kept = candidates.ids(evidence)
                reply = self.adder(**task, selected=kept)
                had = set(ids(evidence))
                evidence, invalid = candidates.resolve([*kept, *reply.add])
                added = tuple(id for id in ids(evidence) if id not in had)
                record(Added(n, added, invalid))
            if self.stop.value == "stable" and set(ids(evidence)) == set(ids(before)):
                stop = "stable"
                break
            if self.stop.value == "gain" and collected.issuperset(added):
                stop = "no gain"
                break
            collected.update(ids(evidence))

        reply = self.answerer(question=question, evidence=candidates.show(evidence))
        return conclude(*read_answer(reply), evidence=evidence, stop=stop)
