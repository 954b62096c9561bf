"""Optimizers that have a prompt model write instructions or rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import dspy
from dspy.teleprompt import BetterTogether, InferRules

from ...data.errors import PolyhopError
from ...eval.feedback import with_feedback
from ...eval.metrics import Metric as PolyhopMetric
from ..exemplars import in_words
from ..measure import Metric
from .bootstrapped import SEARCH, candidate_seeds, search_runs, searcher
from .reflection import BriefProposer, MostFaults
from .registry import CompileJob, Numbers, by_preset, register


@register(
    "copro",
    "instructions, agent by agent, from those that scored well",
    "instructions",
    by_preset(train=(10, 12, 20), val=(0, 0, 0), breadth=(2, 3, 4), depth=(1, 2, 2)),
    runs=lambda n: n["agents"] * n["breadth"] * n["train"] * n["depth"] * (n["depth"] + 1) / 2,
    proposals=lambda n: n["agents"] * n["depth"],
)
def copro(job: CompileJob) -> dspy.Module:
    """`dspy.COPRO`: ``breadth`` instructions for each agent in each of ``depth`` rounds, all scored on train questions
    again in every round. It takes no seed."""
    teleprompter = dspy.COPRO(
        metric=job.metric, breadth=job.numbers["breadth"], depth=job.numbers["depth"], init_temperature=1.4
    )
    with dspy.context(lm=job.prompt_model):  # given as its prompt_model, COPRO would print that model's history
        return teleprompter.compile(
            job.student, trainset=job.trainset, eval_kwargs={"num_threads": job.threads, "display_table": False}
        )


def _mipro_runs(n: Numbers) -> float:
    bootstraps, small = n["candidates"] * n["train"], min(n["minibatch"], n["val"])
    if n["agents"] == 1 or small == n["val"]:
        return float(bootstraps + (1 + n["trials"]) * n["val"])
    return float(bootstraps + small * n["trials"] + (2 + n["trials"] // n["full_every"]) * n["val"])


@register(
    "mipro",
    "instructions and demos, combined by TPE",
    "both",
    by_preset(
        train=(20, 50, 100),
        val=(20, 40, 80),
        demos=(2, 3, 4),
        candidates=(3, 5, 8),
        trials=(8, 16, 30),
        minibatch=(8, 15, 25),
        full_every=(4, 5, 6),
    ),
    runs=_mipro_runs,
    proposals=lambda n: 12 + 3 * n["agents"] * n["candidates"],  # the dataset, then program, agent and instruction
)
def mipro(job: CompileJob) -> dspy.Module:
    """`dspy.MIPROv2`: ``candidates`` instructions and sets of demos for each agent, combined in ``trials`` by TPE.

    Trials are scored on ``minibatch`` validation questions, and the best one on all every ``full_every`` trials.
    Programs of one agent have few combinations: DSPy fails when all are evaluated, so their trials use all questions.
    The study is in memory and cannot be resumed.
    """
    numbers = job.numbers
    teleprompter = dspy.MIPROv2(
        metric=job.metric,
        prompt_model=job.prompt_model,
        task_model=job.student.predictors()[0].lm,  # required, but every agent has its model
        max_bootstrapped_demos=numbers["demos"],
        max_labeled_demos=0,
        auto=None,
        num_candidates=numbers["candidates"],
        num_threads=job.threads,
        seed=job.seed,
    )
    return teleprompter.compile(
        job.student,
        trainset=[_BriefExample(example).with_inputs(*example.inputs().keys()) for example in job.trainset],
        valset=job.valset,
        num_trials=numbers["trials"],
        minibatch=numbers["minibatch"] < len(job.valset) and len(job.student.predictors()) > 1,
        minibatch_size=numbers["minibatch"],
        minibatch_full_eval_steps=numbers["full_every"],
    )


class _BriefExample(dspy.Example):
    """Shown to the prompt model without passages and annotations, which would fill its context."""

    def __repr__(self) -> str:
        answer = self.get("answer") or next(iter(self.get("answers") or ()), None)
        return f"Example({ {'question': self.get('question'), 'answer': answer} })"


@register(
    "simba",
    "demos and rules from questions on which answers vary",
    "both",
    by_preset(
        train=(20, 40, 80), val=(0, 0, 0), demos=(2, 3, 4), candidates=(2, 4, 6), steps=(2, 4, 6), batch=(8, 12, 16)
    ),
    runs=lambda n: (
        n["steps"] * min(n["batch"], n["train"]) * (2 * n["candidates"] + 1) + (n["candidates"] + 1) * n["train"]
    ),
    proposals=lambda n: n["steps"] * min(n["batch"], n["train"]),
)
def simba(job: CompileJob) -> dspy.Module:
    """`dspy.SIMBA`: in each of ``steps``, questions on which answers vary give demos or rules. Uses train questions
    only."""
    if len({id(predictor.lm) for predictor in job.student.predictors()}) > 1:
        raise PolyhopError("simba samples with one model for the whole program: give all agents the same")
    numbers = job.numbers
    teleprompter = dspy.SIMBA(
        metric=job.metric,
        bsize=min(numbers["batch"], len(job.trainset)),
        num_candidates=numbers["candidates"],
        max_steps=numbers["steps"],
        max_demos=numbers["demos"],
        prompt_model=job.prompt_model,
        num_threads=job.threads,
    )
    return teleprompter.compile(job.student, trainset=job.trainset, seed=job.seed)


GEPA_SETTINGS = {"train": (20, 50, 100), "val": (10, 20, 40), "runs": (100, 300, 900), "minibatch": (3, 3, 4)}


def _gepa_runs(n: Numbers) -> float:
    """GEPA starts its last round before ``runs`` are reached, and evaluates the program as it is in any case."""
    return float(max(n["runs"], n["val"]) + n["val"] + 2 * n["minibatch"])


@register(
    "gepa",
    "instructions by reflection on feedback in words",
    "instructions",
    by_preset(**GEPA_SETTINGS),
    runs=_gepa_runs,
    proposals=lambda n: n["runs"] / n["minibatch"],
)
def gepa(job: CompileJob) -> dspy.Module:
    """`dspy.GEPA`: instructions evolve by reflection on feedback, in up to ``runs`` runs of the program.

    For polyhop's metrics the feedback is that of `polyhop.eval.feedback`. The agent with the most faults in a minibatch
    is reflected on, and the prompt model reads only the passages that its replies and the feedback name. GEPA gets no
    folder to resume from: it would read a pickle there, which can run anybody's code. What was asked before comes from
    DSPy's reply cache.
    """
    return _reflector(job).compile(job.student, trainset=_in_words(job.trainset), valset=_in_words(job.valset))


def _reflector(job: CompileJob) -> dspy.GEPA:
    return dspy.GEPA(
        metric=_feedback(job.metric),
        max_metric_calls=job.numbers["runs"],
        reflection_minibatch_size=min(job.numbers["minibatch"], len(job.trainset)),
        reflection_lm=job.prompt_model,
        num_threads=job.threads,
        seed=job.seed,
        warn_on_score_mismatch=False,
        component_selector=MostFaults(job.student),
        instruction_proposer=BriefProposer(),
    )


def _in_words(questions: Sequence[dspy.Example]) -> list[dspy.Example]:
    """The questions with sub-questions that a plan in words resembles: MuSiQue's are partly relations of Wikidata."""
    return [in_words(each) if each.get("sub_questions") else each for each in questions]


