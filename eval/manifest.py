"""What a run is: everything needed to repeat it, in plain JSON. No key, and no endpoint, gets in here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dspy

from ..data.chain import ChainRetriever
from ..engines.endpoint import unguarded
from ..engines.models import roles
from ..programs.tunables import tunables
from .folder import SCHEMA, RunError
from .questions import Questions

if TYPE_CHECKING:
    from ..data.lucene.layout import IndexManifest

_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "n", "reasoning_effort")
_OF_THE_BUILD = ("lucene_folder", "created", "polyhop")  # differ between two builds of the same index


def describe(
    program: dspy.Module,
    questions: Iterable[dspy.Example],
    *,
    name: str,
    timeout: float | None,
    index: IndexManifest | None = None,
    files: Mapping[str, Path | None] | None = None,
) -> dict[str, Any]:
    """The manifest of a run. Goes through the questions once, which counts them and makes their hash.

    Args:
        name: What the program is called.
        timeout: Seconds that a question may take.
        index: What is searched.
        files: Where the questions, the index and the program are; not part of what is compared.
    """
    count, digest = content(questions)
    asked = questions.settings if isinstance(questions, Questions) else {}
    skipped = questions.skipped if isinstance(questions, Questions) else 0
    models = _models(program)
    simulations = {lm.model: told for lm in models.values() if (told := _simulation(lm))}
    return {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": questions.dataset if isinstance(questions, Questions) else None,
        "questions": {**asked, "count": count, "skipped": skipped, "hash": digest},
        "index": {key: value for key, value in index.to_json().items() if key not in _OF_THE_BUILD} if index else None,
        "program": {"name": name, **describe_program(program)},
        **({"simulation": simulations} if simulations else {}),
        "timeout": timeout,
        "versions": {package: version(package) for package in ("polyhop", "dspy", "pyserini")},
        "python": ".".join(map(str, sys.version_info[:3])),
        "files": {what: str(path.absolute()) for what, path in (files or {}).items() if path is not None},
    }


def describe_program(program: dspy.Module) -> dict[str, Any]:
    """What a program is, as manifests have it; any DSPy program."""
    return {
        "class": type(program).__qualname__,  # not its module, which is another where a script is run or imported
        "retriever": _retriever(program),
        "state_hash": _state_hash(program),
        "tunables": {name: tunable.value for name, tunable in tunables(program)},
        "lms": {role: _lm(lm) for role, lm in _models(program).items()},
    }


def _models(program: dspy.Module) -> dict[str, Any]:
    return {role: predictors[0].lm or dspy.settings.lm for role, predictors in roles(program).items()}


def content(questions: Iterable[dspy.Example]) -> tuple[int, str]:
    """The number of the questions, and the hash of what is asked, what is right and what comes with it.

    Raises:
        RunError: one of them is no example with a question and an answer, or has the id of another.
    """
    count, digest = 0, blake2b(digest_size=16)
    seen: set[int] = set()  # hashes: a few bytes a question
    for count, example in enumerate(questions, 1):
        _check(example, count)
        if example.get("id") is not None:
            if hash(example.id) in seen:
                raise RunError(f"Question {count} has the id of another: {example.id!r}.")
            seen.add(hash(example.id))
        pool = [passage.id for passage in example.get("pool") or ()]
        right = [example.get("answers") or example.get("answer"), example.get("gold") or example.get("gold_facts")]
        content = [example.get("id"), example.question, right, pool]
        digest.update(json.dumps(content, default=asdict).encode() + b"\n")
    return count, digest.hexdigest()


def _check(example: Any, number: int) -> None:
    if not isinstance(example, dspy.Example) or not isinstance(example.get("question"), str):
        raise RunError(f"Question {number} is no dspy.Example with a text in 'question': {str(example)[:80]!r}.")
    answers = example.get("answers") or [example.get("answer")]
    if isinstance(answers, str) or not all(isinstance(answer, str) for answer in answers):
        raise RunError(f"Question {number} needs a text in 'answer', or several in 'answers': {str(example)[:80]!r}.")


def _retriever(program: dspy.Module) -> str | None:
    """What kind of retriever a program searches with, and the model of its vectors if it has any."""
    retriever = getattr(getattr(program, "search", None), "retriever", None)
    parts = [retriever, *getattr(retriever, "retrievers", ())]
    kinds = "+".join(type(part).__name__ for part in parts if part is not None)
    searched = [*parts, retriever.vectors if isinstance(retriever, ChainRetriever) else None]
    encoders = {part.encoder.name for part in searched if hasattr(part, "encoder")}
    return " ".join((kinds, *sorted(encoders))) or None


def _state_hash(program: dspy.Module) -> str:
    """Of prompts, exemplars and tunables; models have a place of their own."""
    state = {name: _without_model(parameter).dump_state() for name, parameter in program.named_parameters()}
    text = json.dumps(state, sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _without_model(parameter: Any) -> Any:
    """Not every model can be dumped; none should be."""
    if not isinstance(parameter, dspy.Predict):
        return parameter
    twin = copy(parameter)
    twin.lm = None
    return twin


def _lm(lm: dspy.LM | None) -> dict[str, Any] | None:
    """A model by name, with how it samples: nothing else of its settings, among which are keys and addresses."""
    if lm is None:
        return None
    settings = getattr(lm, "kwargs", None) or {}
    return {"model": lm.model, **{name: settings[name] for name in _SAMPLING if settings.get(name) is not None}}


def _simulation(lm: dspy.LM | None) -> dict[str, Any] | None:
    """What a model says that it simulates: it knows the gold evidence, and no result of it is one of a system."""
    told: dict[str, Any] | None = getattr(getattr(unguarded(lm), "engine", None), "simulation", None)
    return told
