"""Artifacts that do not fit or are hostile are refused in one line, and nothing in them runs."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polyhop
from polyhop.data.pool import PassagePool
from polyhop.optimizers.artifact import ArtifactError, ArtifactWarning, Provenance
from polyhop.programs import Direct, Naive, PolyHop, Prism

from .forged import Edit, forge, put

CHAIN = polyhop.ChainRetriever()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = PolyHop()
    program.planner.demos = [dspy.Example(question="Who?", route="plan", sub_questions=["Who?"])]
    study = {"trials": [{"number": 0, "values": [0.5], "state": "COMPLETE"}]}
    return polyhop.save(program, tmp_path_factory.mktemp("artifacts") / "best", provenance=Provenance(study=study))


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


# --- whole and unchanged ---------------------------------------------------------------------------------------------


def test_a_missing_artifact(tmp_path: Path) -> None:
    refused(tmp_path / "none", "there is no artifact .*none: no such folder")
    refused(tmp_path, "is not an artifact: it has no manifest.json")
    (tmp_path / "file").write_text("{}")
    refused(tmp_path / "file", "there is no artifact .*file: no such folder")
    refused(Path("\x00"), "there is no artifact")


@pytest.mark.parametrize("name", ["state.json", "exemplars.jsonl", "study.json"])
def test_missing_and_changed_files(name: str, artifact: Path) -> None:
    data = (artifact / name).read_bytes()
    for other in (data[:-1], data[: len(data) // 2], b"", data + b"\n", data.replace(b"a", b"b", 1)):
        (artifact / name).write_bytes(other)
        refused(artifact, f"{name} is incomplete or was changed after it was saved: save again")
    (artifact / name).unlink()
    refused(artifact, f"is not a complete artifact: {name} is missing")


def test_a_changed_manifest(artifact: Path) -> None:
    text = (artifact / "manifest.json").read_text()
    (artifact / "manifest.json").write_text(text.replace('"seed": null', '"seed": 3'))
    refused(artifact, "manifest.json was changed after it was saved")
    (artifact / "manifest.json").write_text(text[:-10])
    refused(artifact, "manifest.json is damaged")


@pytest.mark.parametrize("text", ['{"schema": 1, "created": "x", "questions": {}}', "[]", "{}", '"x"', "null"])
def test_a_folder_of_another_kind(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    refused(tmp_path, "is not an artifact: its manifest.json is of another kind")


def test_another_schema(artifact: Path) -> None:
    forge(artifact, "manifest.json", lambda manifest: {**manifest, "version": 2, "new": []})
    refused(artifact, "has schema 2; this version reads 1: update polyhop")
    forge(
        artifact, "manifest.json", lambda manifest: {k: v for k, v in manifest.items() if k != "new"} | {"version": 0}
    )
    refused(artifact, "has schema 0; this version reads 1")


# --- fitting ---------------------------------------------------------------------------------------------------------


def field(state: Any, agent: str, name: str) -> Any:
    return next(each for each in state["agents"][agent]["fields"] if each["name"] == name)


def edits() -> Iterator[tuple[str, Edit]]:
    yield (
        "agent 'gatherer': field 'keep' has another description",
        lambda state: field(state, "gatherer", "keep").update(description="the best"),
    )
    yield (
        r"agent 'gatherer': field 'keep' has another type \(list\[int\] in the artifact, list\[str\] here\)",
        lambda state: field(state, "gatherer", "keep").update(type="list[int]"),
    )
    yield (
        r"agent 'gatherer': field 'keep' has another role \(input in the artifact, output here\)",
        lambda state: field(state, "gatherer", "keep").update(role="input"),
    )
    yield (
        "agent 'gatherer': field 'best' is not in this version; agent 'gatherer': field 'keep' is not in the artifact",
        lambda state: field(state, "gatherer", "keep").update(name="best"),
    )
    yield (
        "agent 'gatherer': field 'keep' has another schema",
        lambda state: field(state, "gatherer", "keep").update(schema={"type": "string"}),
    )
    yield (
        "agent 'gatherer': its fields have another order",
        lambda state: state["agents"]["gatherer"]["fields"].insert(0, state["agents"]["gatherer"]["fields"].pop(1)),
    )
    yield "agent 'gatherer' is not in the artifact", lambda state: state["agents"].pop("gatherer")
    yield (
        "agent 'judge' is not in this version",
        lambda state: state["agents"].update(judge=state["agents"]["gatherer"]),
    )
    yield r"tunable 'rounds' must be an integer in 1\.\.6, got 7", lambda s: s["tunables"]["rounds"].update(value=7)
    yield "tunable 'rounds' must be an integer", lambda state: state["tunables"]["rounds"].update(value=2.0)
    yield "tunable 'review' must be one of", lambda state: state["tunables"]["review"].update(value=True)
    yield "tunable 'easy' must be a number in", lambda state: state["tunables"]["easy"].update(value="0.9")
    yield "tunable 'easy' is not in the artifact", lambda state: state["tunables"].pop("easy")
    yield (
        "tunable 'hard' is not in this version",
        lambda s: s["tunables"].update(hard={"value": 1, "low": 0, "high": 2}),
    )
    yield "exemplar memory 'exemplars.memory' is not in the artifact", lambda state: state["memories"].clear()
    yield "parameter 'more' is not in this version", lambda state: state["others"].update(more={})
    yield (
        "tunable 'rounds' is not in the artifact",
        lambda s: s["agents"].update(rounds=s["agents"]["answerer"]) or s["tunables"].pop("rounds"),
    )


@pytest.mark.parametrize(("message", "edit"), list(edits()))
def test_misfits_are_named(message: str, edit: Edit, artifact: Path) -> None:
    def change(state: Any) -> None:
        edit(state)

    forge(artifact, "state.json", change)
    mine = PolyHop()
    before = mine.dump_state()
    refused(artifact, f"does not fit PolyHop of this version: .*{message}.* or tune again", program=mine)
    refused(artifact, message)
    assert mine.dump_state() == before


def test_invalid_exemplars(artifact: Path) -> None:
    lines = (artifact / "exemplars.jsonl").read_bytes().split(b"\n")
    for line, message in [
        (
            b'{"question": "Who?", "sub_questions": ["#1?"], "hops": 1}',
            "line 3 is damaged: sub-question 1 refers to #1",
        ),
        (b'{"question": "Who?", "sub_questions": [1], "hops": 1}', "line 3 is damaged: an exemplar needs"),
        (b'{"question": "Who?", "sub_questions": ["a"], "hops": true}', "line 3 is damaged: an exemplar has 1 to 4"),
        (b"[]", "line 3 is damaged: an exemplar is"),
        (b"", "line 3 is damaged"),
    ]:
        put(artifact, "exemplars.jsonl", b"\n".join([*lines[:2], line, *lines[3:]]))
        refused(artifact, f"exemplars.jsonl, {message}")
    put(artifact, "exemplars.jsonl", b"\n".join(lines[1:]))
    refused(artifact, "exemplars.jsonl has no exemplars of version 1")


def test_other_versions_load_with_a_warning(artifact: Path) -> None:
    forge(artifact, "manifest.json", lambda manifest: manifest["versions"].update(polyhop="0.0.1"))
    with pytest.warns(
        ArtifactWarning, match=f"best differs: it was saved with polyhop 0.0.1, this is {version('polyhop')}"
    ):
        assert type(polyhop.load(artifact)) is PolyHop
    forge(artifact, "state.json", lambda state: state["tunables"]["rounds"].update(high=4))
    with pytest.warns(ArtifactWarning, match=r"this is .*; the range of rounds was 1\.\.4, and is 1\.\.6"):
        polyhop.load(artifact)
    forge(artifact, "state.json", lambda state: state["tunables"].pop("rounds") and None)
    refused(artifact, f"Load it into a PolyHop with polyhop 0.0.1 and dspy {version('dspy')}, or tune again")


def test_the_estimator_of_complexity_is_part_of_the_artifact(artifact: Path, recwarn: pytest.WarningsRecorder) -> None:
    question = "Who wrote Emma?"
    assert polyhop.load(artifact).estimator(question).hops == 1
    forge(artifact, "state.json", lambda state: state["others"]["estimator"].update(biases=[0, 0, 0, 99]))
    forge(artifact, "manifest.json", lambda manifest: manifest["program"].update(complexity="of an earlier version"))
    assert polyhop.load(artifact).estimator(question).hops == 4
    assert not recwarn
    forge(artifact, "state.json", lambda state: state["others"]["estimator"].update(biases=[1e300, 0, 0, 0]))
    refused(artifact, r"parameter 'estimator': must consist of numbers up to 1e\+06")


# --- retrievers ------------------------------------------------------------------------------------------------------


def test_the_kind_of_retriever_must_match(tmp_path: Path) -> None:
    pool = PassagePool([])
    polyhop.save(Prism(CHAIN), tmp_path / "chain")
    polyhop.save(Prism(pool), tmp_path / "bm25")
    polyhop.save(Direct(), tmp_path / "direct")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert polyhop.load(tmp_path / "chain", CHAIN).search.retriever is CHAIN
        assert polyhop.load(tmp_path / "chain").search.retriever.source is None
        assert polyhop.load(tmp_path / "bm25", pool).search.retriever is pool
        assert polyhop.load(tmp_path / "bm25").search.retriever is None
        polyhop.load(tmp_path / "direct")
    for name, other, message in (
        ("chain", pool, "was tuned with the retriever chain, not bm25: give it a ChainRetriever"),
        ("bm25", CHAIN, "was tuned with the retriever bm25, not chain: give it no ChainRetriever"),
        ("direct", pool, "the program direct, which does not search: give it no retriever"),
    ):
        refused(tmp_path / name, message, retriever=other)
    refused(tmp_path / "bm25", "give a retriever or a program, not both", retriever=pool, program=Prism())
    message = "does not fit Naive of this version: agent 'analyzer' is not in .*; and 11 more. Load it into a Prism"
    refused(tmp_path / "bm25", message, program=Naive())


def test_other_retrievers_and_classes_give_a_warning(tmp_path: Path) -> None:
    class Mine:
        def search(self, query: str, k: int, offset: int = 0) -> list[Any]:
            return []

    polyhop.save(Prism(), tmp_path / "bm25")
    with pytest.warns(ArtifactWarning, match="it was tuned with the retriever bm25, not other"):
        polyhop.load(tmp_path / "bm25", Mine())  # type: ignore[arg-type]

    class Special(Prism):
        pass

    with pytest.warns(ArtifactWarning, match="it was saved from Prism, not from .*Special"):
        assert type(polyhop.load(tmp_path / "bm25", program=Special())) is Special


# --- hostile ---------------------------------------------------------------------------------------------------------


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


HOSTILE: dict[str, tuple[str, Edit]] = {
    "model": (
        "state.json",
        lambda s: s["agents"]["gatherer"].update(lm={"model": "x", "engine": {"class": "os:system"}}),
    ),
    "reduce": ("state.json", lambda s: s.update(__reduce__=["os.system", ["true"]])),
    "config": ("state.json", lambda s: s["agents"]["gatherer"].update(config={"api_base": "http://elsewhere"})),
    "demos text": ("state.json", lambda s: s["agents"]["gatherer"].update(demos="abc")),
    "demo number": ("state.json", lambda s: s["agents"]["gatherer"].update(demos=[1])),
    "demo that crashes": (
        "state.json",
        lambda s: s["agents"]["planner"].update(demos=[{"question": [1, 2], "route": "plan"}]),
    ),
    "decisions": ("state.json", lambda s: s["agents"]["gatherer"].update(decisions={"keep": {"threshold": 2}})),
    "instructions": ("state.json", lambda s: s["agents"]["gatherer"].update(instructions=None)),
    "half a character": ("state.json", lambda s: s["agents"]["gatherer"].update(instructions="\ud800")),
    "too deep to parse": ("study.json", lambda s: {"x": deep(900)}),
    "huge": ("state.json", lambda s: s["tunables"]["easy"].update(value=10**400)),
    "nan": ("state.json", lambda s: s["tunables"]["easy"].update(value=float("nan"))),
    "study": ("study.json", lambda s: [1]),
    "state": ("state.json", lambda s: [s]),
    "traversal": ("manifest.json", lambda m: m["files"].update({"../../etc/passwd": "0"})),
    "pickle": ("manifest.json", lambda m: m["files"].update({"program.pkl": "0"})),
    "nothing": ("manifest.json", lambda m: m["files"].clear()),
    "other memory": ("state.json", lambda s: s["memories"].update({"exemplars.memory": "../x.jsonl"})),
    "state as memory": ("state.json", lambda s: s["memories"].update({"exemplars.memory": "state.json"})),
    "import path": ("manifest.json", lambda m: m["program"].update(name="os.system")),
    "own class": ("manifest.json", lambda m: m["program"].update({"name": None, "class": "os.system"})),
    "no search": ("manifest.json", lambda m: m["program"].update(retriever="none")),
    "direct": ("manifest.json", lambda m: m["program"].update(name="direct")),
    "other retriever": ("manifest.json", lambda m: m["program"].update(retriever="os.system")),
    "text for a version": ("manifest.json", lambda m: m.update(version="1")),
    "line break": ("manifest.json", lambda m: m["program"].update({"name": None, "class": "x\n\x1b[31m" * 99})),
    "line break in a name": ("state.json", lambda s: s["tunables"].update({"x\ny\x1b" * 999: {"value": 1}})),
    "new key": ("manifest.json", lambda m: m.update(hook="os.system")),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_artifact_is_refused(case: str, artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("it was run"))
    name, edit = HOSTILE[case]

    def change(value: Any) -> Any:
        changed = edit(value)
        return changed if isinstance(changed, list | dict) and case in ("too deep to parse", "study", "state") else None

    forge(artifact, name, change)
    refused(artifact, "best")


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"a": ' * 50_000,
        b"\xff\xfe",
        b"\x00" * 100,
        b"1e999",
        b"9" * 5000,
        b'{"agents": NaN}',
        "\ufeff{}".encode(),
    ],
)
@pytest.mark.parametrize("name", ["manifest.json", "exemplars.jsonl"])
def test_invalid_bytes(name: str, data: bytes, artifact: Path) -> None:
    if name == "manifest.json":
        (artifact / name).write_bytes(data)
    else:
        put(artifact, name, data)
    refused(artifact, "best")


def test_only_regular_files_are_read(artifact: Path) -> None:
    data = (artifact / "state.json").read_bytes()
    elsewhere = artifact.parent / "elsewhere.json"
    elsewhere.write_bytes(data)
    (artifact / "state.json").unlink()
    (artifact / "state.json").symlink_to(elsewhere)
    refused(artifact, "state.json: it is a symbolic link")
    (artifact / "state.json").unlink()
    os.mkfifo(artifact / "state.json")  # reading it would block
    refused(artifact, "state.json: it is not a regular file")
    (artifact / "state.json").unlink()
    (artifact / "state.json").mkdir()
    refused(artifact, "state.json: it is not a regular file")
    (artifact / "state.json").rmdir()
    with (artifact / "state.json").open("wb") as file:
        file.truncate(2**40)  # a sparse file
    refused(artifact, "state.json: it is larger than 16 MB")


def test_other_files_in_the_folder_are_never_read(artifact: Path) -> None:
    (artifact / "program.pkl").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    os.mkfifo(artifact / "metadata.json")
    assert type(polyhop.load(artifact)) is PolyHop


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value of a JSON document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["\ud800", "../x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("name", ["manifest.json", "state.json"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_change_loads_or_is_refused(name: str, data: st.DataObject, original: Path, tmp_path: Path) -> None:
    """If it loads, its prompts can be rendered."""
    shutil.rmtree(tmp_path / "best", ignore_errors=True)
    shutil.copytree(original, tmp_path / "best")
    value = json.loads((original / name).read_text())
    *way, last = data.draw(st.sampled_from([place for place in places(value) if place]))

    def change(document: Any) -> None:
        inner = document
        for step in way:
            inner = inner[step]
        how = data.draw(st.sampled_from(["replace", "remove", "rename"]))
        if how == "replace":
            inner[last] = data.draw(json_values)
        else:
            item = inner.pop(last)
            if how == "rename" and isinstance(inner, dict):
                inner[data.draw(st.text(max_size=5) | st.sampled_from(list(inner) or ["x"]))] = item

    forge(tmp_path / "best", name, change)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = polyhop.load(tmp_path / "best")
        except ArtifactError:
            return
    assert type(program) is PolyHop
    for predictor in program.predictors():
        for adapter in (dspy.ChatAdapter(), dspy.JSONAdapter()):
            adapter.format(predictor.signature, predictor.demos, {"question": "Who?"})
