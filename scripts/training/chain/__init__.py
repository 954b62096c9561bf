"""Tuning the chain retriever: its weights, and what each sign is worth.

workers.py    questions under many weights, in processes of their own
search.py     the search for weights
run.py        a tuning run: cross-validated, recorded, continued
tune.py       the command: python -m polyhop.scripts.training.chain.tune
ablate.py     the command: python -m polyhop.scripts.studies.ablation
weights.json  the record of the run that gave the shipped weights
"""
