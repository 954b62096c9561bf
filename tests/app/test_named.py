"""Programs by name, with the options of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.app.named import NamedProgram
from polyhop.app.options import ProgramOptions
from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import PolyhopError
from polyhop.data.pool import PassagePool
from polyhop.optimizers.artifact import save
from polyhop.programs import Prism, tunables

POOL = PassagePool([])


def build(name: str, source: Any = POOL, **options: Any) -> Any:
    return NamedProgram(name).build(source, ProgramOptions(**options))


@pytest.mark.parametrize("name", ["prism", "c3po", "ircot", "naive"])
def test_the_chain_is_the_default_retriever(name: str) -> None:
    chain = build(name).search.retriever
    assert isinstance(chain, ChainRetriever)
    assert chain.source is POOL
    assert build(name, retriever="bm25").search.retriever is POOL
    assert build(name, None, retriever="bm25").search.retriever is None
    assert build(name, None).search.retriever.source is None


@pytest.mark.parametrize(("saved", "other"), [("chain", "bm25"), ("bm25", "chain")])
def test_an_artifact_keeps_its_retriever(saved: str, other: str, tmp_path: Path) -> None:
    program = build("prism", retriever=saved)
    path = str(save(program, tmp_path / "best"))
    for retriever in (None, saved):
        assert type(build(path, retriever=retriever).search.retriever) is type(program.search.retriever)
    with pytest.raises(PolyhopError, match=f"tuned with the retriever {saved}, not {other}"):
        build(path, retriever=other)


def test_a_program_of_ours_takes_what_dspy_saved(tmp_path: Path) -> None:
    """But for the models, which could name somebody's server."""
    program = Prism(ChainRetriever())
    program.rounds.value = 2
    program.analyzer.demos = [dspy.Example(question="q", sub_questions=["a"])]
    program.set_lm(dspy.LM("openai/theirs", api_base="https://elsewhere.example/v1"))
    program.save(str(tmp_path / "state.json"))
    built = build(f"prism={tmp_path / 'state.json'}", lm=("lexical",))
    assert built.rounds.value == 2
    assert [dict(demo) for demo in built.analyzer.demos] == [{"question": "q", "sub_questions": ["a"]}]
    assert {predictor.lm.model for predictor in built.predictors()} == {"lexical"}
    for other in (f"naive={tmp_path / 'state.json'}", f"prism={tmp_path / 'none.json'}"):
        with pytest.raises(PolyhopError, match=r"json is no saved state of (naive|prism): "):
            build(other)


def test_options_and_tunables_are_set_by_name(tmp_path: Path) -> None:
    given = ["rounds=1", "search.k=7", "bridging=false", "search.b=0.5"]
    found = tunables(build("prism", set=given))
    expected = {"rounds": 1, "search.k": 7, "bridging": False, "search.b": 0.5}
    assert {name: found[name].value for name in expected} == expected
    path = str(save(Prism(ChainRetriever()), tmp_path / "best"))
    program = build(path, k=3, set=["rounds=1", "search.chain['adaptive']=true"])
    assert (program.search.chain["adaptive"].value, program.search.k.value, program.rounds.value) == (True, 3, 1)
    assert build("naive").search.chain["adaptive"].value is False


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        ("prsm", {}, "unknown program 'prsm': choose c3po, .*react, set_selection, the folder of an artifact"),
        ("direct", {"k": 3}, "-k 3: Direct has no search.k"),
        ("ircot", {"k": 5}, r"-k 5: must be one of \[2, 4, 6, 8\], got 5"),
        ("direct", {"retriever": "bm25"}, "direct does not search"),
        ("prism", {"set": ["round=1"]}, r"did you mean rounds=VALUE\? Tunables: .*search\.k, .*rounds"),
        ("prism", {"set": ["search.chain[link]=2"]}, r"did you mean search\.chain\['link'\]=VALUE or "),
        ("prism", {"set": ["colour=red"]}, r"Prism has no colour\. Tunables: .*search\.k, .*search\.chain\[\.\.\.\]"),
        ("prism", {"set": ["rounds=99"]}, r"--set rounds=99: must be an integer in 1\.\.6, got 99"),
    ],
)
def test_what_does_not_go_with_a_program_is_refused(program: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        build(program, **options)


def test_a_profile_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text('lm = "a/b"\n[roles]\nselector = "lexical"\nmoderator = "c/d"\nproxy = "c/d"\n[models."x/*"]')
    with pytest.warns(match=r'\[models\."x/\*"\] matches none of the models here \(a/b, c/d, e/f, lexical\)'):
        program = build("prism", lm=[str(path), "adder=e/f"])
    models = {name: predictor.lm.model for name, predictor in program.named_predictors()}
    assert models == dict.fromkeys(models, "a/b") | {"selector": "lexical", "adder": "e/f"}
    path.write_text('lm = "a/b"\n[roles]\nselecter = "lexical"')
    with pytest.raises(PolyhopError, match="no program has a role 'selecter'"):
        build("prism", lm=[str(path)])
