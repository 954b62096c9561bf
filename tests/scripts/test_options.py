"""Programs built from command line options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import PolyhopError
from polyhop.data.pool import PassagePool
from polyhop.eval.options import ProgramOptions
from polyhop.optimizers.artifact import save
from polyhop.programs import (
    C3PO,
    Direct,
    FullContext,
    IRCoT,
    Kair,
    Naive,
    Oracle,
    ParRag,
    PolyHop,
    Prism,
    ReAct,
    SetSelection,
    tunables,
)
from polyhop.scripts.options import build_program, label, searches

POOL = PassagePool([])
NAMES = {
    "polyhop": PolyHop, "prism": Prism, "kair": Kair, "par_rag": ParRag, "c3po": C3PO, "ircot": IRCoT, "naive": Naive,
    "direct": Direct, "full_context": FullContext, "set_selection": SetSelection, "oracle": Oracle,
}  # fmt: skip


def build(name: str, source: Any, **options: Any) -> Any:
    return build_program(name, source, ProgramOptions(**options))


def artifact(program: Any, path: Path) -> str:
    return str(save(program, path / "best"))


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_programs_by_name_and_from_artifacts(name: str, kind: Any, tmp_path: Path) -> None:
    before: Any = build(name, POOL)
    assert isinstance(before, kind)
    before.named_predictors()[0][1].demos = [dspy.Example(question="Who?", answer="Ann.")]
    program: Any = build(artifact(before, tmp_path), POOL)
    for each in (before, program):
        each.set_lm(None)
    assert program.dump_state() == before.dump_state()
    assert isinstance(program, kind)


def test_an_unknown_program(tmp_path: Path) -> None:
    known = ", ".join(sorted([*NAMES, "react"]))
    with pytest.raises(
        PolyhopError, match=f"unknown program 'prsm': choose {known}, the folder of an artifact, or FILE.py:PROGRAM"
    ):
        build("prsm", POOL)
    with pytest.raises(PolyhopError, match="manifest.json"):
        build(str(tmp_path), POOL)


def test_depth() -> None:
    assert build("naive", POOL, k=3).search.k.value == 3
    assert build("ircot", POOL, k=6).search.k.value == 6
    with pytest.raises(PolyhopError, match="direct does not search: -k does not apply"):
        build("direct", POOL, k=3)
    with pytest.raises(PolyhopError, match=r"ircot and -k: must be one of \[2, 4, 6, 8\], got 5"):
        build("ircot", POOL, k=5)


# --- retrievers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["prism", "c3po", "ircot", "naive"])
def test_the_chain_is_the_default_retriever(name: str) -> None:
    chain = build(name, POOL).search.retriever
    assert isinstance(chain, ChainRetriever)
    assert chain.source is POOL
    assert build(name, POOL, retriever="bm25").search.retriever is POOL
    assert build(name, None, retriever="bm25").search.retriever is None
    assert build(name, None).search.retriever.source is None


@pytest.mark.parametrize(("saved", "other"), [("chain", "bm25"), ("bm25", "chain")])
def test_an_artifact_keeps_its_retriever(saved: str, other: str, tmp_path: Path) -> None:
    program = build("prism", POOL, retriever=saved)
    path = artifact(program, tmp_path)
    for retriever in (None, saved):
        again = build(path, POOL, retriever=retriever)
        assert type(again.search.retriever) is type(program.search.retriever)
    message = f"best was saved with --retriever {saved}: omit --retriever, or use the same"
    with pytest.raises(PolyhopError, match=message):
        build(path, POOL, retriever=other)


def test_adaptive(tmp_path: Path) -> None:
    assert build("naive", POOL).search.chain["adaptive"].value is False
    assert build("naive", POOL, adaptive=True).search.chain["adaptive"].value is True
    path = artifact(Prism(ChainRetriever()), tmp_path)
    program = build(path, POOL, k=3, set=["rounds=1"], adaptive=True)
    assert (program.search.chain["adaptive"].value, program.search.k.value, program.rounds.value) == (True, 3, 1)
    for name, retriever in (("prism", "bm25"), ("direct", None)):
        with pytest.raises(PolyhopError, match="--adaptive needs a program that searches with --retriever chain"):
            build(name, POOL, retriever=retriever, adaptive=True)


def test_differences_of_an_artifact_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("polyhop.optimizers.artifact.version", lambda package: "0.0.1")
        path = artifact(Prism(ChainRetriever()), tmp_path)
    build(path, POOL)
    assert "it was saved with polyhop 0.0.1, this is" in capsys.readouterr().err


def test_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [label(name) for name in ("prism", "runs/a/best", "runs/a/best-0.5/")] == ["prism", "best", "best-0.5"]
    tuned = save(Naive(), tmp_path / "runs" / "tuned" / "best")
    candidate = save(Naive(), tmp_path / "runs" / "tuned" / "start")
    assert label(str(tuned)) == "naive (runs/tuned)"
    assert label(str(candidate)) == "naive (tuned/start)"
    monkeypatch.chdir(tuned.parent)
    assert label("best") == "naive (runs/tuned)"  # independent of the current folder, so that runs resume
    (tuned / "manifest.json").write_text("{}")
    assert label("best") == "best"


# --- tunables --------------------------------------------------------------------------------------------------------


def test_tunables_are_set_by_name() -> None:
    given = ["rounds=1", "search.k=7", "bridging=false", "search.b=0.5"]
    found = tunables(build("prism", POOL, set=given))
    expected = {"rounds": 1, "search.k": 7, "bridging": False, "search.b": 0.5}
    assert {name: found[name].value for name in expected} == expected


def test_the_plain_baseline_has_a_name() -> None:
    program = build("react", POOL, set=["steps=3"])
    assert (type(program), label("react"), searches("react")) == (ReAct, "ReAct", True)
    assert tunables(program)["steps"].value == 3


@pytest.mark.parametrize(
    ("program", "setting", "message"),
    [
        (
            "prism",
            "round=1",
            r"did you mean rounds=VALUE\? Tunables: .*search\.b, search\.by_document, search\.effort, rounds",
        ),
        ("prism", "rounds", r"--set rounds: did you mean rounds=VALUE\?"),
        ("prism", "search.chain[link]=2", r"did you mean search\.chain\['link'\]=VALUE or "),
        (
            "prism",
            "colour=red",
            r"use NAME=VALUE\. Tunables: .*search\.k, [^\[]*, and the weights search\.chain\[\.\.\.\]$",
        ),
        ("prism", "rounds=99", r"--set rounds=99: must be an integer in 1\.\.6, got 99"),
        ("prism", "rounds=", r"--set rounds=: must be a number in 1\.\.6"),
        ("prism", "bridging=maybe", "must be one of"),
        ("direct", "rounds=1", "Tunables: prompt_tokens, abstain_below$"),
    ],
)
def test_invalid_settings(program: str, setting: str, message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        build(program, POOL, set=[setting])


# --- profiles --------------------------------------------------------------------------------------------------------


@pytest.fixture
def profile(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "models.toml"
        path.write_text(text)
        return str(path)

    return write


def test_a_profile_on_the_command_line(profile: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    path = profile('lm = "a/b"\n[roles]\nselector = "lexical"\nmoderator = "c/d"\nproxy = "c/d"\n[models."x/*"]')
    program = build("prism", POOL, lm=[path, "adder=e/f"])
    models = {name: predictor.lm.model for name, predictor in program.named_predictors()}
    assert models == dict.fromkeys(models, "a/b") | {"selector": "lexical", "adder": "e/f"}
    assert build("direct", None, lm=[path]).answerer.lm.model == "a/b"
    assert '[models."x/*"] matches none of the models here (a/b, c/d, e/f, lexical)' in capsys.readouterr().err


def test_a_role_that_no_program_has(profile: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = profile('[roles]\nselektor = "lexical"')
    for models in ([path], []):
        with pytest.raises(PolyhopError, match="models.toml: no program has a role 'selektor'; known are .*selector"):
            build("prism", POOL, lm=models)
        monkeypatch.setenv("POLYHOP_LM", path)


@pytest.mark.parametrize("no_cache", [False, True])
def test_replies_come_from_the_cache_unless_it_is_off(no_cache: bool, profile: Callable[[str], str]) -> None:
    path = profile('lm = "a/b"\n[models."a/b"]\ncache = true')
    program = build("prism", POOL, lm=[path, "adder=e/f", "selector=lexical"], no_cache=no_cache)
    used = {name: predictor.lm.cache for name, predictor in program.named_predictors()}
    assert used == dict.fromkeys(used, not no_cache) | {"selector": False}
