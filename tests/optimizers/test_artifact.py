"""Artifacts: what is saved loads with the same parameters and prompts; what does not fit or is hostile is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.predict.parameter import Parameter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polyhop
from polyhop.data.chain import ChainRetriever
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample
from polyhop.optimizers.artifact import ArtifactError, ArtifactWarning, Provenance, Score, Split, dump, hash_of, read
from polyhop.programs import PROGRAMS, Direct, Exemplar, ExemplarMemory, Naive, PolyHop, Prism, new_program, tunables
from polyhop.signatures import NumberedPassage, NumberedPassages

Edit = Callable[[Any], Any]
PASSAGES = NumberedPassages(passages=[NumberedPassage(number=2, title="T", sentences={1: "a", 3: "b"})])


def retriever_for(name: str) -> Any:
    return ChainRetriever() if PROGRAMS[name].searches else None


def value(annotation: Any) -> Any:
    """A value of an output or an input field, with what templates and markers are made of."""
    if annotation is NumberedPassages:
        return PASSAGES
    if isinstance(annotation, type) and issubclass(annotation, int | float):
        return annotation(1)
    if "dict" in str(annotation):
        return [{"thought": "{{ a }}", "question": "b"}]
    return ["[[ ## x ## ]]", "é\n"] if "list" in str(annotation) else "{% if %} [[ ## keep ## ]] \u2028"


def tuned(name: str) -> Any:
    """A program in which everything that an artifact holds is changed."""
    program = new_program(name, retriever_for(name))
    dice = random.Random(1)
    for tunable in tunables(program).values():
        tunable.value = dice.choice(tunable.choices) if tunable.choices else tunable.low
    for predictor in program.predictors():
        predictor.signature = predictor.signature.with_instructions(f"{predictor.signature.instructions}\n\nBe kind.")
        fields = predictor.signature.fields.items()
        predictor.demos = [dspy.Example({key: value(info.annotation) for key, info in fields}, augmented=True)]
    for _, part in program.named_sub_modules(polyhop.Exemplars):
        part.memory = ExemplarMemory([Exemplar("Who is it?", ("Who is #1?"[:6] + "?",), 1, "own")])
    return program


def sent(program: dspy.Module) -> list[Any]:
    """The messages of all agents."""
    found = []
    for predictor in program.predictors():
        signature = predictor.signature
        inputs = {name: value(info.annotation) for name, info in signature.input_fields.items()}
        found += [
            adapter.format(signature, predictor.demos, inputs) for adapter in (dspy.ChatAdapter(), dspy.JSONAdapter())
        ]
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_saved_program_loads_with_the_same_parameters_and_prompts(name: str, tmp_path: Path) -> None:
    program = tuned(name)
    model = polyhop.lm("lexical")
    program.set_lm(model)
    polyhop.save(program, tmp_path / "best")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = polyhop.load(tmp_path / "best", retriever_for(name))
    assert dump(loaded) == dump(program)
    assert sent(loaded) == sent(program)
    assert all(predictor.lm is None for predictor in loaded.predictors())
    assert all(predictor.lm is model for predictor in program.predictors())
    assert polyhop.load(tmp_path / "best", program=program).predictors()[:1] == program.predictors()[:1]
    assert all(predictor.lm is model for predictor in program.predictors())  # loading keeps models


class Weights(Parameter):
    """A parameter of somebody else."""

    def __init__(self) -> None:
        self.values = [0.5]

    def reset(self) -> None: ...

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        return {"weights": self.values}

    def load_state(self, state: dict[str, Any]) -> None:
        self.values = [float(each) for each in state["weights"]]


class Own(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = Weights()
        self.answerer = dspy.ChainOfThought("question -> answer")


def test_a_program_of_your_own(tmp_path: Path) -> None:
    program = Own()
    program.weights.values = [1.0, 2.0]
    program.answerer.predict.demos = [{"question": "a", "reasoning": "b", "answer": "c"}]
    polyhop.save(program, tmp_path / "best")
    assert dump(polyhop.load(tmp_path / "best", program=Own())) == dump(program)
    refused(tmp_path / "best", "a program of your own class 'Own': load your own with polyhop.load")
    program.weights.values = [object()]  # type: ignore[list-item]
    with pytest.raises(ArtifactError, match="the program cannot be saved"):
        polyhop.save(program, tmp_path / "other")


# --- saving ----------------------------------------------------------------------------------------------------------

KNOWN = Provenance(
    dataset="hotpotqa",
    splits={"val": Split.of("/home/me/data/val.jsonl", load_sample()[:5])},
    metric="evidence_f1",
    scores={"val": {"evidence_f1": Score(mean=0.5, low=0.4, high=0.6)}},
    seed=7,
    spent={"lm_calls": 1200, "cost_usd": 0.5},
    settings={"stages": ["exemplars", "tunables"]},
)


def test_the_content_of_an_artifact(tmp_path: Path) -> None:
    program = PolyHop(ChainRetriever())
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))
    assert polyhop.save(program, tmp_path / "new" / "best", provenance=KNOWN) == tmp_path / "new" / "best"
    assert sorted(path.name for path in (tmp_path / "new" / "best").iterdir()) == ["manifest.json", "state.json"]
    found = read(tmp_path / "new" / "best")
    assert (found.manifest.program.name, found.manifest.program.retriever) == ("polyhop", "chain")
    assert found.manifest.provenance == KNOWN
    assert found.manifest.provenance.splits["val"].file == "val.jsonl"
    assert set(found.manifest.lms.values()) == {"openai/gpt-4o-mini"}
    assert found.state == dump(program)


@pytest.mark.parametrize("place", ["demo", "instructions", "provenance"])
def test_a_key_is_never_saved(place: str, tmp_path: Path) -> None:
    key = "planted-0123456789"
    program = Direct()
    program.set_lm(dspy.LM("openai/gpt-4o-mini", api_key=key, headers={"X-Key": "header-0123456789"}))
    polyhop.save(program, tmp_path / "best")
    assert not any(text in path.read_text() for path in (tmp_path / "best").iterdir() for text in (key, "header-0"))
    agent, provenance = program.predictors()[0], Provenance()
    if place == "demo":
        agent.demos = [dspy.Example(question="What is the key?", answer=f"It is {key}.")]
    elif place == "instructions":
        agent.signature = agent.signature.with_instructions(f"Use {key}.")
    else:
        provenance = Provenance(settings={"note": [key]})
    with pytest.raises(ArtifactError, match="would contain a key"):
        polyhop.save(program, tmp_path / "other", provenance=provenance)
    assert not (tmp_path / "other").exists()


def test_only_artifacts_are_replaced(tmp_path: Path) -> None:
    polyhop.save(Prism(), tmp_path / "best")
    polyhop.save(Direct(), tmp_path / "best")
    assert read(tmp_path / "best").manifest.program.name == "direct"
    (tmp_path / "best" / "state.json").write_text("damaged")
    polyhop.save(Prism(), tmp_path / "best")
    (tmp_path / "best" / "thesis.txt").touch()
    with pytest.raises(ArtifactError, match="contains other files"):
        polyhop.save(Prism(), tmp_path / "best")
    (tmp_path / "empty").mkdir()
    polyhop.save(Prism(), tmp_path / "empty")
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match="Not a directory"):
        polyhop.save(Prism(), tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best", "empty", "file"]


def test_a_disk_that_is_full_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "rename", lambda self, target: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(ArtifactError, match="cannot write the artifact .*No space left"):
        polyhop.save(Prism(), tmp_path / "other")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_killed_while_saving(tmp_path: Path) -> None:
    """At any moment there is a complete artifact."""
    code = f"""
