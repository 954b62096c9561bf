"""A retriever that follows chains of evidence: it finds the second hop from the first, without a model.

features.py    words, names, titles and sentences of questions and passages
graph.py       the passages around a question and the edges between them
weights.py     the weights of the features
retriever.py   the greedy choice, and `ChainRetriever`
"""

from .retriever import ChainRetriever as ChainRetriever
from .weights import ChainWeights as ChainWeights
