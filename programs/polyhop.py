"""PolyHop: read little, read twice.

    estimate the number of hops, and search for the question                  no LM call
    in rounds, until two readings agree, or nothing new is found:
        read as many passages as there are hops: an answer with citations     PRISM's selection, by the retriever
        no answer?  plan, and search for what is missing                      PAR-RAG's planner, KAIR's gaps
        an answer?  read the same passages again, without seeing it           PAR-RAG's dual verification
        the readings differ?  plan, and search for what the first one found
    the answer that most readings give, with what it cites

A small model reads two passages better than five, and gives the same wrong answer to two prompts less often than the
same right one. So the retriever's chain decides what is read, and the program compares readings; no model is asked
whether it is right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

import dspy

from ..data.form import fits, is_called, names, references, replace_references
from ..data.passages import Evidence, Passage, Retriever
from ..data.text import FUNCTION_WORDS, has_phrase, key_words, split_sentences, title_key, title_names
from ..signatures import AnswerWithCitations, PlanSteps, VerifyAnswer
from .agent import Agent
from .candidates import Candidates, Cited, cut_citations, ids, whole
from .complexity import Complexity, ComplexityEstimator
from .confidence import CREDIBILITY, Confidence, verdict
from .exemplars import Exemplars, plan_like
from .prediction import UNKNOWN, Status, conclude, decomposed, nothing_found, read_answer, read_query, tidy
from .program import Program, register
from .run import Pool, record
from .search import Search
from .trace import Estimated, Judged, Revised, Selected
from .tunable import choice, integer, real
from .worked import EXAMPLES

_DUPLICATE = 0.8  # share of the three-word sequences of the shorter passage that a near-duplicate has
_NOT_COMPARED = frozenset("a an and the".split())


@register("polyhop")
class PolyHop(Program):
    """Answer a question from few passages, by two readings that agree.

    2 LM calls if the first two readings agree; otherwise 1 to plan, and 1 or 2 in each further round. All are
    sequential. 1 search, and 2 or more before each further round.

    Args:
        k: Passages that a search returns, of which a round reads few.
        rounds: Maximum number of rounds of reading. Answers that differ have one more round, a missing or unsure one
            has all.
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
        self.first_passages = integer(2, 1, 20)  # minimum of the first round: it reads one for each hop
        self.new_passages = integer(2, 1, 20)  # of each further round
        self.least_sure = real(0.75, 0.0, 1.0)  # minimum confidence of a reader whose answer ends the rounds
        self.review = choice("always", ("always", "never"))  # whether an answer is read a second time
        self.confidence = Confidence()
        self.reader = Agent(AnswerWithCitations)
        self.reader.demos = list(EXAMPLES)
        self.verifier = Agent(VerifyAnswer)
        self.planner = Agent(PlanSteps)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        case = _Case(question, self.estimator(question), self.least_sure.value)
        record(Estimated(case.complexity.probabilities))
        passages_found = [hit.passage for hit in self.search(question)]
        if not passages_found:
            return nothing_found()
        passages = self._first(passages_found, case)
        stop = "rounds"
        for n in range(1, self.rounds.value + 1):
            reading = self._read(n, passages, case)
            if reading.text != UNKNOWN and case.votes(reading) == 1 and self.review.value == "always":
                self._verify(passages, case)
            if case.agreed or (self.review.value == "never" and case.is_sure(reading)):
                stop = "agreed" if case.agreed else "sure"
                break
            if n == self.rounds.value or (n > 1 and any(map(case.is_sure, case.answered))):
                break
            if case.is_stuck or not (new := self._follow_up(reading, case)):
                stop = "stable"
                break
            passages = [*passages, *new]  # a server need not read the first again
        return self._conclude(case, passages_found, stop)

    # --- a round ---------------------------------------------------------------------------------------------------

    def _read(self, round: int, passages: Sequence[Passage], case: _Case) -> _Reading:
        case.candidates.extend(passages)
        reply = self.reader(passages=case.candidates.show(map(Evidence, passages)), question=case.question)
        cited, invalid = case.candidates.resolve(reply.citations)
        text, confidence = read_answer(reply, invalid)
        reading = _Reading(
            text,
            tuple(cited),
            confidence=confidence,
            thought=str(reply.reasoning),
            missing=read_query(reply.missing)[0],
        )
        case.readings.append(reading)
        record(Selected(round, ids(cited)))
        return reading

    def _verify(self, passages: Sequence[Passage], case: _Case) -> None:
        """Read the passages a second time, with another prompt. A reply that cannot be read says nothing."""
        reply = verdict(
            self.verifier,
            "verification",
            passages=case.candidates.show(map(Evidence, passages)),
            question=case.question,
        )
        if reply is not None:
            text, invalid = tidy(reply.answer)
            agrees = _compared(text) == _compared(case.readings[-1].text)
            record(Judged("verification", float(agrees), f"{reply.attribution}: {text}", invalid))
            cited = case.readings[-1].cited if agrees else ()
            case.readings.append(_Reading(text, cited, confidence=1.0, attribution=str(reply.attribution)))

    def _follow_up(self, reading: _Reading, case: _Case) -> list[Passage]:
        """Passages that nobody has read, for what is missing: for the reader's query, the last thing that it found, and
        the steps of a plan. Twice as many if there is no answer yet."""
        if not case.steps:
            exemplars = self.exemplars(case.question, case.complexity)
            reply = plan_like(exemplars, self.planner, case.question)
            case.steps = decomposed(reply.sub_questions)
        thoughts = [cut_citations(sentence) for sentence in split_sentences(reading.thought)]
        findings = [text for text, cited in thoughts if cited] or [text for text, _ in thoughts]
        queries = [reading.missing, " ".join([case.question, *findings[-1:]])]
        steps = (" ".join(replace_references(step, lambda _: "").split()) for step in case.steps)
        queries += [step for step, text in zip(steps, case.steps, strict=True) if not references(text) or names(step)]
        hits = [self.search(query) for query in dict.fromkeys(queries) if query and query not in case.searched]
        case.searched.update(queries)
        ranked = [hit.passage for row in zip_longest(*hits) for hit in row if hit]  # the best of each query first
        return self._new(ranked, case, self.new_passages.value * (1 if case.answered else 2))

    def _first(self, results: Sequence[Passage], case: _Case) -> list[Passage]:
        """A passage for each hop, and the first one with each name of the question that none of them has."""
        passages = self._new(results, case, max(self.first_passages.value, case.complexity.hops))
        for name in map(_words, names(case.question)):
            if not any(name <= _words(_full(passage)) for passage in passages):
                passages += islice((passage for passage in results if name <= _words(_full(passage))), 1)
        return passages

    def _new(self, passages: Iterable[Passage], case: _Case, count: int) -> list[Passage]:
        """The first passages that were not read, without near-duplicates of what was."""
        new: list[Passage] = []
        seen = [*map(_shingles, case.candidates.passages)]
        for passage in passages:
            if len(new) == count:
                break
            words = _shingles(passage)
            if not any(len(words & other) > _DUPLICATE * min(len(words), len(other)) for other in seen):
                new.append(passage)
                seen.append(words)
        return new

    # --- answer ------------------------------------------------------------------------------------------------------

    def _conclude(self, case: _Case, results: Sequence[Passage], stop: str) -> dspy.Prediction:
        answer = case.best
        evidence = list(answer.cited)
        others = (passage for passage in results if passage not in {item.passage for item in evidence})
        lacking = min(2, case.complexity.hops) - len(whole(evidence))
        evidence += map(Evidence, islice(others, max(0, lacking)))
        if answer.text == UNKNOWN:
            return conclude(UNKNOWN, 0.0, evidence=evidence, stop=stop)
        if not answer.gives(case.of_reader[-1]):
            record(Revised(answer.text, "chosen among all readings", cited=ids(answer.cited)))
        stated, votes = case.is_stated(answer), case.votes(answer)
        verdicts = {reading.attribution for reading in case.readings if reading.attribution and reading.gives(answer)}
        proven = stated and case.is_linked(answer) and verdicts <= {"attributable"}
        attribution = "attributable" if proven else "extrapolatory"
        if not case.is_fit(answer):
            attribution = "contradictory"
        accuracy = answer.confidence * votes / len(case.answered)
        weighed = self.confidence(case.complexity.expected, accuracy, CREDIBILITY[attribution], answer.text)
        status: Status = "supported" if stated and attribution != "contradictory" else "not supported"
        agreed = bool(verdicts) and votes == len(case.answered) and case.is_sure(answer)
        if attribution == "attributable" and agreed and weighed.passed:
            status = "verified"
        return conclude(answer.text, weighed.confidence, evidence=evidence, stop=stop, status=status)


