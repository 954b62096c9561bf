"""What the system does: one file a program, and the parts that programs share."""

from .direct import Direct
from .naive import Naive
from .par_rag import ParRag
from .prediction import UNKNOWN, QuestionError
from .prism import Prism
from .trace import Trace
from .tunables import Tunable, tunables

__all__ = ["UNKNOWN", "Direct", "Naive", "ParRag", "Prism", "QuestionError", "Trace", "Tunable", "tunables"]
