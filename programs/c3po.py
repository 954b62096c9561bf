"""C-3PO (arXiv 2502.06205): Reasoning Router, Information Filter and Decision Maker between a retriever and a model.
docs/programs.md says what the public code settles, and what is different here.

The router sends the question to an answer without a search, to one search, or to a roadmap. There the decision maker,
who sees roadmap, collected passages and earlier queries, asks for one sub-goal after the other; the router decides
whether it needs a search; the filter also sees the objective of the step. A repeated query (ignoring case, accents and
punctuation) returns the next page of its results.

Router, filters and decision maker are the proxy, which the paper trains; roadmap and answers come from the LLM:

    polyhop ask "..." --program c3po --lm proxy=ollama_chat/qwen3 --lm openai/gpt-4o-mini
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import dspy

from .. import signatures
from ..data.passages import Evidence, Retriever
from ..data.text import title_key
from .agent import Agent
from .candidates import Candidates, cited_in, ids, whole
from .prediction import UNKNOWN, conclude, decomposed, nothing_found, one_line, read_answer, read_query, tidy
from .program import Program, register
from .run import Pool, current, record
from .search import Search
from .trace import Decided, Selected, StepAnswered
from .tunable import choice, integer


@register("c3po")
class C3PO(Program):
    """Answer directly, after one search, or along a roadmap.

    LM calls, all sequential: 2 without a search; 3 with one search; otherwise 3, and 3 or 4 for each of up to
    ``steps`` sub-goals. Evidence is whole passages: those that the answer cites, then the others in the order of
    collection.

    Args:
        k: Passages per search.
        most: Number of collected passages above which an answer is forced.
        steps: Maximum number of sub-goals along a roadmap.

    ``routes`` is the ablation of the router: "routed", "once" (the question is routed, no sub-goal), or one route for
    all questions.
    """

    role_groups: ClassVar[Mapping[str, tuple[str, ...]]] = {"proxy": ("router", "filter", "step_filter", "decider")}

    def __init__(self, retriever: Retriever | None = None, k: int = 10, most: int = 10, steps: int = 4) -> None:
        super().__init__(abstain_below=0.0)
        self.search = Search(retriever, k)
        self.most = integer(most, 1, 50)
        self.steps = integer(steps, 1, 12)
        self.routes = choice("routed", ("routed", "once", "direct", "single", "plan"))
        self.router = Agent(signatures.RouteQuestion)
        self.planner = Agent(signatures.DrawRoadmap)
        self.filter = Agent(signatures.FilterPassages)
        self.step_filter = Agent(signatures.FilterForObjective)
        self.decider = Agent(signatures.DecideNext)
        self.knower = Agent(signatures.AnswerDirectly)
        self.answerer = Agent(signatures.AnswerFromCollection)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        route, query = self.routes.value, ""
        if route in ("routed", "once"):
            route, query = self._route(question)
        if route == "direct":
            reply = self.knower(question=question)
            return conclude(*read_answer(reply), stop="no retrieval", status="model knowledge")
        task = _Task(question)
        if route == "single":
            self._retrieve(task, query or question)
            stop = "single pass"
        else:
            stop = self._follow_roadmap(task)
        if current().trace.searches and not current().seen and not task.notes:
            return nothing_found()
        reply = self.answerer(question=question, passages=task.candidates.show(task.kept), notes=task.notes)
        cited = whole(task.candidates.resolve(cited_in(str(reply.get("reasoning"))))[0])
        evidence = list(dict.fromkeys([*(item for item in cited if item in task.kept), *task.kept]))
        return conclude(*read_answer(reply), evidence=evidence, stop=stop)

    def _route(self, question: str) -> tuple[str, str]:
        """The router's route, and its query for "single"."""
        reply = self.router(question=question)
        query, invalid = read_query(reply.query)
        if query and reply.route != "single":
            query, invalid = "", (query[:80], *invalid)
        record(Decided(reply.route, query, invalid=invalid))
        return reply.route, query

    def _follow_roadmap(self, task: _Task) -> str:
        """Decide, retrieve and filter until it is time to answer; returns the reason."""
        roadmap = decomposed(self.planner(question=task.question).roadmap) or [task.question]
        for n in range(1, self.steps.value + 1):
            shown = task.candidates.show(task.kept)
            reply = self.decider(question=task.question, roadmap=roadmap, passages=shown, queries=task.queries)
            (thought, cut), (query, invalid) = one_line(reply.thought), read_query(reply.query)
            if reply.action == "answer":
                query, invalid = "", (query[:80], *invalid) if query else invalid
            else:
                query = query or thought or task.question
            record(Decided(reply.action, query, thought, (*cut, *invalid)))
            if reply.action == "answer":
                return "enough"
            if self.routes.value != "routed" or not self._known(task, query, n):
                self._retrieve(task, query, thought or query, n)
            if len(task.kept) > self.most.value:
                return "documents"
        return "steps"

    def _known(self, task: _Task, query: str, n: int) -> bool:
        """Whether the router sends a sub-goal to the language model, and this knows the answer: it becomes a note."""
        if self._route(query)[0] != "direct":
            return False
        answer, cut = tidy(self.knower(question=query).answer)
        record(StepAnswered(n, query, answer, (), cut))
        if answer == UNKNOWN:
            return False
        task.notes.append(f"{query} - {answer}")
        task.queries.append(f'"{query}" - known without a search: {answer}')
        return True

    def _retrieve(self, task: _Task, query: str, objective: str | None = None, n: int = 1) -> None:
        """Search, filter and collect; note the query and what it brought. A repeated query gets its next page."""
        earlier = task.received.setdefault(title_key(query), [])
        hits = self.search(query, offset=sum(earlier))
        earlier.append(len(hits))
        task.candidates.extend(hit.passage for hit in hits)
        brought = "no results"
        if new := list(dict.fromkeys(Evidence(hit.passage) for hit in hits)):
            shown = {"question": task.question, "passages": task.candidates.show(new)}
            reply = self.filter(**shown) if objective is None else self.step_filter(**shown, objective=objective)
            named, invalid = task.candidates.resolve(reply.useful)
            useful = [item for item in whole(named) if item in new]
            task.kept += [item for item in useful if item not in task.kept]
            strange = task.candidates.ids(item for item in named if item not in new)
            record(Selected(n, ids(useful), (*invalid, *strange)))
            brought = "kept " + ", ".join(item.passage.title for item in useful) if useful else "nothing useful"
        page = f", page {len(earlier)}" if len(earlier) > 1 else ""
        task.queries.append(f'"{query}"{page} - {brought}')


@dataclass
class _Task:
    """The state of one question."""

    question: str
    candidates: Candidates = field(default_factory=Candidates)  # every passage seen, numbered
    kept: list[Evidence] = field(default_factory=list)  # the collection, in the order of collection
    notes: list[str] = field(default_factory=list)  # sub-goals with the answers that the language model knows
    queries: list[str] = field(default_factory=list)  # earlier ones with what they brought, for the decision maker
    received: dict[str, list[int]] = field(default_factory=dict)  # the number of hits of each page, by query
