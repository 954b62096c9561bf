"""C-3PO (arXiv 2502.06205): Reasoning Router, Information Filter and Decision Maker between a retriever and a model.

The router sends the question to an answer without a search, to one search, or to a roadmap. There the decision maker,
who sees roadmap, collected passages and earlier queries, searches for one sub-goal after the other; the filter also
sees the objective of the step. A repeated query (ignoring case, accents and punctuation) returns the next page of its
results. The public code settles what the paper leaves open.

Router, filters and decision maker are the proxy, which the paper trains; roadmap and answers come from the LLM:

    polyhop ask "..." --program c3po --lm proxy=ollama_chat/qwen3 --lm openai/gpt-4o-mini

Deviations at the default settings, each with the tunable that removes it (`C3PO.paper_values`):

- the objective of a step is its query, not the decision maker's thought (``objective``);
- collected passages are not filtered again, and the filter is skipped if a search finds nothing new (``refilter``);
- at most ``most`` passages are collected, and answering is forced at that number, not above it (``overflow``);
- answering is forced after 6 searches, not after 4 (``steps``);
- if the model answers "unknown" without retrieval, a search follows (``unknown_direct``).

Deviations that remain: a fruitless query is shown with the earlier queries, not as a passage without information.
Where answering is forced, the decision maker is not called for a thought that nobody reads. If it gives no query, its
thought is the query, and if the router gives none, the question; the code fails there. The agents have no demos until
an optimizer or you add some; the code shows the roadmap's and the answer's agent two each. The proxy is not trained:
its prompts can be optimized, but there is no reinforcement learning.

Beyond the paper: the router can judge each sub-goal too (``route_steps``), as the article that describes it proposes:
an answer without a search becomes a note for the answerer; what is unknown is searched for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import dspy

from ..data.passages import Evidence, Hit, Retriever
from ..data.text import title_key
from ..signatures import (
    AnswerDirectly,
    AnswerFromCollection,
    DecideNext,
    DrawRoadmap,
    FilterForObjective,
    FilterPassages,
    NumberedPassages,
    RouteQuestion,
)
from .agent import Agent
from .candidates import Candidates, cited_in, facts, whole
from .complexity import estimate_complexity
from .exemplars import Exemplars, as_demos
from .prediction import (
    UNKNOWN,
    conclude,
    decomposed,
    nothing_found,
    one_line,
    read_answer,
    read_query,
    tidy,
)
from .program import Program, register
from .run import Pool, current, record
from .search import Search
from .trace import Decided, Recalled, Routed, Selected, StepAnswered
from .tunable import choice, integer


@register("c3po")
class C3PO(Program):
    """Answer directly, after one search, or along a roadmap.

    LM calls, all sequential: 2 without a search; 3 with one search; otherwise 3, and up to 2 for each of up to
    ``steps`` searches, 4 with ``route_steps``. Evidence is whole passages: those that the answer cites, then the others
    in the order of collection.

    Args:
        retriever: For questions without a pool of their own.
        k: Passages per search.
        most: Maximum number of passages to collect.
        steps: Maximum number of searches along a roadmap.
        route_steps: Whether the router judges each sub-goal too.

    ``overflow`` collects all that the filter keeps, and forces an answer above ``most``. ``objective`` is what the
    filter reads as the objective of a step. ``refilter`` also shows it what was collected before. ``unknown_direct``
    says whether an answer "unknown" without retrieval leads to a search or stands. ``exemplars`` are shown to the agent
    that draws the roadmap, by default none.
    """

    shown_exemplars = ("planner",)
    role_groups: ClassVar[Mapping[str, tuple[str, ...]]] = {"proxy": ("router", "filter", "step_filter", "decider")}
    paper_retriever: ClassVar[str] = "dense"
    paper_values: ClassVar[Mapping[str, Any]] = {
        "steps": 4,
        "overflow": True,
        "objective": "thought",
        "refilter": True,
        "unknown_direct": "answer",
    }

    def __init__(
        self, retriever: Retriever | None = None, k: int = 10, most: int = 10, steps: int = 6, route_steps: bool = False
    ) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.most = integer(most, 1, 50)
        self.steps = integer(steps, 1, 12)
        self.route_steps = choice(route_steps, (True, False))
        self.overflow = choice(False, (True, False))
        self.objective = choice("query", ("query", "thought"))
        self.refilter = choice(False, (True, False))
        self.unknown_direct = choice("search", ("search", "answer"))
        self.exemplars = Exemplars(mode="none")
        self.router = Agent(RouteQuestion)
        self.planner = Agent(DrawRoadmap)
        self.filter = Agent(FilterPassages)
        self.step_filter = Agent(FilterForObjective)
        self.decider = Agent(DecideNext)
        self.knower = Agent(AnswerDirectly)
        self.answerer = Agent(AnswerFromCollection)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        task = _Task(question)
        route, query = self._route(task.question)
        if route == "direct":
            answer, confidence = read_answer(self.knower(question=task.question))
            if answer != UNKNOWN or self.unknown_direct.value == "answer":
                return conclude(answer, confidence, stop="no retrieval", status="model knowledge")
        if route != "plan":  # also if a direct answer is unknown
            self._retrieve(task, query or task.question)
            stop = "single pass"
        else:
            stop = self._follow_roadmap(task)
        if current().trace.searches and not current().seen and not task.notes:
            return nothing_found()
        reply = self.answerer(question=task.question, passages=task.show(), notes=task.notes)
        answer, confidence = read_answer(reply)
        evidence = list(dict.fromkeys([*task.cited(str(reply.get("reasoning"))), *task.kept]))
        if current().trace.searches and not current().seen:
            stop = "nothing found"
        return conclude(answer, confidence, evidence=evidence, stop=stop)

    def _follow_roadmap(self, task: _Task) -> str:
        """Decide, retrieve and filter until it is time to answer; returns the reason."""
        roadmap = self._draw_roadmap(task)
        for n in range(1, self.steps.value + 1):
            action, query, thought = self._decide(task, roadmap)
            if action == "answer":
                return "enough"
            if self.route_steps.value and self._answer_step(task, n, query):
                continue
            self._retrieve(task, query, query if self.objective.value == "query" else thought, n)
            if len(task.kept) >= self.most.value + int(self.overflow.value):
                return "documents"
        return "steps"

    def _route(self, question: str) -> tuple[str, str]:
        """The route, and the router's query for "single"."""
        reply = self.router(question=question)
        query, invalid = read_query(reply.query)
        if query and reply.route != "single":
            query, invalid = "", (query[:80], *invalid)
        record(Routed(reply.route, query, invalid))
        return reply.route, query

    def _draw_roadmap(self, task: _Task) -> list[str]:
        """The sub-goals in order; the question itself if there are none."""
        exemplars = self.exemplars(task.question, estimate_complexity(task.question))
        if exemplars:
            record(Recalled(tuple(exemplar.question for exemplar in exemplars)))
        shown = as_demos(exemplars, "roadmap")
        reply = self.planner(question=task.question, demos=[*self.planner.demos, *shown])
        return decomposed(reply.roadmap) or [task.question]

    def _decide(self, task: _Task, roadmap: list[str]) -> tuple[str, str, str]:
        """The next action, its query and the thought behind it."""
        reply = self.decider(question=task.question, roadmap=roadmap, passages=task.show(), queries=task.queries)
        (thought, cut), (query, invalid) = one_line(reply.thought), read_query(reply.query)
        if reply.action == "answer":
            query, invalid = "", (query[:80], *invalid) if query else invalid
        else:
            query = query or thought or task.question
        record(Decided(reply.action, query, thought, (*cut, *invalid)))
        return reply.action, query, thought or query

    def _answer_step(self, task: _Task, n: int, query: str) -> bool:
        """Answer a sub-goal without a search; returns whether that was possible."""
        route, _ = self._route(query)
        if route != "direct":
            return False
        answer, invalid = tidy(self.knower(question=query).answer)
        record(StepAnswered(n, query, answer, invalid=invalid))
        if answer == UNKNOWN:
            return False
        task.notes.append(f"{query} - {answer}")
        task.queries.append(f'"{query}" - known without a search: {answer}')
        return True

    def _retrieve(self, task: _Task, query: str, objective: str | None = None, n: int = 1) -> None:
        """Search, filter the new passages and collect what is kept; record the query and its result."""
        page, offset = task.turn_page(query)
        hits = self.search(query, offset=offset)
        task.received[title_key(query)] += len(hits)
        new = task.add(hits)
        if found := [Evidence(hit.passage) for hit in hits] if self.refilter.value else new:
            shown = {"question": task.question, "passages": task.candidates.show(found)}
            reply = self.filter(**shown) if objective is None else self.step_filter(**shown, objective=objective)
            kept, invalid = task.keep(reply.useful, found, None if self.overflow.value else self.most.value)
            record(Selected(n, facts(kept), invalid))
            brought = "kept " + ", ".join(item.passage.title for item in kept) if kept else "nothing useful"
        else:
            brought = "nothing new" if hits else "no results"
        task.queries.append(f'"{query}"{f", page {page}" if page > 1 else ""} - {brought}')