@dataclass(frozen=True)
class _Reading(Cited):
    """An answer that was read from passages.

    Attributes:
        thought: The reader's reasoning.
        missing: The reader's query for what no passage states.
        attribution: The verifier's word on whether the passages prove the answer; empty for the reader.
    """

    confidence: float = 0.0
    thought: str = ""
    missing: str = ""
    attribution: str = ""

    def gives(self, other: Cited) -> bool:
        return _compared(self.text) == _compared(other.text)


@dataclass
class _Case:
    """The state of one question."""

    question: str
    complexity: Complexity
    least_sure: float  # as of PolyHop
    candidates: Candidates = field(default_factory=Candidates)  # the passages that were read, with their numbers
    readings: list[_Reading] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)  # of the plan
    searched: set[str] = field(default_factory=set)

    @property
    def of_reader(self) -> list[_Reading]:
        return [reading for reading in self.readings if not reading.attribution]

    @property
    def answered(self) -> list[_Reading]:
        return [reading for reading in self.readings if reading.text != UNKNOWN]

    def votes(self, answer: Cited) -> int:
        return sum(reading.gives(answer) for reading in self.readings)

    @property
    def agreed(self) -> bool:
        """Whether two readings give an answer that is of the kind that is asked for, and the reader is sure of it."""
        return any(
            self.votes(reading) > 1 and self.is_sure(reading) and self.is_fit(reading) for reading in self.answered
        )

    @property
    def is_stuck(self) -> bool:
        """Whether the reader gives the answer that it gave before, and cites no other passage."""
        *before, last = self.of_reader
        cited = {item.passage for reading in before for item in reading.cited}
        return any(map(last.gives, before)) and all(item.passage in cited for item in last.cited)

    @property
    def best(self) -> _Reading:
        """The answer that most readings give, of those of the kind that is asked for; then one of which the reader is
        sure; then one that its citations state; then the first. "unknown" only if no reading has an answer."""
        return max(
            self.answered or self.readings,
            key=lambda reading: (
                self.is_fit(reading),
                self.votes(reading),
                self.is_sure(reading),
                self.is_stated(reading),
                0.0
                if reading.attribution
                else reading.confidence,  # of readings that agree, the surest has the citations
            ),
        )

    def is_fit(self, answer: Cited) -> bool:
        """Whether an answer is of the kind that is asked for."""
        cited = " / ".join(item.text for item in answer.cited)
        return fits(self.question, answer.text) and is_called(self.question, answer.text, cited)

    def is_sure(self, answer: Cited) -> bool:
        """Whether the reader is sure of an answer in one of its readings; the verifier does not say how sure it is."""
        return any(reading.gives(answer) and reading.confidence >= self.least_sure for reading in self.of_reader)

    def is_stated(self, answer: Cited) -> bool:
        """Whether a sentence that is cited for an answer has it. What is concluded needs two passages."""
        if self._is_concluded(answer):
            return len(whole(answer.cited)) > 1
        return any(has_phrase(f"{item.passage.heading} {item.text}", answer.text) for item in answer.cited)

    def is_linked(self, answer: Cited) -> bool:
        """Whether a chain of documents is cited for an answer, one for each hop and at least two, which has all names
        of the question, while the answer has none. No sentence says so of what is concluded."""
        documents = defaultdict[str, str](str)
        for item in whole(answer.cited):
            documents[item.passage.title] += f" {_full(item.passage)}"
        if self._is_concluded(answer) or len(documents) < max(2, self.complexity.hops):
            return False
        words, named = (_words(" ".join(texts)) for texts in (documents.values(), names(self.question)))
        return (
            named <= words and not named & _words(answer.text) - FUNCTION_WORDS and _is_chain(documents, self.question)
        )

    def _is_concluded(self, answer: Cited) -> bool:
        """Whether an answer is "yes", "no", or something that the question offers."""
        return title_key(answer.text) in ("yes", "no") or has_phrase(self.question, answer.text)


