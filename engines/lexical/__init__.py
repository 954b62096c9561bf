"""The embedded language model: classical text analysis that plays every agent from the prompt alone.

It needs no network and sees no labels; it is deterministic and takes a few milliseconds per call. It reads the messages
that any model gets and writes the reply that the adapter expects.

    engine.py          replies to a prompt with the skill for its signature
    prompt.py          parses the prompt: fields and passages
    plan.py            the agents that plan, route and decide
    collect.py         those that select, filter and add evidence
    answer.py          those that answer and judge answers
    question.py        the names in a question, and what it asks for
    decompose.py       its sub-questions
    spans.py           names, dates, numbers, and candidate answers in a text
    features.py        the candidate answers in some passages, and their features
    clauses.py         those that stand in the wrong clause
    hops.py            ranks them for each sub-question
    reader.py          and for a whole question, with probabilities
    chain.py           the passages and sentences that form a chain of evidence
    vocabulary.json    word lists
    ranker.json        the fitted weights of the rankers

A program's own agent runs on this engine when a `skill` is registered for its signature.
"""

# DSPy 3.4.0 puts a proxy of numpy into sys.modules, over which numpy.typing fails until an attribute has loaded numpy.
from numpy import ndarray as _ndarray  # noqa: F401

from . import answer, collect, plan
from .engine import LexicalEngine, skill
from .prompt import ParsedPrompt

__all__ = ["LexicalEngine", "ParsedPrompt", "answer", "collect", "plan", "skill"]
