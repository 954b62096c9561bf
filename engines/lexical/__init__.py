"""The embedded language model: classical text analysis that plays every agent from the prompt alone.

No weights, no network, no labels, deterministic, about a millisecond a call. It reads the messages that any model would
get and writes the reply that the adapter asks for.

    prompt.py     what stands in the messages: fields, demos, the adapter's dialect
    engine.py     finds the skill that the prompt asks for
    skills/       one file an agent
    reading.py    what a text says: names, dates, numbers, terms
    question.py   what a question asks for: its names and the type of its answer
    decompose.py  the sub-questions that a question is made of
    chain.py      which passages form a chain of evidence
    resolve.py    which span answers a sub-question
    subgoals.py   which sub-questions are answered so far
"""

from .engine import LexicalEngine

__all__ = ["LexicalEngine"]