@dataclass
class _Task:
    """The state of one question.

    Attributes:
        queries: Earlier queries with their results, as the decision maker reads them.
    """

    question: str
    candidates: Candidates = field(default_factory=Candidates)  # every passage seen, numbered
    kept: list[Evidence] = field(default_factory=list)  # the collection, in the order of collection
    queries: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # sub-goals answered without a search
    received: Counter[str] = field(default_factory=Counter)  # number of hits so far, by query
    _pages: Counter[str] = field(default_factory=Counter)

    def show(self) -> NumberedPassages:
        return self.candidates.show(self.kept)

    def turn_page(self, query: str) -> tuple[int, int]:
        """The page of results to request, from 1, and its offset."""
        key = title_key(query)
        self._pages[key] += 1
        return self._pages[key], self.received[key]

    def add(self, hits: Sequence[Hit]) -> list[Evidence]:
        """Number the hits; returns the passages that are not in the collection."""
        self.candidates.extend(hit.passage for hit in hits)
        found = dict.fromkeys(Evidence(hit.passage) for hit in hits)
        return [item for item in found if item not in self.kept]

    def keep(
        self, ids: Sequence[str], shown: Sequence[Evidence], most: int | None
    ) -> tuple[list[Evidence], tuple[str, ...]]:
        """Collect what a filter names of ``shown``, up to ``most`` in all; returns what it named and is collected, and
        the invalid ids.
        """
        named, invalid = self.candidates.resolve(ids)
        passages = whole(named)
        new = [item for item in passages if item in shown and item not in self.kept]
        self.kept += new if most is None else new[: most - len(self.kept)]
        kept = [item for item in passages if item in shown and item in self.kept]
        return kept, (*invalid, *self.candidates.ids(item for item in passages if item not in kept))

    def cited(self, reasoning: str) -> Iterator[Evidence]:
        """The collected passages that a reasoning cites ("[2s1]"), in order."""
        named = whole(self.candidates.resolve(cited_in(reasoning))[0])
        return (item for item in named if item in self.kept)
