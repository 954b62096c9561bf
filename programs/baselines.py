"""The baselines: closed book, retrieve-then-read, long context, set selection, the gold evidence, and DSPy's ReAct."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from ..data.errors import PolyhopError
from ..data.passages import Evidence, Hit, Retriever
from ..signatures import AnswerDirectly, AnswerFromContext, AnswerFromPassages, SelectSet
from ..signatures.answers import AnswerWithTools
from ..signatures.fields import fenced, read_texts
from .agent import Agent
from .candidates import Candidates, ids, whole
from .prediction import UNKNOWN, conclude, nothing_found, read_answer, tidy
from .program import Program, register
from .run import Pool, current, record
from .search import Search, as_pool
from .trace import Required, Selected
from .tunable import choice, integer

_DEPTH = 1_000  # hits of a query that ReAct can browse
_EXCERPT = 300  # characters


@register("direct")
class Direct(Program):
    """Answers from the model's own knowledge: 1 LM call, no search; evidence and ranking are empty."""

    searches = False

    def __init__(self) -> None:
        super().__init__()
        self.answerer = Agent(AnswerDirectly)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        reply = self.answerer(question=question)
        return conclude(*read_answer(reply), stop="no retrieval", status="model knowledge")


@register("naive")
class Naive(Program):
    """Naive RAG: 1 search, 1 LM call; the evidence is the top ``k`` passages.

    Args:
        k: Passages to read.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 5) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.answerer = Agent(AnswerFromPassages)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        if not (hits := self._hits(question, pool)):
            return nothing_found()
        passages = Candidates(hit.passage for hit in hits)
        reply = self.answerer(question=question, passages=passages.show())
        return conclude(*read_answer(reply), evidence=[*map(Evidence, passages.passages)], stop="single pass")

    def _hits(self, question: str, pool: Pool) -> list[Hit]:
        hits: list[Hit] = self.search(question)
        return hits


@register("full_context")
class FullContext(Naive):
    """All passages of the question's pool, in their order; without a pool the top ``k``: 1 LM call, at most 1 search.

    A prompt that exceeds the model's context is shortened as that of any `Agent`, and the run counts it as an incident.

    Args:
        k: Passages to read without a pool.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 20) -> None:
        super().__init__(retriever, k)

    def _hits(self, question: str, pool: Pool) -> list[Hit]:
        if pool is None:
            return super()._hits(question, None)
        hits = [Hit(passage, 0.0, rank) for rank, passage in enumerate(as_pool(pool), 1)]
        current().seen += hits
        return hits


@register("set_selection")
class SetSelection(Program):
    """Select a set of passages that together cover what the question requires, then answer: 2 LM calls, 1 search.

    After SetR (arXiv 2507.06838), which is a model trained for this; here any model is asked, with prompts of our own.
    If nothing is selected, the answer is unknown, without a call.

    Args:
        k: Candidates; 20 in the paper.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 20) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.selector = Agent(SelectSet)
        self.answerer = Agent(AnswerFromContext)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        hits = self.search(question)
        if not hits:
            return nothing_found()
        candidates = Candidates(hit.passage for hit in hits)
        reply = self.selector(question=question, candidates=candidates.show())
        kept, invalid = candidates.resolve(reply.chosen)
        evidence = whole(kept)
        record(Required(tuple(read_texts(reply.requirements))))
        record(Selected(1, ids(evidence), invalid))
        if not evidence:
            return conclude(UNKNOWN, 0.0, stop="nothing selected")
        reply = self.answerer(question=question, evidence=candidates.show(evidence))
        return conclude(*read_answer(reply), evidence=evidence, stop="single pass")


@register("oracle")
class Oracle(Program):
    """Answers from the gold evidence of a question, which `polyhop.evaluate` gives it: 1 LM call, no search. It is
    the upper bound of retrieval, not a system.

    Its scores of evidence and ranking are those of the gold against itself. ``unit`` is what it reads: the gold
    passages, or their gold sentences where the benchmark has them.
    """

    searches = False
    reads_gold = True

    def __init__(self) -> None:
        super().__init__()
        self.unit = choice("passage", ("passage", "sentence"))
        self.answerer = Agent(AnswerFromContext)

    def forward(self, question: str, pool: Pool = None, gold: Sequence[Evidence] | None = None) -> dspy.Prediction:
        """Answer a question from its ``gold``; ``pool`` is accepted and not read.

        Raises:
            PolyhopError: there is no ``gold``: only an evaluation knows it.
        """
        if gold is None:
            raise PolyhopError(
                "the oracle reads the gold evidence of a question: run it with 'polyhop evaluate --program oracle'"
            )
        evidence = list(gold) if self.unit.value == "sentence" else whole(gold)
        if not evidence:
            return nothing_found()
        shown = Candidates(item.passage for item in evidence).show(evidence)
        reply = self.answerer(question=question, evidence=shown)
        return conclude(*read_answer(reply), evidence=evidence, stop="oracle")


class ReAct(dspy.Module):
    """DSPy's ReAct agent with a search engine that it browses, as Pi-Serini has it (arXiv 2605.10848).

        polyhop evaluate --program react --retriever bm25 --lm openai/gpt-4o-mini ...

    It writes queries, reads excerpts, goes further down a ranking before it writes another query, and reads whole
    passages, until it can answer; after ``steps`` tool calls it must. It is plain DSPy: no prompt is ours but the task.
    The keyless engine searches once.

    Args:
        retriever: BM25 with ``k1`` of 25 and ``b`` of 1 suits long pages.
        k: Excerpts of one look at a ranking.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 5) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.steps = integer(20, 1, 100, log=True)
        self.agent = dspy.ReAct(AnswerWithTools, tools=[self.find, self.read])

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        reply = self.agent(question=fenced(question), max_iters=self.steps.value)
        answer, _ = tidy(reply.answer)
        seen = current().passages
        cited = [seen[id] for id in dict.fromkeys(read_texts(reply.citations)) if id in seen]
        return dspy.Prediction(
            answer=answer,
            evidence=tuple(map(Evidence, cited)),
            ranking=tuple(dict.fromkeys([*cited, *seen.values()])),
            trajectory=reply.trajectory,
            stop_reason="finished" if "finish" in reply.trajectory.values() else "steps",
        )

    def find(self, query: str, offset: int = 0) -> str:
        """Search with a query: the next excerpts of its ranking, with the ids of their passages. An offset continues
        after so many hits: browse further before you write another query."""
        if offset >= _DEPTH:
            return f"A ranking ends after {_DEPTH} hits: write another query."
        hits: list[Hit] = self.search(query, offset=max(0, offset))
        if not hits:
            return "Nothing found: use other words." if not offset else "The ranking ends here: write another query."
        lines = (f"[{hit.passage.id}] {hit.passage.title}: {hit.passage.text[:_EXCERPT]}" for hit in hits)
        return "\n".join(map(fenced, lines))

    def read(self, id: str) -> str:
        """Read the whole passage with an id that stood in brackets before an excerpt."""
        passage = current().passages.get(id.strip("[] "))
        if passage is None:
            return f"No excerpt had the id {id!r}: copy an id as it stands in brackets."
        return str(fenced(f"{passage.title}\n{passage.text}"))
