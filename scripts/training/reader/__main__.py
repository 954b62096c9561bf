"""Fits the reader of the lexical engine to benchmark questions, with D=../shared/data:

    for corpus in hotpotqa musique 2wiki; do polyhop index $D/${corpus}_corpus.jsonl.gz --out indexes/$corpus; done
    python -m polyhop.scripts.training.reader --out runs/reader \\
        --on hotpotqa:$D/hotpotqa_dev_distractor.json.gz:indexes/hotpotqa --on hotpotqa:$D/hotpotqa_train.json.gz \\
        --on musique:$D/musique_ans_dev.jsonl.gz:indexes/musique --on musique:$D/musique_ans_train.jsonl.gz \\
        --on 2wiki:$D/2wiki_open_dev.json.gz:indexes/2wiki --on 2wiki:$D/2wiki_dev_with_context.json.gz \\
        --on 2wiki:$D/2wiki_train.json.gz --on squad:$D/squad_dev-v1.1.json.gz::1400

writes DIR/ranker.json, the models, and DIR/report.json, their figures. The pages to read are kept in DIR/examples.jsonl
and used again when the same command is started again. The shipped models come from these files and options. Cross-
validated: every question is answered by rankers that were fitted to two thirds of all files, without the question and
without any other on the same gold passages:

    answer F1                 questions      gold retrieved  evidence      step
    HotpotQA dev, distractor        586      45.4      39.9      40.4
    HotpotQA train                  100      53.2                48.2
    2WikiMultihopQA open dev        509                68.1      68.1
    2WikiMultihopQA dev             331      67.7                66.1      81.1
    2WikiMultihopQA train           500      85.0                81.6      90.0
    MuSiQue dev                     155      31.7      18.3      23.3      39.4
    MuSiQue train                   100      29.1                15.6      41.3
    SQuAD dev                      1400      50.9                          50.6

"step" is a sub-question, or the question of SQuAD, among other passages. "evidence" is what `Prism` selected, with a
Selector and a ranker of sub-questions that had been fitted to all these files: no fold was left out there. Of the
probabilities, cross-validated: expected calibration error 0.008, area under the ROC curve 0.850.

What another run prints differs by some tenths: the figures were taken stage by stage, with other random samples of the
wrong candidates than the command's, and `Prism` read with the models that were shipped before these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ....data.errors import PolyhopError
from ..command import new_app, run_command
from .examples import Example, Source, examples
from .fit import Fit, report

EXAMPLES, MODELS, REPORT = "examples.jsonl", "ranker.json", "report.json"
app = new_app()


@app.command()
def fit_reader(
    on: Annotated[
        list[str],
        typer.Option(
            metavar="DATASET:QUESTIONS[:INDEX[:N]]",
            help="Learn from these questions, or N random ones, over their own contexts and this index. May be "
            "repeated; the index may be left empty.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the run.")],
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the weights that training starts from.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Fit the reader of the lexical engine to benchmark questions, with cross-validation."""
    try:
        sources = [Source.parse(text) for text in on]
    except ValueError:
        raise PolyhopError("--on takes DATASET:QUESTIONS[:INDEX[:N]]") from None
    out.mkdir(parents=True, exist_ok=True)
    fit = Fit(list(_kept(sources, out / EXAMPLES)), folds, jobs, seed)
    figures = report(fit)
    (out / MODELS).write_text(json.dumps(fit.models.to_record(), separators=(",", ":")) + "\n")
    (out / REPORT).write_text(json.dumps(figures, indent=2) + "\n")
    typer.echo(json.dumps(figures, indent=2))


def _kept(sources: Sequence[Source], file: Path) -> Iterator[Example]:
    """The examples of some sources, in order; a source that the file has is not read again."""
    had: dict[str, list[Any]] = {}
    if file.exists():
        for line in file.read_text().splitlines():
            record = json.loads(line)
            had.setdefault(record["source"], []).append(record)
    for source in sources:
        if source.name not in had:
            had[source.name] = [example.to_record() for example in examples(source)]
            with file.open("a") as lines:
                lines.writelines(json.dumps(record) + "\n" for record in had[source.name])
        yield from map(Example.from_record, had[source.name])


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.training.reader")
