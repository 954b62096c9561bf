"""PolyHop, one loop with what earns its calls in PRISM, KAIR, PAR-RAG and C-3PO.

    estimate the complexity, and search                                   no LM call
    looks easy?  answer from the first passages, with citations           C-3PO's single pass; certain: done
    plan: a route and sub-questions, with exemplars of like complexity    C-3PO's router and PAR-RAG's planner in one
        "direct": answer from knowledge;  "single": single pass
    in rounds, until nothing is open or nothing new is found:
        read the best new passages beside what was selected, and select   PRISM's Selector and Adder in one
        answer the sub-questions; what its citations do not state is open PAR-RAG's review, without a call
        search for what is open                                           KAIR's required
    answer with citations
    in doubt?  verify, weigh, repair; verify the repair                   PAR-RAG's review

An answer is in doubt if its confidence is low or if it is not found in what was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import dspy
from dspy.utils.exceptions import AdapterParseError

from ..data.passages import Evidence, Hit, Passage, Retriever
from ..data.references import references, replace_references
from ..data.text import content_terms, title_key
from ..engines.costs import record_incident
from ..signatures import AnswerDirectly, AnswerWithCitations, GatherEvidence, PlanResearch, VerifyAnswer
from ..signatures.fields import NumberedPassages
from ..signatures.replies import read_probability
from .agent import Agent
from .candidates import Candidates, ids, split_citations, whole
from .complexity import Complexity, ComplexityEstimator, Estimator
from .confidence import CREDIBILITY, Calibration, Confidence, checked
from .exemplars import Exemplars
from .prediction import UNKNOWN, Status, conclude, decomposed, read_answer, read_query, tidy
from .program import Program, register
from .run import Pool, record
from .search import Search
from .trace import Estimated, Judged, Recalled, Replaced, Required, Selected
from .tunable import choice, integer, real

_SEEN_AGAIN = 2  # best hits of a search that are shown again though they were not selected before
_DUPLICATE = 0.9  # share of the words of the shorter passage that a near-duplicate has
_STATED = 0.5  # share of the words of an answer that the passage it cites needs
_WORD = re.compile(r"\w+")
_NOT_SEARCHABLE = frozenset(
    "yes no true false unknown none january february march april may june july august september october november "
    "december ad bc bce ce am pm".split()
)


@dataclass
class _Case:
    """The state of one question."""

    question: str
    complexity: Complexity
    sub_questions: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)  # to the sub-questions; "unknown" if open
    unsupported: set[int] = field(default_factory=set)  # indices of answers that their citations do not state
    evidence: list[Evidence] = field(default_factory=list)
    required: list[str] = field(default_factory=list)  # queries for what is open
    candidates: Candidates = field(default_factory=Candidates)  # what agents were shown
    searched: list[str] = field(default_factory=list)  # queries of follow-up searches
    shown_again: set[str] = field(default_factory=set)  # ids of passages

    @property
    def open(self) -> list[int]:
        """The indices of the sub-questions without a supported answer."""
        answers = [*self.answers, *[UNKNOWN] * (len(self.sub_questions) - len(self.answers))]
        return [n for n, text in enumerate(answers) if text == UNKNOWN or n in self.unsupported]

    def shown(self, evidence: Iterable[Evidence]) -> NumberedPassages:
        """Passages in the order of their numbers, with the evidence marked."""
        numbered = sorted(evidence, key=lambda item: self.candidates.number(item.passage))
        return self.candidates.show(numbered, self.evidence)

    def filled(self, text: str) -> str:
        """A text with the known answers in place of the references to them."""
        known = {n: answer for n, answer in enumerate(self.answers, 1) if answer != UNKNOWN}
        return replace_references(text, known.get)


@dataclass(frozen=True)
class _Answer:
    """An answer, what it was read from, and its citations."""

    text: str
    confidence: float
    evidence: Sequence[Evidence] = ()
    others: Sequence[Evidence] = ()
    cited: Sequence[Evidence] = ()
    status: Status = "not checked"

    def states(self, text: str, question: str) -> bool:
        """Whether a text is in what was read or asked; "yes" and "no" always are."""
        key = f" {title_key(text)} "
        read = [question, *(f"{item.passage.heading} {item.text}" for item in (*self.evidence, *self.others))]
        return key.strip() in ("yes", "no") or any(key in f" {title_key(each)} " for each in read)


@dataclass(frozen=True)
class _Verdict:
    """The verifier's view of an answer, whose confidence is weighed by it."""

    answer: _Answer
    passed: bool = False
    attribution: str = "extrapolatory"
    correction: str = UNKNOWN


