"""What the system does: one file a program, and the parts that programs share."""

from .c3po import C3PO
from .complexity import Complexity, ComplexityEstimator, estimate_complexity
from .direct import Direct
from .exemplars import Exemplar, ExemplarMemory, Exemplars, as_demos
from .ircot import IRCoT
from .kair import Kair
from .naive import Naive
from .par_rag import ParRag
from .polyhop import PolyHop
from .prediction import UNKNOWN, QuestionError
from .prism import Prism
from .trace import Trace
from .tunables import Tunable, tunables

__all__ = [
    "C3PO",
    "UNKNOWN",
    "Complexity",
    "ComplexityEstimator",
    "Direct",
    "Exemplar",
    "ExemplarMemory",
    "Exemplars",
    "IRCoT",
    "Kair",
    "Naive",
    "ParRag",
    "PolyHop",
    "Prism",
    "QuestionError",
    "Trace",
    "Tunable",
    "as_demos",
    "estimate_complexity",
    "tunables",
]
