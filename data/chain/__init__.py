"""A retriever that follows chains of evidence: it finds the second hop from the first, without a model.

reading.py     the words and names of a passage, as numbers
store.py       those of a whole collection, in memory or on disk
question.py    the words of a question
graph.py       the passages around a question and the edges between them
weights.py     the weights of the features
retriever.py   the greedy choice, and `ChainRetriever`
"""

from .retriever import ChainRetriever as ChainRetriever
from .weights import ChainWeights as ChainWeights
