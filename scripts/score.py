"""`polyhop score`: score predictions that were made elsewhere."""

from __future__ import annotations

from ..eval.metrics import find_metric
from ..eval.questions import GivenPredictions, Questions
from .options import Score
from .results import print_summary
from .source import Source, dataset_of, split_of


def score(options: Score) -> None:
    for name in options.metric:
        find_metric(name)
    dataset = options.dataset or dataset_of(options.questions)
    asked = Questions(dataset, options.questions, split=split_of(dataset, options.split))
    source = Source(asked, options.index)
    source.check_gold(asked)
    program = GivenPredictions(options.predictions, asked, source.look_up)
    summary = source.evaluate(program, options.predictions.stem, options.out, file=options.predictions)
    print_summary(summary, options.predictions.stem, asked, options.out, options.as_json)
