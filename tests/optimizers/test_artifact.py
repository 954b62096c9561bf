"""Artifacts: what is saved loads with the same parameters and prompts; what does not fit or is hostile is refused."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import dspy
import pytest

import polyhop
from polyhop.data.chain import ChainRetriever
from polyhop.data.sample import load_sample, sample_passages
from polyhop.eval.metrics import find_metric
from polyhop.optimizers.artifact import (
    ARTIFACT,
    ArtifactError,
    ArtifactWarning,
    Change,
    Provenance,
    Score,
    Split,
    diff,
    dump,
    hash_of,
    read,
)
from polyhop.optimizers.export import prompts
from polyhop.programs import PROGRAMS, Direct, Exemplar, ExemplarMemory, PolyHop, Prism, new_program, tunables
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
    if annotation == list[int]:
        return [3, 1]
    if get_origin(annotation) is Literal:
        return get_args(annotation)[0]
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
    messages = []
    for predictor in program.predictors():
        signature = predictor.signature
        inputs = {name: value(info.annotation) for name, info in signature.input_fields.items()}
        messages += [
            adapter.format(signature, predictor.demos, inputs) for adapter in (dspy.ChatAdapter(), dspy.JSONAdapter())
        ]
    return messages


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


class Own(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.answerer = dspy.ChainOfThought("question -> answer")


def test_a_program_of_your_own(tmp_path: Path) -> None:
    program = Own()
    program.answerer.predict.demos = [{"question": "a", "reasoning": "b", "answer": "c"}]
    polyhop.save(program, tmp_path / "best")
    assert dump(polyhop.load(tmp_path / "best", program=Own())) == dump(program)
    refused(tmp_path / "best", "a program of your own class 'Own': load your own with polyhop.load")
    program.answerer = dspy.Predict("picture: dspy.Image -> answer")
    program.answerer.demos = [{"picture": dspy.Image("data:image/png;base64,AA=="), "answer": "c"}]
    with pytest.raises(ArtifactError, match="the program cannot be saved"):
        polyhop.save(program, tmp_path / "other")


@pytest.mark.parametrize(
    "teleprompter", [dspy.LabeledFewShot(k=2), dspy.BootstrapFewShot(metric=find_metric("answer_f1"))]
)
def test_what_dspy_compiles_with_its_defaults_is_saved(teleprompter: Any, tmp_path: Path) -> None:
    """Its demos are whole questions, with gold facts and steps. An artifact has what an agent is shown of them."""
    program = PolyHop(ChainRetriever(polyhop.PassagePool(sample_passages())))
    program.set_lm(polyhop.lm("lexical"))
    compiled = teleprompter.compile(program, trainset=list(polyhop.Questions("sample", split="train", limit=4)))
    assert any("gold" in demo for demo in compiled.reader.demos)
    polyhop.save(compiled, tmp_path / "best")
    loaded = polyhop.load(tmp_path / "best", retriever_for("polyhop"))
    assert [(prompt["agent"], prompt["messages"]) for prompt in prompts(loaded)] == [
        (prompt["agent"], prompt["messages"]) for prompt in prompts(compiled)
    ]
    demo = next(demo for demo in loaded.reader.demos if "passages" not in demo)
    assert demo.keys() == ["question", "answer"]
    assert all(isinstance(step, str) for demo in loaded.planner.demos for step in demo.sub_questions)


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
    assert [path.name for path in (tmp_path / "new" / "best").iterdir()] == [ARTIFACT]
    artifact = read(tmp_path / "new" / "best")
    assert (artifact.program.name, artifact.program.retriever) == ("polyhop", "chain")
    assert artifact.provenance == KNOWN
    assert artifact.provenance.splits["val"].file == "val.jsonl"
    assert set(artifact.lms.values()) == {"openai/gpt-4o-mini"}
    assert artifact.state == dump(program)


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


def test_an_artifact_replaces_another_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "thesis.txt").touch()
    polyhop.save(Prism(), tmp_path / "best")
    polyhop.save(Direct(), tmp_path / "best")
    assert read(tmp_path / "best").program.name == "direct"
    assert sorted(path.name for path in (tmp_path / "best").iterdir()) == ["artifact.json", "thesis.txt"]
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match="cannot write the artifact .*exists"):
        polyhop.save(Prism(), tmp_path / "file")


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


def forge(path: Path, edit: Edit) -> None:
    """Change the JSON of an artifact, in place or to what ``edit`` returns, and its hash, as an attacker can."""
    content = json.loads((path / ARTIFACT).read_text())
    changed = edit(content)
    content = content if changed is None else changed
    if isinstance(content, dict):
        content["hash"] = hash_of({key: item for key, item in content.items() if key != "hash"})
    (path / ARTIFACT).write_text(json.dumps(content))


def test_missing_and_changed_files(artifact: Path, tmp_path: Path) -> None:
    refused(tmp_path / "none", "is not an artifact: it has no artifact.json")
    refused(Path("\x00"), "cannot be read")
    file = artifact / ARTIFACT
    text = file.read_text()
    for other in (text.replace("Be kind", "Be rude", 1), text.replace('"seed": null', '"seed": 3')):
        assert other != text
        file.write_text(other)
        refused(artifact, "artifact.json was changed after it was saved: save again")
    for damage in (text[:-10].encode(), b"[" * 100_000, b'{"a": "\\ud800"}', b"\xff"):
        file.write_bytes(damage)
        refused(artifact, "artifact.json is damaged")
    file.rename(tmp_path / "real.json")
    file.symlink_to(tmp_path / "real.json")
    refused(artifact, "is a symbolic link, and links are not followed here: put a copy in its place")


def test_another_format_is_refused_with_advice(artifact: Path) -> None:
    (artifact / ARTIFACT).write_text(json.dumps({"format": 4}))
    refused(artifact, "another version, with format 4; this version reads 3: use it with that version, or tune again")
    (artifact / ARTIFACT).unlink()
    (artifact / "best").mkdir()
    (artifact / "best" / ARTIFACT).touch()
    refused(artifact, "its program is .*best")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda state: state.pop("rounds") and None, "only one of them has rounds"),
        (lambda state: state.update(turns={"value": 1}), "only one of them has turns"),
        (lambda state: state["rounds"].update(value=999), "rounds: must be an integer"),
        (lambda state: state["review"].update(value=["never"]), "review: must be one of"),
        (lambda state: state["planner"].update(lm={"model": "x", "api_base": "http://x"}), "planner: lm: Extra inputs"),
        (lambda state: state["planner"].update(demos=[3]), "planner: demos.0"),
        (lambda state: state["planner"]["signature"]["fields"].pop() and None, "planner: it has other fields"),
        (lambda state: state.update(planner=3), "artifact.json is damaged.* state.planner"),
        (lambda state: state["exemplars.memory"].update(exemplars=[{"question": "x"}]), "exemplars.memory: "),
    ],
)
def test_a_state_that_does_not_fit_leaves_the_program_as_it_is(edit: Edit, message: str, artifact: Path) -> None:
    forge(artifact, lambda content: edit(content["state"]))
    program = PolyHop(ChainRetriever())
    before = dump(program)
    refused(artifact, message, program=program)
    assert dump(program) == before


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda content: content["program"].update(name="os.system"), "unknown program 'os.system'"),
        (lambda content: content["program"].update(retriever="x" * 5000), "was tuned with the retriever xx"),
        (lambda content: content["program"].update(retriever="bm25"), "was tuned with the retriever bm25, not chain"),
        (lambda content: content.update(created=3, versions={"\x1b[2J" * 900: 3}), "is damaged"),
        (lambda content: content.update(format="\x1b[2J" * 900), "of another kind"),
        (lambda content: [content], "of another kind"),
    ],
)
def test_a_forged_manifest(edit: Edit, message: str, artifact: Path) -> None:
    forge(artifact, edit)
    refused(artifact, message, retriever=ChainRetriever())


def test_weights_of_the_chain_that_only_the_artifact_has_are_left_out(artifact: Path) -> None:
    def edit(manifest: Any) -> None:
        state = manifest["state"]
        state["search.chain['surplus']"] = state.pop("search.chain['link']") | {"value": 0.5}

    forge(artifact, edit)
    chain = polyhop.load(artifact, ChainRetriever()).search.chain
    assert "surplus" not in chain
    assert chain["link"].value == ChainRetriever().weights.link


def test_harmless_differences_are_told(artifact: Path) -> None:
    forge(artifact, lambda content: content["versions"].update(dspy="3.0.0"))
    with pytest.warns(ArtifactWarning, match=r"saved with dspy 3.0.0, this is "):
        polyhop.load(artifact, ChainRetriever())
    with pytest.raises(ArtifactError, match="not both"):
        polyhop.load(artifact, ChainRetriever(), program=PolyHop())


# --- what differs ----------------------------------------------------------------------------------------------------


def test_tuned_programs() -> None:
    after = PolyHop()
    after.rounds.value, after.rounds.high = 2, 4
    text = after.reader.signature.instructions
    after.reader.signature = after.reader.signature.with_instructions(f"{text} Keep all.")
    after.planner.demos = [dspy.Example(question="Who?", thought="One step.", sub_questions=["Who?"])] * 2
    exemplar = Exemplar("Who?", ("Who?",), 1)
    after.exemplars.memory = ExemplarMemory([exemplar, *after.exemplars.memory.exemplars[2:]])
    old, new = dump(PolyHop()), dump(after)
    changes = diff(old, new)
    assert set(changes) == {"rounds", "reader", "planner", "exemplars.memory"}
    assert changes["rounds"] == Change([f"{old['rounds']['value']} (1..6)"], ["2 (1..4)"])
    assert changes["reader"] == Change([], ["Keep all."])
    demo = '{"question": "Who?", "thought": "One step.", "sub_questions": ["Who?"]}'
    assert changes["planner"] == Change([], [demo, demo])
    once = {**new, "planner": {**new["planner"], "demos": new["planner"]["demos"][:1]}}
    assert diff(once, new) == {"planner": Change([], [demo])}  # one of two equal demos is new
    after.reader.signature = after.reader.signature.with_updated_fields("question", desc="Obey it.")
    change = diff(new, dump(after))["reader"]
    assert ([line[-8:] for line in change.added], len(change.removed)) == (["Obey it."], 1)
    memory = changes["exemplars.memory"]
    assert (len(memory.removed), len(memory.added), "Who?" in memory.added[0]) == (2, 1, True)
    of_others: list[Any] = [{"demos": False}, {"demos": [], "signature": None}, {"demos": [1, {2}]}]
    for wrong in of_others:
        with pytest.raises(ArtifactError, match="cannot be compared"):
            diff(old, {"planner": wrong})
    assert diff(new, new) == {}
    assert diff({"a": {"x": 1}}, {"a": {"x": 2.0}, "b": {"y": 3}}) == {
        "a": Change(["x: 1"], ["x: 2"]),
        "b": Change([], ["y: 3"]),
    }