@register("polyhop")
class PolyHop(Program):
    """Answer a question with as few LM calls as possible.

    1 call for an easy question, 2 without evidence; otherwise 2, and 1 per round, mostly one or two; 1 more if the
    answer is in doubt, up to 3 more to repair and verify it again. All are sequential. 1 search, and 1 for each
    question that is open after a round.

    Args:
        retriever: For questions without a pool of their own.
        k: Passages that a search returns. Agents are shown the best of them, and more if they ask for them.
        rounds: Maximum number of rounds of selecting.
        estimator: Of the complexity. If it is not a DSPy parameter, as `ComplexityEstimator` is, artifacts cannot hold
            it.
    """

    shown_exemplars = ("planner",)

    def __init__(
        self,
        retriever: Retriever | None = None,
        k: int = 20,
        rounds: int = 4,
        *,
        estimator: Estimator | None = None,
    ) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.estimator = estimator or ComplexityEstimator()
        self.exemplars = Exemplars()
        self.rounds = integer(rounds, 1, 6)
        self.easy = real(0.9, 0.0, 1.0)  # minimum P(1 hop) of a single pass without a plan
        # Passages of a single pass and of a follow-up search, and minimum of the first round.
        self.first = integer(5, 1, 20)
        self.shown = integer(12, 1, 50)  # maximum number of new passages in one round
        self.cutoff = real(0.35, 0.0, 1.0)  # minimum score of a new passage, as a share of the best one's
        self.sure = real(0.75, 0.0, 1.0)  # minimum confidence of an unverified answer
        self.review = choice("doubt", ("doubt", "always", "never"))
        self.confidence = Confidence()
        self.calibration = Calibration()
        self.planner = Agent(PlanResearch)
        self.gatherer = Agent(GatherEvidence)
        self.answerer = Agent(AnswerWithCitations)
        self.verifier = Agent(VerifyAnswer)
        self.direct_answerer = Agent(AnswerDirectly)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        case = _Case(question, self.estimator(question))
        record(Estimated(case.complexity.probabilities))
        fresh = self._best(self.search(question), self.first.value, self.shown.value, case)
        case.candidates.extend(fresh)

        easy = case.complexity.probabilities[0] >= self.easy.value
        if easy and (answer := self._single_pass(case)):
            return self._conclude(answer, case, "single pass")
        route = self._plan(case)
        if route == "direct" and (known := self._from_knowledge(case)).text != UNKNOWN:
            return self._conclude(known, case, "no retrieval")
        if route == "single" and not easy and (answer := self._single_pass(case)):
            return self._conclude(answer, case, "single pass")
        if not fresh:
            return self._conclude(_Answer(UNKNOWN, 0.0), case, "nothing found")

        stop = "rounds"
        for n in range(1, self.rounds.value + 1):
            self._read(n, fresh, case)
            if not case.open:
                stop = "complete"
                break
            if n < self.rounds.value:
                fresh = self._follow_up(case.required, case)
                if not fresh:
                    stop = "stable"
                    break

        answer = self._answer(case)
        if self.review.value == "always" or (self.review.value == "doubt" and not self._certain(answer, case)):
            answer = self._reviewed(answer, case, stop)
        return self._conclude(answer, case, stop)

    # --- plan --------------------------------------------------------------------------------------------------------

    def _plan(self, case: _Case) -> str:
        """Set the sub-questions; returns the route."""
        exemplars = self.exemplars(case.question, case.complexity)
        single = {exemplar.hops == 1 for exemplar in exemplars}
        if len(exemplars) > 1 and len(single) == 1:  # exemplars of a single route would suggest that route
            other = self.exemplars(case.question, Complexity.of(2 if single == {True} else 1))[-1]
            if (other.hops == 1) not in single:
                exemplars[0] = other
        record(Recalled(tuple(exemplar.question for exemplar in exemplars)))
        shown = [
            dspy.Example(
                question=exemplar.question,
                route="single" if exemplar.hops == 1 else "plan",
                sub_questions=list(exemplar.sub_questions),
            )
            for exemplar in exemplars
        ]
        reply = self.planner(question=case.question, demos=[*self.planner.demos, *shown])
        case.sub_questions = decomposed(reply.sub_questions, str(reply.route)) or [case.question]
        return str(reply.route)

    # --- gather ------------------------------------------------------------------------------------------------------

    def _follow_up(self, queries: Iterable[str], case: _Case) -> list[Passage]:
        """Search for what is open, each query once; returns the passages to read, the first query's first."""
        found: dict[str, Passage] = {}
        for query in queries:
            if title_key(query) in map(title_key, [case.question, *case.searched]):
                continue
            best = self._best(self.search(query), self.first.value, self.first.value, case)
            case.searched.append(query)
            case.candidates.extend(best)
            found |= {passage.id: passage for passage in best}
        return list(found.values())[: self.shown.value]

    def _best(self, hits: Sequence[Hit], least: int, most: int, case: _Case) -> list[Passage]:
        """The hits worth reading: the first ``least``, and others with a good score, at most ``most``.

        Without what is selected, near-duplicates, and what was shown before; the best hits are shown once more.
        """
        selected = {item.passage.id for item in case.evidence}
        known = [_words(passage) for passage in case.candidates.passages]
        found: list[Passage] = []
        for rank, hit in enumerate(hits):
            if len(found) >= most or (len(found) >= least and hit.score < self.cutoff.value * hits[0].score):
                break
            if hit.passage.id in selected:
                continue
            if case.candidates.has(hit.passage):
                if rank < _SEEN_AGAIN and hit.passage.id not in case.shown_again:
                    case.shown_again.add(hit.passage.id)
                    found.append(hit.passage)
                continue
            words = _words(hit.passage)
            if not any(len(words & other) >= _DUPLICATE * max(len(words), len(other)) for other in known):
                known.append(words)
                found.append(hit.passage)
        return found

    def _read(self, round: int, fresh: Sequence[Passage], case: _Case) -> None:
        """The gatherer's selection from the new passages and the evidence, its answers, and what is open."""
        reply = self.gatherer(
            question=case.question,
            sub_questions=case.sub_questions,
            answers_so_far=[
                f"#{n + 1} {text}" + " (not in what it cites)" * (n in case.unsupported)
                for n, text in enumerate(case.answers)
            ],
            searched=case.searched,
            passages=case.shown([*whole(case.evidence), *map(Evidence, fresh)]),
        )
        cited: list[str] = []
        case.answers, case.unsupported = [], set()
        for text, _ in zip(reply.answers, case.sub_questions, strict=False):
            bare, named = split_citations(" ".join(text.split()))
            answer, _ = tidy(bare)
            case.answers.append(answer)
            if answer == UNKNOWN:
                continue
            if _is_stated(answer, case.candidates.resolve(named or reply.keep)[0]):
                cited += named
            else:
                case.unsupported.add(len(case.answers) - 1)
        kept = case.candidates.ids(case.evidence)
        case.evidence, invalid = case.candidates.resolve(dict.fromkeys([*kept, *reply.keep, *cited]))
        record(Selected(round, ids(case.evidence), invalid))
        case.required = self._queries(reply.required, case)
        record(Required(tuple(case.required), tuple(case.answers)))

    def _queries(self, replied: Sequence[str], case: _Case) -> list[str]:
        """What to search for: the agent's queries, or else the open sub-questions that wait for no other answer."""
        if not case.open:
            return []
        asked = [case.filled(read_query(text)[0]) for text in replied]
        asked = [text for text in asked if _is_searchable(text)]
        asked = asked or [text for n in case.open if _is_searchable(text := case.filled(case.sub_questions[n]))]
        return list(dict.fromkeys(asked))[: len(case.sub_questions)]

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
        """An answer from the evidence; if a sub-question is open, also from other candidates, up to ``first``."""
        evidence = whole(case.evidence)
        known = {item.passage.id for item in evidence}
        others = [Evidence(passage) for passage in case.candidates.passages if passage.id not in known]
        return self._ask(
            case.sub_questions, evidence, others[: max(0, self.first.value - len(known)) * bool(case.open)], case
        )

    def _ask(
        self, sub_questions: list[str], evidence: Sequence[Evidence], others: Sequence[Evidence], case: _Case
    ) -> _Answer:
        shown = case.shown([*evidence, *others])
        reply = self.answerer(question=case.question, sub_questions=sub_questions, passages=shown)
        cited, invalid = case.candidates.resolve(reply.citations)
        text, confidence = read_answer(reply, invalid)
        return _Answer(text, confidence, evidence, others, cited)

    def _from_knowledge(self, case: _Case) -> _Answer:
        text, confidence = read_answer(self.direct_answerer(question=case.question))
        return _Answer(text, confidence, status="model knowledge")

    # --- review ------------------------------------------------------------------------------------------------------

    def _certain(self, answer: _Answer, case: _Case) -> bool:
        return answer.confidence >= self.sure.value and answer.states(answer.text, case.question)

    def _reviewed(self, answer: _Answer, case: _Case, stop: str) -> _Answer:
        """The answer if it passes the verifier; else the better of it and a replacement, which is verified, too.

        A step that seemed complete is searched for again; one that rounds did not find is not.
        """
        verdict = self._verified(answer, case) if answer.text != UNKNOWN else _Verdict(answer)
        answer = verdict.answer
        if verdict.passed:
            return answer
        if verdict.correction != UNKNOWN and title_key(verdict.correction) != title_key(answer.text):
            if not answer.states(verdict.correction, case.question):
                return answer
            other = replace(answer, text=verdict.correction, status="not checked")
            why = "the verifier reads it so"
        elif verdict.attribution == "attributable":
            return answer  # no step is missing
        elif stop == "complete" and (found := self._search_again(answer, case)) is not None:
            other, why = found, "surer after another search"
        else:
            return answer
        if other.text != UNKNOWN and (answer.text != UNKNOWN or not self._certain(other, case)):
            other = self._verified(other, case).answer
        if other.confidence <= answer.confidence:
            return answer
        record(Replaced(other.text, why))
        return other

    def _verified(self, answer: _Answer, case: _Case) -> _Verdict:
        """The verifier's verdict. One that cannot be read counts against the answer."""
        verdict = _Verdict(answer)
        try:
            reply = self.verifier(
                question=case.question,
                sub_questions=case.sub_questions,
                passages=case.shown([*answer.evidence, *answer.others]),
                proposed_answer=answer.text,
            )
        except AdapterParseError:
            record_incident("verdict unreadable")
            record(Judged("verification", 0.0, "", ("the verdict could not be read",)))
            accuracy = None
        else:
            accuracy = read_probability(reply.accuracy)
            correction, invalid = tidy(reply.correction)
            verdict = replace(verdict, attribution=str(reply.attribution), correction=correction)
            record(Judged("verification", accuracy, verdict.attribution, invalid))
        credibility = CREDIBILITY[verdict.attribution]
        weighed = self.confidence(case.complexity.expected, accuracy, credibility, answer.text)
        status = answer.status if accuracy is None else checked(weighed.passed, credibility)
        answer = replace(answer, confidence=weighed.confidence, status=status)
        return replace(verdict, answer=answer, passed=weighed.passed)

    def _search_again(self, answer: _Answer, case: _Case) -> _Answer | None:
        """PAR-RAG's repair: search for the open step with the draft answer; None if the evidence stays the same."""
        step = next(iter(case.open), len(case.sub_questions) - 1)
        query = case.filled(case.sub_questions[step])
        query = case.question if references(query) else query
        if answer.text != UNKNOWN and _is_searchable(answer.text):
            query = f"{query} {answer.text}"
        evidence = ids(case.evidence)
        if fresh := self._follow_up([query], case):
            self._read(self.rounds.value + 1, fresh, case)
        return self._answer(case) if ids(case.evidence) != evidence else None

    def _conclude(self, answer: _Answer, case: _Case, stop: str) -> dspy.Prediction:
        # Where the evidence lacks a passage, citations of other passages count as evidence.
        lacks = bool(case.open) and len(whole(case.evidence)) < case.complexity.hops
        known = set(ids(case.evidence))
        cited = [item for item in answer.cited if lacks or item.fact in known]
        evidence = list(dict.fromkeys([*cited, *case.evidence]))
        confidence = self.calibration(answer.confidence)
        return conclude(answer.text, confidence, evidence=evidence, stop=stop, status=answer.status)


def _is_searchable(text: str) -> bool:
    """Whether a text names something to search for: a number, a date, "yes" or "unknown" alone does not."""
    words = [word for word in title_key(text).split() if not word[0].isdigit() and word not in _NOT_SEARCHABLE]
    return bool(words) and not references(text)


def _is_stated(answer: str, cited: Iterable[Evidence]) -> bool:
    """Whether half of an answer's words are in the passages that are cited for it; "yes" and "no" always are."""
    words = content_terms(answer)
    said = {term for item in whole(cited) for term in content_terms(f"{item.passage.heading} {item.text}")}
    return answer.lower() in ("yes", "no") or (
        bool(said) and sum(term in said for term in words) >= _STATED * len(words)
    )


def _words(passage: Passage) -> frozenset[str]:
    return frozenset(_WORD.findall(passage.text.lower()))
