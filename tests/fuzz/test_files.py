"""Files that others made, changed POLYHOP_FUZZ_CASES times: each is read, or refused in one line, and soon."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyhop
from polyhop.data.benchmarks.load import load_questions
from polyhop.data.documents.corpus import Corpus
from polyhop.data.errors import PolyhopError
from polyhop.data.lucene.layout import IndexManifest
from polyhop.eval.comparison import compare_runs
from polyhop.eval.folder import MANIFEST, read_manifest, read_records
from polyhop.eval.run import evaluate
from polyhop.optimizers.artifact import ARTIFACT, hash_of, read
from polyhop.programs import Naive

from ..data.benchmarks import records
from ..data.reading import placed
from ..eval.small import Fake, numbered
from .mutants import CASES, LONGEST, changed, is_sound

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Format:
    """Valid content, the name of its file, and how it is read; what is read is returned as JSON."""

    valid: Any
    name: str
    read: Callable[[Path], Any]


def questions(dataset: str) -> Callable[[Path], Any]:
    return lambda path: [dict(each.items(), pool=None) for each in load_questions(dataset, path)]


def passages(path: Path) -> Any:
    return [[each.id, each.title, each.text] for each, _ in placed(Corpus([path]))]


INDEX = IndexManifest(
    passages=3,
    malformed=0,
    duplicates=0,
    corpus=("a.jsonl",),
    corpus_hash="0" * 32,
    documents=1,
    max_words=0,
    split="nothing",
    analyzer="english",
    polyhop="1",
    anserini="1",
    lucene="9",
    generation="0123456789abcdef",
    chain={"0123456789abcdef": {}},
    created=datetime(2026, 1, 1, tzinfo=UTC),
)
LINES = b"".join(json.dumps({"id": str(n), "title": "Ada", "text": "Ada wrote odes."}).encode() + b"\n" for n in (1, 2))
TABLE = b'question,answer,gold\nWho wrote?,Ada,Tarn\n"Who, then?",Ben,Tarn\n'

FORMATS = {
    "index": Format(INDEX.to_json(), MANIFEST, lambda path: IndexManifest.load(path.parent).to_json()),
    "passages": Format(LINES, "a.jsonl", passages),
    "table": Format(TABLE, "a.csv", questions("own")),
    "own": Format([{"question": "Who?", "answer": "Ada", "gold": ["Tarn"]}], "a.json", questions("own")),
    "hotpotqa": Format([records.HOTPOTQA], "a.json", questions("hotpotqa")),
    "hotpotqa, as a corpus": Format([records.HOTPOTQA], "a.json", passages),
    "2wiki": Format([records.TWOWIKI], "a.json", questions("2wiki")),
    "2wiki, columns": Format([records.TWOWIKI_COLUMNS], "a.json", questions("2wiki")),
    "musique": Format([records.MUSIQUE], "a.json", questions("musique")),
    "multihoprag": Format([records.MULTIHOPRAG], "a.json", questions("multihoprag")),
    "nq": Format([records.NQ], "a.json", questions("nq")),
    "triviaqa": Format(records.TRIVIAQA_DOCUMENT, "a.json", questions("triviaqa")),
    "squad": Format(records.SQUAD, "a.json", questions("squad")),
    "squad, as a corpus": Format(records.SQUAD, "a.json", passages),
}


def check(read: Callable[[Path], Any], path: Path, data: bytes) -> None:
    """Read, or refused in one line; no other error, no hang, nothing accepted that cannot be."""
    path.write_bytes(data)
    started = process_time()
    refused, found = "", None
    try:
        found = read(path)
    except PolyhopError as error:
        refused = str(error)
    assert "\n" not in refused
    assert len(refused) < 5_000
    assert is_sound(found)
    assert process_time() - started < LONGEST


@pytest.mark.parametrize("name", FORMATS)
def test_a_file(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    path = tmp_path / form.name
    path.write_bytes(form.valid if isinstance(form.valid, bytes) else json.dumps(form.valid).encode())
    form.read(path)  # as it is, it is valid

    @CASES
    @given(changed(form.valid))
    def fuzz(data: bytes) -> None:
        check(form.read, path, data)

    fuzz()


@pytest.mark.parametrize("name", ["manifest.json", "predictions.jsonl"])
def test_a_run(name: str, tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    asked = numbered(3)
    for out in (run, other):
        evaluate(Fake(), asked, out)
    path = run / name
    whole = path.read_bytes()
    valid = whole if name.endswith("l") else json.loads(whole)
    line = json.loads(whole.splitlines()[0]) if name.endswith("l") else None

    def read(_: Path) -> Any:
        read_manifest(run)
        found = [record.model_dump(mode="json") for record in read_records(run)]
        compare_runs([run, other], metrics=["lm_calls"])
        return found

    read(path)

    @CASES
    @given(st.one_of(changed(valid), changed(line).map(lambda new: new + b"\n" + whole)) if line else changed(valid))
    def fuzz(data: bytes) -> None:
        check(read, path, data)

    fuzz()


@pytest.mark.parametrize("signed", [True, False])
def test_an_artifact(signed: bool, tmp_path: Path) -> None:
    """Also one whose hash is right: who changes a file can change it, too."""
    folder = polyhop.save(Naive(), tmp_path / "best")
    path = folder / ARTIFACT

    def sign(data: bytes) -> bytes:
        try:
            value = json.loads(data)
            if isinstance(value, dict):
                signed = {**value, "hash": hash_of({k: v for k, v in value.items() if k != "hash"})}
                return json.dumps(signed).encode()
        except (ValueError, RecursionError):
            pass
        return data

    def load(_: Path) -> Any:
        read(folder)
        polyhop.load(folder)

    @CASES
    @given(changed(json.loads(path.read_bytes())))
    def fuzz(data: bytes) -> None:
        check(load, path, sign(data) if signed else data)

    fuzz()
