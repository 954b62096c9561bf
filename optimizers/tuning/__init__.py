"""The search for better tunables over Optuna: for any DSPy program that has some.

space.py      what is searched
sampler.py    where the next trial is tried
pruning.py    when a trial is given up
study.py      who tries what, and what came of it
storage.py    where that is kept; alive.py: which of its workers live
run.py        a worker; workers.py: several, in processes of their own
outcome.py    what was found; plots.py: pictures of it
search.py     the teleprompter
"""

from .outcome import Outcome
from .run import Progress
from .search import TunableSearch
from .study import Trial
from .workers import tune_in_processes

__all__ = ["Outcome", "Progress", "Trial", "TunableSearch", "tune_in_processes"]
