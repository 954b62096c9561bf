"""Saving an artifact: atomic, replacing only artifacts, without secrets."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import dspy
import pytest

import polyhop
from polyhop.data.sample import load_sample
from polyhop.eval.statistics import Interval
from polyhop.optimizers import artifact as module
from polyhop.optimizers.artifact import ArtifactError, Provenance, Split, read
from polyhop.programs import PolyHop, Prism

KNOWN = Provenance(
    dataset="hotpotqa",
    splits={"val": Split.of("/home/me/data/val.jsonl", load_sample()[:5])},
    metric="evidence_f1",
    scores={"val": {"evidence_f1": Interval(0.5, 0.4, 0.6), "fact_f1": Interval(float("nan"), float("nan"), 0.0)}},
    seed=7,
    spent={"lm_calls": 1200, "cost_usd": 0.5},
    settings={"stages": ["exemplars", "tunables"]},
    study={"trials": [{"number": 0, "values": [0.5]}]},
)


def test_the_content_of_an_artifact(tmp_path: Path) -> None:
    program = PolyHop(polyhop.ChainRetriever())
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))
    program.rounds.value = 2
    assert polyhop.save(program, tmp_path / "new" / "best", provenance=KNOWN) == tmp_path / "new" / "best"
    files = {path.name: path.read_bytes() for path in (tmp_path / "new" / "best").iterdir()}
    assert sorted(files) == ["exemplars.jsonl", "manifest.json", "state.json", "study.json"]
    manifest = json.loads(files["manifest.json"])
    assert manifest["program"]["name"] == "polyhop"
    assert manifest["program"]["retriever"] == "chain"
    assert manifest["splits"]["val"] | {"hash": ""} == {"file": "val.jsonl", "count": 5, "hash": ""}
    assert len(manifest["splits"]["val"]["hash"]) == 32
    assert manifest["scores"] == {"val": {"evidence_f1": {"mean": 0.5, "low": 0.4, "high": 0.6}}}
    assert (manifest["seed"], manifest["spent"]["lm_calls"]) == (7, 1200)
    assert manifest["lms"]["gatherer"] == "openai/gpt-4o-mini"
    assert set(manifest["files"]) == set(files) - {"manifest.json"}
    state = json.loads(files["state.json"])
    assert state["tunables"]["rounds"] == {"value": 2, "low": 1, "high": 6, "choices": [], "log": False}
    assert state["agents"]["gatherer"]["fields"][-1]["name"] == "required"
    assert len(files["exemplars.jsonl"].splitlines()) == 25
    assert read(tmp_path / "new" / "best").study == KNOWN.study


def test_hashes_of_agents(tmp_path: Path) -> None:
    program = Prism()
    first = read(polyhop.save(program, tmp_path / "a")).manifest.agents
    program.selector.signature = program.selector.signature.with_instructions("Keep all.")
    second = read(polyhop.save(program, tmp_path / "b")).manifest.agents
    assert first["answerer"] == second["answerer"]
    assert first["selector"].shape == second["selector"].shape
    assert first["selector"].instructions != second["selector"].instructions


SECRETS = [f"sk-secret-{n}-{'x' * 20}" for n in range(12)]


def test_secrets_of_models_are_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ["api_key", "api_base", "base_url", "aws_access_key_id", "aws_secret_access_key", "vertex_credentials"]
    planted = dict(zip(keys, SECRETS, strict=False))
    headers = {"headers": {"Authorization": SECRETS[6]}, "extra_headers": {"X-Key": SECRETS[7]}}
    monkeypatch.setenv("OPENAI_API_KEY", SECRETS[8])
    monkeypatch.setenv("POLYHOP_LM", f"openai/{SECRETS[9]}")
    program = PolyHop()
    program.set_lm(dspy.LM("openai/gpt-4o-mini", **planted, **headers))
    program.gatherer.config = {"api_key": SECRETS[10]}
    program.gatherer.traces, program.gatherer.train = [SECRETS[11]], [SECRETS[11]]
    dspy.configure(lm=dspy.LM("openai/gpt-4o", api_key=SECRETS[0]))
    polyhop.save(program, tmp_path / "best", provenance=KNOWN)
    found = b"".join(path.read_bytes() for path in (tmp_path / "best").rglob("*") if path.is_file())
    assert b"openai/gpt-4o-mini" in found
    assert [secret for secret in SECRETS if secret.encode() in found] == []
    assert str(tmp_path).encode() not in found
    assert b"/home/me" not in found


@pytest.mark.parametrize("name", ["api_key", "api_base", "extra_headers"])
def test_secrets_in_demos_and_provenance_are_found(name: str, tmp_path: Path) -> None:
    program = Prism()
    secret = 'sk-"secret"-\\n-1'
    program.set_lm(dspy.LM("openai/gpt-4o-mini", **{name: {"X-Key": secret} if "headers" in name else secret}))
    program.analyzer.demos = [{"question": f"Who has {secret}?", "sub_questions": []}]
    with pytest.raises(ArtifactError, match=f"would contain the {name} of a language model: check the demos"):
        polyhop.save(program, tmp_path / "best")
    program.analyzer.demos = []
    with pytest.raises(ArtifactError, match=f"would contain the {name}"):
        polyhop.save(program, tmp_path / "best", provenance=Provenance(study={"errors": [secret]}))
    assert os.listdir(tmp_path) == []


# --- replacing -------------------------------------------------------------------------------------------------------


def test_an_artifact_is_replaced(tmp_path: Path) -> None:
    program = PolyHop()
    polyhop.save(program, tmp_path / "best", provenance=KNOWN)
    program.rounds.value = 5
    polyhop.save(program, tmp_path / "best")
    assert sorted(os.listdir(tmp_path / "best")) == ["exemplars.jsonl", "manifest.json", "state.json"]
    assert polyhop.load(tmp_path / "best").rounds.value == 5
    polyhop.save(Prism(), tmp_path / "best")
    assert type(polyhop.load(tmp_path / "best")) is Prism
    assert os.listdir(tmp_path) == ["best"]


def test_empty_folders_and_damaged_artifacts_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "best").mkdir()
    polyhop.save(Prism(), tmp_path / "best")
    (tmp_path / "best" / "state.json").write_text("{")
    polyhop.save(Prism(), str(tmp_path / "best"))
    assert type(polyhop.load(str(tmp_path / "best"))) is Prism


@pytest.mark.parametrize(
    "content",
    [
        {"notes.md": "mine"},
        {"manifest.json": "{}"},
        {"manifest.json": '{"schema": 1, "created": "of a run"}'},
        {"manifest.json": '{"polyhop": "artifact"}', "notes.md": "mine"},
        {"state.json": "{}"},
        {".git": ""},
    ],
)
def test_nothing_else_is_replaced(content: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "best"
    folder.mkdir()
    for name, text in content.items():
        (folder / name).write_text(text)
    with pytest.raises(
        ArtifactError, match=r"best is not an artifact or contains other files \(.*\): choose another folder"
    ):
        polyhop.save(Prism(), folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == content
    assert os.listdir(tmp_path) == ["best"]


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "best").write_text("mine")
    with pytest.raises(ArtifactError, match="is a file: choose a folder"):
        polyhop.save(Prism(), tmp_path / "best")
    with pytest.raises(ArtifactError, match="cannot write the artifact .*: Not a directory"):
        polyhop.save(Prism(), tmp_path / "best" / "x")
    assert (tmp_path / "best").read_text() == "mine"


def test_only_programs_are_saved(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="only a DSPy program can be saved, not str"):
        polyhop.save("prism", tmp_path / "best")


@pytest.mark.parametrize(
    "provenance",
    [
        Provenance(study={"best": float("nan")}),
        Provenance(settings={"of": object()}),
        Provenance(spent={"lm_calls": float("inf")}),
    ],
)
def test_a_provenance_must_be_json(provenance: Provenance, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be saved: "):
        polyhop.save(Prism(), tmp_path / "best", provenance=provenance)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_the_old_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    polyhop.save(Prism(rounds=2), tmp_path / "best")

    def full(path: Path, data: bytes) -> None:
        if path.name == "manifest.json":
            raise OSError(28, "No space left on device")
        path.write_bytes(data)

    with monkeypatch.context() as patched:
        patched.setattr(module, "_write", full)
        with pytest.raises(ArtifactError, match="cannot write the artifact .*: No space left on device"):
            polyhop.save(Prism(rounds=4), tmp_path / "best")
    assert os.listdir(tmp_path) == ["best"]
    assert polyhop.load(tmp_path / "best").rounds.value == 2
    polyhop.save(Prism(rounds=4), tmp_path / "best")
    assert os.listdir(tmp_path) == ["best"]
    assert polyhop.load(tmp_path / "best").rounds.value == 4


def test_a_save_killed_while_it_replaces_leaves_the_old_artifact(tmp_path: Path) -> None:
    polyhop.save(Prism(rounds=2), tmp_path / "best")
    (tmp_path / "best").rename(tmp_path / ".best.old")
    assert polyhop.load(tmp_path / "best").rounds.value == 2
    polyhop.save(Prism(rounds=4), tmp_path / "best")
    assert polyhop.load(tmp_path / "best").rounds.value == 4
    assert os.listdir(tmp_path) == ["best"]


_SAVING = """
import sys, polyhop
program = polyhop.Prism()
while True:
    for rounds in (1, 2, 3):
        program.rounds.value = rounds
        polyhop.save(program, sys.argv[1])
        print(flush=True)
"""


@pytest.mark.slow
def test_a_killed_save_leaves_an_artifact(tmp_path: Path) -> None:
    rng, best = random.Random(0), tmp_path / "best"
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", _SAVING, str(best)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.2))
        process.kill()
        process.communicate()
        assert polyhop.load(best).rounds.value in (1, 2, 3)
