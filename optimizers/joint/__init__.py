"""One optimization of a program's exemplars, prompts and thresholds: `polyhop optimize`.

plan.py        what is done, on which questions
checks.py      what can be said of that before anything is asked
estimate.py    what it will cost, and whether a budget can be enough
stages.py      the stages: each proposes a program
verdict.py     whether a proposal is kept
run.py         the run
final.py       the last measurement
checkpoint.py  its folder
"""

from .plan import Plan, Splits, divide
from .run import optimize

__all__ = ["Plan", "Splits", "divide", "optimize"]