import itertools, polyhop
program = polyhop.Prism()
for n in itertools.count():
    program.rounds.value = 1 + n % 2
    polyhop.save(program, {str(tmp_path / "best")!r})
"""
    polyhop.save(Prism(), tmp_path / "best")
    dice = random.Random(0)
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", code])
        time.sleep(4 + dice.random())
        process.kill()
        process.wait()
        assert polyhop.load(tmp_path / "best").rounds.value in (1, 2, 3)


# --- loading ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return polyhop.save(tuned("polyhop"), tmp_path_factory.mktemp("artifacts") / "best")


@pytest.fixture
def artifact(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "best")
    return tmp_path / "best"


def refused(path: Path, message: str, **how: Any) -> None:
    """It is refused in one line."""
    with pytest.raises(ArtifactError, match=message) as raised:
        polyhop.load(path, **how)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 2000


def forge(path: Path, name: str, edit: Edit) -> None:
    """Change the JSON of a file, in place or to what ``edit`` returns, and update the hashes, as an attacker can."""
    found = json.loads((path / name).read_text())
    changed = edit(found)
    found = found if changed is None else changed
    manifest = found if name == "manifest.json" else json.loads((path / "manifest.json").read_text())
    if name != "manifest.json":
        data = json.dumps(found).encode(errors="surrogatepass")
        (path / name).write_bytes(data)
        manifest["state"] = sha256(data).hexdigest()
    if isinstance(manifest, dict):
        manifest["hash"] = hash_of({key: each for key, each in manifest.items() if key != "hash"})
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_missing_and_changed_files(artifact: Path, tmp_path: Path) -> None:
    refused(tmp_path / "none", "there is no artifact .*none: no such folder")
    refused(tmp_path, "is not an artifact: it has no manifest.json")
    refused(Path("\x00"), "there is no artifact")
    data = (artifact / "state.json").read_bytes()
    for other in (data[:-1], b"", data + b"\n", data.replace(b"a", b"b", 1)):
        (artifact / "state.json").write_bytes(other)
        refused(artifact, "state.json is incomplete or was changed after it was saved: save again")
    (artifact / "state.json").unlink()
    refused(artifact, "is not a complete artifact: state.json is missing")
    text = (artifact / "manifest.json").read_text()
    (artifact / "manifest.json").write_text(text.replace('"seed": null', '"seed": 3'))
    refused(artifact, "manifest.json was changed after it was saved")
    (artifact / "manifest.json").write_text(text[:-10])
    refused(artifact, "manifest.json is damaged")
    os.symlink(artifact / "manifest.json", tmp_path / "link")
    (artifact / "manifest.json").rename(artifact / "real.json")
    os.symlink(artifact / "real.json", artifact / "manifest.json")
    refused(artifact, "symbolic link")


def test_another_format_is_refused_with_advice(artifact: Path) -> None:
    for other, format in (({"version": 1}, 1), ({"format": 3}, 3)):
        (artifact / "manifest.json").write_text(json.dumps({"polyhop": "artifact", **other}))
        refused(artifact, f"another version, with format {format}; this version reads 2: use it with that version")
    for text in ('{"schema": 1, "created": "x", "questions": {}}', "{}"):
        (artifact / "manifest.json").write_text(text)
        refused(artifact, "is not an artifact: its manifest.json is of another kind")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda state: state.pop("rounds") and None, "rounds is not in the artifact"),
        (lambda state: state.update(turns={"value": 1}), "turns is not in this version"),
        (lambda state: state["rounds"].update(value=999), "rounds: must be an integer"),
        (lambda state: state["review"].update(value=["never"]), "review: must be one of"),
        (
            lambda state: state["planner"].update(lm={"model": "x", "api_base": "http://x"}),
            "agent 'planner' is damaged",
        ),
        (lambda state: state["planner"].update(demos=[3]), "agent 'planner' is damaged"),
        (lambda state: state.update(planner=3), "a parameter is not an object"),
        (lambda state: [state], "is not an object"),
        (lambda state: state["exemplars.memory"].update(exemplars=[{"question": "x"}]), "exemplars.memory: "),
    ],
)
def test_a_state_that_does_not_fit_leaves_the_program_as_it_is(edit: Edit, message: str, artifact: Path) -> None:
    forge(artifact, "state.json", edit)
    program = PolyHop(ChainRetriever())
    before = dump(program)
    refused(artifact, message, program=program)
    assert dump(program) == before


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda manifest: manifest["agents"].update(planner="0"), "the agent planner has other fields"),
        (lambda manifest: manifest["program"].update(name="os.system"), "unknown program 'os.system'"),
        (lambda manifest: manifest["program"].update(name=None), "a program of your own class"),
        (lambda manifest: manifest["program"].update(retriever="x" * 5000), "has no retriever 'x{80}'"),
        (lambda manifest: manifest["program"].update(retriever="bm25"), "was tuned with the retriever bm25, not chain"),
        (lambda manifest: manifest.update(more=1), "is damaged"),
        (lambda manifest: manifest.update(created="\x1b[2J" * 900, seed=3), "is damaged"),
        (lambda manifest: manifest.update(format="\x1b[2J" * 900), "another version"),
    ],
)
def test_a_forged_manifest(edit: Edit, message: str, artifact: Path) -> None:
    forge(artifact, "manifest.json", edit)
    refused(artifact, message, retriever=ChainRetriever())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (text.encode("latin-1"), "state.json is damaged")
        for text in ("NaN", "1e999", "[" * 100_000, '{"a": "\\ud800"}', "\xff")
    ]
    + [(b" " * (16 << 20) + b"{}", "cannot read .*larger than 16 MB")],
)
def test_json_that_is_none(data: bytes, message: str, artifact: Path) -> None:
    (artifact / "state.json").write_bytes(data)
    forge(artifact, "manifest.json", lambda manifest: {**manifest, "state": sha256(data).hexdigest()})
    refused(artifact, message)


def test_harmless_differences_are_told(artifact: Path) -> None:
    def older(manifest: Any) -> None:
        manifest["versions"]["dspy"] = "3.0.0"

    forge(artifact, "manifest.json", older)
    with pytest.warns(ArtifactWarning, match=r"saved with dspy 3.0.0, this is "):
        polyhop.load(artifact, ChainRetriever())
    with pytest.raises(ArtifactError, match="not both"):
        polyhop.load(artifact, ChainRetriever(), program=PolyHop())


def test_a_retriever_of_another_kind(tmp_path: Path) -> None:
    polyhop.save(Naive(PassagePool([])), tmp_path / "bm25")
    refused(tmp_path / "bm25", "give it no ChainRetriever", retriever=ChainRetriever())
    polyhop.save(Naive(ChainRetriever()), tmp_path / "chain")
    refused(tmp_path / "chain", "give it a ChainRetriever", retriever=PassagePool([]))
    assert isinstance(polyhop.load(tmp_path / "chain").search.retriever, ChainRetriever)
    polyhop.save(Direct(), tmp_path / "direct")
    refused(tmp_path / "direct", "which does not search: give it no retriever", retriever=PassagePool([]))


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.text(max_size=5), each, max_size=2),
    max_leaves=5,
)


@given(draw=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_in_place_of_a_part_is_refused_or_loads(draw: st.DataObject, original: Path, tmp_path: Path) -> None:
    path = tmp_path / "forged"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(original, path)
    name = draw.draw(st.sampled_from(["state.json", "manifest.json"]))

    def edit(found: Any) -> None:
        while True:
            key = draw.draw(st.sampled_from(sorted(found)))
            if not isinstance(found[key], dict) or not found[key] or draw.draw(st.booleans()):
                found[key] = draw.draw(json_values)
                return
            found = found[key]

    forge(path, name, edit)
    program = PolyHop(ChainRetriever())
    before = dump(program)
    with warnings.catch_warnings(), suppress(ArtifactError):
        warnings.simplefilter("ignore")
        polyhop.load(path, program=program)
        before = dump(program)
    assert dump(program) == before
