"""`polyhop finetune`: train the model of some agents on what went well in a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..data.errors import PolyhopError
from .diagnose import chosen_roles, repeated_run
from .options import ModelsOption, ThreadsOption


def finetune(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run of `polyhop evaluate`.")],
    agent: Annotated[
        list[str], typer.Option(metavar="NAME", help="An agent, or a group of agents, to train. May be repeated.")
    ],
    metric: Annotated[str, typer.Option(metavar="NAME", help="Says which questions are answered well.")] = "answer_f1",
    lm: ModelsOption = None,
    program: Annotated[
        str | None,
        typer.Option(metavar="MODULE:CLASS[=DIR]", help="The program, if the run has one of your own."),
    ] = None,
    threads: ThreadsOption = 1,
) -> None:
    """Train the model of some agents at its provider, as DSPy's BootstrapFinetune does, and print the --lm option with
    the trained model.

    The training data are the calls of these agents on the questions of the run that are answered well. Replies in
    DSPy's cache are not asked for again. The provider must offer training, as OpenAI does, and may charge for it.
    """
    from ..engines.models import roles
    from ..eval.metrics import find_metric
    from ..optimizers.finetune import finetune as train

    questions, _, repeated = repeated_run(run, lm or (), program)
    agents = chosen_roles(repeated, list(roles(repeated)), agent)
    provider = roles(repeated)[agents[0]][0].lm.model.partition("/")[0]
    try:
        trained = train(repeated, list(questions), find_metric(metric), agents, threads=threads)
    except PolyhopError:
        raise
    except Exception as error:
        raise PolyhopError(f"the training failed: {error}") from error
    model = roles(trained)[agents[0]][0].lm.model
    model = model if "/" in model else f"{provider}/{model}"  # OpenAI's names have no provider
    typer.echo(" ".join(f"--lm {name}={model}" for name in agent))
