"""The search for better tunables with Optuna, for any DSPy program that has some.

search.py     the teleprompter
space.py      the ranges that are searched
sampling.py   the values of the next trial
workers.py    processes that share the questions of a trial
storage.py    where a search is stored
result.py     trials, and which of them is best
plots.py      figures of a search
"""

from .result import StudyResult, TrialRecord
from .search import TrialProgress, TunableSearch

__all__ = ["StudyResult", "TrialProgress", "TrialRecord", "TunableSearch"]
