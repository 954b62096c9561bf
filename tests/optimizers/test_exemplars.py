"""Plans for memories: MuSiQue's steps put into words, and those of real runs; and demos from runs that ended right."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import pytest

from polyhop.data.sample import SubQuestion
from polyhop.eval.metrics import find_metric
from polyhop.optimizers.exemplars import at_most, from_musique, from_run, successes, with_demos
from polyhop.optimizers.settings import OptimizationSettings
from polyhop.optimizers.stages import Context, exemplars
from polyhop.programs.exemplars import Exemplar

from ..eval.report.test_runs import line, write
from .tiny import ANSWERS, Engine, Tiny, difficulty, examples, make


def musique(question: str, *steps: str, hops: int = 2) -> Any:
    parts = tuple(SubQuestion(step, "answer", None) for step in steps)
    return SimpleNamespace(question=question, sub_questions=parts, hops=hops)


def test_gold_decompositions_become_exemplars_with_the_question_s_capitals() -> None:
    plans = from_musique(
        [
            musique(
                "When did Italy enter the war that Ann of Kent fought in?",
                "Ann of Kent >> conflict",
                "when did italy enter #1",
            ),
            musique("Without steps?"),
        ]
    )
    assert list(plans) == [
        Exemplar(
            "When did Italy enter the war that Ann of Kent fought in?",
            ("In which conflict did Ann of Kent take part?", "When did Italy enter #1?"),
            2,
            "musique",
        )
    ]


def test_successes_become_exemplars(tmp_path: Path) -> None:
    """The last plan of a right answer from the right passages, with the number of hops that is known."""
    first, last = (
        {"step": "decomposed", "sub_questions": plan, "invalid": []} for plan in (["Who?"], ["Who is it?", "Why #1?"])
    )
    lines = [
        line(0, question="Kept?", hops=3, trace=[first, last]),
        line(1, question="Of unknown hops?", hops=None, trace=[last]),
        line(2, question="Without sentences?", trace=[last], scores={"answer_em": 1.0, "evidence_f1": 0.5}),
        line(3, question="Wrong?", trace=[last], scores={"answer_em": 0.0, "evidence_f1": 1.0}),
        line(4, question="Without a plan?"),
        line(5, question="Invalid?", trace=[{**last, "sub_questions": ["Why #2?", "Who?"]}]),
        line(6, question="Without gold?", trace=[last], scores={"answer_em": 1.0}),
    ]
    run, plan = write(tmp_path / "run", lines, count=7), ("Who is it?", "Why #1?")
    kept = [Exemplar("Kept?", plan, 3, "mine"), Exemplar("Of unknown hops?", plan, 2, "mine")]
    assert list(from_run(run)) == kept
    assert list(from_run(run, min_f1=0.5)) == [*kept, Exemplar("Without sentences?", plan, 2, "mine")]


def test_the_first_exemplars_of_each_number_of_hops() -> None:
    plans = [Exemplar(text, ("Why?",), hops) for text, hops in (("a", 2), ("a", 2), ("b", 2), ("c", 2), ("d", 1))]
    assert [exemplar.question for exemplar in at_most(2, plans)] == ["d", "a", "b"]


# --- demos -----------------------------------------------------------------------------------------------------------

METRIC = find_metric("answer_em")


def test_only_runs_that_ended_right_give_demos_whatever_the_threads() -> None:
    questions = examples(0, 20)
    runs = successes(make(Engine()), questions, METRIC, threads=4)
    right = [example.question for example in questions if difficulty(example.question) + 1 <= 3]
    assert right
    assert [run.demos["answerer"].question for run in runs] == right
    for run in runs:
        assert run.hops == 2
        assert run.demos["answerer"].answer == ANSWERS[run.demos["answerer"].question]
        assert run.demos["planner"].keys() == ["question", "sub_questions"]


def test_sets_of_demos_differ_in_size_in_hops_and_in_what_they_replace() -> None:
    runs = successes(make(Engine()), examples(0, 40), METRIC)
    runs = [run._replace(hops=1 + n % 3) for n, run in enumerate(runs)]
    hops = {run.demos["answerer"].question: run.hops for run in runs}
    program = make(Engine())
    program.answerer.demos = [dspy.Example(question="Own?", answer="yes")]
    sets = [copy.answerer.demos for copy in with_demos(program, runs, 8, seed=1)]
    assert [len(demos) for demos in sets] == [2, 1, 3, 2, 4, 3, 5, 4]
    assert [demos[0].question == "Own?" for demos in sets] == [True, False] * 4
    for demos in sets:
        numbers = [hops[demo.question] for demo in demos if demo.question != "Own?"]
        assert len(set(numbers)) == min(len(numbers), 3)
    assert program.answerer.demos == [dspy.Example(question="Own?", answer="yes")]
    assert [copy.answerer.demos for copy in with_demos(program, runs, 8, seed=1)] == sets
    assert [copy.answerer.demos for copy in with_demos(program, runs, 8, seed=2)] != sets


class Plain(dspy.Module):
    """Without an exemplar memory and without tunables."""

    def __init__(self) -> None:
        super().__init__()
        self.answerer = Tiny().answerer

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer=self.answerer(question=question, effort=3, style="terse").answer)


@pytest.mark.parametrize(("count", "helps"), [(40, True), (1, False)])
def test_the_stage_works_on_any_program(count: int, helps: bool, tmp_path: Path) -> None:
    """With no run that ended right there is nothing to show."""
    program = Plain()
    program.set_lm(dspy.LM("tiny/model", engine=Engine(), cache=False))
    train = examples(0, 40) if helps else [one for one in examples(0, 40) if difficulty(one.question) > 3][:count]
    settings = OptimizationSettings(metric="answer_em")
    context = Context(settings, train, 0, tmp_path, None, lambda program: tmp_path, lambda *progress: None)
    proposal = exemplars(program, context)
    if helps:
        assert proposal.program
        assert proposal.study
        assert proposal.program.answerer.demos
        assert proposal.study.best.score > proposal.study.trials[0].score
    else:
        assert proposal.program is None
        assert proposal.note == "0 sets of demos from 0 runs that ended right"
