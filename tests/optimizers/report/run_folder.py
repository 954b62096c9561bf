"""Writes the folder of an optimization run: one search that is rejected, one change of prompts that is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy

from polyhop.optimizers.artifact import Provenance, Split, save
from polyhop.programs.exemplars import Exemplar, ExemplarMemory

from ..joint.tiny import Tiny, examples

RANGE = {"name": "IntDistribution", "attributes": {"log": False, "step": 1, "low": 1, "high": 10}}


def write_run(path: Path, **more: str) -> Path:
    """
    Args:
        more: Other texts: instructions, demo, style, question, note, ended, dataset, name, file.
    """
    texts = {
        "instructions": "Answer the question in few words.",
        "demo": "Oslo",
        "style": "terse",
        "question": "Who wrote Emma?",
        "note": "bootstrap, light",
        "ended": "all stages are done",
        "dataset": "made-up",
        "name": "Tiny",
        "file": "train.json",
    } | more
    path.mkdir()
    start, tuned = Tiny(), Tiny()
    tuned.answerer.signature = tuned.answerer.signature.with_instructions(texts["instructions"])
    tuned.answerer.demos = [dspy.Example(question="Capital of Norway?", answer=texts["demo"])]
    tuned.exemplars.memory = ExemplarMemory([Exemplar(texts["question"], ("Who wrote Emma?",), 1)])
    about = Provenance(
        dataset=texts["dataset"],
        splits={"train": Split.of(texts["file"], examples(0, 24))},
        metric="answer_f1",
        seed=0,
    )
    for program, folder in ((start, "start"), (start, "1-tunables/candidate"), (tuned, "2-prompts/candidate")):
        save(program, path / folder, provenance=about)
    plan = {
        "stages": ["tunables", "prompts"],
        "rounds": 1,
        "metric": "answer_f1",
        "cost": None,
        "level": 0.05,
        "optimizer": "bootstrap",
        "auto": "light",
        "trials": 3,
        "sampler": "tpe",
        "seed": 0,
    }
    write(path / "manifest.json", {"settings": plan, "program": {"name": texts["name"], "retriever": "BM25"}})
    write(path / "1-tunables/proposal.json", {"note": "", "spent": None, "study": study(texts["style"])})
    write(path / "2-prompts/proposal.json", {"note": "", "spent": None, "study": None})
    asked = {"scores": [0.0, 0.5], "costs": [{"lm_calls": 2}, {"lm_calls": 3}]}
    lines = [
        {"n": 0, "round": 0, "stage": "start", "kept": True, "score": 0.25, "failures": 0, **asked},
        {
            "n": 1,
            "round": 1,
            "stage": "tunables",
            "kept": False,
            "why": "no better",
            "score": 0.2,
            "gain": -0.05,
            "p": 0.75,
            "note": "3 trials, tpe",
            "failures": 1,
            **asked,
        },
        {
            "n": 2,
            "round": 1,
            "stage": "prompts",
            "kept": True,
            "why": "better",
            "score": 0.75,
            "gain": 0.5,
            "p": 0.0312,
            "note": texts["note"],
            "failures": 0,
            **asked,
        },
    ]
    (path / "stages.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write(path / "summary.json", {"ended": texts["ended"], "stages": lines, "test": measured_both()})
    write(path / "spent.json", {"calls": 1234, "tokens_in": 50_000, "tokens_out": 600, "usd": 1.5, "seconds": 90.0})
    return path


def study(style: str = "terse", trials: int = 3, cost: str | None = None) -> dict[str, Any]:
    """Trial 1 is the best one, every third one is pruned."""
    shown = [
        {
            "number": n,
            "state": "pruned" if n % 3 == 2 else "complete",
            "values": {"effort": 3 + n % 7, "style": style if n else "florid"},
            "score": 0.9 if n == 1 else 0.5,
            "costs": {"lm_calls": 2.0 + n},
        }
        for n in range(trials)
    ]
    return {
        "settings": {
            "space": {
                "effort": json.dumps(RANGE),
                "style": json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": ["florid", style]}}),
            },
            "questions": {"count": 24},
            "metric": "answer_f1",
            "sampler": "tpe",
            "cost": cost,
        },
        "best": shown[1],
        "default": shown[0],
        "front": [shown[0], shown[1]] if cost else [shown[1]],
        "importances": {"effort": 0.75, "style": 0.25},
        "trials": shown,
    }


def measured_both() -> dict[str, Any]:
    def run(mean: float) -> dict[str, Any]:
        scores = {"answer_f1": mean, "answer_em": None, "lm_calls": 2.5, "tokens": 1200.0}
        ends = {"answer_f1": [mean - 0.1, mean + 0.1], "lm_calls": [2.0, 3.0], "tokens": [1100.0, 1300.0]}
        return {"metrics": scores, "intervals": ends, "counts": {"questions": 16}}

    return {
        "metric": "answer_f1",
        "start": {"mean": 0.25, "low": 0.15, "high": 0.35},
        "best": {"mean": 0.75, "low": 0.65, "high": 0.85},
        "difference": {"mean": 0.5, "low": 0.4, "high": 0.6},
        "p": 0.0002,
        "runs": {"start": run(0.25), "2-prompts": run(0.75)},
    }


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))
