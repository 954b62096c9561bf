"""`polyhop evaluate`: run a program over a benchmark; runs can be interrupted, resumed and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from ..eval.folder import content
from ..eval.metrics import find_metric
from ..eval.questions import Questions
from .options import Evaluate
from .program import Named, paying
from .results import print_summary
from .source import Source, dataset_of, setting_of, split_of
from .terminal import warn

if TYPE_CHECKING:
    from ..optimizers.artifact import Artifact


def evaluate(given: Evaluate) -> None:
    if given.seed is not None and given.limit is None:
        raise typer.BadParameter("--seed selects the questions of --limit N: both are required")
    for name in given.metric:
        find_metric(name)
    named = Named(given.program)
    dataset = given.dataset or dataset_of(given.questions)
    index, setting = setting_of(dataset, given.setting, given.index, given.questions, named)
    asked = Questions(
        dataset,
        given.questions,
        split=split_of(dataset, given.split),
        setting=setting,
        **given.model_dump(include={"limit", "seed", "aliases"}),
    )
    source = Source(asked, index)
    program, out, artifact = source.program(named, given), given.out, named.artifact
    if artifact:
        _warn_of_training(given.program, artifact, asked)
    source.check_gold(asked)
    file = artifact.path if artifact and not named.own else None
    with paying(given, out) as pay:
        pay(program)
        how = {**given.how, "file": file, "max_failures": given.max_failures}
        summary = source.evaluate(program, named.label, out, **how)
    print_summary(summary, named.label, asked, out, given.as_json)
    if not summary["counts"]["answered"]:
        raise PolyhopError("every question failed")


def _warn_of_training(name: str, artifact: Artifact, questions: Questions) -> None:
    """Warn where an artifact is evaluated on what it was tuned on."""
    file = questions.file.name if questions.file else questions.split
    for split, known in artifact.provenance.splits.items():
        if split != "test" and known.file == file:
            same = known.hash == content(questions)[1]
            which = "these questions" if same else f"{known.count:,} questions of {plain(file or '')}"
            warn(f"{name} was tuned on {which} ({split}): its scores here are not those on new questions")
