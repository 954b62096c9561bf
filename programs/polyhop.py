"""PolyHop, a combination of what earns its calls in PRISM, KAIR, PAR-RAG and C-3PO.

    estimate the complexity, and search                                   no LM call
    looks easy?  answer from the first passages, with citations           C-3PO's single pass; certain: done
    plan: a route and sub-questions, with exemplars of like complexity    C-3PO's router and PAR-RAG's planner in one
        "direct": answer from knowledge;  "single": single pass
    in rounds: select from what is new, complete, search for what is      PRISM's Selector and Adder, KAIR's required
        still required; until nothing is required, nothing changes, or
        the expected gain is too small
    answer with citations
    in doubt?  verify against the evidence, weigh, repair                 PAR-RAG's review

An answer is in doubt if its confidence is low or if it is not found in what was read. The expected gain of another
round is the share of sub-questions that are open, times the share of open questions that earlier rounds closed
(smoothed by one success and one failure).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import dspy
from dspy.utils.exceptions import AdapterParseError

from ..data.passages import Evidence, Hit, Passage, Retriever
from ..data.text import title_key
from ..engines.costs import record_incident
from ..signatures import (
    AnswerDirectly,
    AnswerWithCitations,
    CompleteEvidence,
    PlanResearch,
    SelectEvidence,
    VerifyAnswer,
)
from .agent import Agent
from .candidates import Candidates, facts, whole
from .complexity import Complexity, estimate_complexity
from .confidence import CREDIBILITY, Calibration, Confidence
from .exemplars import Exemplars
from .prediction import UNKNOWN, check_question, conclude, decomposed, read_answer, tidy
from .program import Program, register
from .search import Pool, Search
from .trace import Added, Estimated, Judged, Recalled, Replaced, Required, Selected, Trace
from .tunable import choice, integer, real


@dataclass
class _Case:
    """The state of one question."""

    question: str
    pool: Pool
    complexity: Complexity
    trace: Trace = field(default_factory=Trace)
    sub_questions: list[str] = field(default_factory=list)
    candidates: Candidates = field(default_factory=Candidates)
    seen: list[Hit] = field(default_factory=list)
    received: Counter[str] = field(default_factory=Counter)  # hits, by query
    evidence: list[Evidence] = field(default_factory=list)
    required: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Answer:
    """An answer, what it was read from, and its citations."""

    text: str
    confidence: float
    evidence: Sequence[Evidence] = ()
    others: Sequence[Evidence] = ()
    cited: Sequence[Evidence] = ()

    def states(self, text: str, question: str) -> bool:
        """Whether a text is in what was read or asked; "yes" and "no" always are."""
        key = f" {title_key(text)} "
        read = [question, *(f"{item.passage.title} {item.text}" for item in (*self.evidence, *self.others))]
        return key.strip() in ("yes", "no") or any(key in f" {title_key(each)} " for each in read)


@register("polyhop")
class PolyHop(Program):
    """Answer a question with as few LM calls as possible.

    1 call for an easy question, 2 without evidence; otherwise 2, and 2 per round, mostly one; 1 more if the answer is
    in doubt, 2 more to search for it again. All are sequential. 1 search, and 1 for each question that is open after a
    round.

    Args:
        retriever: For questions without a pool of their own.
        k: Passages that a search adds to the candidates.
        rounds: Maximum number of rounds of selecting and completing.
    """

    shown_exemplars = ("planner",)

    def __init__(self, retriever: Retriever | None = None, k: int = 20, rounds: int = 3) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.exemplars = Exemplars()
        self.rounds = integer(rounds, 1, 6)
        self.least_gain = real(0.3, 0.0, 1.0)  # minimum, of another round
        self.easy = real(0.9, 0.0, 1.0)  # minimum P(1 hop) of a single pass without a plan
        self.first = integer(5, 1, 20)  # passages of a single pass; minimum for the answerer
        self.context = choice("passage", ("passage", "sentence"))  # unit of evidence that the answerer reads
        self.sure = real(0.75, 0.0, 1.0)  # minimum confidence of an unverified answer
        self.review = choice("doubt", ("doubt", "always", "never"))
        self.confidence = Confidence()
        self.calibration = Calibration()
        self.abstain_below = real(0.0, 0.0, 1.0)
        self.planner = Agent(PlanResearch)
        self.selector = Agent(SelectEvidence)
        self.adder = Agent(CompleteEvidence)
        self.answerer = Agent(AnswerWithCitations)
        self.verifier = Agent(VerifyAnswer)
        self.direct_answerer = Agent(AnswerDirectly)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        question = check_question(question)
        case = _Case(question, pool, estimate_complexity(question))
        case.trace.add(Estimated(case.complexity.probabilities))
        self._look_up(question, case)

        easy = case.complexity.probabilities[0] >= self.easy.value
        if easy and (answer := self._single_pass(case)):
            return self._conclude(answer, case, "single pass")
        route = self._plan(case)
        if route == "direct" and (known := self._from_knowledge(case)).text != UNKNOWN:
            return self._conclude(known, case, "no retrieval")
        if route == "single" and not easy and (answer := self._single_pass(case)):
            return self._conclude(answer, case, "single pass")
        if not case.seen:
            return self._conclude(_Answer(UNKNOWN, 0.0), case, "nothing found")

        stop = self._gather(case)
        answer = self._answer(case)
        if self.review.value == "always" or (self.review.value == "doubt" and not self._certain(answer, case)):
            answer = self._reviewed(answer, case)
        return self._conclude(answer, case, stop)

    # --- plan --------------------------------------------------------------------------------------------------------

    def _plan(self, case: _Case) -> str:
        """Set the sub-questions; returns the route."""
        exemplars = self.exemplars(case.question, case.complexity)
        case.trace.add(Recalled(tuple(exemplar.question for exemplar in exemplars)))
        shown = [
            dspy.Example(
                question=exemplar.question,
                route="single" if exemplar.hops == 1 else "plan",
                sub_questions=list(exemplar.sub_questions),
            )
            for exemplar in exemplars
        ]
        reply = self.planner(question=case.question, demos=[*self.planner.demos, *shown])
        case.sub_questions = decomposed(reply.sub_questions, case.trace, str(reply.route)) or [case.question]
        return str(reply.route)

    # --- gather ------------------------------------------------------------------------------------------------------

    def _gather(self, case: _Case) -> str:
        """Select and complete until nothing is required; returns the reason to stop."""
        fresh = case.candidates.passages
        open_before, looked_for, closed = len(case.sub_questions), 0, 0
        for n in range(1, self.rounds.value + 1):
            evidence, required = facts(case.evidence), case.required
            if fresh:
                self._select(n, fresh, case)
            self._complete(n, case)
            if not case.required:
                return "complete"
            if not fresh and (facts(case.evidence), case.required) == (evidence, required):
                return "stable"
            looked_for, closed = looked_for + open_before, closed + max(0, open_before - len(case.required))
            open_before = len(case.required)
            gain = min(1.0, open_before / len(case.sub_questions)) * (closed + 1) / (looked_for + 2)
            if gain < self.least_gain.value:
                return "little to gain"
            if n < self.rounds.value:
                fresh = [passage for query in case.required for passage in self._look_up(query, case)]
        return "rounds"

    def _look_up(self, query: str, case: _Case) -> list[Passage]:
        """Search; a repeated query returns its next page. Returns the passages that are new."""
        key = title_key(query)
        hits = self.search(query, case.pool, case.trace, offset=case.received[key])
        case.received[key] += len(hits)
        case.seen += hits
        return case.candidates.extend(hit.passage for hit in hits)

    def _select(self, n: int, fresh: Sequence[Passage], case: _Case) -> None:
        """The Selector's choice from the new passages and the evidence."""
        shown = case.candidates.show([*whole(case.evidence), *map(Evidence, fresh)])
        selected = case.candidates.ids(case.evidence)
        reply = self.selector(
            question=case.question, sub_questions=case.sub_questions, candidates=shown, selected=selected
        )
        case.evidence, invalid = case.candidates.resolve(reply.keep)
        case.trace.add(Selected(n, facts(case.evidence), invalid))

    def _complete(self, n: int, case: _Case) -> None:
        """The Adder's additions from all candidates, and the questions that remain."""
        kept = case.candidates.ids(case.evidence)
        had = set(facts(case.evidence))
        reply = self.adder(
            question=case.question,
            sub_questions=case.sub_questions,
            candidates=case.candidates.show(),
            selected=kept,
            open_questions=case.required,
        )
        case.evidence, invalid = case.candidates.resolve([*kept, *reply.add])
        case.required = [" ".join(text.split()) for text in reply.required if text.strip()]
        case.required, surplus = case.required[: len(case.sub_questions)], case.required[len(case.sub_questions) :]
        added = tuple(fact for fact in facts(case.evidence) if fact not in had)
        case.trace.add(Added(n, added, (*invalid, *surplus)))
        case.trace.add(Required(tuple(case.required)))

    # --- answer ------------------------------------------------------------------------------------------------------

    def _single_pass(self, case: _Case) -> _Answer | None:
        """An answer from the first passages; None if it is not certain."""
        passages = case.candidates.passages[: self.first.value]
        if not passages:
            return None
        answer = self._ask([case.question], list(map(Evidence, passages)), (), case)
        if not answer.cited or not self._certain(answer, case):
            return None
        case.evidence = list(answer.cited)
        return answer

    def _answer(self, case: _Case) -> _Answer:
        """An answer from the evidence and, up to ``first`` passages, other candidates."""
        evidence = whole(case.evidence) if self.context.value == "passage" else case.evidence
        known = {item.passage.id for item in evidence}
        others = [Evidence(passage) for passage in case.candidates.passages if passage.id not in known]
        return self._ask(case.sub_questions, evidence, others[: max(0, self.first.value - len(known))], case)

    def _ask(
        self, sub_questions: list[str], evidence: Sequence[Evidence], others: Sequence[Evidence], case: _Case
    ) -> _Answer:
        show = case.candidates.show
        reply = self.answerer(
            question=case.question,
            sub_questions=sub_questions,
            evidence=show(evidence),
            other_passages=show(others),
        )
        cited, invalid = case.candidates.resolve(reply.citations)
        text, confidence = read_answer(reply, case.trace, invalid)
        return _Answer(text, confidence, evidence, others, cited)

    def _from_knowledge(self, case: _Case) -> _Answer:
        return _Answer(*read_answer(self.direct_answerer(question=case.question), case.trace))

    # --- review ------------------------------------------------------------------------------------------------------

    def _certain(self, answer: _Answer, case: _Case) -> bool:
        return answer.confidence >= self.sure.value and answer.states(answer.text, case.question)

    def _reviewed(self, answer: _Answer, case: _Case) -> _Answer:
        """The answer if it passes the verifier; else the verifier's, or one after another search."""
        accuracy, attribution, correction = self._verify(answer, case)
        weighed = self.confidence(case.complexity.expected, accuracy, CREDIBILITY[attribution], case.trace)
        answer = replace(answer, confidence=0.0 if answer.text == UNKNOWN else weighed.confidence)
        if weighed.passed and answer.text != UNKNOWN:
            return answer
        other = title_key(correction) not in (UNKNOWN, title_key(answer.text))
        if other and answer.states(correction, case.question):
            case.trace.add(Replaced(correction, "the verifier reads it so"))
            # A wrong old answer does not make the new one right, which was not judged.
            doubt = 0.0 if answer.text == UNKNOWN else 1.0 - accuracy
            unjudged = (doubt + CREDIBILITY["extrapolatory"]) / 2
            return replace(answer, text=correction, confidence=min(unjudged, self.sure.value))
        if attribution == "attributable" and answer.text != UNKNOWN:
            return answer  # no step is missing
        again = self._search_again(answer, case)
        if again and again.confidence > answer.confidence:
            case.trace.add(Replaced(again.text, "surer after another search"))
            return again
        return answer

    def _verify(self, answer: _Answer, case: _Case) -> tuple[float, str, str]:
        """Accuracy, attribution and correction; an unreadable verdict counts against the answer."""
        show = case.candidates.show
        try:
            reply = self.verifier(
                question=case.question,
                sub_questions=case.sub_questions,
                evidence=show(answer.evidence),
                other_passages=show(answer.others),
                proposed_answer=answer.text,
            )
        except AdapterParseError:
            record_incident("verdict unreadable")
            case.trace.add(Judged("verification", 0.0, "", ("the verdict could not be read",)))
            return 0.0, "extrapolatory", UNKNOWN
        correction, invalid = tidy(reply.correction)
        case.trace.add(Judged("verification", reply.accuracy, reply.attribution, invalid))
        return reply.accuracy, reply.attribution, correction

    def _search_again(self, answer: _Answer, case: _Case) -> _Answer | None:
        """PAR-RAG's repair: search for the answer, or the question if it is unknown; None if nothing is new."""
        evidence = facts(case.evidence)
        fresh = self._look_up(case.question if answer.text == UNKNOWN else answer.text, case)
        if not fresh:
            return None
        self._complete(self.rounds.value + 1, case)
        return self._answer(case) if facts(case.evidence) != evidence else None

    def _lacks(self, case: _Case) -> bool:
        """Whether the evidence lacks a passage; then citations of other passages count as evidence."""
        return bool(case.required) and len(whole(case.evidence)) < case.complexity.hops

    def _conclude(self, answer: _Answer, case: _Case, stop: str) -> dspy.Prediction:
        cited = answer.cited if self._lacks(case) else _within(answer.cited, case.evidence)
        evidence = list(dict.fromkeys([*cited, *case.evidence]))
        confidence = self.calibration(answer.confidence)
        if confidence < self.abstain_below.value and answer.text != UNKNOWN:
            case.trace.add(Replaced(UNKNOWN, f"{answer.text} is not sure enough"))
            answer, stop = replace(answer, text=UNKNOWN), "abstained"
        return conclude(answer.text, confidence, case.trace, evidence=evidence, seen=case.seen, stop=stop)


def _within(cited: Sequence[Evidence], evidence: Sequence[Evidence]) -> list[Evidence]:
    """The citations that are in the evidence."""
    known = set(facts(evidence))
    return [item for item in cited if item.fact in known]
