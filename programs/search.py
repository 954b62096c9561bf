"""First-stage retrieval: where a program's candidates come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import dspy

from ..data.chain import ChainRetriever, ChainWeights
from ..data.errors import PolyhopError
from ..data.lucene.searcher import adapt
from ..data.passages import Hit, Passage, Retriever, one_a_document
from ..data.pool import PassagePool
from ..data.retrievers import checked_retriever, retriever_name
from ..data.text import key_words
from ..engines.costs import go_on
from .agent import Part
from .run import Pool, current, record
from .trace import Searched
from .tunable import Tunable, choice, integer, real, switch

_REFERS = re.compile(r"\b(?:may|can|might)\b[^.]{0,60}\b(?:refers? to|stand for|mean)\s*[:;]?\s*\Z")
_END = 200  # characters of a text
_CONTENTS = 0.8  # share of the sentences of a list of contents that have a link


class Search(Part):
    """Searches the question's own pool if it has one, otherwise the retriever. The run keeps each search and its hits.

    Args:
        retriever: Any `Retriever`, or a `LuceneSearcher` of Pyserini; None if every question brings its own pool. Not
            part of the saved state. A `ChainRetriever` also follows the chain through a question's own pool.
        k: Number of passages that a search returns; the maximum, for an adaptive `ChainRetriever`.

    ``by_document`` leaves one hit a document, its best passage. ``k1`` and ``b`` are BM25's parameters, for
    `BM25Index`, `PassagePool` and `ChainRetriever`. ``chain`` holds the weights of a `ChainRetriever` and its
    ``adaptive`` switch by name; it is empty for other retrievers.
    """

    shared = ("retriever",)

    def __init__(self, retriever: Retriever | None = None, k: int = 20) -> None:
        super().__init__()
        retriever = None if retriever is None else checked_retriever(adapt(retriever))
        self.retriever = retriever
        self.k = integer(k, 1, 1000, log=True, usual=(1, 200))
        # Long documents want a large k1: 25 for the web pages of BrowseComp-Plus (Pi-Serini).
        self.k1 = real(getattr(retriever, "k1", 0.9), 0.0, 40.0, usual=(0.0, 3.0))
        self.b = real(getattr(retriever, "b", 0.4), 0.0, 1.0)
        self.by_document = switch(False)
        self.chain: dict[str, Tunable[Any]] = {}
        if isinstance(retriever, ChainRetriever):
            # Optimizers leave all of these as they are unless they are given a range.
            for weight in fields(ChainWeights):
                value = getattr(retriever.weights, weight.name)
                needs = ("chain['adaptive']", (True,)) if weight.name == "enough" else None
                bounds = weight.metadata["low"], weight.metadata["high"]
                self.chain[weight.name] = real(value, *bounds, usual=(value, value), needs=needs)
            self.chain["adaptive"] = choice(retriever.adaptive, (False, True), usual=2 * (retriever.adaptive,))

    def forward(self, query: str, *, k: int | None = None, offset: int = 0) -> list[Hit]:
        """The hits of rank ``offset + 1`` to ``offset + k``, best first; ``k`` defaults to the tunable.

        A query without a word finds nothing. Passages without a statement are left out: "X may refer to:", headings,
        and lists of contents.
        """
        go_on()
        run, hits = current(), list[Hit]()
        if any(map(str.isalnum, query)):
            source: Any = self._source(run.pool)
            if hasattr(source, "with_bm25"):
                source = source.with_bm25(self.k1.value, self.b.value)
            k = k or self.k.value
            search = partial(one_a_document, source.search) if self.by_document.value else source.search
            hits = [hit for hit in search(query, k, offset) if not _is_stub(hit.passage)]
        run.seen += hits
        listed = tuple((hit.passage.id, hit.passage.title, hit.score) for hit in hits)
        record(Searched(query, listed, tuple(hit.reason for hit in hits if hit.reason), offset))
        return hits

    def _source(self, pool: Pool) -> Retriever:
        passages = None if pool is None else as_pool(pool)
        source: Retriever | None = self.retriever if passages is None else passages
        if isinstance(self.retriever, ChainRetriever):
            values = asdict(self.retriever.weights) | {"adaptive": self.retriever.adaptive}
            values |= {name: tunable.value for name, tunable in self.chain.items()}
            adaptive = values.pop("adaptive")
            chain = self.retriever.with_weights(ChainWeights(**values), adaptive=adaptive)
            source = chain if passages is None else chain.over(passages)
        if source is None or (isinstance(source, ChainRetriever) and source.source is None):
            raise PolyhopError(
                "nothing to search: build the program with a retriever, such as "
                "Prism(BM25Index('DIR')), or pass the question's own passages as pool=[...]"
            )
        return source


def _is_stub(passage: Passage) -> bool:
    """Whether a passage only leads elsewhere: a disambiguation, a heading, or a list of links."""
    links = {link.sentence for link in passage.links if link.kind == "contents"}
    states = passage.text.rstrip().endswith((".", "!", "?", "。"))  # also where the title is the text
    return (
        _REFERS.search(passage.text[-_END:]) is not None
        or (not states and set(key_words(passage.text[:_END])) <= set(key_words(passage.heading)))
        or (len(links) > 1 and len(links) >= _CONTENTS * len(passage.sentences))
    )


def retriever_of(program: dspy.Module) -> Retriever | None:
    """The retriever of a program's first search."""
    search = next((part for _, part in program.named_sub_modules(Search)), None)
    return None if search is None else search.retriever


def retriever_kind(program: dspy.Module) -> str:
    """A name of `polyhop.data.retrievers`, or "none" for a program that does not search."""
    return retriever_name(retriever_of(program)) if [*program.named_sub_modules(Search)] else "none"


def as_pool(pool: Sequence[Passage] | PassagePool) -> PassagePool:
    """A question's own passages as a retriever.

    Raises:
        PolyhopError: one of them is no passage.
    """
    if isinstance(pool, PassagePool):
        return pool
    if strange := [passage for passage in pool if not isinstance(passage, Passage)]:
        raise PolyhopError(
            f"a pool consists of passages, got {type(strange[0]).__name__}: "
            "use polyhop.Passage.of(title, text) or Passage.from_record({...})"
        )
    return PassagePool(pool)
