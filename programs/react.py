"""A baseline: DSPy's ReAct agent with a search engine that it browses, as Pi-Serini has it (arXiv 2605.10848).

    polyhop evaluate --program react --retriever bm25 --lm openai/gpt-4o-mini ...

The agent writes queries, reads excerpts, goes further down a ranking before it writes another query, and reads whole
passages. It is plain DSPy: no prompt is ours but the task. The embedded engine cannot play it.
"""

from __future__ import annotations

import dspy

from ..data.passages import Evidence, Hit, Passage, Retriever
from ..signatures.answers import AnswerWithTools
from ..signatures.fields import fenced
from ..signatures.replies import read_texts
from .prediction import tidy
from .run import Pool, current
from .search import Search
from .tunable import integer

_DEPTH = 1_000  # hits of a query that can be browsed
_EXCERPT = 300  # characters


class ReAct(dspy.Module):
    """Searches, browses and reads until it can answer; after ``steps`` tool calls it must.

    Args:
        retriever: For questions without a pool of their own. BM25 with ``k1`` of 25 and ``b`` of 1 suits long pages.
        k: Excerpts of one look at a ranking.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 5) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.steps = integer(20, 1, 100, log=True)
        self.agent = dspy.ReAct(AnswerWithTools, tools=[self.find, self.read])

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        found = self.agent(question=fenced({"question": question})["question"], max_iters=self.steps.value)
        answer, _ = tidy(found.answer)
        seen = self._seen()
        cited = [seen[id] for id in dict.fromkeys(read_texts(found.citations)) if id in seen]
        return dspy.Prediction(
            answer=answer,
            evidence=tuple(map(Evidence, cited)),
            ranking=tuple(dict.fromkeys([*cited, *seen.values()])),
            trajectory=found.trajectory,
            stop_reason="finished" if "finish" in found.trajectory.values() else "steps",
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
        return "\n".join(str(fenced({"line": line})["line"]) for line in lines)

    def read(self, id: str) -> str:
        """Read the whole passage with an id that stood in brackets before an excerpt."""
        passage = self._seen().get(id.strip("[] "))
        if passage is None:
            return f"No excerpt had the id {id!r}: copy an id as it stands in brackets."
        return str(fenced({"text": f"{passage.title}\n{passage.text}"})["text"])

    def _seen(self) -> dict[str, Passage]:
        """The passages that this question's searches found."""
        return {hit.passage.id: hit.passage for hit in current().seen}
