"""Agents that are played from a benchmark's annotations with stated error rates: for studies only.

How good a loop is depends on how good its agents are. Here the agents are as good as one says, so that designs of the
loop (fixed against adaptive rounds, say) can be compared under the same noise. What comes out is a simulation, never a
result of a system, and says so wherever it goes: in the model's name, in manifests, summaries and tables.

    engine.py        the model: prompt in, reply out
    agents.py        how each field of a reply is made, and where it errs
    annotations.py   what a benchmark knows about its questions, as prompts show it
    review.py        judges alone: alpha(h) against a fixed alpha
    study.py         the command: programs under several error rates
"""

from .agents import Rates
from .engine import SimulatedEngine, simulated_lm

__all__ = ["Rates", "SimulatedEngine", "simulated_lm"]
