"""KAIR (arXiv 2503.13275): knowledge-aware iterative retrieval, by one agent or by up to three that compete.
docs/programs.md says what the paper leaves open, and what is different here.

The state is what is known (K), required (R), asked (Q) and kept (D, the refined context). Each step:

    q = f(D | K, R, Q)          propose queries, choose the most diverse and relevant one                 rule (2)
    K, R = g(D u D_new | K, R)  read its hits: new facts, if supported and relevant, and new gaps         rule (5)
    D = h(D u D_new | K)        cut both down to spans that a fact or a gap accepts: sentences, by id     rules (3), (4)

until R is empty or, with a moderator, D is judged sufficient (rule 1). A known fact is checked again beside a new one
that resembles it, and dropped if the passages contradict it. A separate generator answers from D.

Competing agents have their own K, R and Q and share D: in each step the agent with the fewest gaps writes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dspy

from .. import signatures
from ..data.passages import Evidence, Fact, Hit, Retriever
from ..data.text import content_terms, title_key
from ..signatures.fields import read_probability, read_texts
from .agent import Agent
from .candidates import Candidates, Cited, ids, split_citations
from .prediction import conclude, nothing_found, read_answer
from .program import Program, register
from .run import Pool, current, record, together
from .search import Search
from .trace import Checked, Judged, Proposed, Required, Selected
from .tunable import integer, real, switch

ALONE = "everything that the question asks for"
ROLES = (
    "entities: who and what is meant, by full name",
    "relations: how one thing leads to the next",
    "constraints: times, places, numbers and kinds",
)
PROPOSALS = 3  # queries of one reply
MAX_ITEMS = 20  # facts or gaps of one reply
ALIKE = 0.5  # similarity above which two facts may contradict each other


@dataclass
class KairState:
    """The knowledge of one agent."""

    question: str  # the user's question
    focus: str  # what this agent pays attention to
    known: list[Cited] = field(default_factory=list)  # the paper's K: verified facts
    required: list[str] = field(default_factory=list)  # R, the open gaps
    queries: list[str] = field(default_factory=list)  # Q, oldest first
    options: dict[str, Any] = field(default_factory=dict)  # of its calls

    @property
    def inputs(self) -> dict[str, Any]:
        """The input fields that several agents share."""
        return {"question": self.question, "known": [fact.text for fact in self.known], "required": self.required}

    def score(self, query: str, alpha: float) -> float:
        """Rule (2): alpha * Div(q' | Q) + (1 - alpha) * Rel(q' | R)."""
        return alpha * (1 - nearest(query, self.queries)) + (1 - alpha) * nearest(query, self.required)


@register("kair")
class Kair(Program):
    """Query, learn and filter step by step until nothing is required, then answer.

    3 LM calls in the first step, 4 in each later one, and 1 for the answer, all sequential; 1 search per step. Several
    agents work in parallel and multiply these calls, not the waiting time. The moderator adds 1 call per step.

    Args:
        k: Passages per search.
        steps: Maximum number of steps.
        agents: Number of competing agents, 1 to 3.

    In the paper the roles of several agents emerge, so they need a temperature above 0; with ``roles`` each is told
    what to pay attention to. ``moderated`` asks a moderator, for whom ``sufficiency`` is enough.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 10, steps: int = 20, agents: int = 1) -> None:
        super().__init__(abstain_below=0.0)
        self.search = Search(retriever, k)
        self.steps = integer(steps, 1, 20)
        self.agents = integer(agents, 1, len(ROLES))
        self.roles = switch(False, needs=("agents", (2, 3)))
        self.moderated = switch(False)
        self.sufficiency = real(0.75, 0.0, 1.0, needs=("moderated", (True,)))  # tau
        self.querier = Agent(signatures.ProposeQueries)
        self.updater = Agent(signatures.UpdateKnowledge)
        self.checker = Agent(signatures.CheckFacts)
        self.filterer = Agent(signatures.FilterSpans)
        self.moderator = Agent(signatures.AssessEvidence)
        self.answerer = Agent(signatures.AnswerFromContext)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        agents, documents, context = self._team(question), Candidates(), list[Evidence]()
        stop = "steps"
        for step in range(1, self.steps.value + 1):
            before = [len(agent.queries) for agent in agents]
            results = together([partial(self._search, agent, documents, context) for agent in agents])
            if not any(results):
                stop = "no new query" if [len(agent.queries) for agent in agents] == before else "nothing found"
                break
            fresh = documents.extend(hit.passage for hits in results for hit in hits)

            reading = list(zip(agents, results, strict=True))
            changed = together([partial(self._learn, agent, documents, context, hits) for agent, hits in reading])
            lead, hits = min((pair for pair in reading if pair[1]), key=lambda pair: len(pair[0].required))
            context = self._filter(step, lead, documents, context, hits)

            if not lead.required:
                stop = "complete"
                break
            if self.moderated.value:
                score = read_probability(
                    self.moderator(question=question, evidence=documents.show(context)).sufficiency
                )
                record(Judged("sufficiency", score))
                if score >= self.sufficiency.value:
                    stop = "sufficient"
                    break
            if not fresh and not any(changed):
                stop = "stable"
                break

        if not current().seen:
            return nothing_found()
        reply = self.answerer(question=question, evidence=documents.show(context))
        return conclude(*read_answer(reply), evidence=context, stop=stop)

    def _team(self, question: str) -> list[KairState]:
        """The states of all agents at the start."""
        count = self.agents.value
        if self.roles.value and count > 1:
            team = [KairState(question, role, required=[question]) for role in ROLES[:count]]
        else:  # agents that are asked the same must not share a cached reply
            options: list[dict[str, Any]] = [{}, *({"config": {"rollout_id": n}} for n in range(1, count))]
            team = [KairState(question, ALONE, required=[question], options=option) for option in options]
        for other in team[1:]:
            other.queries.append(question)
        return team

    def _search(self, agent: KairState, documents: Candidates, context: Sequence[Evidence]) -> list[Hit]:
        """f and the search: the hits of the agent's new query, if there is one."""
        query = self._propose(agent, documents, context) if agent.queries else agent.question
        if not query:
            return []
        agent.queries.append(query)
        hits: list[Hit] = self.search(query)
        return hits

    def _propose(self, agent: KairState, documents: Candidates, context: Sequence[Evidence]) -> str:
        """The best new query; empty if there is none."""
        reply = self.querier(
            **agent.inputs,
            focus=agent.focus,
            evidence=documents.show(context),
            earlier=agent.queries,
            **agent.options,
        )
        alpha = read_probability(reply.diversity)
        taken = set(map(title_key, agent.queries))
        scores: dict[str, float] = {}
        invalid = []
        for text in read_texts(reply.queries):
            if title_key(text) in taken or len(scores) == PROPOSALS:
                invalid.append(text)
            else:
                taken.add(title_key(text))
                scores[text] = agent.score(text, alpha)
        ranked = sorted(scores.items(), key=lambda item: -item[1])
        record(Proposed(tuple(ranked), tuple(invalid), alpha))
        return ranked[0][0] if ranked else ""

    def _learn(self, agent: KairState, documents: Candidates, context: Sequence[Evidence], hits: Sequence[Hit]) -> bool:
        """g: accept facts, drop those that are contradicted, and set the remaining gaps; whether anything changed."""
        if not hits:
            return False
        shown = documents.show([*context, *(Evidence(hit.passage) for hit in hits)])
        reply = self.updater(**agent.inputs, focus=agent.focus, passages=shown, **agent.options)
        keys = {title_key(fact.text) for fact in agent.known}
        facts, unused = dict[str, Cited](), list[str]()
        for text in read_texts(reply.new_facts):
            text, cited = split_citations(text)
            support, invalid = documents.resolve(cited)
            unused += invalid
            if (key := title_key(text)) in keys or key in facts or len(facts) == MAX_ITEMS:
                unused.append(text)
            elif text:
                facts[key] = Cited(text, tuple(support))
        gaps = list(dict.fromkeys(agent.required if reply.gaps is None else read_texts(reply.gaps)))
        gaps, surplus = gaps[:MAX_ITEMS], gaps[MAX_ITEMS:]
        record(Required(tuple(gaps), (), tuple(fact.text for fact in facts.values()), (*unused, *surplus)))

        before = agent.known, agent.required
        if facts:
            new_texts = [fact.text for fact in facts.values()]
            to_check = [*facts.values(), *(fact for fact in agent.known if nearest(fact.text, new_texts) > ALIKE)]
            if all(fact.cited for fact in to_check):
                shown = documents.show(Evidence(item.passage) for fact in to_check for item in fact.cited)
            statements = [fact.text for fact in to_check]
            reply = self.checker(
                required=agent.required,
                passages=shown,
                statements=[f"{n}. {text}" for n, text in enumerate(statements, 1)],
                **agent.options,
            )
            supported, contradicted = set(reply.supported), set(reply.contradicted)
            relevant = supported if reply.relevant is None else set(reply.relevant)
            numbered = dict(enumerate(statements, 1))
            new = {n: text for n, text in numbered.items() if n <= len(facts)}
            checked = Checked(
                supported=tuple(text for n, text in new.items() if n in supported & relevant),
                unsupported=tuple(text for n, text in new.items() if n not in supported),
                invalid=tuple(str(n) for n in (*supported, *relevant, *contradicted) if n not in numbered),
                irrelevant=tuple(text for n, text in new.items() if n in supported - relevant),
                contradicted=tuple(
                    text for n, text in numbered.items() if n in contradicted - supported and n not in new
                ),
            )
            record(checked)
            if checked.unsupported or checked.contradicted:
                gaps = gaps or agent.required
            accepted = [fact for fact in facts.values() if fact.text in checked.supported]
            agent.known = [fact for fact in agent.known if fact.text not in checked.contradicted] + accepted
        agent.required = gaps
        return (agent.known, agent.required) != before

    def _filter(
        self, step: int, lead: KairState, documents: Candidates, context: Sequence[Evidence], hits: Sequence[Hit]
    ) -> list[Evidence]:
        """h: the new context; spans that no fact supports come last."""
        shown = documents.show([*context, *(Evidence(hit.passage) for hit in hits)])
        reply = self.filterer(**lead.inputs, passages=shown)
        spans, invalid = documents.resolve(read_texts(reply.spans))  # by their ids
        judged, wrong = documents.resolve(reply.supported)
        cited = {item.fact for fact in lead.known for item in fact.cited}
        supported = [i for i in spans if i in judged or i.fact in cited or Fact(i.passage.id) in cited]
        flagged = [item for item in spans if item not in supported]
        record(Selected(step, ids([*supported, *flagged]), (*invalid, *wrong), ids(flagged)))
        return [*supported, *flagged]


def nearest(query: str, others: Iterable[str]) -> float:
    """The cosine of topic words with the most similar of some texts, in [0, 1]; 0 if there are none."""
    return max((_cosine(query, other) for other in others), default=0.0)


def _cosine(one: str, other: str) -> float:
    """The cosine; texts without topic words are equal or not."""
    left, right = frozenset(content_terms(one)), frozenset(content_terms(other))
    if not left or not right:
        return float(title_key(one) == title_key(other))
    return len(left & right) / math.sqrt(len(left) * len(right))
