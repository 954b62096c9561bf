"""A retriever that follows chains of evidence: it finds the second hop from the first, without a model.

reading.py     the words and names of a passage, as numbers
arrays.py      hashes of these, and where names are among them
store.py       those of a whole collection, in memory or on disk
source.py      what a chain is searched in
question.py    the words of a question
titles.py      the forms in which other texts mention a title
hyperlinks.py  the hyperlinks of the passages around a question
graph.py       the passages around a question and the edges between them
weights.py     the weights of the features
retriever.py   the greedy choice, and `ChainRetriever`
"""

# DSPy 3.4.0 puts a proxy of numpy into sys.modules, over which numpy.typing fails until an attribute has loaded numpy.
from numpy import ndarray as _ndarray  # noqa: F401

from .retriever import ChainRetriever as ChainRetriever
from .weights import ChainWeights as ChainWeights
