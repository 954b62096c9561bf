"""KAIR (arXiv 2503.13275): knowledge-aware iterative retrieval, by one agent or by up to three.

The state is what is known (K), required (R), asked (Q) and kept (D, the refined context). Each step:

    q = f(D | K, R, Q)          propose queries, choose the most diverse and relevant one                 rule (2)
    K, R = g(D u D_new | K, R)  read its hits: new facts, if supported and relevant, and new gaps         rule (5)
    D = h(D u D_new | K)        cut both down to verbatim spans that a fact or a gap accepts              rules (3), (4)

until R is empty or, with a moderator, D is judged sufficient (rule 1). A known fact that new passages contradict is
dropped; what they say instead is a new fact. A separate agent answers.

Competing agents have their own K, R and Q and share D: in each step the agent with the fewest gaps writes it.
Collaborating agents share everything and divide the gaps; gaps that depend on each other go to one agent.

What the paper does and the defaults do not is a choice; `Kair.paper_values` has all of them:
- ``weighting``: the paper's agent weighs diversity against relevance for each query; the default weight is constant.
- ``matching``: in the paper an LLM may judge which spans a fact supports, with a threshold of its own. By default
  sentences and facts are compared by their words (`polyhop.programs.knowledge.relevance`).
- ``foci``: roles of the paper's agents emerge. By default each of several agents is told what to pay attention to.
  Without foci agents differ by sampling only: use a temperature above 0.
- ``generator``: the paper's generator reads the context. By default it also reads the facts.
- ``steps``: the paper has no limit and reports means of up to 4.9.

Remaining deviations:
- R starts as the question, so the first query is the question, without a call. Of competing agents only the first
  searches for it; the others count it as asked and propose.
- One call checks all facts, against the passages that they cite (all passages, if one cites none, or if a known fact is
  disputed). If the updater sees no more gaps but a fact fails the check, or a known one is dropped, the gaps stay.
- A known fact is checked again only if the updater says that the passages contradict it.
- A sentence that no fact supports but that bears on a gap is flagged: it is ranked last and judged again in the next
  step, or discarded (``unsupported``). The paper allows both.
- Calls that cannot change anything are skipped. A step with no new passage and no change is the last.
- Div and Rel are open in the paper. Here queries are compared with queries and gaps by the cosine of topic words.
- Collaboration is only sketched in the paper, without experiments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import dspy

from ..data.passages import Evidence, Hit, Retriever
from ..data.text import title_key
from ..signatures import (
    AnswerFromContext,
    AnswerFromKnowledge,
    AssessEvidence,
    CheckFacts,
    FilterSpans,
    JudgeSpans,
    NumberedPassages,
    ProposeQueries,
    UpdateKnowledge,
    WeighQueries,
)
from ..signatures.replies import read_probability, read_texts
from .agent import Agent, Conditions
from .candidates import Candidates, read_spans
from .knowledge import (
    KairState,
    KnownFact,
    Rarity,
    dependent,
    distinct,
    joined,
    read_facts,
    read_known,
    read_numbers,
    texts,
)
from .prediction import conclude, nothing_found, read_answer
from .program import Program, register
from .run import Pool, current, record, together
from .search import Search
from .trace import Checked, Judged, Learned, Proposed, Selected
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

    conditions: ClassVar[Conditions] = {
        **dict.fromkeys(("mode", "foci"), ("agents", (2, 3))),
        **dict.fromkeys(("proposals", "weighting"), ("steps", tuple(range(2, 21)))),
        "diversity": ("weighting", ("constant",)),
        "acceptance": ("matching", ("overlap",)),
        "sufficiency": ("moderated", (True,)),
    }
    paper_retriever = "bm25"
    paper_values: ClassVar[Mapping[str, Any]] = {
        "steps": 20,
        "weighting": "agent",
        "matching": "agent",
        "foci": False,
        "generator": "context",
    }

    def __init__(
        self,
        retriever: Retriever | None = None,
        k: int = 10,
        steps: int = 10,
        agents: int = 1,
        mode: str = "competition",
    ) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.steps = integer(steps, 1, 20)
        self.agents = integer(agents, 1, len(FOCI))
        self.mode = choice(mode, ("competition", "collaboration"))
        self.foci = choice(True, (True, False))
        self.proposals = integer(3, 1, 6)
        self.weighting = choice("constant", ("constant", "agent"))
        self.diversity = real(0.5, 0.0, 1.0)  # alpha_d, if constant
        self.matching = choice("overlap", ("overlap", "agent"))
        self.acceptance = real(0.3, 0.0, 1.0)  # tau_2, of the overlap
        self.unsupported = choice("flag", ("flag", "discard"))
        self.moderated = choice(False, (True, False))
        self.sufficiency = real(0.75, 0.0, 1.0)  # tau
        self.generator = choice("knowledge", ("knowledge", "context"))
        self.querier = Agent(ProposeQueries)
        self.updater = Agent(UpdateKnowledge)
        self.checker = Agent(CheckFacts)
        self.filterer = Agent(FilterSpans)
        self.moderator = Agent(AssessEvidence)
        self.answerer = Agent(AnswerFromKnowledge)

    def sent_signature(self, agent: str) -> type[dspy.Signature]:
        """The signature with the additional output of an agent that weighs or judges; the generator's without facts.

        An optimized instruction stays, except for that of a generator without facts.
        """
        signature = super().sent_signature(agent)
        if agent == "answerer" and self.generator.value == "context":
            return AnswerFromContext
        if agent == "querier" and self.weighting.value == "agent":
            base, judging = ProposeQueries, WeighQueries
        elif agent == "filterer" and self.matching.value == "agent":
            base, judging = FilterSpans, JudgeSpans
        else:
            return signature
        if signature.instructions == base.instructions:
            return judging
        optimized: type[dspy.Signature] = judging.with_instructions(signature.instructions)
        return optimized

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        team = self._team(question)
        lead, documents = team[0], Candidates()
        for step in range(1, self.steps.value + 1):
            agents = self._deal(team)
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
            if self.mode.value == "competition":
                proposals = [(agent, hits) for agent, (_, hits) in zip(learned, asked, strict=True) if hits]
                lead, found = min(proposals, key=lambda proposal: len(proposal[0].required))
            else:
                lead = joined(team[0], agents, learned)
            lead = replace(lead, context=self._filter(step, lead, documents, found))
            team = [replace(agent, context=lead.context) for agent in learned] if len(team) > 1 else [lead]

            if stop := self._stopped(lead, documents, bool(fresh) or changed):
                break
        else:
            stop = "steps"

        if not current().seen:
            return nothing_found()
        known = {} if self.generator.value == "context" else {"known": lead.inputs["known"]}
        signature, shown = self.sent_signature("answerer"), documents.show(lead.context)
        reply = self.answerer(question=question, **known, evidence=shown, signature=signature)
        answer, confidence = read_answer(reply)
        return conclude(answer, confidence, evidence=lead.context, stop=stop)

    def _team(self, question: str) -> list[KairState]:
        """The states at the start: one per competing agent, or one for all."""
        count = self.agents.value if self.mode.value == "competition" else 1
        first = KairState(question, self._focus(0), required=(question,))
        others = (replace(first, focus=self._focus(n), queries=(question,), number=n) for n in range(1, count))
        return [first, *others]

    def _focus(self, n: int) -> str:
        """What agent ``n`` is told to pay attention to."""
        return FOCI[n] if self.foci.value and self.agents.value > 1 else ALONE

    def _deal(self, team: list[KairState]) -> list[KairState]:
        """The agents of this step; collaborating agents divide the groups of gaps that depend on each other."""
        if self.mode.value == "competition" or self.agents.value == 1:
            return team
        board, n = team[0], self.agents.value
        groups = dependent(board.required)
        if len(groups) == 1:
            return [replace(board, focus=ALONE)]
        shares = [tuple(gap for group in groups[i::n] for gap in group) for i in range(min(n, len(groups)))]
        return [replace(board, focus=self._focus(i), required=gaps, number=i) for i, gaps in enumerate(shares)]

    def _options(self, agent: KairState) -> dict[str, Any]:
        """The options of a call: agents that are asked the same must not share a cached reply."""
        return {} if self.foci.value or not agent.number else {"config": {"rollout_id": agent.number}}

    def _ask(self, agent: KairState, documents: Candidates) -> tuple[KairState, list[Hit]]:
        """f and the search: the agent with its new query, if there is one, and the hits."""
        query = self._propose(agent, documents) if agent.queries else agent.question
        if not query:
            return agent, []
        hits = self.search(query)
        return replace(agent, queries=(*agent.queries, query)), hits

    def _propose(self, agent: KairState, documents: Candidates) -> str:
        """The best new query; empty if there is none."""
        reply = self.querier(
            **agent.inputs,
            focus=agent.focus,
            count=self.proposals.value,
            earlier=list(agent.queries),
            evidence=documents.show(agent.context),
            signature=self.sent_signature("querier"),
            **self._options(agent),
        )
        alpha = self.diversity.value
        if self.weighting.value == "agent":
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
        self,
        agent: KairState,
        facts: list[KnownFact],
        disputed: list[KnownFact],
        passages: NumberedPassages,
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
        """h: the new context, sentences that a fact or a gap accepts; unsupported ones come last or are discarded."""
        if not hits:
            return lead.context
        shown = _shown(lead, documents, hits)
        reply = self.filterer(**lead.inputs, passages=shown, signature=self.sent_signature("filterer"))
        spans, invalid = read_spans(read_texts(reply.spans), documents)
        if self.matching.value == "agent":
            judged, wrong = documents.resolve(reply.supported)
            invalid += wrong
            supported, asked = [item for item in spans if item in judged or lead.cites(item)], spans
        else:
            rarity, least = Rarity(documents.passages), self.acceptance.value
            supported = [item for item in spans if lead.supports(item, least, rarity)]
            asked = [item for item in spans if lead.asks_for(item, least, rarity)]
        flagged = [item for item in spans if item not in supported]
        kept = list(supported)
        if self.unsupported.value == "flag":
            kept += [item for item in flagged if item in asked]
        record(Selected(step, tuple(item.fact for item in kept), invalid, tuple(item.fact for item in flagged)))
        return tuple(kept)

    def _stopped(self, lead: KairState, documents: Candidates, moved: bool) -> str:
        """The reason to stop after this step, by rule (1) or because nothing changes; empty if there is none."""
        if not lead.required:
            return "complete"
        if self.moderated.value:
            reply = self.moderator(question=lead.question, evidence=documents.show(lead.context))
            score = float(read_probability(reply.sufficiency))
            record(Judged("sufficiency", score))
            if score >= self.sufficiency.value:
                return "sufficient"
        return "" if moved else "stable"


def _shown(agent: KairState, documents: Candidates, hits: list[Hit]) -> NumberedPassages:
    """D u D_new: the spans kept so far and the new passages."""
    return documents.show([*agent.context, *(Evidence(hit.passage) for hit in hits)])
