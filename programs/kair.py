"""KAIR (arXiv 2503.13275): knowledge-aware iterative retrieval, by one agent or by up to three.

The state is what is known (K), required (R), asked (Q) and kept (D, the refined context); see `knowledge`. A step:

    q = f(D | K, R, Q)          propose queries, choose the one that is most diverse and most relevant    rule (2)
    K, R = g(D u D_new | K, R)  read what it found: new facts, if supported and relevant, and new gaps    rule (5)
    D = h(D u D_new | K)        cut both down to verbatim spans that a fact or a gap accepts              rules (3), (4)

until R is empty or, with a moderator, D is judged sufficient (rule 1). A separate agent answers from K and D.

Competing agents have K, R and Q of their own and share D: at every step the one with the fewest gaps writes it.
Collaborating agents share everything and are dealt the gaps.

Our decisions, where the paper is silent:
- R starts as the question itself. The first query therefore is the question, without a call: nothing has been asked
  yet, so by rule (2) no other can be worth more. It goes to the first of competing agents; the others, who would only
  repeat it, count it as asked and propose.
- Agents with the same prompt would be clones: each has a focus of its own (`FOCI`).
- Whether facts are supported and relevant is asked in one call for all, of the passages that they cite (of all
  passages read, if one cites none). Where the updater sees no more gaps but a fact failed the check, the gaps stay.
- A sentence that no fact supports but that bears on a gap is flagged: it goes behind the others and is judged again in
  the next step; or it is discarded (``unsupported``).
- Calls that cannot change anything are left out: no facts, no check; nothing found, no update and no filter. A step
  that found no new passage and taught nothing is the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import dspy

from ..data.passages import Evidence, Hit, Passage, Retriever
from ..data.pool import PassagePool
from ..data.text import title_key
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
from .agent import Agent
from .candidates import Candidates
from .knowledge import Knowledge, Known, distinct, joined
from .prediction import check_question, conclude, nothing_found, read_answer
from .program import Program
from .search import Search
from .spans import read_facts, read_numbers, read_spans
from .together import together
from .trace import Checked, Judged, Learned, Proposed, Selected, Trace
from .tunables import choice, integer, real

Pool = Sequence[Passage] | PassagePool | None

ALONE = "everything that the question asks for"
FOCI = (
    "entities: who and what is meant, by full name",
    "relations: how one thing leads to the next",
    "constraints: times, places, numbers and kinds",
)
MOST = 20  # facts or gaps of one reply; a longer list is a model that runs away


class Kair(Program):
    """Query, learn and filter step by step until nothing is required any more, then answer.

    3 LM calls in the first step, 4 in every later one, and 1 for the answer, all sequential; 1 search a step. Several
    agents propose, learn and check side by side: that many times these calls, but only the first queries of competing
    agents make one wait longer, for 1 call. The moderator costs 1 call a step more.

    Args:
        retriever: Where to search when a question brings no pool of its own.
        k: Passages that one search returns.
        steps: The most steps.
        agents: How many agents work side by side.
        mode: "competition" or "collaboration", of several agents.
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

    def _team(self, question: str) -> list[Knowledge]:
        """Those with a state of their own: competing agents, or the one blackboard of all."""
        foci = FOCI[: self.agents.value] if self.agents.value > 1 else (ALONE,)
        if self.mode.value == "collaboration":
            foci = foci[:1]
        first = Knowledge(question, foci[0], required=(question,))
        return [first, *(replace(first, focus=focus, queries=(question,)) for focus in foci[1:])]

    def _deal(self, team: list[Knowledge]) -> list[Knowledge]:
        """Who works in this step, on which gaps: on a blackboard those of everybody's turn."""
        if self.mode.value == "competition" or self.agents.value == 1:
            return team
        board, n = team[0], self.agents.value
        shares = [replace(board, focus=focus, required=board.required[i::n]) for i, focus in enumerate(FOCI[:n])]
        dealt = [share for share in shares if share.required]
        return dealt if len(dealt) > 1 else [replace(share, focus=ALONE) for share in dealt]

    def _ask(self, agent: Knowledge, documents: Candidates, pool: Pool, trace: Trace) -> tuple[Knowledge, list[Hit]]:
        """f and the search: the agent with its new query, and what it found; as it was, if there is no new query."""
        query = self._propose(agent, documents, trace) if agent.queries else agent.question
        if not query:
            return agent, []
        hits = self.search(query, pool, trace)
        return replace(agent, queries=(*agent.queries, query)), hits

    def _propose(self, agent: Knowledge, documents: Candidates, trace: Trace) -> str:
        reply = self.querier(
            **agent.inputs,
            focus=agent.focus,
            count=self.proposals.value,
            earlier=list(agent.queries),
            evidence=documents.show(agent.context),
        )
        taken = {title_key(query) for query in agent.queries}
        worth: dict[str, float] = {}
        invalid = []
        for text in (" ".join(text.split()) for text in reply.queries):
            if title_key(text) in taken or len(worth) == self.proposals.value:
                invalid.append(text)
            else:
                taken.add(title_key(text))
                worth[text] = agent.worth(text, self.diversity.value)
        ranked = sorted(worth.items(), key=lambda item: -item[1])
        trace.add(Proposed(tuple(ranked), tuple(invalid)))
        return ranked[0][0] if ranked else ""

    def _learn(self, agent: Knowledge, documents: Candidates, hits: list[Hit], trace: Trace) -> Knowledge:
        """g: the agent with the facts that it may add, and with the gaps that remain."""
        if not hits:
            return agent
        reply = self.updater(**agent.inputs, focus=agent.focus, passages=_shown(agent, documents, hits))
        stated, invalid = read_facts(reply.new_facts, documents)
        facts = distinct(stated, agent.known)[:MOST]
        gaps = tuple(dict.fromkeys(" ".join(gap.split()) for gap in reply.gaps))
        unused = (*invalid, *_texts([fact for fact in stated if fact not in facts]), *gaps[MOST:])
        gaps = gaps[:MOST]
        trace.add(Learned(_texts(facts), gaps, unused))

        accepted, unsupported = self._check(agent, facts, documents, hits, trace) if facts else ([], [])
        if unsupported and not gaps:
            gaps = agent.required
        return replace(agent, known=(*agent.known, *accepted), required=gaps)

    def _check(
        self, agent: Knowledge, facts: list[Known], documents: Candidates, hits: list[Hit], trace: Trace
    ) -> tuple[list[Known], list[Known]]:
        """The facts that are both supported by a document and relevant to a gap; and those that are not supported."""
        cited = [Evidence(item.passage) for fact in facts for item in fact.support]
        reply = self.checker(
            required=list(agent.required),
            passages=documents.show(cited) if all(fact.support for fact in facts) else _shown(agent, documents, hits),
            statements=[f"{n}. {fact.text}" for n, fact in enumerate(facts, 1)],
        )
        supported, wrong = read_numbers(reply.supported, len(facts))
        relevant, strange = read_numbers(reply.relevant, len(facts))
        accepted, unsupported, irrelevant = list[Known](), list[Known](), list[Known]()
        for n, fact in enumerate(facts, 1):
            (unsupported if n not in supported else accepted if n in relevant else irrelevant).append(fact)
        trace.add(Checked(_texts(accepted), _texts(unsupported), (*wrong, *strange), _texts(irrelevant)))
        return accepted, unsupported

    def _filter(
        self, step: int, lead: Knowledge, documents: Candidates, hits: list[Hit], trace: Trace
    ) -> tuple[Evidence, ...]:
        """h: the new context. Only what a fact or a gap accepts stays; what no fact supports stands last, or goes."""
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

    def _stopped(self, lead: Knowledge, documents: Candidates, moved: bool, trace: Trace) -> str:
        """Why this step is the last, if it is: rule (1), or because the next one would be asked the same."""
        if not lead.required:
            return "complete"
        if self.moderated.value:
            reply = self.moderator(question=lead.question, evidence=documents.show(lead.context))
            score = float(read_probability(reply.sufficiency))
            trace.add(Judged("sufficiency", score))
            if score >= self.sufficiency.value:
                return "sufficient"
        return "" if moved else "stable"


def _texts(facts: list[Known]) -> tuple[str, ...]:
    return tuple(fact.text for fact in facts)


def _shown(agent: Knowledge, documents: Candidates, hits: list[Hit]) -> NumberedPassages:
    """D u D_new: the spans kept so far and the passages just found, whole."""
    return documents.show([*agent.context, *(Evidence(hit.passage) for hit in hits)])
