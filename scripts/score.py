"""`polyhop score`: score predictions that were made elsewhere."""

from __future__ import annotations

from ..app.task import Task, dataset_of, split_of
from ..eval.metrics import find_metric
from ..eval.questions import GivenPredictions, Questions
from .options import Score
from .results import print_summary, run_questions


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
