"""The benchmarks' official evaluators: the same numbers under the same names, and their prediction files.

One module per benchmark (hotpotqa, two_wiki, hover, musique, squad, triviaqa, nq_open, popqa, multihop_rag), all of one
shape; Bamboogle has SQuAD's metrics:

    Prediction, Gold         plain values: strings, numbers, tuples
    score(prediction, gold)  one question: the authors' metrics by their names, as fractions
    evaluate(pairs)          what the authors' script prints for (prediction, gold) pairs, in its units and rounding
    write                    the official prediction file (MultiHop-RAG has two)

A missing prediction (``None``) scores 0 and counts in every mean, as in the scripts. The rules of the
benchmarks differ in small ways that change published numbers; the docstring of each module lists them. `submissions`
makes the predictions.
"""
