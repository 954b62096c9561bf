"""Agents simulated from a benchmark's annotations with stated error rates, to compare designs of a loop under equal
noise.

A simulation is never a result of a system, and is labelled in model names, manifests, summaries and tables.
"""

from .agents import PROFILES, Rates
from .engine import SimulatedEngine, simulate, simulated_lm

__all__ = ["PROFILES", "Rates", "SimulatedEngine", "simulate", "simulated_lm"]
