"""The embedded language model: classical text analysis that plays every agent from the prompt alone.

It needs no network and sees no labels; it is deterministic and takes a few milliseconds per call. It reads the messages
that any model gets and writes the reply that the adapter expects.

    engine.py          replies to a prompt; registry.py finds the skill for its signature
    prompt.py          parses the prompt: fields and passages
    skills/            the agents
    spans.py           names, dates, numbers, and candidate answers in a text
    question.py        the names in a question, and what it asks for
    decompose.py       its sub-questions
    chain.py           the passages and sentences that form a chain of evidence; chain_features.py
    reader.py          candidate answers with probabilities; span_table.py, features.py, ranker.py
    compare.py         the answers of comparisons
    hops.py            answers to sub-questions, and those that are open
    vocabulary.py      word lists

A program's own agent runs on this engine when a skill is registered for its signature:

    @polyhop.engines.lexical.skill(CountWords)
    def count_words(prompt: ParsedPrompt) -> dict[str, Any]:
        return {"count": len(prompt.text("text").split())}
"""

from .engine import LexicalEngine
from .prompt import ParsedPrompt
from .registry import skill

__all__ = ["LexicalEngine", "ParsedPrompt", "skill"]
