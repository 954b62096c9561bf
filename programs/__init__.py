"""The programs, one file each, and the parts they share."""

# mypy: implicit-reexport
# ruff: noqa: F401

from .agent import Agent, Part
from .baselines import Direct, FullContext, Naive, Oracle, ReAct, SetSelection
from .c3po import C3PO
from .candidates import Candidates
from .complexity import Complexity, ComplexityEstimator
from .exemplars import Exemplar, ExemplarMemory, Exemplars
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
