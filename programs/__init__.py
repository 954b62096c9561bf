"""What the system does: one file a program, and the parts that programs share."""

from .c3po import C3PO
from .direct import Direct
from .ircot import IRCoT
from .naive import Naive
from .prediction import UNKNOWN, QuestionError
from .prism import Prism
from .trace import Trace
from .tunables import Tunable, tunables

__all__ = ["C3PO", "UNKNOWN", "Direct", "IRCoT", "Naive", "Prism", "QuestionError", "Trace", "Tunable", "tunables"]
