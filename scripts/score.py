"""`polyhop score`: score predictions that were made elsewhere."""

from __future__ import annotations

from ..eval.metrics import find_metric
from ..eval.questions import GivenPredictions, Questions
from .options import Score
from .source import Source, dataset_of
from .tables import print_summaries


def score(given: Score) -> None:
    for name in given.metric:
        find_metric(name)
    asked = Questions(given.dataset or dataset_of(given.questions), given.questions, split=given.split)
    source = Source(asked, given.index)
    program, name = (
        GivenPredictions(given.predictions, asked, source.look_up or (lambda title: [])),
        given.predictions.stem,
    )
    print_summaries(
        {name: source.evaluate(program, name, given.out, file=given.predictions)}, asked, given.out, given.as_json
    )
