"""The registry of metrics and costs. A metric is registered once, and everything else reads `METRICS`: runs, summaries,
``polyhop compare``, reports and the ``--metric`` of optimizers.

    @metric(label="Answer words", kind="number", maximize=False)
    def answer_words(attempt: Attempt) -> float:
        return len(attempt.output.answer.split())

On the command line a metric of your own is ``--metric my_module:answer_words``. A metric is also a DSPy metric:

    dspy.Evaluate(devset=questions, metric=metrics.answer_f1)(program)
    dspy.BootstrapFewShot(metric=replace(metrics.joint_f1, threshold=0.9))

DSPy passes a trace while it collects exemplars; the metric then returns whether the score reaches its threshold.
`polyhop.eval.feedback.with_feedback` adds the textual feedback that GEPA needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from math import isfinite
from typing import Any, Literal

import dspy

from ..data.errors import PolyhopError
from ..data.importing import import_named
from ..engines.replies import explain
from . import scoring
from .gold import Gold, LookUp, ProgramOutput, gold_of, gold_with_texts
from .scoring import CUTOFFS, NDCG_CUTOFF, Scores

Kind = Literal["percent", "number", "dollars"]
Needs = Literal["passages", "facts", "texts"]
Part = Literal["answer", "evidence", "ranking"]


@dataclass(frozen=True)
class Attempt:
    """A question with its gold and a program's output: the argument of every metric."""

    example: dspy.Example
    gold: Gold
    output: ProgramOutput

    @cached_property
    def answer(self) -> Scores:
        return scoring.answer_scores(self.output.answer, self.gold.answers)

    @cached_property
    def evidence(self) -> Scores:
        return scoring.passage_scores(self.output.evidence, self.gold.passages)

    @cached_property
    def fact(self) -> Scores:
        return scoring.fact_scores(self.output.evidence, self.gold.facts)

    @cached_property
    def token(self) -> Scores:
        return scoring.token_overlap((item.text for item in self.output.evidence), self.gold.texts or ())

    @cached_property
    def ranking(self) -> dict[str, float]:
        wanted = set(self.gold.passages)
        return scoring.ranking_scores([scoring.counted(wanted, each) for each in self.output.ranking], wanted)

    def found(self, k: int) -> float:
        """The share of the gold passages among the first k of a search; without a trace, among those of the ranking."""
        wanted = set(self.gold.passages)
        counts = {each.id: scoring.counted(wanted, each) for each in self.output.ranking}
        searches = self.output.searches or (tuple(counts),)
        ranked = (list(dict.fromkeys(counts.get(id, id) for id in found)) for found in searches)
        return len(wanted & {id for found in ranked for id in found[:k]}) / (len(wanted) or 1)


@dataclass(frozen=True)
class Quantity:
    """Something that a run has one value of per question."""

    name: str  # in records, summaries and on the command line
    label: str  # in tables and charts
    kind: Kind = "number"  # A "percent" is in [0, 1] and shown times 100
    maximize: bool = False  # whether higher is better
    unit: str = ""  # what is counted: "passages", "sentences"
    shown: bool = False  # whether tables show it by default

    @property
    def heading(self) -> str:
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def text(self, value: float | None, sign: str = "") -> str:
        """A value for people; ``sign="+"`` marks positive ones."""
        if value is None or value != value:
            return ""
        if self.kind == "percent":
            return f"{100 * value:{sign}.1f}"
        size = abs(value)
        if self.kind == "dollars":
            form = ",.2f" if size >= 1 else ".2g" if size >= 0.0001 or not size else ".1e"
            return f"{'-' if value < 0 else sign}${size:{form}}"
        form = ",.0f" if size >= 1000 else ".1f" if size >= 10 else ".2f" if size >= 0.1 or not value else ".2g"
        return format(value, sign + form)


