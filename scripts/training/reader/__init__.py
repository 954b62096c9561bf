"""Fitting the reader of the lexical engine: ``python -m polyhop.scripts.training.reader``.

examples.py  what it learns from: questions, and the pages that a program would read for them
hops.py      the sub-questions that benchmarks annotate, with their answers
tasks.py     what rankers are trained on: candidates with what speaks for them, and how right they are
network.py   training one ranker
fit.py       the fit: cross-fitted, calibrated, measured
__main__.py  the command, and the figures of the run that gave the shipped models
"""
