"""Prompt optimization: DSPy's prompt optimizers by name, with presets and an upper bound of their cost.

    probe = Probe.of(program, trainset)
    print(estimate("random_search", program, trainset, valset, probe=probe).lm_calls)
    better = optimize_prompts("random_search", program, trainset, valset, metric)

An optimizer registers once, with `register` (registry.py), in the module of its kind: annotated.py (demos from a
dataset's annotations), credited.py (demos for the agents that cost the points), bootstrapped.py (demos from the
program's own runs), instructions.py (written by a model).
"""

from . import annotated, bootstrapped, credited, instructions  # noqa: F401  # they register their optimizers
from .annotated import gold_demos
from .bootstrapped import Nearest, vote
from .compile import can_write, check, optimize_prompts
from .registry import OPTIMIZERS, PRESETS, Cost, Probe, PromptOptimizer, estimate, estimates

__all__ = [
    "OPTIMIZERS",
    "PRESETS",
    "Cost",
    "Nearest",
    "Probe",
    "PromptOptimizer",
    "can_write",
    "check",
    "estimate",
    "estimates",
    "gold_demos",
    "optimize_prompts",
    "vote",
]