@dataclass(frozen=True, kw_only=True)
class Metric(Quantity):
    """A score; also a DSPy metric.

    Attributes:
        needs: The part of the gold that the score depends on; questions without it have no such score.
        of: What the program must return; the gold must have an answer for "answer".
        own: The DSPy metric that this one was made from, if it is one of the user's.
    """

    function: Callable[[Attempt], float]  # returns the score
    needs: Needs | None = None
    of: tuple[Part, ...] = ()
    own: Callable[..., Any] | None = None
    threshold: float = 0.8  # the score from which a run may serve as an exemplar

    def __call__(self, example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float | bool:
        if self.own is not None and trace is not None:
            return score_of(self.own(*arguments(self.own, example, prediction, trace)))
        score = self.function(attempt_of(example, prediction))
        return score if trace is None else self.reached(score)

    def reached(self, score: float) -> bool:
        return score >= self.threshold if self.maximize else score <= self.threshold

    def applies(self, example: dspy.Example) -> bool:
        """Whether a question has the gold that the score needs."""
        return self._has(gold_of(example), "passages" if self.needs == "texts" else self.needs)

    def scores(self, attempt: Attempt) -> bool:
        """Whether the question has the gold, and the program returns what the score needs."""
        return self._has(attempt.gold, self.needs) and attempt.output.returned.issuperset(self.of)

    def _has(self, gold: Gold, needs: Needs | None) -> bool:
        return (needs is None or bool(getattr(gold, needs))) and ("answer" not in self.of or bool(gold.answers))


def attempt_of(example: dspy.Example, prediction: dspy.Prediction) -> Attempt:
    """A prediction with its gold."""
    output = ProgramOutput.of(prediction)
    return Attempt(example, gold_with_texts(example, output), output)


def score(
    example: dspy.Example, output: ProgramOutput | None, look_up: LookUp | None = None
) -> tuple[Gold, dict[str, float]]:
    """The gold of a question, and all scores of an output that the gold allows; of a failure (None) all are 0."""
    known = output or ProgramOutput("")
    attempt = Attempt(example, gold_with_texts(example, known, look_up), known)
    able = {name: each for name, each in METRICS.items() if each.scores(attempt)}
    return attempt.gold, {name: each.function(attempt) if output else 0.0 for name, each in able.items()}


# --- registry --------------------------------------------------------------------------------------------------------

METRICS: dict[str, Metric] = {}
"""All metrics by name, in the order of reports."""

COSTS = {
    cost.name: cost
    for cost in (
        Quantity("lm_calls", "LM calls", shown=True),
        Quantity("lm_calls_critical_path", "LM calls in sequence"),
        Quantity("searches", "Searches", shown=True),
        Quantity("rounds", "Rounds"),
        Quantity("tokens_in", "Tokens in"),
        Quantity("tokens_out", "Tokens out"),
        Quantity("tokens", "Tokens", shown=True),
        Quantity("cost_usd", "Dollars", "dollars", shown=True),
        Quantity("seconds", "Seconds", shown=True),
    )
}
"""What a question costs, by name."""


def quantity(name: str) -> Quantity:
    """A metric or cost by name; an unknown one (of a run with a metric of its own) is shown as a plain number."""
    return METRICS.get(name) or COSTS.get(name) or Quantity(name, name.replace("_", " ").capitalize(), maximize=True)


def metric(
    *, label: str, name: str = "", kind: Kind = "percent", maximize: bool = True, shown: bool = True, **options: Any
) -> Callable[[Callable[[Attempt], float]], Metric]:
    """Register a metric; see `Metric` and `Quantity` for the arguments. The name is that of the function by default."""

    def register(function: Callable[[Attempt], float]) -> Metric:
        key = name or function.__name__
        METRICS[key] = Metric(key, label, kind, maximize, shown=shown, function=function, **options)
        return METRICS[key]

    return register


def find_metric(name: str) -> Metric:
    """A metric by name; or by ``MODULE:NAME`` or ``FILE.py:NAME`` one of your own, which this registers: a `metric`, or
    any that DSPy takes."""
    if ":" in name:
        found = import_named(name, "metric")
        if isinstance(found, type):  # such as dspy.SemanticF1
            found = found()
        if not callable(found) or not any(_takes(found, count) for count in (2, 3, 5)):
            raise PolyhopError(f"{name!r} is not a metric: metrics are called with an example and a prediction")
        name = metric_name(found)
    elif name not in METRICS:
        raise PolyhopError(f"no metric {name!r}: choose from {', '.join(METRICS)}, or name your own as FILE.py:METRIC")
    return METRICS[name]


def metric_name(metric: Any) -> Any:
    """The name of a DSPy metric, which is registered if it is not yet: ``metric(example, prediction, trace=None)``, or
    with two more arguments, as GEPA calls it.

    Raises:
        ValueError: another metric has its name.
    """
    if not callable(metric):
        return metric
    own = metric
    if not isinstance(metric, Metric):

        @wraps(own)  # with its module, by which workers get it
        def scored(attempt: Attempt) -> float:
            try:
                return score_of(own(*arguments(own, attempt.example, attempt.output.prediction)))
            except Exception as error:
                about = str(attempt.example.get("question"))[:80]
                raise PolyhopError(f"the metric {name} failed on {about!r}: {explain(error)}") from error

        name = str(getattr(own, "__name__", type(own).__name__))
        label = name.replace("_", " ").capitalize()
        metric = Metric(name, label, "number", maximize=True, shown=True, function=scored, own=own)
    known = METRICS.setdefault(metric.name, metric)
    if known is not own and known.own is not own:
        raise ValueError(f"another metric is called {metric.name}: give yours another name")
    return metric.name


def score_of(said: Any) -> float:
    """The number that a DSPy metric returned, perhaps with feedback.

    Raises:
        ValueError: it is not a finite number.
    """
    score = float(said.score if isinstance(said, dspy.Prediction) else said)
    if not isfinite(score):
        raise ValueError(f"it returned {score}, which is not a finite number")
    return score


def takes_feedback(metric: Callable[..., Any]) -> bool:
    """Whether a metric takes the five arguments of GEPA."""
    return _takes(metric, 5)


def arguments(metric: Callable[..., Any], example: dspy.Example, prediction: Any, trace: Any = None) -> tuple[Any, ...]:
    """What a DSPy metric is called with: all five arguments of GEPA, or as few as it takes."""
    count = 5 if _takes(metric, 5) else 2 if trace is None and _takes(metric, 2) else 3
    return (example, prediction, trace, None, None)[:count]


def _takes(metric: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(metric).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


# --- metrics ---------------------------------------------------------------------------------------------------------


@metric(label="Answer EM", threshold=1.0, of=("answer",))
def answer_em(attempt: Attempt) -> float:
    """The answer equals a gold answer after normalization."""
    return scoring.exact_match(attempt.output.answer, attempt.gold.answers)


@metric(label="Answer F1", of=("answer",))
def answer_f1(attempt: Attempt) -> float:
    """Tokens shared with the best gold answer."""
    return attempt.answer.f1


def _part(unit: str, part: str, needs: Needs, counted: str = "", **more: Any) -> Metric:
    """One of precision, recall and F1 of an attempt's scores."""
    label = f"{unit.capitalize()} {part[0].upper() if part != 'f1' else 'F1'}"
    register = metric(label=label, name=f"{unit}_{part}", of=("evidence",), unit=counted, needs=needs, **more)
    return register(lambda attempt: float(getattr(getattr(attempt, unit), part)))


_part("evidence", "precision", "passages", "passages")
_part("evidence", "recall", "passages", "passages")
evidence_f1 = _part("evidence", "f1", "passages", "passages")
"""The passages of the evidence."""

_part("fact", "precision", "facts", "sentences")
_part("fact", "recall", "facts", "sentences")
fact_f1 = _part("fact", "f1", "facts", "sentences", threshold=0.6)
"""The sentences of the evidence."""


@metric(label="Joint F1", threshold=0.6, needs="passages", of=("answer", "evidence"))
def joint_f1(attempt: Attempt) -> float:
    """Answer and evidence together (HotpotQA): sentences, or passages where no gold sentences are known."""
    if not attempt.gold.passages:
        return attempt.answer.f1
    return scoring.joint(attempt.answer, attempt.fact if attempt.gold.facts else attempt.evidence).f1


def _of_ranking(name: str, label: str, value: Callable[[Attempt], float] | None = None, shown: bool = False) -> None:
    register = metric(label=label, name=name, unit="passages", shown=shown, needs="passages", of=("ranking",))
    register(value or (lambda attempt: attempt.ranking[name]))


for _k in CUTOFFS:
    _of_ranking(f"passage_recall@{_k}", f"Recall@{_k}", shown=_k == 5)
for _k in CUTOFFS:
    _of_ranking(f"all_gold@{_k}", f"All gold@{_k}", shown=_k == 5)
# What the retriever finds for the program's queries, before agents choose: the best of all searches of a question.
_of_ranking("search_recall@5", "Search recall@5", lambda attempt: attempt.found(5), shown=True)
_of_ranking("passage_mrr", "MRR")
_of_ranking(f"passage_ndcg@{NDCG_CUTOFF}", f"nDCG@{NDCG_CUTOFF}")


@metric(label="Answer in evidence", needs="passages", of=("answer", "evidence"))
def answer_in_evidence(attempt: Attempt) -> float:
    """A piece of evidence contains a gold answer as whole words; little is said by "yes" and "no"."""
    return float(any(scoring.mentions(item.text, attempt.gold.answers) for item in attempt.output.evidence))


for _name in ("precision", "recall", "f1"):
    _part("token", _name, "texts", shown=False)
