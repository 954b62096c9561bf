"""PolyHop, one loop with what earns its calls in PRISM, KAIR, PAR-RAG and C-3PO.

    estimate the complexity, and search for the question                  no LM call
    looks easy?  answer from the first passages, with citations           C-3PO's single pass; certain: done
    plan: a route and sub-questions, with exemplars of like complexity    C-3PO's router and PAR-RAG's planner in one
        "direct": answer from knowledge;  "single": single pass
    in rounds, until nothing is open, or nothing is left to read:
        read what fits the open sub-questions beside what was selected    PRISM's Selector and Adder in one
        answer them, with citations                                       KAIR's known and required
        search for each that is open, from both ends of the chain
    answer with citations
    in doubt?  verify; take a correction that is verified, too            PAR-RAG's review

From both ends: a sub-question that waits for an unknown answer is searched for without it, if it names something. What
a search has found and nobody has read is read as soon as it names what is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import dspy

from ..data.form import names
from ..data.passages import Evidence, Passage, Retriever
from ..data.pool import PassagePool
from ..data.references import references, replace_references
from ..data.text import key_words, title_key
from ..signatures import AnswerDirectly, AnswerWithCitations, GatherEvidence, PlanResearch, VerifyAnswer
from ..signatures.fields import NumberedPassages, read_probability, read_texts
from .agent import Agent
from .candidates import Candidates, Cited, ids, split_citations, whole
from .complexity import Complexity, ComplexityEstimator
from .confidence import CREDIBILITY, Confidence, checked, verdict
from .exemplars import Exemplars, plan_like
from .prediction import SUGGESTED, UNKNOWN, Status, conclude, decomposed, read_answer, read_query, tidy
from .program import Program, register
from .run import Pool, current, record
from .search import Search
from .trace import Estimated, Judged, Required, Revised, Selected
from .tunable import choice, integer, real

_MOST_READINGS = 2  # of a passage that is not selected
_FOLLOWED = 4  # best unread passages of a search after the first that are read
_DUPLICATE = 0.8  # share of the three-word sequences of the shorter passage that a near-duplicate has
_NOT_SEARCHABLE = frozenset(
    "yes no true false unknown none january february march april may june july august september october november "
    "december ad bc bce ce am pm".split()
)


@register("polyhop")
class PolyHop(Program):
    """Answer a question with as few LM calls as possible.

    1 call for an easy question, 2 without evidence; otherwise 2, and 1 per round, mostly one or two; 1 more if the
    answer is in doubt, and 1 to verify a correction. All are sequential. 1 search, and 1 for each query after a round.

    Args:
        k: Passages that a search returns. Agents are shown the best of them, and others once they fit what is open.
        rounds: Maximum number of rounds of selecting.
        estimator: Of the complexity.
    """

    shown_exemplars = ("planner",)

    def __init__(
        self,
        retriever: Retriever | None = None,
        k: int = 20,
        rounds: int = 4,
        *,
        estimator: ComplexityEstimator | None = None,
    ) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.estimator = estimator or ComplexityEstimator()
        self.exemplars = Exemplars()
        self.rounds = integer(rounds, 1, 6)
        self.least_single_hop = real(0.9, 0.0, 1.0)  # minimum P(1 hop) of a single pass without a plan
        self.first_passages = integer(5, 1, 20)  # passages that are read of a search
        self.new_passages = integer(12, 1, 50)  # maximum number of new passages in one round
        self.least_unverified = real(0.75, 0.0, 1.0)  # minimum confidence of an unverified answer
        self.review = choice("doubt", ("doubt", "always", "never"))
        self.confidence = Confidence(least_accuracy=0.6)  # chosen on train questions
        self.planner = Agent(PlanResearch)
        self.gatherer = Agent(GatherEvidence)
        self.answerer = Agent(AnswerWithCitations)
        self.verifier = Agent(VerifyAnswer)
        self.direct_answerer = Agent(AnswerDirectly)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        case = _Case(question, self.estimator(question))
        record(Estimated(case.complexity.probabilities))
        found = [hit.passage for hit in self.search(question)[: self.first_passages.value]]

        easy = case.complexity.probabilities[0] >= self.least_single_hop.value
        if easy and (answer := self._single_pass(found, case)):
            return self._conclude(answer, case, "single pass")
        route = self._plan(case)
        if route == "direct":
            text, confidence = read_answer(self.direct_answerer(question=question))
            if text != UNKNOWN:
                return self._conclude(
                    _Answer(text, confidence=confidence, status="model knowledge"), case, "no retrieval"
                )
        if route == "single" and not easy and (answer := self._single_pass(found, case)):
            return self._conclude(answer, case, "single pass")
        if not found:
            return self._conclude(_Answer(UNKNOWN), case, "nothing found")

        stop = "rounds"
        to_read = self._to_read([*found, *_fitting(case.queries(), case)], case)
        for n in range(1, self.rounds.value + 1):
            self._gather(n, to_read, case)
            if not case.sought:
                stop = "stable" if case.open else "complete"
                break
            if n < self.rounds.value and not (to_read := self._follow_up(case)):
                stop = "stable"
                break

        answer = self._answer(case)
        if self.review.value == "always" or (self.review.value == "doubt" and not self._is_certain(answer, case)):
            answer = self._reviewed(answer, case)
        return self._conclude(answer, case, stop)

    def _plan(self, case: _Case) -> str:
        """Set the sub-questions; returns the route."""
        exemplars = self.exemplars(case.question, case.complexity)
        single = {exemplar.hops == 1 for exemplar in exemplars}
        if len(exemplars) > 1 and len(single) == 1:  # exemplars of a single route would suggest that route
            other = self.exemplars(case.question, Complexity.of(2 if single == {True} else 1))[-1]
            if (other.hops == 1) not in single:
                exemplars[0] = other
        reply = plan_like(
            exemplars,
            self.planner,
            case.question,
            lambda each: {"route": "single" if each.hops == 1 else "plan", "sub_questions": list(each.sub_questions)},
        )
        case.steps = [_Step(text) for text in decomposed(reply.sub_questions, str(reply.route)) or [case.question]]
        return str(reply.route)

    # --- a round ---------------------------------------------------------------------------------------------------

    def _gather(self, round: int, passages: Sequence[Passage], case: _Case) -> None:
        """The gatherer's answers and selection from passages and those before, and its queries for what is open.

        What it has read is shown again, in the same order and form: a server need not read it again.
        """
        case.candidates.extend(passages)
        read = {*case.readings, *(item.passage.id for item in case.evidence)}
        shown = [each for each in case.candidates.passages if each.id in read or each in passages]
        reply = self.gatherer(
            question=case.question,
            sub_questions=case.sub_questions,
            passages=case.candidates.show(map(Evidence, shown)),
            kept=case.candidates.ids(case.evidence),
            searched=case.searched,
            answers_so_far=case.answers if round > 1 else [],
        )
        kept, invalid = case.candidates.resolve(dict.fromkeys(reply.keep))
        selected, queries = list(kept), read_texts(reply.required)
        asked = [list(case.filled(step.question)) for step in case.steps]
        for n, (step, text) in enumerate(zip(case.steps, reply.answers, strict=False), 1):
            known, step.answers, step.said = step.answers if step.is_doubtful else (), (), ""
            cited = list[Evidence]()
            for part, named in map(split_citations, text.split(" | ")):
                if (part := tidy(part)[0]) != UNKNOWN:
                    items = case.candidates.resolve(named)[0]
                    listed = f" [{', '.join(case.candidates.ids(items))}]" if items else ""
                    step.said += f"{' | ' * bool(step.answers)}{part}{listed}"
                    step.answers += (part,)
                    cited += items
            step.said = step.said or UNKNOWN
            step.is_doubtful = n in reply.doubtful or not (cited or kept or {"yes", "no"} & set(step.answers))
            step.is_settled = step.is_doubtful and known != () and set(known) == set(step.answers)
            selected += cited
        if round > 1 and not queries:  # the gatherer gives up what this round has not made another question
            for step, before in zip(case.steps, asked, strict=True):
                step.is_settled |= list(case.filled(step.question)) == before
        if selected:  # what is listed now stays, so that a better sentence replaces a worse one
            case.evidence = case.candidates.resolve(dict.fromkeys(case.candidates.ids(selected)))[0]
        case.readings.update(passage.id for passage in passages)
        case.required = queries[: len(case.steps)] if case.sought else []
        record(Selected(round, ids(case.evidence), invalid))
        record(Required(tuple(case.required), tuple(" | ".join(step.answers) or UNKNOWN for step in case.steps)))

    def _follow_up(self, case: _Case) -> list[Passage]:
        """What to read for what is open: what was found already, then the best of a search for each new query."""
        queries = case.queries()
        passages = _fitting(queries, case)
        for query in queries:
            if title_key(query) not in map(title_key, [case.question, *case.searched]):
                case.searched.append(query)
                found = [hit.passage for hit in self.search(query)]
                passages += found[:2]  # again, if they were read once
                passages += [passage for passage in found if not case.readings[passage.id]][:_FOLLOWED]
        return self._to_read(passages, case)

    def _to_read(self, passages: Iterable[Passage], case: _Case) -> list[Passage]:
        """The passages that were not read often enough, without near-duplicates, at most ``new_passages``."""
        selected, seen = {item.passage.id for item in case.evidence}, current().passages
        known = {id: _shingles(seen[id]) for id in case.readings}
        new: list[Passage] = []
        for passage in {passage.id: passage for passage in passages}.values():
            words = _shingles(passage)
            others = (other for id, other in known.items() if id != passage.id)
            twins = (len(words & other) > _DUPLICATE * min(len(words), len(other)) for other in others)
            if passage.id not in selected and case.readings[passage.id] < _MOST_READINGS and not any(twins):
                known[passage.id] = words
                new.append(passage)
        return new[: self.new_passages.value]

    # --- answer ------------------------------------------------------------------------------------------------------

    def _single_pass(self, passages: Sequence[Passage], case: _Case) -> _Answer | None:
        """An answer from the first passages; None if it is not certain, or cites nothing on a name in the question."""
        if not passages:
            return None
        answer = self._ask([case.question], [], list(map(Evidence, passages)), case)
        cited = {word for item in whole(answer.cited) for word in key_words(f"{item.passage.heading} {item.text}")}
        if not answer.cited or not self._is_certain(answer, case) or not _named(case.question) <= cited:
            return None
        case.evidence = list(answer.cited)
        return answer

    def _answer(self, case: _Case) -> _Answer:
        """An answer from the evidence; if the last sub-question has none, from up to ``first_passages`` in all."""
        source = whole(case.evidence)
        if not case.steps[-1].answers:
            known = {item.passage.id for item in source}
            others = (Evidence(passage) for passage in case.candidates.passages if passage.id not in known)
            source += islice(others, max(0, self.first_passages.value - len(known)))
        return self._ask(case.sub_questions, case.answers, source, case)

    def _ask(
        self, sub_questions: list[str], answers_so_far: list[str], source: Sequence[Evidence], case: _Case
    ) -> _Answer:
        passages = case.numbered(source)
        reply = self.answerer(
            question=case.question, sub_questions=sub_questions, answers_so_far=answers_so_far, passages=passages
        )
        cited, invalid = case.candidates.resolve(reply.citations)
        text, confidence = read_answer(reply, invalid)
        return _Answer(text, tuple(cited), confidence=confidence, source=source)

    def _is_certain(self, answer: _Answer, case: _Case) -> bool:
        return answer.confidence >= self.least_unverified.value and answer.states(answer.text, case.question)

    def _reviewed(self, answer: _Answer, case: _Case) -> _Answer:
        """The answer with the verifier's verdict; or the verifier's correction, or the answer after a search for the
        step that it misses, if the verdict on that is better."""
        if answer.text == UNKNOWN:
            return answer
        answer, correction, missing = self._verified(answer, case)
        if title_key(correction) != title_key(answer.text) and answer.states(correction, case.question):
            other, why = replace(answer, text=correction, status="not checked"), "the verifier reads it so"
        else:
            case.required = [missing]
            if case.open or not missing or not (to_read := self._follow_up(case)):
                return answer
            self._gather(self.rounds.value + 1, to_read, case)
            other, why = self._answer(case), "after a search for what the verifier misses"
        if other.text != UNKNOWN:
            other = self._verified(other, case)[0]
        if other.confidence <= answer.confidence:
            return answer
        record(Revised(other.text, why))
        return other

    def _verified(self, answer: _Answer, case: _Case) -> tuple[_Answer, str, str]:
        """The answer as the verifier sees it, its correction, and a query for what it misses, if it does not pass.

        A verdict that cannot be read counts against the answer.
        """
        accuracy, attribution = None, "extrapolatory"
        correction, missing = answer.text, ""
        reply = verdict(
            self.verifier,
            "verification",
            question=case.question,
            sub_questions=case.sub_questions,
            searched=case.searched,
            passages=case.numbered(answer.source),
            proposed_answer=answer.text,
        )
        if reply is not None:
            accuracy, attribution = read_probability(reply.accuracy), str(reply.attribution)
            correction, invalid = tidy(reply.correction or answer.text)
            missing = read_query(reply.missing)[0]
            record(Judged("verification", accuracy, attribution, invalid))
        weighed = self.confidence(case.complexity.expected, accuracy, CREDIBILITY[attribution], answer.text)
        status = answer.status if accuracy is None else checked(weighed)
        answer = replace(answer, confidence=weighed.confidence, status=status)
        return (answer, answer.text, "") if weighed.passed else (answer, correction, missing)

    def _conclude(self, answer: _Answer, case: _Case, stop: str) -> dspy.Prediction:
        # Where the evidence lacks a passage, citations of other passages count as evidence.
        selected = {item.passage.id for item in case.evidence}
        lacks = bool(case.open) and len(selected) < case.complexity.hops
        cited = [item for item in answer.cited if lacks or item.passage.id in selected]
        cited = [own if (own := Evidence(item.passage)) in case.evidence else item for item in cited]
        evidence = list(dict.fromkeys([*cited, *case.evidence]))
        return conclude(answer.text, answer.confidence, evidence=evidence, stop=stop, status=answer.status)


# --- the state of a question ------------------------------------------------------------------------------------------


@dataclass
class _Step:
    """A sub-question, and what is known of it."""

    question: str
    answers: tuple[str, ...] = ()  # all that fit; empty if it is unknown
    said: str = UNKNOWN  # the same as agents read it, with citations
    is_doubtful: bool = False  # what is cited only suggests the answer
    is_settled: bool = False  # searched for enough


@dataclass
class _Case:
    """The state of one question."""

    question: str
    complexity: Complexity
    steps: list[_Step] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    readings: Counter[str] = field(default_factory=Counter)  # how often the gatherer was shown a passage, by its id
    candidates: Candidates = field(default_factory=Candidates)  # the numbers of passages
    required: list[str] = field(default_factory=list)  # the gatherer's queries
    searched: list[str] = field(default_factory=list)  # queries after the question

    @property
    def sub_questions(self) -> list[str]:
        return [step.question for step in self.steps]

    @property
    def open(self) -> list[_Step]:
        return [step for step in self.steps if not step.answers or step.is_doubtful]

    @property
    def sought(self) -> list[_Step]:
        """What is open and not searched for enough."""
        return [step for step in self.open if not step.is_settled]

    @property
    def answers(self) -> list[str]:
        """The answers to the sub-questions as agents read them."""
        return [
            f"#{n} {step.said}" + (f" {SUGGESTED}" if step.answers and step.is_doubtful else "")
            for n, step in enumerate(self.steps, 1)
        ]

    def numbered(self, evidence: Sequence[Evidence]) -> NumberedPassages:
        """Passages in the order of their numbers, with what is selected marked."""
        self.candidates.extend(item.passage for item in evidence)
        numbered = sorted(evidence, key=lambda item: self.candidates.number(item.passage))
        return self.candidates.show(numbered, self.evidence)

    def filled(self, text: str) -> Iterator[str]:
        """A text with known answers in place of the references to them: once for each of several that fit."""
        known = {n: step.answers for n, step in enumerate(self.steps, 1) if step.answers}
        for at in range(max((len(known.get(n, ())) for n in references(text)), default=0) or 1):
            yield replace_references(text, lambda n: known[n][min(at, len(known[n]) - 1)] if n in known else None)  # noqa: B023

    def queries(self) -> list[str]:
        """What to search for: the gatherer's queries, and each open sub-question whose names they lack."""
        asked = [text for reply in self.required for text in self.filled(read_query(reply)[0])]
        replied = [text for text in asked if _is_searchable(text)]
        asked = list(replied)
        for text in (text for step in self.sought for text in self.filled(step.question)):
            if references(text):
                text = " ".join(replace_references(text, lambda _: "").split())
                if not _named(text):
                    continue
            own = _named(text)
            if _is_searchable(text) and not any(own <= other or other <= own for other in map(_named, replied)):
                asked.append(text)
        return list({title_key(text): text for text in asked}.values())


