"""The embedded language model: classical text analysis that plays every agent from the prompt alone.

No network, no labels, deterministic, a few milliseconds a call; what is learned are the weights of the reader's signs,
some 80 kB of JSON. It reads the messages that any model would get and writes the reply that the adapter asks for.

    prompt.py     what stands in the messages: fields, demos, the adapter's dialect
    engine.py     finds the skill that the prompt asks for
    skills/       one file an agent
    reading.py    what a text says: names, dates, numbers, terms
    question.py   the names in a question
    asked.py      what a question asks for
    decompose.py  the sub-questions that a question is made of
    chain.py      which passages form a chain of evidence
    spans.py      every span that could be an answer
    book.py       pages prepared for reading: their spans in one table
    features.py   what speaks for a span, given the question
    ranker.py     the learned weights of that, in ranker.json
    resolve.py    the sub-questions, one after the other
    compare.py    answers that are concluded: which is first, whether two are the same
    reader.py     a question over pages: its candidate answers and their probabilities
"""

from .engine import LexicalEngine

__all__ = ["LexicalEngine"]
