"""IRCoT (arXiv 2212.10509): retrieval interleaved with chain of thought.

The question is the first query, each new sentence of the chain of thought the next. All hits are collected, and the
next sentence is written from the collection; only the first new sentence of a reply counts. The chain ends with
"answer is:", after ten sentences, when the collection is full, or when a reply says nothing new, since the same
sentence would find the same passages. It is then discarded, and a reader answers from the collection alone.
"""

from __future__ import annotations

import re
from itertools import islice

import dspy

from ..data.passages import Evidence, Retriever
from ..data.text import split_sentences, title_key
from ..signatures import AnswerFromPassages, ReasonOn
from .agent import Agent
from .candidates import Candidates
from .prediction import conclude, nothing_found, one_line, read_answer
from .program import Program, register
from .run import Pool, current, record
from .search import Search
from .trace import Decided
from .tunable import choice, integer

ANSWERED = re.compile(r"\banswer is\s*:|\bso,? the answer is\b", re.IGNORECASE)


@register("ircot")
class IRCoT(Program):
    """Interleave retrieval and reasoning, then read. The evidence is the collection, in order of retrieval.

    1 LM call per sentence and 1 to read, all sequential; 1 search for the question and for each sentence but the last.

    Args:
        k: Passages per search: 2, 4, 6 or 8 (the paper's K).
        most: Maximum number of passages to collect.
        sentences: Maximum length of the chain of thought.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 4, most: int = 15, sentences: int = 10) -> None:
        super().__init__()
        self.search = Search(retriever)
        self.search.k = choice(k, (2, 4, 6, 8))
        self.most = integer(most, 1, 50)
        self.sentences = integer(sentences, 1, 20)
        self.reasoner = Agent(ReasonOn)
        self.answerer = Agent(AnswerFromPassages)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        thoughts: list[str] = []
        stop, query = "", question
        while not stop:
            self.search(query)
            passages = Candidates(islice(current().passages.values(), self.most.value))
            if not passages.passages:
                return nothing_found()
            if len(thoughts) == self.sentences.value:
                stop = "sentences"
            elif len(passages.passages) >= self.most.value:
                stop = "documents"
            else:
                query = self._reason(question, passages, thoughts)
                thoughts.append(query)
                stop = "answered" if ANSWERED.search(query) else "" if query else "nothing new"

        reply = self.answerer(question=question, passages=passages.show())
        return conclude(*read_answer(reply), evidence=[*map(Evidence, passages.passages)], stop=stop)

    def _reason(self, question: str, passages: Candidates, thoughts: list[str]) -> str:
        """The first new sentence of the reasoner's reply; empty if there is none."""
        reply = self.reasoner(question=question, passages=passages.show(), thoughts=thoughts)
        text, cut = one_line(reply.next_thought)
        sentences = [sentence for sentence in split_sentences(text) if any(map(str.isalnum, sentence))]
        old = set(map(title_key, thoughts))
        thought = next((sentence for sentence in sentences if title_key(sentence) not in old), "")
        others = [sentence[:80] for sentence in sentences if sentence != thought]
        record(Decided("think", thought=thought, invalid=(*others, *cut)))
        return thought
