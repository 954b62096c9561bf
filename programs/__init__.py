"""What the system does: one file a program, and the parts that programs share."""

from .complexity import Complexity, ComplexityEstimator, estimate_complexity
from .direct import Direct
from .exemplars import Exemplar, ExemplarMemory, Exemplars, as_demos
from .naive import Naive
from .par_rag import ParRag
from .prediction import UNKNOWN, QuestionError
from .prism import Prism
from .trace import Trace
from .tunables import Tunable, tunables

__all__ = [
    "UNKNOWN",
    "Complexity",
    "ComplexityEstimator",
    "Direct",
    "Exemplar",
    "ExemplarMemory",
    "Exemplars",
    "Naive",
    "ParRag",
    "Prism",
    "QuestionError",
    "Trace",
    "Tunable",
    "as_demos",
    "estimate_complexity",
    "tunables",
]