def _compared(answer: str) -> list[str]:
    """The words by which answers are compared: "Ann Lee, Bo Lee" equals "Ann Lee and Bo Lee"."""
    return [word for word in title_key(answer).split() if word not in _NOT_COMPARED]


def _is_chain(documents: Mapping[str, str], question: str) -> bool:
    """Whether documents, as texts by their titles, hang together: each is named by another one or by the question."""
    asked = ((), f" {title_key(question)} ")  # need not be tied to them
    left = [(title_names(title), f" {title_key(text)} ") for title, text in documents.items()]
    left.append(asked)

    def tied(one: tuple[tuple[str, ...], str], other: tuple[tuple[str, ...], str]) -> bool:
        return any(f" {name} " in text for keys, text in ((one[0], other[1]), (other[0], one[1])) for name in keys)

    reached = [left.pop(0)]
    while more := [one for one in left if any(tied(one, other) for other in reached)]:
        reached += more
        left = [one for one in left if one not in more]
    return left in ([], [asked])


def _full(passage: Passage) -> str:
    return f"{passage.heading} {passage.text}"


def _words(text: str) -> set[str]:
    return set(key_words(text))


def _shingles(passage: Passage) -> frozenset[tuple[str, ...]]:
    """The sequences of three words; of a shorter passage the whole."""
    words = key_words(passage.text)
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset([tuple(words)])
