"""A retriever that follows chains of evidence: it finds the second hop from the first, without a model.

words.py      the words and names of a passage
store.py      what a collection is asked: who has a title, where a link leads, how rare a word is
graph.py      a question, the passages around it, and the ties between them
retriever.py  the weights, the greedy choice, and `ChainRetriever`
pairs.py      pairs of passages to write questions from, and the path between two documents
"""

# DSPy 3.4.0 puts a proxy of numpy into sys.modules, over which numpy.typing fails until an attribute has loaded numpy.
from numpy import ndarray as _ndarray  # noqa: F401

from .retriever import ChainRetriever as ChainRetriever
from .retriever import ChainWeights as ChainWeights