def _feedback(metric: Metric) -> Callable[..., Any]:
    """A metric as GEPA calls it."""
    if isinstance(metric, PolyhopMetric):
        return with_feedback(metric)
    try:
        inspect.signature(metric).bind(None, None, None, None, None)
    except TypeError:
        return lambda gold, pred, trace=None, pred_name=None, pred_trace=None: metric(gold, pred)
    return metric


@register(
    "infer_rules",
    "demos, and rules inferred from them",
    "both",
    by_preset(train=(20, 50, 100), val=(20, 40, 80), demos=(2, 3, 4), candidates=(2, 4, 8), rules=(4, 6, 8)),
    runs=lambda n: n["train"] + n["candidates"] * n["val"],
    proposals=lambda n: n["agents"] * n["candidates"],
)
def infer_rules(job: CompileJob) -> dspy.Module:
    """`dspy.InferRules`: bootstrapped demos, and rules that the prompt model infers from them, ``candidates`` times."""
    teleprompter = _RulesFromDemos(
        num_candidates=job.numbers["candidates"],
        num_rules=job.numbers["rules"],
        num_threads=job.threads,
        teacher_settings={"lm": job.prompt_model},
        metric=job.metric,
        max_bootstrapped_demos=job.numbers["demos"],
        max_labeled_demos=0,
    )
    return teleprompter.compile(job.student, trainset=job.trainset, valset=job.valset)


class _RulesFromDemos(InferRules):
    """DSPy's infers rules from the questions instead of the demos, and writes the rules of all candidates into the one
    signature class that they share with the program."""

    def get_predictor_demos(self, trainset: Any, predictor: Any) -> list[dict[str, Any]]:
        fields = predictor.signature.fields
        return [{name: demo[name] for name in fields if name in demo} for demo in predictor.demos]

    def induce_natural_language_rules(self, predictor: Any, trainset: Any) -> str:
        if not predictor.demos:
            return ""
        try:
            return str(super().induce_natural_language_rules(predictor, trainset))
        except AssertionError as error:
            raise error.__context__ or error from None  # DSPy asserts that only long prompts fail

    def update_program_instructions(self, predictor: Any, natural_language_rules: str) -> None:
        signature = predictor.signature
        if natural_language_rules:
            predictor.signature = signature.with_instructions(
                f"{signature.instructions}\n\nKeep to these rules:\n{natural_language_rules}"
            )


@register(
    "better_together",
    "gepa, then random_search",
    "both",
    by_preset(**SEARCH | GEPA_SETTINGS),
    runs=lambda n: _gepa_runs(n) + search_runs(n) + 3 * n["val"],
    proposals=lambda n: n["runs"] / n["minibatch"],
)
def better_together(job: CompileJob) -> dspy.Module:
    """`dspy.BetterTogether` without weights: the best on the validation set of the program as it is, after GEPA, and
    after a random search on top."""
    teleprompter = BetterTogether(metric=job.metric, instructions=_reflector(job), demos=searcher(job))
    compiled = teleprompter.compile(
        job.student,
        trainset=_in_words(job.trainset),
        valset=_in_words(job.valset),
        num_threads=job.threads,
        seed=job.seed,
        strategy="instructions -> demos",
        optimizer_compile_args={"demos": {"restrict": candidate_seeds(job)}},
    )
    if compiled.flag_compilation_error_occurred:  # DSPy logs the error and continues
        raise PolyhopError("better_together failed in one of its steps: see DSPy's log")
    return compiled
