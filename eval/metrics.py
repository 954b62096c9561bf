"""The registry of metrics and costs. A metric is registered once, and everything else reads `METRICS`: runs, summaries,
``polyhop compare``, reports and the ``--metric`` of optimizers.

    @metric(label="Answer words", kind="number", maximize=False)
    def answer_words(attempt: Attempt) -> float:
        return len(attempt.output.answer.split())

On the command line a metric of your own is ``--metric my_module:answer_words``. A metric is also a DSPy metric. DSPy
passes a trace while it collects exemplars; the metric then returns whether the score reaches its threshold.
`polyhop.optimizers.gepa.feedback_metric` adds the textual feedback that GEPA needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, Literal

import dspy

from ..data.errors import PolyhopError
from ..data.importing import import_named
from ..engines.replies import explain
from . import scoring
from .gold import Gold, LookUp, ProgramOutput, gold_of, gold_with_texts
from .scoring import CUTOFFS, NDCG_CUTOFF

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
    def values(self) -> dict[str, float]:
        """The scores of all metrics of the package."""
        output, gold, wanted = self.output, self.gold, set(self.gold.passages)
        answer = scoring.answer_scores(output.answer, gold.answers)
        units = {
            "evidence": scoring.passage_scores(output.evidence, gold.passages),
            "fact": scoring.fact_scores(output.evidence, gold.facts),
            "token": scoring.token_overlap((item.text for item in output.evidence), gold.texts or ()),
        }
        both = scoring.joint(answer, units["fact" if gold.facts else "evidence"])
        ids = {passage.id: scoring.counted(wanted, passage) for passage in output.ranking}
        searches = [[ids.get(id, id) for id in search] for search in output.searches or (tuple(ids),)]
        offered = wanted & {id for search in searches for id in list(dict.fromkeys(search))[:5]}
        return {
            "answer_em": scoring.exact_match(output.answer, gold.answers),
            "answer_f1": answer.f1,
            **{f"{unit}_{part}": value for unit, score in units.items() for part, value in score._asdict().items()},
            "joint_f1": both.f1 if wanted else answer.f1,
            **scoring.ranking_scores(list(ids.values()), wanted),
            "search_recall@5": len(offered) / (len(wanted) or 1),
            "answer_in_evidence": float(any(scoring.mentions(e.text, gold.answers) for e in output.evidence)),
        }


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
        wrapped: The DSPy metric that this one was made from, if it is one of the user's.
    """

    function: Callable[[Attempt], float]  # returns the score
    needs: Needs | None = None
    of: tuple[Part, ...] = ()
    wrapped: Callable[..., Any] | None = None
    threshold: float = 0.8  # the score from which a run may serve as an exemplar

    def __call__(self, example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float | bool:
        if self.wrapped is not None and trace is not None:
            return scored(self.wrapped, example, prediction, trace)
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
    scored = output or ProgramOutput("")
    attempt = Attempt(example, gold_with_texts(example, scored, look_up), scored)
    able = {name: metric for name, metric in METRICS.items() if metric.scores(attempt)}
    return attempt.gold, {name: metric.function(attempt) if output else 0.0 for name, metric in able.items()}


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
        Quantity("cost_units", "Cost units"),
        Quantity("tokens_in", "Tokens in"),
        Quantity("tokens_out", "Tokens out"),
        Quantity("tokens", "Tokens", shown=True),
        Quantity("cost_usd", "Dollars", "dollars", shown=True),
        Quantity("seconds", "Seconds", shown=True),
    )
}
"""What a question costs, by name."""


OWN: dict[str, Quantity] = {}
"""The user's own metrics in the runs that were read, as their manifests describe them."""


def quantity(name: str) -> Quantity:
    """A metric or cost by name; an unknown one (such as another system's) is shown as a plain number."""
    registered = METRICS.get(name) or COSTS.get(name) or OWN.get(name)
    return registered or Quantity(name, name.replace("_", " ").capitalize(), maximize=True)


