"""PRISM (arXiv 2510.14278): Question Analyzer, Selector <-> Adder, Answer Generator.

The Selector guards precision, the Adder recall; both see the question, all sub-questions, the whole candidate pool and
the evidence so far. What the paper leaves open is decided here: in every round the Selector judges all candidates anew
(so it may also drop what an earlier round kept), the Adder completes its choice from all candidates, and the union of
the two is the evidence that the next round starts from. A round that changes nothing ends the loop before ``rounds``:
the agents would be asked the same again. Where the search finds nothing there is nothing to select from: no round.
"""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from ..data.passages import Evidence, Fact, Passage, Retriever
from ..data.pool import PassagePool
from ..signatures import AddEvidence, AnalyzeQuestion, AnswerFromEvidence, SelectEvidence
from .candidates import Candidates
from .prediction import check_question, conclude, read_answer
from .program import Program
from .search import Search
from .trace import Added, Decomposed, Selected, Trace
from .tunables import integer

MOST_SUB_QUESTIONS = 10  # a longer list is a model that runs away


class Prism(Program):
    """Decompose the question, then select and add evidence from one BM25 pool for up to N rounds, then answer.

    2 LM calls plus up to 2 a round, all sequential; 1 search. Evidence is addressed by sentence.

    Args:
        retriever: Where to search when a question brings no pool of its own.
        k: Size of the candidate pool.
        rounds: The paper's N.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 20, rounds: int = 3) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.rounds = integer(rounds, 1, 6)
        self.analyzer = dspy.Predict(AnalyzeQuestion)
        self.selector = dspy.Predict(SelectEvidence)
        self.adder = dspy.Predict(AddEvidence)
        self.answerer = dspy.Predict(AnswerFromEvidence)

    def forward(self, question: str, pool: Sequence[Passage] | PassagePool | None = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        question, trace = check_question(question), Trace()
        sub_questions = self._analyze(question, trace)
        hits = self.search(question, pool, trace)
        candidates = Candidates([hit.passage for hit in hits])

        task = {"question": question, "sub_questions": sub_questions, "candidates": candidates.show()}

        evidence: list[Evidence] = []
        stop = "rounds" if hits else "nothing found"
        for n in range(1, self.rounds.value + 1 if hits else 1):
            reply = self.selector(**task, selected=candidates.ids(evidence))
            kept, invalid = candidates.resolve(reply.keep)
            trace.add(Selected(n, facts(kept), invalid))

            reply = self.adder(**task, selected=candidates.ids(kept))
            merged, invalid = candidates.resolve([*candidates.ids(kept), *reply.add])
            had = set(facts(kept))
            trace.add(Added(n, tuple(fact for fact in facts(merged) if fact not in had), invalid))

            if set(facts(merged)) == set(facts(evidence)):
                stop = "stable"
                break
            evidence = merged

        reply = self.answerer(question=question, sub_questions=sub_questions, evidence=candidates.show(evidence))
        answer, confidence = read_answer(reply, trace)
        return conclude(answer, confidence, trace, evidence=evidence, seen=hits, stop=stop)

    def _analyze(self, question: str, trace: Trace) -> list[str]:
        """The ordered sub-questions; the question itself where the analyzer finds none."""
        reply = self.analyzer(question=question)
        sub_questions = [" ".join(text.split()) for text in reply.sub_questions if text.strip()]
        trace.add(Decomposed(tuple(sub_questions[:MOST_SUB_QUESTIONS]), tuple(sub_questions[MOST_SUB_QUESTIONS:])))
        return sub_questions[:MOST_SUB_QUESTIONS] or [question]


def facts(evidence: Sequence[Evidence]) -> tuple[Fact, ...]:
    return tuple(item.fact for item in evidence)