@dataclass(frozen=True)
class _Answer(Cited):
    """An answer, and the source that it was read from."""

    confidence: float = 0.0
    source: Sequence[Evidence] = ()
    status: Status = "not checked"

    def states(self, text: str, question: str) -> bool:
        """Whether a text is in the source or the question; "yes" and "no" always are."""
        key = f" {title_key(text)} "
        texts = [question, *(f"{item.passage.heading} {item.text}" for item in self.source)]
        return key.strip() in ("yes", "no") or any(key in f" {title_key(each)} " for each in texts)


def _fitting(queries: Iterable[str], case: _Case) -> list[Passage]:
    """The best passage for each query, by its words, that searches have found and that has its names."""
    found, fitting = PassagePool(current().passages.values()), list[Passage]()
    for query in queries:
        wanted, hits = _named(query), found.search(query, max(1, len(found)))
        unread = (hit.passage for hit in hits if hit.score > 0 and case.readings[hit.passage.id] < _MOST_READINGS)
        named = (passage for passage in unread if wanted <= set(key_words(f"{passage.heading} {passage.text}")))
        fitting += islice(named, 1)
    return fitting


def _is_searchable(text: str) -> bool:
    """Whether a text names something to search for: a number, a date, "yes" or "unknown" alone does not."""
    words = [word for word in title_key(text).split() if not word[0].isdigit() and word not in _NOT_SEARCHABLE]
    return bool(words) and not references(text)


def _named(text: str) -> frozenset[str]:
    """The words of the names in a text, without numbers and months."""
    words = {word for name in names(text) for word in key_words(name)}
    return frozenset(word for word in words if not word[0].isdigit() and word not in _NOT_SEARCHABLE)


def _shingles(passage: Passage) -> frozenset[tuple[str, ...]]:
    """The sequences of three words; of a shorter passage the whole."""
    words = key_words(passage.text)
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset([tuple(words)])
