"""The embedded language model: classical text analysis that plays every agent from the prompt alone.

No weights, no network, no labels, deterministic, about a millisecond a call. It reads the messages that any model would
get and writes the reply that the adapter asks for.

    prompt.py     what stands in the messages: fields, demos, the adapter's dialect
    engine.py     finds the skill that the prompt asks for
    skills/       one file an agent
    reading.py    what a text says: names, dates, numbers, terms
    question.py   what a question asks for: its names and the type of its answer
    decompose.py  the sub-questions that a question is made of
    analogy.py    what a solved question in the prompt teaches about others
    signs.py      what speaks for a page as the next one of a chain
    judge.py      reads these signs from the pages of a prompt
    weights.py    what each of these signs is worth
    chain.py      which pages form a chain of evidence
    lines.py      which of their lines carry it
    gaps.py       what the evidence does not tell yet
    resolve.py    which span answers a sub-question
"""

from .engine import LexicalEngine

__all__ = ["LexicalEngine"]
