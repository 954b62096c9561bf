"""Fits the reader of the lexical engine: ``python -m polyhop.scripts.training.reader``.

examples.py  questions with the passages that a program would read for them, and their annotated sub-questions
network.py   training one ranker
fit.py       the fit: cross-fitted, calibrated, scored
"""