def own_metrics() -> dict[str, Quantity]:
    """The registered metrics that are not the package's."""
    described = {}
    for name, metric in METRICS.items():
        if name not in _SHIPPED:
            described[name] = Quantity(name, metric.label, metric.kind, metric.maximize, metric.unit, metric.shown)
    return described


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
        metric = import_named(name, "metric")
        if isinstance(metric, type):  # such as dspy.SemanticF1
            metric = metric()
        if not callable(metric) or not any(takes(metric, count) for count in (2, 3, 5)):
            raise PolyhopError(f"{name!r} is not a metric: metrics are called with an example and a prediction")
        name = metric_name(metric)
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
    name = named(metric)
    if name not in METRICS:
        METRICS[name] = metric if isinstance(metric, Metric) else _wrapping(metric)
    if metric not in (METRICS[name], METRICS[name].wrapped):
        raise ValueError(f"another metric is called {name}: give yours another name")
    return name


def _wrapping(metric: Callable[..., Any]) -> Metric:
    return Metric(
        named(metric),
        named(metric).replace("_", " ").capitalize(),
        maximize=True,
        shown=True,
        function=lambda attempt: scored(metric, attempt.example, attempt.output.prediction),
        wrapped=metric,
    )


def named(metric: Callable[..., Any]) -> str:
    """The name of a metric."""
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))


def scored(metric: Callable[..., Any], example: dspy.Example, prediction: Any, trace: Any = None) -> float:
    """What a DSPy metric says of a prediction, perhaps with feedback. It is called with all five arguments of GEPA, or
    as few as it takes.

    Raises:
        PolyhopError: it raises, or returns no finite number: an error in the metric must not pass for a bad program.
    """
    count = 5 if takes(metric, 5) else 2 if trace is None and takes(metric, 2) else 3
    try:
        result = metric(*(example, prediction, trace, None, None)[:count])
        score = float(result.score if isinstance(result, dspy.Prediction) else result)
        if not isfinite(score):
            raise ValueError(f"it returned {score}, which is not a finite number")
        return score
    except PolyhopError:
        raise
    except Exception as error:
        about = str(example.get("question"))[:80]
        raise PolyhopError(f"the metric {named(metric)} failed on {about!r}: {explain(error)}") from error


def takes(metric: Callable[..., Any], count: int) -> bool:
    """Whether a metric takes so many arguments: those of GEPA are five."""
    try:
        inspect.signature(metric).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


# --- metrics ---------------------------------------------------------------------------------------------------------


def _own(name: str, label: str, *of: Part, needs: Needs | None = None, **more: Any) -> Metric:
    return metric(name=name, label=label, of=of, needs=needs, **more)(lambda attempt: attempt.values[name])


def _parts(name: str, needs: Needs, **more: Any) -> Metric:
    """Precision, recall and F1."""
    for part, letter in (("precision", "P"), ("recall", "R")):
        _own(f"{name}_{part}", f"{name.capitalize()} {letter}", "evidence", needs=needs, **{**more, "threshold": 0.8})
    return _own(f"{name}_f1", f"{name.capitalize()} F1", "evidence", needs=needs, **more)


answer_em = _own("answer_em", "Answer EM", "answer", threshold=1.0)
"""The answer equals a gold answer after normalization."""
answer_f1 = _own("answer_f1", "Answer F1", "answer")
"""Tokens shared with the best gold answer."""
evidence_f1 = _parts("evidence", "passages", unit="passages")
"""The passages of the evidence."""
fact_f1 = _parts("fact", "facts", unit="sentences", threshold=0.6)
"""The sentences of the evidence."""
joint_f1 = _own("joint_f1", "Joint F1", "answer", "evidence", needs="passages", threshold=0.6)
"""Answer and evidence together (HotpotQA): sentences, or passages where no gold sentences are known."""
for _name, _label, _shown in (
    *((f"passage_recall@{k}", f"Recall@{k}", k == 5) for k in CUTOFFS),
    *((f"all_gold@{k}", f"All gold@{k}", k == 5) for k in CUTOFFS),
    # What the retriever finds for the program's queries, before agents choose: the best of all searches of a question.
    ("search_recall@5", "Search recall@5", True),
    ("passage_mrr", "MRR", False),
    (f"passage_ndcg@{NDCG_CUTOFF}", f"nDCG@{NDCG_CUTOFF}", False),
):
    _own(_name, _label, "ranking", needs="passages", unit="passages", shown=_shown)
# A piece of evidence contains a gold answer as whole words; little is said by "yes" and "no".
_own("answer_in_evidence", "Answer in evidence", "answer", "evidence", needs="passages")
_parts("token", "texts", shown=False)

_SHIPPED = frozenset(METRICS)
