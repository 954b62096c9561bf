"""The embedded language model: classical text analysis that plays every agent from the prompt alone.

No network, no labels, deterministic, a few milliseconds a call; what is learned are the weights of the reader's signs,
some 80 kB of JSON. It reads the messages that any model would get and writes the reply that the adapter asks for.

    prompt.py     what stands in the messages: fields, demos, the adapter's dialect
    engine.py     finds the skill that the prompt asks for
    skills/       one file an agent, or a family of them
    reading.py    what a text says: names, dates, numbers, terms
  the question
    question.py   the names in it
    asked.py      what it asks for
    decompose.py  the sub-questions that it is made of
    analogy.py    what a solved question in the prompt teaches about others
  the chain of evidence
    signs.py      what speaks for a page as the next one of a chain
    judge.py      reads these signs from the pages of a prompt
    weights.py    what each of these signs is worth
    chain.py      which pages form a chain of evidence
    lines.py      which of their lines carry it
    gaps.py       what the evidence does not tell yet
    subgoals.py   how far the sub-goals of a plan are reached
  the answer
    spans.py      every span that could be one
    book.py       pages prepared for reading: their spans in one table
    features.py   what speaks for a span, given the question
    ranker.py     the learned weights of that, in ranker.json
    resolve.py    the sub-questions, one after the other
    compare.py    answers that are concluded: which is first, whether two are the same
    reader.py     a question over pages: its candidate answers and their probabilities
"""

from .engine import LexicalEngine, skill
from .prompt import Prompt

__all__ = ["LexicalEngine", "Prompt", "skill"]
