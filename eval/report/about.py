"""What was measured, from the manifests, how to repeat it, and what the words mean. Only what is named here is shown:
whatever else a manifest may hold stays where it is."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from .html import Html, details, join, table, tag
from .outcomes import Outcome
from .runs import Group, Run

_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "n", "reasoning_effort")
_INDEX = ("passages", "corpus", "corpus_hash", "analyzer", "anserini", "lucene", "max_words")
_TERMS = {
    "Answer EM, F1": "exact match and token F1 of the answer against the best gold answer, after SQuAD’s normalisation",
    "Evidence P, R, F1": "the passages that the evidence comes from, against the gold passages",
    "Fact P, R, F1": "the sentences of the evidence against the gold sentences, where a benchmark names those",
    "Joint F1": "answer and evidence at once: precisions and recalls are multiplied (HotpotQA)",
    "Recall@k": "the share of the gold passages among the first k of all passages seen, evidence first",
    "All gold@k": "the share of the questions with every gold passage among the first k",
    "95% interval": "percentile bootstrap over questions; of differences, over pairs of the same question",
    "p": "two-sided, from random flips of the signs of the paired differences (permutation test)",
    "LM calls, in sequence": "calls to language models; in sequence are those that had to wait for one another",
    "ECE": "expected calibration error: over ten bins, the mean distance of confidence to the share of right answers",
    "Brier": "the mean squared distance of confidence to 1 for a right answer and 0 for a wrong one",
    "Risk and coverage": "how many of the surest answers are wrong, against how many questions they are",
    "Front": "no other run is at least as cheap and as good, and better in one of the two",
}


def about(group: Group) -> Html:
    """The runs of a group, side by side."""
    names = [run.name for run in group.runs]
    facts = [_facts(run) for run in group.runs]
    rows = [
        [heading, *_told([found.get(heading) or "" for found in facts])]
        for heading in dict.fromkeys(key for found in facts for key in found)
        if any(found.get(heading) for found in facts)
    ]
    parts = [table("What was measured", _head("", names), rows)]
    if tunables := _tunables(group):
        parts.append(details("Settings of the programs", table("Settings", _head("Tunable", names), tunables)))
    commands = (tag("pre", command(run)) for run in group.runs)
    parts.append(
        details(
            "How to repeat it",
            tag("p", "With the files of the run at hand; --set gives a tunable the value that it had."),
            *commands,
        )
    )
    return join(parts)


def _head(first: str, names: Iterable[str]) -> list[object]:
    return [first, *(tag("th", name, scope="col", class_="words") for name in names)]


def _told(values: Sequence[object]) -> list[Html]:
    """What is the same in all runs is said once."""
    if len(set(map(str, values))) == 1:
        return [tag("td", values[0], class_="words", colspan=len(values))]
    return [tag("td", value, class_="words") for value in values]


def terms() -> Html:
    """Metrics and outcomes, in one line each."""
    defined = {**_TERMS, **{kind.value.capitalize(): kind.meaning for kind in Outcome}}
    items = (join([tag("dt", term), tag("dd", meaning)]) for term, meaning in defined.items())
    return join([tag("h3", "What the words mean"), tag("dl", *items, class_="terms")])


def _facts(run: Run) -> dict[str, object]:
    manifest = run.manifest
    asked, program = manifest["questions"], manifest["program"]
    index = manifest.get("index") or {}
    versions = manifest.get("versions") or {}
    found: dict[str, object] = {
        "Folder": run.path.resolve().name,
        "Made": manifest.get("created"),
        "Program": join([program.get("name"), " (", program.get("class"), ")"]),
        "State": program.get("state_hash"),
        "Retriever": program.get("retriever"),
        "Models": join(_models(program.get("lms") or {}), "; "),
        "Dataset": manifest.get("dataset"),
        "Questions": " · ".join(
            str(part) for part in (asked.get("source"), asked.get("split"), asked.get("setting")) if part
        ),
        "How many": f"{run.done:,} of {run.asked:,} done, {asked.get('skipped') or 0:,} records skipped",
        "Limit and seed": _limit(asked),
        "Hash of the questions": asked.get("hash"),
        "Time limit": f"{manifest['timeout']:g} s" if manifest.get("timeout") else None,
        "Index": "; ".join(f"{key.replace('_', ' ')} {_shown(index[key])}" for key in _INDEX if index.get(key)),
        "Versions": ", ".join(f"{package} {version}" for package, version in versions.items()),
        "Python": manifest.get("python"),
        "Simulation": "yes" if manifest.get("simulation") else None,
    }
    return {heading: value for heading, value in found.items() if value}


def _models(lms: Mapping[str, Any]) -> Iterable[str]:
    """The models with the roles that they play; one for all roles is named once."""
    roles: dict[str, list[str]] = {}
    for role, lm in lms.items():
        roles.setdefault(_model(lm), []).append(role)
    for model, played in roles.items():
        yield model if len(roles) == 1 else f"{model} ({', '.join(played)})"


def _model(lm: Mapping[str, Any] | None) -> str:
    if lm is None:
        return "none"
    sampling = ", ".join(f"{key} {lm[key]}" for key in _SAMPLING if lm.get(key) is not None)
    return f"{lm.get('model')}" + (f", {sampling}" if sampling else "")


def _limit(asked: Mapping[str, Any]) -> str | None:
    if not asked.get("limit"):
        return None
    return f"{asked['limit']:,} questions" + (f", seed {asked['seed']}" if asked.get("seed") is not None else "")


def _shown(value: object) -> str:
    return (
        ", ".join(map(str, value))
        if isinstance(value, list)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def _tunables(group: Group) -> list[list[object]]:
    each = [run.manifest["program"].get("tunables") or {} for run in group.runs]
    names = dict.fromkeys(name for tunables in each for name in tunables)
    return [[name, *_told([str(tunables.get(name, "")) for tunables in each])] for name in names]


def command(run: Run) -> str:
    """The `polyhop evaluate` that makes such a run again; files by their names, wherever they may be."""
    manifest = run.manifest
    asked, files, program = manifest["questions"], manifest.get("files") or {}, manifest["program"]
    parts = ["polyhop", "evaluate"]

    def option(name: str, value: object) -> None:
        if value is not None:
            parts.extend([name, shlex.quote(str(value))])

    option("--program", PurePath(files["program"]).name if files.get("program") else program.get("name"))
    option("--dataset", manifest.get("dataset"))
    if files.get("questions"):
        option("--questions", PurePath(files["questions"]).name)
    option("--split", asked.get("split"))
    if files.get("index"):
        option("--index", PurePath(files["index"]).name)
    option("--setting", asked.get("setting"))
    option("--limit", asked.get("limit"))
    option("--seed", asked.get("seed"))
    option("--timeout", manifest.get("timeout"))
    if not files.get("program") and "search.k" in (program.get("tunables") or {}):
        option("--retriever", _retriever(program.get("retriever")))
    for role, lm in (program.get("lms") or {}).items():
        if lm and lm.get("model") != "lexical":
            option("--lm", f"{role}={lm['model']}")
    for name, value in (program.get("tunables") or {}).items():
        option("--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    option("--out", "RUN")
    return " ".join(parts)


def _retriever(kind: str | None) -> str:
    """What --retriever is called in the command line; the kind has the model of the vectors after it."""
    name, _, vectors = (kind or "").partition(" ")
    if name == "ChainRetriever":
        return "chain-dense" if vectors else "chain"
    return {"DenseIndex": "dense", "FusedRetriever": "fused"}.get(name.partition("+")[0], "bm25")
