"""The benchmarks' own evaluators: the same numbers under the same names, and the prediction files they read.

One module a benchmark (hotpotqa, two_wiki, musique, squad, triviaqa, nq_open, multihop_rag), all of one shape:

    Prediction, Gold         plain values: strings, numbers, tuples
    score(prediction, gold)  one question: the authors' metrics by their names, as fractions
    evaluate(pairs)          what the authors' script prints for (prediction, gold) pairs, in its units and rounding
    write, read              the official prediction file (MultiHop-RAG has two)

A prediction that is missing (``None``) scores 0 and counts in every mean, as the scripts have it. The rules differ
from benchmark to benchmark in small ways that move published numbers; each module's docstring lists its own.
"""
