"""Training the model of some agents on the program's own successes.

    proxy = C3PO.role_groups["proxy"]
    trained = finetune(program, questions, joint_f1, proxy, train_kwargs={"n_epochs": 3})

This is what `dspy.BootstrapFinetune` does, with `dspy.LM.finetune` and the model's `dspy.Provider`, for programs that
ask agents in loops and of different models. DSPy's trains every model on the calls of all agents; or, one by one, the
n-th agent on the n-th call of a run. `polyhop.optimizers.rollouts` writes training data to files, also from failed
questions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import dspy
from dspy.clients.utils_finetune import TrainDataFormat

from ..data.errors import PolyhopError
from ..engines.limits import LimitedLM, unlimited
from ..engines.models import roles
from ..signatures.fields import fenced
from .credit import Replay
from .measure import Metric


def finetune(
    program: dspy.Module,
    trainset: Sequence[dspy.Example],
    metric: Metric,
    agents: Collection[str],
    *,
    threads: int = 1,
    train_kwargs: dict[str, Any] | None = None,
) -> dspy.Module:
    """A copy of the program in which some agents have a trained model; it waits until the training is done.

    The training data are the calls of these agents, as they were sent, on the questions that are answered well.

    Args:
        trainset: Questions with annotations.
        metric: A DSPy metric; with a trace, it returns whether the prediction is good enough to learn from.
        agents: The roles to train. They share one model, which learns from all of them.
        threads: Number of parallel questions.
        train_kwargs: For the model's provider.

    Raises:
        PolyhopError: an unknown agent, agents with different models, a model whose provider does not train, or no
            question that was answered well.
        Exception: of the provider, if the training fails.
    """
    known = roles(program)
    if not agents or not known.keys() >= set(agents):
        raise PolyhopError(f"cannot train {', '.join(agents) or 'no agent'}: the agents are {', '.join(known)}")
    own, *others = (predictor.lm or dspy.settings.lm for role in agents for predictor in known[role])
    if any(model is not own for model in others):
        raise PolyhopError(f"{', '.join(agents)} have different models: give them the same")
    student = unlimited(own)
    if not isinstance(student, dspy.LM) or not student.provider.finetunable:
        raise PolyhopError(f"{getattr(student, 'model', student)} cannot be trained: its provider does not offer it")

    replay, adapter, data = Replay(program), dspy.settings.adapter or dspy.ChatAdapter(), list[dict[str, Any]]()
    with ThreadPoolExecutor(threads) as pool:
        started = [pool.submit(copy_context().run, replay.run, example) for example in trainset]
        for example, run in zip(trainset, (each.result() for each in started), strict=True):
            if run.prediction is not None and metric(example, run.prediction, []):
                data += [
                    adapter.format_finetune_data(
                        call.signature, fenced(list(call.demos)), fenced(dict(call.inputs)), call.fields
                    )
                    for call in run.calls
                    if call.role in agents
                ]
    if not data:
        raise PolyhopError("no question was answered well enough to learn from")
    model = student.finetune(data, TrainDataFormat.CHAT, train_kwargs).result()
    if isinstance(model, Exception):
        raise model
    if isinstance(own, LimitedLM) and own.engine.limit is not None:
        model = LimitedLM(model, own.engine.limit)
    result = program.deepcopy()
    for predictor, before in zip(result.predictors(), program.predictors(), strict=True):
        predictor.lm = before.lm
    for role in agents:
        for predictor in roles(result)[role]:
            predictor.lm = model
    return result
