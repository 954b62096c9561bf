"""Better prompts: every prompt optimizer of DSPy, by name, with presets and an estimate of what it costs.

    probe = Probe.of(program, trainset, metric)
    print(estimate("random_search", program, trainset, valset, probe=probe).lm_calls)
    better = optimize_prompts("random_search", program, trainset, valset, metric)

optimizer.py     what an optimizer is
few_shot.py      those that choose demos
nearest.py       demos that are chosen for each question
instructions.py  those that have a model write instructions, and choose by score
reflection.py    those that have a model look at runs, and write rules or instructions
combined.py      several programs or optimizers together
compile.py       running one of them, the registry, the table of estimates
costs.py         probe and estimate
watch.py         calls counted, failures seen
student.py       the copy that a teleprompter works on, and what is taken over of its result
gold.py          demos from a dataset's annotations (solved.py, gold_evidence.py, gold_answers.py)
quiet.py         no prints and bars, no question asked twice
"""

from .combined import vote
from .compile import OPTIMIZERS, can_write, check, estimate, estimates, optimize_prompts
from .costs import Cost, Estimate, Probe
from .gold import gold_demos
from .nearest import Nearest
from .optimizer import PRESETS, PromptOptimizer

__all__ = [
    "OPTIMIZERS",
    "PRESETS",
    "Cost",
    "Estimate",
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
