"""`polyhop score`: score predictions that were made elsewhere."""

from __future__ import annotations

from ..eval.metrics import find_metric
from ..eval.questions import GivenPredictions, Questions
from .options import Score
from .results import print_summary
from .source import Source, dataset_of, split_of


def score(given: Score) -> None:
    for name in given.metric:
        find_metric(name)
    dataset = given.dataset or dataset_of(given.questions)
    asked = Questions(dataset, given.questions, split=split_of(dataset, given.split))
    source = Source(asked, given.index)
    source.check_gold(asked)
    program = GivenPredictions(given.predictions, asked, source.look_up)
    summary = source.evaluate(program, given.predictions.stem, given.out, file=given.predictions)
    print_summary(summary, given.predictions.stem, asked, given.out, given.as_json)
