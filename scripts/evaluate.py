"""`polyhop evaluate` and `polyhop score`: run a program over a benchmark, or score predictions made elsewhere.

Runs can be interrupted, resumed and compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ..app.named import NamedProgram, paying
from ..app.task import Task, dataset_of, setting_of, split_of
from ..data.errors import PolyhopError
from ..data.text import plain
from ..eval.folder import content
from ..eval.metrics import find_metric
from ..eval.questions import GivenPredictions, Questions
from .options import Evaluate, Score
from .results import print_summary, run_questions
from .terminal import warn

if TYPE_CHECKING:
    from ..optimizers.artifact import Artifact


def evaluate(options: Evaluate) -> None:
    if options.seed is not None and options.limit is None:
        raise typer.BadParameter("--seed selects the questions of --limit N: both are required")
    for name in options.metric:
        find_metric(name)
    named = NamedProgram(options.program)
    dataset = options.dataset or dataset_of(options.questions)
    index, setting = setting_of(dataset, options.setting, options.index, options.questions, named)
    questions = Questions(
        dataset,
        options.questions,
        split=split_of(dataset, options.split),
        setting=setting,
        **options.model_dump(include={"limit", "seed", "aliases"}),
    )
    task = Task(questions, index)
    program, out, artifact = task.program(named, options), options.out, named.artifact
    if artifact:
        _warn_of_training(options.program, artifact, questions)
    task.check_gold(questions)
    file = artifact.path if artifact and not named.code else None
    with paying(options, out) as pay:
        pay(program)
        how = {**options.how, "file": file, "max_failures": options.max_failures}
        summary = run_questions(task, program, named.label, out, **how)
    print_summary(summary, named.label, questions, out, options.as_json)
    if not summary["counts"]["answered"]:
        raise PolyhopError("every question failed")


def _warn_of_training(name: str, artifact: Artifact, questions: Questions) -> None:
    """Warn where an artifact is evaluated on what it was tuned on."""
    file = questions.file.name if questions.file else questions.split
    for split, used in artifact.provenance.splits.items():
        if split != "test" and used.file == file:
            same = used.hash == content(questions)[1]
            which = "these questions" if same else f"{used.count:,} questions of {plain(file or '')}"
            warn(f"{name} was tuned on {which} ({split}): its scores here are not those on new questions")


def score(options: Score) -> None:
    for name in options.metric:
        find_metric(name)
    dataset = options.dataset or dataset_of(options.questions)
    questions = Questions(dataset, options.questions, split=split_of(dataset, options.split))
    task, name = Task(questions, options.index), options.predictions.stem
    task.check_gold(questions)
    program = GivenPredictions(options.predictions, questions, task.look_up)
    summary = run_questions(task, program, name, options.out, file=options.predictions)
    print_summary(summary, name, questions, options.out, options.as_json)
