"""Training data from a diagnosis: the replies that gained points, beside those that lost them.

    write_rollouts(Path("rollouts"), questions, diagnose(program, questions, [joint_f1]), joint_f1)

Three files of JSON lines, with the exact messages of a call:

    supervised.jsonl          {"messages": [..., {"role": "assistant", ...}]}, for OpenAI and TRL's SFTTrainer
    preferences.trl.jsonl     {"prompt": [...], "chosen": [...], "rejected": [...]}, for TRL's DPOTrainer
    preferences.openai.jsonl  {"input": {"messages": [...]}, "preferred_output": [...], "non_preferred_output": [...]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dspy

from ..eval.official.files import replacing
from ..signatures.fields import fenced
from .credit import Call, Diagnosis
from .measure import Metric, named
from .prompts.credited import argued

Message = dict[str, Any]


class Rollout(NamedTuple):
    """The messages of a call, the reply that gained points, and the agent's own."""

    prompt: list[Message]
    better: Message
    own: Message


def rollouts(
    questions: Iterable[dspy.Example], found: Diagnosis, metric: Metric, gold: bool = True
) -> Iterator[Rollout]:
    """The corrected calls of every agent that cost points, question by question.

    Args:
        questions: Those of the diagnosis, in their order.
        gold: Whether the reference was "gold". Its replies take their reasoning from the annotations; agents whose
            reasoning these do not have are left out.
    """
    adapter = dspy.settings.adapter or dspy.ChatAdapter()
    for example, one in zip(questions, found.questions, strict=False):
        for role, calls in one.corrected.items():
            for call, reply in calls if one.changes[role][named(metric)] > 0 else ():
                better = argued(example, call, reply) if gold else dict(reply)
                if better.keys() >= call.signature.output_fields.keys():
                    yield _rollout(adapter, call, better)


def _rollout(adapter: dspy.Adapter, call: Call, better: dict[str, Any]) -> Rollout:
    prompt = adapter.format(call.signature, fenced(list(call.demos)), fenced(dict(call.inputs)))
    said = [
        {"role": "assistant", "content": adapter.format_assistant_message_content(call.signature, fields)}
        for fields in ({name: better[name] for name in call.signature.output_fields}, call.fields)
    ]
    return Rollout(prompt, *said)


def write_rollouts(
    folder: Path, questions: Sequence[dspy.Example], found: Diagnosis, metric: Metric, gold: bool = True
) -> int:
    """Write the three files; returns the number of lines of each."""
    folder.mkdir(parents=True, exist_ok=True)
    known = list(rollouts(questions, found, metric, gold))
    forms: dict[str, list[dict[str, Any]]] = {
        "supervised.jsonl": [{"messages": [*each.prompt, each.better]} for each in known],
        "preferences.trl.jsonl": [
            {"prompt": each.prompt, "chosen": [each.better], "rejected": [each.own]} for each in known
        ],
        "preferences.openai.jsonl": [
            {"input": {"messages": each.prompt}, "preferred_output": [each.better], "non_preferred_output": [each.own]}
            for each in known
        ],
    }
    for name, lines in forms.items():
        with replacing(folder / name) as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return len(known)
