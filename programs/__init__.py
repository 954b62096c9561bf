"""The programs, one file each, and the parts they share."""

from .agent import Agent, Part
from .baselines import Direct, FullContext, Naive, Oracle, SetSelection
from .c3po import C3PO
from .candidates import Candidates
from .complexity import Complexity, ComplexityEstimator, estimate_complexity
from .exemplars import Exemplar, ExemplarMemory, Exemplars, as_demos
from .ircot import IRCoT
from .kair import Kair
from .par_rag import ParRag
from .polyhop import PolyHop
from .prediction import UNKNOWN, QuestionError, check_question, conclude, read_answer
from .prism import Prism
from .program import PROGRAMS, Program, name_of, new_program, register
from .run import current, record
from .search import Search, retriever_of
from .trace import Trace
from .tunable import Tunable, choice, integer, real, switch, tunables

__all__ = [
    "C3PO",
    "PROGRAMS",
    "UNKNOWN",
    "Agent",
    "Candidates",
    "Complexity",
    "ComplexityEstimator",
    "Direct",
    "Exemplar",
    "ExemplarMemory",
    "Exemplars",
    "FullContext",
    "IRCoT",
    "Kair",
    "Naive",
    "Oracle",
    "ParRag",
    "Part",
    "PolyHop",
    "Prism",
    "Program",
    "QuestionError",
    "Search",
    "SetSelection",
    "Trace",
    "Tunable",
    "as_demos",
    "check_question",
    "choice",
    "conclude",
    "current",
    "estimate_complexity",
    "integer",
    "name_of",
    "new_program",
    "read_answer",
    "real",
    "record",
    "register",
    "retriever_of",
    "switch",
    "tunables",
]
