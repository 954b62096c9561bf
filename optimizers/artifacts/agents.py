"""An agent, which is a predictor with its prompt, as an artifact holds it: to JSON and back.

What has to fit the code is the shape of an agent: its fields with their names, roles, types, descriptions and order.
Instructions, demos and prefixes are state. Demos are kept as the JSON that adapters make of their values anyway, so
passages, ids and models become texts, lists and objects, and the prompt stays the same to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dspy
from dspy.adapters.utils import get_annotation_name, serialize_for_json
from pydantic import TypeAdapter

from .files import ArtifactError, check, hash_of
from .schema import AgentState, FieldState

ADAPTERS = (dspy.ChatAdapter(), dspy.JSONAdapter())


def agent_state(name: str, predictor: dspy.Predict) -> AgentState:
    """
    Raises:
        ArtifactError: a demo has a value that JSON cannot hold, or that would be another prompt after loading.
    """
    return AgentState(
        instructions=predictor.signature.instructions,
        fields=field_states(predictor.signature),
        demos=[_demo(demo, predictor.signature, f"agent {name!r}, demo {n}") for n, demo in enumerate(predictor.demos)],
        decisions=dict(predictor.fields),
    )


def agent_hashes(state: AgentState) -> dict[str, str]:
    """Of the shape and of the instructions of an agent."""
    return {
        "shape": hash_of([each.shape for each in state.fields]),
        "instructions": hash_of(state.instructions),
    }


def field_states(signature: type[dspy.Signature]) -> list[FieldState]:
    """The fields of a signature in their order."""
    return [_field(name, info) for name, info in signature.fields.items()]


def _field(name: str, info: Any) -> FieldState:
    extra = info.json_schema_extra
    types = dspy.Type.extract_custom_type_from_annotation(info.rebuild_annotation())
    role = extra["__dspy_field_type"]
    return FieldState(
        name=name,
        role=role,
        type=get_annotation_name(info.annotation),
        description="\n".join([extra["desc"], *(text for kind in types if (text := kind.description()))]),
        schema=None if role == "input" or info.annotation is str else TypeAdapter(info.annotation).json_schema(),
        prefix=extra["prefix"],
    )


def misfits(name: str, saved: Sequence[FieldState], signature: type[dspy.Signature]) -> Iterator[str]:
    """What of an agent's shape is otherwise in this version than in an artifact; nothing if it fits."""
    ours = {field.name: field for field in field_states(signature)}
    theirs = {field.name: field for field in saved}
    for lost in (each for each in theirs if each not in ours):
        yield f"agent {name!r}: field {lost!r} is not in this version"
    for new in (each for each in ours if each not in theirs):
        yield f"agent {name!r}: field {new!r} is not in the artifact"
    for field in (each for each in ours if each in theirs):
        before, now = theirs[field], ours[field]
        if before.role != now.role:
            yield f"agent {name!r}: field {field!r} is an {before.role} there and an {now.role} in this version"
        elif before.type != now.type:
            yield f"agent {name!r}: field {field!r} is of type {before.type} there and {now.type} in this version"
        elif before.description != now.description:
            yield f"agent {name!r}: field {field!r} is described otherwise than in this version"
        elif before.shape != now.shape:
            yield f"agent {name!r}: field {field!r} has another JSON schema than in this version"
    if theirs.keys() == ours.keys() and list(theirs) != list(ours):
        yield f"agent {name!r}: its fields are in another order than in this version"


def restore(predictor: dspy.Predict, state: AgentState) -> None:
    """Give a predictor its prompt; its language model stays the one it has.

    Raises:
        ValueError: a demo cannot be shown, or a decision field is none.
    """
    model, name = predictor.lm, predictor.signature.__name__
    fields = [{"prefix": field.prefix, "description": declared(predictor, field.name)} for field in state.fields]
    predictor.load_state(
        {
            "signature": {"instructions": state.instructions, "fields": fields},
            "demos": [dspy.Example(demo) for demo in state.demos],
            "traces": [],
            "train": [],
            "fields": dict(state.decisions),
            "lm": None,
        }
    )
    predictor.lm = model
    predictor.signature.__name__ = name  # by which errors call it; dspy forgets it
    for n, demo in enumerate(predictor.demos):
        try:
            rendered(predictor.signature, demo)
        except Exception as error:  # whatever an adapter stumbles over would end a call later
            raise ValueError(f"demo {n} cannot be shown: {type(error).__name__}: {error}") from error


def declared(predictor: dspy.Predict, field: str) -> str:
    """How the code describes a field, without what its type says of itself."""
    description: str = predictor.signature.fields[field].json_schema_extra["desc"]
    return description


def rendered(signature: type[dspy.Signature], demo: Mapping[str, Any]) -> list[Any]:
    """The messages that a demo becomes, by each adapter."""
    return [adapter.format_demos(signature, [demo]) for adapter in ADAPTERS]


def _demo(demo: Any, signature: type[dspy.Signature], where: str) -> dict[str, Any]:
    plain = {name: serialize_for_json(value) for name, value in dict(demo.items()).items()}
    try:
        check(plain)
        same = rendered(signature, plain) == rendered(signature, demo)
    except Exception as error:  # an adapter may stumble over anything
        raise ArtifactError(f"{where} cannot be saved: {error}") from error
    if not same:
        raise ArtifactError(f"{where} cannot be saved: as JSON it would be shown otherwise; give it plain values")
    return plain
