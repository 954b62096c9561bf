"""Tuning the weights of the chain retriever: python -m polyhop.scripts.training.chain.tune

workers.py    worker processes that measure weights
search.py     the search for weights
run.py        a cross-validated run that can be resumed
tune.py       the command
weights.json  the record of the run that confirmed the shipped weights and set the threshold
"""
