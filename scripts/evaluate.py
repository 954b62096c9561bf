"""`polyhop evaluate`: run programs over a benchmark; runs can be interrupted, resumed and compared."""

from __future__ import annotations

import typer

from ..data.benchmarks import SAMPLE
from ..data.errors import PolyhopError
from ..data.text import plain
from ..eval.metrics import find_metric
from ..eval.questions import Questions
from ..eval.settings import content
from .options import Evaluate
from .program import artifact_of, label, paying
from .results import print_summaries
from .source import Source, dataset_of, setting_of
from .terminal import warn


def evaluate(given: Evaluate) -> None:
    out = given.out
    if out is not None and len(given.program) > 1:
        raise typer.BadParameter("a run has one program: use one --out for each")
    if given.seed is not None and given.limit is None:
        raise typer.BadParameter("--seed selects the questions of --limit N: both are required")
    for name in given.metric:
        find_metric(name)
    dataset = given.dataset or dataset_of(given.questions)
    index, setting = setting_of(dataset, given.setting, given.index, given.questions, given.program)
    asked = Questions(
        dataset,
        given.questions,
        split=given.split or ("dev" if dataset.casefold() == SAMPLE else None),
        setting=setting,
        **given.model_dump(include={"limit", "seed", "strict", "aliases"}),
    )
    source = Source(asked, index)
    names = given.program or (("polyhop", "prism", "naive") if out is None else ("polyhop",))
    programs = {name: source.program(name, given) for name in names}
    for name in names:
        _warn_of_training(name, asked)
    source.check_gold(asked)
    summaries = {}
    with paying(given, out) as pay:
        for name, built in programs.items():
            pay(built)
            artifact = None if ":" in name else artifact_of(name)
            how = {**given.how, "file": artifact.path if artifact else None, "max_failures": given.max_failures}
            summaries[name] = source.evaluate(built, label(name), out, **how)
    print_summaries(summaries, asked, out, given.as_json)
    if not any(summary["counts"]["answered"] for summary in summaries.values()):
        raise PolyhopError("every question failed")


def _warn_of_training(name: str, questions: Questions) -> None:
    """Warn where an artifact is evaluated on what it was tuned on."""
    artifact = artifact_of(name)
    file = questions.file.name if questions.file else questions.split
    for split, known in artifact.manifest.provenance.splits.items() if artifact else ():
        if split != "test" and known.file == file:
            same = known.hash == content(questions)[1]
            which = "these questions" if same else f"{known.count:,} questions of {plain(file or '')}"
            warn(f"{name} was tuned on {which} ({split}): its scores here are not those on new questions")
