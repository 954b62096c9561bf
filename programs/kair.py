"""KAIR (arXiv 2503.13275): knowledge-aware iterative retrieval, by one agent or by up to three that compete.

The state is what is known (K), required (R), asked (Q) and kept (D, the refined context). Each step:

    q = f(D | K, R, Q)          propose queries, choose the most diverse and relevant one                 rule (2)
    K, R = g(D u D_new | K, R)  read its hits: new facts, if supported and relevant, and new gaps         rule (5)
    D = h(D u D_new | K)        cut both down to verbatim spans that a fact or a gap accepts              rules (3), (4)

until R is empty or, with a moderator, D is judged sufficient (rule 1). A known fact that new passages contradict is
dropped; what they say instead is a new fact. A separate generator answers from D.

Competing agents have their own K, R and Q and share D: in each step the agent with the fewest gaps writes it.

The paper leaves open:
- Div and Rel: here queries are compared with queries and gaps by the cosine of topic words; 3 queries are proposed;
- the first query: here R starts as the question, so the first query is the question, without a call. Of competing
  agents only the first searches for it; the others count it as asked and propose;
- what happens to a span that no fact supports (the paper allows both): here one that bears on a gap is ranked last and
  judged again in the next step;
- a limit of steps (here 20), and the prompts, which are ours.

It differs:
- one call checks all new facts, against the passages that they cite (all passages, if one cites none, or if a known
  fact is disputed); a known fact is checked again only if the updater says that the passages contradict it;
- if the updater sees no more gaps but a fact fails the check, or a known one is dropped, the gaps stay;
- a step with no new passage and no change is the last;
- agents that share one knowledge base, which the paper sketches without experiments, are left out.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import dspy

from ..data.passages import Evidence, Hit, Retriever
from ..data.text import title_key
from ..signatures import (
    AnswerFromContext,
    AssessEvidence,
    CheckFacts,
    FilterSpans,
    NumberedPassages,
    ProposeQueries,
    UpdateKnowledge,
)
from ..signatures.replies import read_probability, read_texts
from .agent import Agent
from .candidates import Candidates, read_spans
from .knowledge import KairState, KnownFact, distinct, read_facts, read_known, read_numbers, texts
from .prediction import conclude, nothing_found, read_answer
from .program import Program, register
from .run import Pool, current, record, together
from .search import Search
from .trace import Checked, Judged, Learned, Proposed, Selected
from .tunable import integer, real, switch

ALONE = "everything that the question asks for"
ROLES = (
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
        agents: Number of competing agents, 1 to 3.

    In the paper the roles of several agents emerge, so they need a temperature above 0; with ``roles`` each is told
    what to pay attention to. ``moderated`` asks a moderator, for whom ``sufficiency`` is enough.
    """

    def __init__(
        self, retriever: Retriever | None = None, k: int = 10, steps: int = 20, agents: int = 1, proposals: int = 3
    ) -> None:
        super().__init__(abstain_below=0.0)
        self.search = Search(retriever, k)
        self.steps = integer(steps, 1, 20)
        self.agents = integer(agents, 1, len(ROLES))
        self.roles = switch(False, needs=("agents", (2, 3)))
        self.proposals = integer(proposals, 1, 6)
        self.moderated = switch(False)
        self.sufficiency = real(0.75, 0.0, 1.0, needs=("moderated", (True,)))  # tau
        self.querier = Agent(ProposeQueries)
        self.updater = Agent(UpdateKnowledge)
        self.checker = Agent(CheckFacts)
        self.filterer = Agent(FilterSpans)
        self.moderator = Agent(AssessEvidence)
        self.answerer = Agent(AnswerFromContext)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        agents = self._team(question)
        lead, documents = agents[0], Candidates()
        for step in range(1, self.steps.value + 1):
            asked = together([partial(self._ask, agent, documents) for agent in agents])
            found = [hit for _, hits in asked for hit in hits]
            if not found:
                new = any(after.queries != before.queries for (after, _), before in zip(asked, agents, strict=True))
                stop = "nothing found" if new else "no new query"
                break
            fresh = documents.extend(hit.passage for hit in found)

            learned = together([partial(self._learn, agent, documents, hits) for agent, hits in asked])
            changed = any(
                (after.known, after.required) != (before.known, before.required)
                for after, before in zip(learned, agents, strict=True)
            )
            proposals = [(agent, hits) for agent, (_, hits) in zip(learned, asked, strict=True) if hits]
            lead, hits = min(proposals, key=lambda proposal: len(proposal[0].required))
            lead = replace(lead, context=self._filter(step, lead, documents, hits))
            agents = [replace(agent, context=lead.context) for agent in learned]

            if stop := self._stopped(lead, documents, bool(fresh) or changed):
                break
        else:
            stop = "steps"

        if not current().seen:
            return nothing_found()
        reply = self.answerer(question=question, evidence=documents.show(lead.context))
        return conclude(*read_answer(reply), evidence=lead.context, stop=stop)

    def _team(self, question: str) -> list[KairState]:
        """The states of all agents at the start."""
        count = self.agents.value
        roles = ROLES if self.roles.value and count > 1 else (ALONE,) * count
        first = KairState(question, roles[0], required=(question,))
        others = (replace(first, focus=roles[n], queries=(question,), number=n) for n in range(1, count))
        return [first, *others]

    def _options(self, agent: KairState) -> dict[str, Any]:
        """The options of a call: agents that are asked the same must not share a cached reply."""
        return {"config": {"rollout_id": agent.number}} if agent.number and not self.roles.value else {}

    def _ask(self, agent: KairState, documents: Candidates) -> tuple[KairState, list[Hit]]:
        """f and the search: the agent with its new query, if there is one, and the hits."""
        query = self._propose(agent, documents) if agent.queries else agent.question
        if not query:
            return agent, []
        return replace(agent, queries=(*agent.queries, query)), self.search(query)

    def _propose(self, agent: KairState, documents: Candidates) -> str:
        """The best new query; empty if there is none."""
        reply = self.querier(
            **agent.inputs,
            focus=agent.focus,
            count=self.proposals.value,
            earlier=list(agent.queries),
            evidence=documents.show(agent.context),
            **self._options(agent),
        )
        alpha = read_probability(reply.diversity)
        taken = {title_key(query) for query in agent.queries}
        scores: dict[str, float] = {}
        invalid = []
        for text in read_texts(reply.queries):
            if title_key(text) in taken or len(scores) == self.proposals.value:
                invalid.append(text)
            else:
                taken.add(title_key(text))
                scores[text] = agent.score(text, alpha)
        ranked = sorted(scores.items(), key=lambda item: -item[1])
        record(Proposed(tuple(ranked), tuple(invalid), alpha))
        return ranked[0][0] if ranked else ""

    def _learn(self, agent: KairState, documents: Candidates, hits: list[Hit]) -> KairState:
        """g: the agent with the accepted facts and the remaining gaps."""
        if not hits:
            return agent
        shown = _shown(agent, documents, hits)
        reply = self.updater(**agent.inputs, focus=agent.focus, passages=shown, **self._options(agent))
        stated, invalid = read_facts(read_texts(reply.new_facts), documents)
        facts = distinct(stated, agent.known)[:MAX_ITEMS]
        disputed, wrong = read_known(read_texts(reply.contradicted), agent.known)
        gaps = tuple(dict.fromkeys(read_texts(reply.gaps)))
        unused = (*invalid, *texts([fact for fact in stated if fact not in facts]), *wrong, *gaps[MAX_ITEMS:])
        gaps = gaps[:MAX_ITEMS]
        record(Learned(texts(facts), gaps, unused))

        cited = [Evidence(item.passage) for fact in facts for item in fact.support]
        if all(fact.support for fact in facts) and not disputed:
            shown = documents.show(cited)
        checked = self._check(agent, facts, disputed, shown) if facts or disputed else Checked((), ())
        if (checked.unsupported or checked.contradicted) and not gaps:
            gaps = agent.required
        kept = [fact for fact in agent.known if fact.text not in checked.contradicted]
        return replace(agent, known=(*kept, *(fact for fact in facts if fact.text in checked.supported)), required=gaps)

    def _check(
        self, agent: KairState, facts: list[KnownFact], disputed: list[KnownFact], passages: NumberedPassages
    ) -> Checked:
        """Which new facts are supported, and relevant to a gap, and which disputed known ones are contradicted."""
        statements = texts([*facts, *disputed])
        reply = self.checker(
            required=list(agent.required),
            passages=passages,
            statements=[f"{n}. {text}" for n, text in enumerate(statements, 1)],
            **self._options(agent),
        )
        supported, wrong = read_numbers(reply.supported, len(statements))
        relevant, strange = read_numbers(reply.relevant, len(statements))
        contradicted, odd = read_numbers(reply.contradicted, len(statements))
        new = list(enumerate(texts(facts), 1))
        checked = Checked(
            supported=tuple(text for n, text in new if n in supported & relevant),
            unsupported=tuple(text for n, text in new if n not in supported),
            invalid=(*wrong, *strange, *odd),
            irrelevant=tuple(text for n, text in new if n in supported - relevant),
            contradicted=tuple(text for n, text in enumerate(statements, 1) if n > len(facts) and n in contradicted),
        )
        record(checked)
        return checked

    def _filter(self, step: int, lead: KairState, documents: Candidates, hits: list[Hit]) -> tuple[Evidence, ...]:
        """h: the new context; spans that no fact supports come last."""
        reply = self.filterer(**lead.inputs, passages=_shown(lead, documents, hits))
        spans, invalid = read_spans(read_texts(reply.spans), documents)
        judged, wrong = documents.resolve(reply.supported)
        supported = [item for item in spans if item in judged or lead.cites(item)]
        flagged = [item for item in spans if item not in supported]
        kept = [*supported, *flagged]
        ids = tuple(item.fact for item in kept), (*invalid, *wrong), tuple(item.fact for item in flagged)
        record(Selected(step, *ids))
        return tuple(kept)

    def _stopped(self, lead: KairState, documents: Candidates, moved: bool) -> str:
        """The reason to stop after this step, by rule (1) or because nothing changes; empty if there is none."""
        if not lead.required:
            return "complete"
        if self.moderated.value:
            reply = self.moderator(question=lead.question, evidence=documents.show(lead.context))
            score = read_probability(reply.sufficiency)
            record(Judged("sufficiency", score))
            if score >= self.sufficiency.value:
                return "sufficient"
        return "" if moved else "stable"


def _shown(agent: KairState, documents: Candidates, hits: list[Hit]) -> NumberedPassages:
    """D u D_new: the spans kept so far and the new passages."""
    return documents.show([*agent.context, *(Evidence(hit.passage) for hit in hits)])
