"""A retriever that follows the chain of evidence: the second hop is found from the first, with no model.

reading.py     what a passage says: its names, its sentences, the names it mentions
question.py    what a question asks for: its words, what each is worth, the titles that stand in it
graph.py       which passages a question and the passages chosen so far lead to, and what ties them together
weights.py     what each sign is worth
retriever.py   the greedy choice, and `ChainRetriever`
"""

from .retriever import ChainRetriever as ChainRetriever
from .weights import ChainWeights as ChainWeights
