"""KAIR (arXiv 2503.13275): knowledge-aware iterative retrieval, by one agent or by up to three.

The state is what is known (K), required (R), asked (Q) and kept (D, the refined context). Each step:

    q = f(D | K, R, Q)          propose queries, choose the most diverse and relevant one                 rule (2)
    K, R = g(D u D_new | K, R)  read its hits: new facts, if supported and relevant, and new gaps         rule (5)
    D = h(D u D_new | K)        cut both down to verbatim spans that a fact or a gap accepts              rules (3), (4)

until R is empty or, with a moderator, D is judged sufficient (rule 1). A separate agent answers from K and D.

Competing agents have their own K, R and Q and share D: in each step the agent with the fewest gaps writes it.
Collaborating agents share everything and divide the gaps.

Deviations, where the paper is silent:
- R starts as the question, so the first query is the question, without a call. Of competing agents only the first
  searches for it; the others count it as asked and propose.
- Each of several agents has its own focus (`FOCI`); with the same prompt they would be clones.
- One call checks all facts, against the passages that they cite (all passages, if one cites none). If the updater sees
  no more gaps but a fact fails the check, the gaps stay.
- A sentence that no fact supports but that bears on a gap is flagged: it is ranked last and judged again in the next
  step, or discarded (``unsupported``).
- Calls that cannot change anything are skipped. A step with no new passage and no change is the last.
- The paper leaves its similarities open. Here they compare sets of topic words: queries and gaps by the cosine; facts
  with sentences by the share of the shorter one's words in the other, as a fact is much shorter than its sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dspy

from ..data.passages import Evidence, Fact, Hit, Retriever
from ..data.text import content_terms, title_key
from ..signatures import (
    AnswerFromKnowledge,
    AssessEvidence,
    CheckFacts,
    FilterSpans,
    NumberedPassages,
    ProposeQueries,
    UpdateKnowledge,
)
from ..signatures.replies import read_probability
from .agent import Agent, together
from .candidates import Candidates, read_spans, split_citations
from .prediction import check_question, conclude, nothing_found, read_answer
from .program import Program, register
from .search import Pool, Search
from .trace import Checked, Judged, Learned, Proposed, Selected, Trace
from .tunable import choice, integer, real

ALONE = "everything that the question asks for"
FOCI = (
    "entities: who and what is meant, by full name",
    "relations: how one thing leads to the next",
    "constraints: times, places, numbers and kinds",
)
MAX_ITEMS = 20  # facts or gaps of one reply


@register("kair")
class Kair(Program):
    """Query, learn and filter step by step until nothing is required, then answer.

    3 LM calls in the first step, 4 in each later one, and 1 for the answer, all sequential; 1 search per step. Several
    agents work in parallel and multiply these calls, not the waiting time. The moderator adds 1 call per step.

    Args:
        retriever: For questions without a pool of their own.
        k: Passages per search.
        steps: Maximum number of steps.
        agents: Number of agents, 1 to 3.
        mode: "competition" or "collaboration", with several agents.
    """

    def __init__(
        self,
        retriever: Retriever | None = None,
        k: int = 10,
        steps: int = 6,
        agents: int = 1,
        mode: str = "competition",
    ) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.steps = integer(steps, 1, 10)
        self.agents = integer(agents, 1, len(FOCI))
        self.mode = choice(mode, ("competition", "collaboration"))
        self.proposals = integer(3, 1, 6)
        self.diversity = real(0.5, 0.0, 1.0)  # alpha_d
        self.acceptance = real(0.3, 0.0, 1.0)  # tau_2
        self.unsupported = choice("flag", ("flag", "discard"))
        self.moderated = choice(False, (True, False))
        self.sufficiency = real(0.75, 0.0, 1.0)  # tau
        self.querier = Agent(ProposeQueries)
        self.updater = Agent(UpdateKnowledge)
        self.checker = Agent(CheckFacts)
        self.filterer = Agent(FilterSpans)
        self.moderator = Agent(AssessEvidence)
        self.answerer = Agent(AnswerFromKnowledge)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        question, trace = check_question(question), Trace()
        team = self._team(question)
        lead, documents, seen = team[0], Candidates(), list[Hit]()
        for step in range(1, self.steps.value + 1):
            agents = self._deal(team)
            asked = together(trace, [partial(self._ask, agent, documents, pool) for agent in agents])
            found = [hit for _, hits in asked for hit in hits]
            if not found:
                new = any(after.queries != before.queries for (after, _), before in zip(asked, agents, strict=True))
                stop = "nothing found" if new else "no new query"
                break
            seen += found
            fresh = documents.extend(hit.passage for hit in found)

            learned = together(trace, [partial(self._learn, agent, documents, hits) for agent, hits in asked])
            changed = any(
                (after.known, after.required) != (before.known, before.required)
                for after, before in zip(learned, agents, strict=True)
            )
            if self.mode.value == "competition":
                proposals = [(agent, hits) for agent, (_, hits) in zip(learned, asked, strict=True) if hits]
                lead, found = min(proposals, key=lambda proposal: len(proposal[0].required))
            else:
                lead = joined(team[0], agents, learned)
            lead = replace(lead, context=self._filter(step, lead, documents, found, trace))
            team = [replace(agent, context=lead.context) for agent in learned] if len(team) > 1 else [lead]

            if stop := self._stopped(lead, documents, bool(fresh) or changed, trace):
                break
        else:
            stop = "steps"

        if not seen:
            return nothing_found(trace)
        known = lead.inputs["known"]
        reply = self.answerer(question=question, known=known, evidence=documents.show(lead.context))
        answer, confidence = read_answer(reply, trace)
        return conclude(answer, confidence, trace, evidence=lead.context, seen=seen, stop=stop)

    def _team(self, question: str) -> list[KairState]:
        """The states at the start: one per competing agent, or one for all."""
        foci = FOCI[: self.agents.value] if self.agents.value > 1 else (ALONE,)
        if self.mode.value == "collaboration":
            foci = foci[:1]
        first = KairState(question, foci[0], required=(question,))
        return [first, *(replace(first, focus=focus, queries=(question,)) for focus in foci[1:])]

    def _deal(self, team: list[KairState]) -> list[KairState]:
        """The agents of this step; collaborating agents divide the gaps."""
        if self.mode.value == "competition" or self.agents.value == 1:
            return team
        board, n = team[0], self.agents.value
        shares = [replace(board, focus=focus, required=board.required[i::n]) for i, focus in enumerate(FOCI[:n])]
        dealt = [share for share in shares if share.required]
        return dealt if len(dealt) > 1 else [replace(share, focus=ALONE) for share in dealt]

    def _ask(self, agent: KairState, documents: Candidates, pool: Pool, trace: Trace) -> tuple[KairState, list[Hit]]:
        """f and the search: the agent with its new query, if there is one, and the hits."""
        query = self._propose(agent, documents, trace) if agent.queries else agent.question
        if not query:
            return agent, []
        hits = self.search(query, pool, trace)
        return replace(agent, queries=(*agent.queries, query)), hits

    def _propose(self, agent: KairState, documents: Candidates, trace: Trace) -> str:
        """The best new query; empty if there is none."""
        reply = self.querier(
            **agent.inputs,
            focus=agent.focus,
            count=self.proposals.value,
            earlier=list(agent.queries),
            evidence=documents.show(agent.context),
        )
        taken = {title_key(query) for query in agent.queries}
        scores: dict[str, float] = {}
        invalid = []
        for text in (" ".join(text.split()) for text in reply.queries):
            if title_key(text) in taken or len(scores) == self.proposals.value:
                invalid.append(text)
            else:
                taken.add(title_key(text))
                scores[text] = agent.score(text, self.diversity.value)
        ranked = sorted(scores.items(), key=lambda item: -item[1])
        trace.add(Proposed(tuple(ranked), tuple(invalid)))
        return ranked[0][0] if ranked else ""

    def _learn(self, agent: KairState, documents: Candidates, hits: list[Hit], trace: Trace) -> KairState:
        """g: the agent with the accepted facts and the remaining gaps."""
        if not hits:
            return agent
        reply = self.updater(**agent.inputs, focus=agent.focus, passages=_shown(agent, documents, hits))
        stated, invalid = read_facts(reply.new_facts, documents)
        facts = distinct(stated, agent.known)[:MAX_ITEMS]
        gaps = tuple(dict.fromkeys(" ".join(gap.split()) for gap in reply.gaps))
        unused = (*invalid, *_texts([fact for fact in stated if fact not in facts]), *gaps[MAX_ITEMS:])
        gaps = gaps[:MAX_ITEMS]
        trace.add(Learned(_texts(facts), gaps, unused))

        accepted, unsupported = self._check(agent, facts, documents, hits, trace) if facts else ([], [])
        if unsupported and not gaps:
            gaps = agent.required
        return replace(agent, known=(*agent.known, *accepted), required=gaps)

    def _check(
        self, agent: KairState, facts: list[KnownFact], documents: Candidates, hits: list[Hit], trace: Trace
    ) -> tuple[list[KnownFact], list[KnownFact]]:
        """The facts that are supported and relevant to a gap, and those that are not supported."""
        cited = [Evidence(item.passage) for fact in facts for item in fact.support]
        reply = self.checker(
            required=list(agent.required),
            passages=documents.show(cited) if all(fact.support for fact in facts) else _shown(agent, documents, hits),
            statements=[f"{n}. {fact.text}" for n, fact in enumerate(facts, 1)],
        )
        supported, wrong = read_numbers(reply.supported, len(facts))
        relevant, strange = read_numbers(reply.relevant, len(facts))
        accepted, unsupported, irrelevant = list[KnownFact](), list[KnownFact](), list[KnownFact]()
        for n, fact in enumerate(facts, 1):
            (unsupported if n not in supported else accepted if n in relevant else irrelevant).append(fact)
        trace.add(Checked(_texts(accepted), _texts(unsupported), (*wrong, *strange), _texts(irrelevant)))
        return accepted, unsupported

    def _filter(
        self, step: int, lead: KairState, documents: Candidates, hits: list[Hit], trace: Trace
    ) -> tuple[Evidence, ...]:
        """h: the new context, sentences that a fact or a gap accepts; unsupported ones come last or are discarded."""
        if not hits:
            return lead.context
        reply = self.filterer(**lead.inputs, passages=_shown(lead, documents, hits))
        spans, invalid = read_spans(reply.spans, documents)
        supported = [item for item in spans if lead.supports(item, self.acceptance.value)]
        flagged = [item for item in spans if item not in supported]
        kept = list(supported)
        if self.unsupported.value == "flag":
            kept += [item for item in flagged if lead.asks_for(item, self.acceptance.value)]
        trace.add(Selected(step, tuple(item.fact for item in kept), invalid, tuple(item.fact for item in flagged)))
        return tuple(kept)

    def _stopped(self, lead: KairState, documents: Candidates, moved: bool, trace: Trace) -> str:
        """The reason to stop after this step, by rule (1) or because nothing changes; empty if there is none."""
        if not lead.required:
            return "complete"
        if self.moderated.value:
            reply = self.moderator(question=lead.question, evidence=documents.show(lead.context))
            score = float(read_probability(reply.sufficiency))
            trace.add(Judged("sufficiency", score))
            if score >= self.sufficiency.value:
                return "sufficient"
        return "" if moved else "stable"


def _shown(agent: KairState, documents: Candidates, hits: list[Hit]) -> NumberedPassages:
    """D u D_new: the spans kept so far and the new passages."""
    return documents.show([*agent.context, *(Evidence(hit.passage) for hit in hits)])


# --- the state --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownFact:
    """A verified fact and the sentences that it cites."""

    text: str
    support: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class KairState:
    """The knowledge of one agent; immutable."""

    question: str  # the user's question
    focus: str  # what this agent pays attention to
    known: tuple[KnownFact, ...] = ()  # the paper's K
    required: tuple[str, ...] = ()  # R, the open gaps
    queries: tuple[str, ...] = ()  # Q, oldest first
    context: tuple[Evidence, ...] = ()  # D, sentences, most useful first

    @property
    def inputs(self) -> dict[str, Any]:
        """The input fields that several agents share."""
        return {"question": self.question, "known": list(_texts(self.known)), "required": list(self.required)}

    def score(self, query: str, alpha: float) -> float:
        """Rule (2): alpha * Div(q' | Q) + (1 - alpha) * Rel(q' | R)."""
        return alpha * (1 - nearest(query, self.queries)) + (1 - alpha) * nearest(query, self.required)

    def supports(self, item: Evidence, threshold: float) -> bool:
        """Rule (4): whether a known fact cites a sentence or is similar to it."""
        cited = {evidence.fact for fact in self.known for evidence in fact.support}
        if item.fact in cited or Fact(item.passage.id) in cited:
            return True
        return relevance(_titled(item), _texts(self.known)) > threshold

    def asks_for(self, item: Evidence, threshold: float) -> bool:
        """Whether a sentence bears on an open gap."""
        return relevance(_titled(item), self.required) > threshold


def joined(board: KairState, dealt: Sequence[KairState], agents: Sequence[KairState]) -> KairState:
    """The shared state after all agents: every fact, every remaining gap, every query.

    Only the agent that a gap was dealt to can close it.
    """
    others = [frozenset(board.required) - frozenset(share.required) for share in dealt]
    gaps = (gap for agent, not_its in zip(agents, others, strict=True) for gap in agent.required if gap not in not_its)
    return replace(
        board,
        known=tuple(distinct(fact for agent in agents for fact in agent.known)),
        required=tuple(dict.fromkeys(gaps)),
        queries=tuple(dict.fromkeys(query for agent in agents for query in agent.queries)),
    )


def distinct(facts: Iterable[KnownFact], known: Iterable[KnownFact] = ()) -> list[KnownFact]:
    """The facts that are new, each once."""
    keys = {title_key(fact.text) for fact in known}
    found: list[KnownFact] = []
    for fact in facts:
        if title_key(fact.text) not in keys:
            keys.add(title_key(fact.text))
            found.append(fact)
    return found


def nearest(query: str, others: Iterable[str]) -> float:
    """The cosine with the most similar of some texts, in [0, 1]; 0 if there are none."""
    return max((_overlap(query, other, lambda m, n: math.sqrt(m * n)) for other in others), default=0.0)


def relevance(segment: str, others: Iterable[str]) -> float:
    """Rel(d', k): the overlap with the most similar of some facts or gaps, in [0, 1]; 0 if there are none."""
    return max((_overlap(segment, other, min) for other in others), default=0.0)


def _overlap(one: str, other: str, size: Callable[[int, int], float]) -> float:
    """The shared topic words relative to ``size``; texts without topic words are equal or not."""
    left, right = frozenset(content_terms(one)), frozenset(content_terms(other))
    if not left or not right:
        return float(title_key(one) == title_key(other))
    return len(left & right) / size(len(left), len(right))


def _titled(item: Evidence) -> str:
    """A sentence with the title of its passage, which often is what "he" or "it" refers to."""
    return f"{item.passage.title} {item.text}"


def _texts(facts: Iterable[KnownFact]) -> tuple[str, ...]:
    return tuple(fact.text for fact in facts)


# --- replies ----------------------------------------------------------------------------------------------------------

_COUNT = re.compile(r"\W*(?:statement\W+)?(\d{1,4})(?!\w)", re.IGNORECASE)


def read_facts(texts: Iterable[str], documents: Candidates) -> tuple[list[KnownFact], tuple[str, ...]]:
    """Facts with the sentences that they cite ("... (2s1)"), and the invalid citations."""
    facts, invalid = [], list[str]()
    for text in (" ".join(text.split()) for text in texts):
        fact, ids = split_citations(text)
        support, wrong = documents.resolve(ids)
        invalid += wrong
        facts.append(KnownFact(fact, tuple(support)))
    return [fact for fact in facts if fact.text], tuple(invalid)


def read_numbers(reply: Iterable[str], most: int) -> tuple[set[int], tuple[str, ...]]:
    """The numbers in 1..``most`` of a reply ("2", "[2]", "2. Ann Lee wrote Dust."), and the other entries."""
    found: set[int] = set()
    invalid = []
    for entry in reply:
        mark = _COUNT.match(entry)
        if mark and 1 <= int(mark[1]) <= most:
            found.add(int(mark[1]))
        else:
            invalid.append(entry[:80])
    return found, tuple(invalid)
