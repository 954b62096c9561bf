"""Programs by name and from saved states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import PolyhopError
from polyhop.data.pool import PassagePool
from polyhop.data.sample import sample_passages
from polyhop.optimizers.artifact import save
from polyhop.programs import C3PO, Direct, IRCoT, Kair, Naive, ParRag, PolyHop, Prism, tunables
from polyhop.scripts.options import build_program, label, open_source

POOL = PassagePool([])


NAMES = {
    "polyhop": PolyHop, "prism": Prism, "kair": Kair, "par_rag": ParRag, "c3po": C3PO, "ircot": IRCoT, "naive": Naive,
    "direct": Direct,
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_programs_have_names(name: str, kind: type) -> None:
    assert type(build_program(name, POOL)) is kind


def test_an_unknown_program_lists_the_known() -> None:
    with pytest.raises(PolyhopError, match=f"no program 'prsm': choose {', '.join(sorted(NAMES))}, or a saved state"):
        build_program("prsm", POOL)


def test_depth_is_set() -> None:
    assert build_program("naive", POOL, k=3).search.k.value == 3
    with pytest.raises(PolyhopError, match="direct does not search"):
        build_program("direct", POOL, k=3)
    assert build_program("ircot", POOL, k=6).search.k.value == 6
    with pytest.raises(PolyhopError, match=r"ircot and -k: must be one of \[2, 4, 6, 8\], got 5"):
        build_program("ircot", POOL, k=5)


@pytest.mark.parametrize("kind", [Prism, C3PO, IRCoT, Naive, Direct])
def test_a_saved_state_finds_its_program(kind: Callable[[], Any], tmp_path: Path) -> None:
    saved = kind()
    saved.answerer.signature = saved.answerer.signature.with_instructions("Answer in rhyme.")
    if kind is Prism:
        saved.rounds.value = 5
    saved.save(tmp_path / "x.json")
    program = build_program(str(tmp_path / "x.json"), POOL)
    assert type(program) is kind
    assert program.answerer.signature.instructions == "Answer in rhyme."
    if kind is Prism:
        assert program.rounds.value == 5


def test_models_do_not_come_from_the_state(tmp_path: Path) -> None:
    saved = Direct()
    build_program("direct", POOL)
    saved.set_lm(build_program("direct", POOL, ["openai/gpt-4o-mini"]).answerer.lm)
    saved.save(tmp_path / "x.json")
    assert build_program(str(tmp_path / "x.json"), POOL).answerer.lm.model == "lexical"


def without(state: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != name}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a program saved by"),
        ("[1, 2]", "is not a program saved by"),
        ('{"answerer": 3}', "is not a program saved by"),
        ("{}", "has the parameters of no program of this version: it names none"),
        (
            json.dumps(without(Prism().dump_state(), "adder")),
            "parameters of no program of this version: it names search.k,",
        ),
        (json.dumps({**Prism().dump_state(), "judge": {}}), "has the parameters of no program"),
        (json.dumps({**Prism().dump_state(), "rounds": {"value": 99}}), "refuses: must be an integer in 1..6, got 99"),
        (json.dumps({**Prism().dump_state(), "rounds": {}}), "refuses: 'value'"),
    ],
)
def test_what_is_no_state_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(PolyhopError, match=message):
        build_program(str(path), POOL)


def test_a_missing_state_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolyhopError, match=r"cannot read the program .*x\.json: No such file"):
        build_program(str(tmp_path / "x.json"), POOL)


def test_the_sample_is_searched_where_no_index_is_given() -> None:
    retriever = open_source(None)
    assert isinstance(retriever, PassagePool)
    assert len(retriever) == len(sample_passages())


# --- retrievers ------------------------------------------------------------------------------------------------------


def saved(program: Any, path: Path) -> str:
    program.save(path / "x.json")
    return str(path / "x.json")


@pytest.mark.parametrize("name", ["prism", "c3po", "ircot", "naive"])
def test_chains_are_followed_unless_told_otherwise(name: str) -> None:
    chain = build_program(name, POOL).search.retriever
    assert isinstance(chain, ChainRetriever)
    assert chain.source is POOL
    assert build_program(name, POOL, retriever="bm25").search.retriever is POOL
    assert build_program(name, None, retriever="bm25").search.retriever is None
    assert build_program(name, None).search.retriever.source is None


@pytest.mark.parametrize("kind", [Prism, C3PO, Naive])
def test_a_saved_program_searches_as_it_did_when_it_was_saved(kind: Callable[..., Any], tmp_path: Path) -> None:
    before = kind(POOL)
    before.search.k.value = 7
    program = build_program(saved(before, tmp_path), POOL)
    assert type(program) is kind
    assert (program.search.retriever, program.search.chain, program.search.k.value) == (POOL, {}, 7)

    chained = kind(ChainRetriever())
    chained.search.chain["link"].value = 1.25
    program = build_program(saved(chained, tmp_path), POOL)
    assert type(program) is kind
    assert isinstance(program.search.retriever, ChainRetriever)
    assert program.search.retriever.source is POOL
    assert program.search.chain["link"].value == 1.25
    assert program.search.chain["adaptive"].value is False


@pytest.mark.parametrize(
    ("retriever", "chosen", "message"),
    [
        (ChainRetriever(), "bm25", "was saved with --retriever chain: leave --retriever out, or name that"),
        (None, "chain", "was saved with --retriever bm25: leave --retriever out, or name that"),
    ],
)
def test_a_saved_program_cannot_search_otherwise(retriever: Any, chosen: str, message: str, tmp_path: Path) -> None:
    path = saved(Prism(retriever), tmp_path)
    with pytest.raises(PolyhopError, match=message):
        build_program(path, POOL, retriever=chosen)
    same = "bm25" if chosen == "chain" else "chain"
    assert type(build_program(path, POOL, retriever=same)) is Prism


def test_the_chain_may_decide_how_many_passages_it_needs(tmp_path: Path) -> None:
    assert build_program("naive", POOL).search.chain["adaptive"].value is False
    assert build_program("naive", POOL, adaptive=True).search.chain["adaptive"].value is True
    path = saved(Prism(ChainRetriever()), tmp_path)
    assert build_program(path, POOL, adaptive=True).search.chain["adaptive"].value is True
    adaptive = saved(Prism(ChainRetriever(adaptive=True)), tmp_path)
    assert build_program(adaptive, POOL).search.chain["adaptive"].value is True


def test_only_a_chain_is_adaptive() -> None:
    with pytest.raises(PolyhopError, match="--adaptive is for programs that search with --retriever chain"):
        build_program("prism", POOL, retriever="bm25", adaptive=True)
    with pytest.raises(PolyhopError, match="--adaptive is for programs that search with --retriever chain"):
        build_program("direct", POOL, adaptive=True)


def test_what_does_not_search_has_no_retriever() -> None:
    with pytest.raises(PolyhopError, match="direct does not search, so --retriever means nothing to it"):
        build_program("direct", POOL, retriever="dense")


def test_a_program_saved_without_a_chain_is_not_adaptive(tmp_path: Path) -> None:
    with pytest.raises(PolyhopError, match="--adaptive is for programs that search with --retriever chain"):
        build_program(saved(Naive(), tmp_path), POOL, adaptive=True)


def artifact(program: Any, path: Path) -> str:
    return str(save(program, path / "best"))


@pytest.mark.parametrize("name", NAMES)
def test_an_artifact_is_a_program_too(name: str, tmp_path: Path) -> None:
    before: Any = build_program(name, POOL)
    before.named_predictors()[0][1].demos = [dspy.Example(question="Who?", answer="Ann.")]
    program: Any = build_program(artifact(before, tmp_path), POOL)
    for each in (before, program):
        each.set_lm(None)
    assert program.dump_state() == before.dump_state()
    assert type(program) is NAMES[name]


def test_an_artifact_is_searched_as_it_was_tuned(tmp_path: Path) -> None:
    assert build_program(artifact(Prism(POOL), tmp_path), POOL).search.retriever is POOL
    path = artifact(Prism(ChainRetriever()), tmp_path)
    assert build_program(path, POOL).search.retriever.source is POOL
    with pytest.raises(PolyhopError, match="best was saved with --retriever chain: leave --retriever out, or name"):
        build_program(path, POOL, retriever="bm25")
    assert build_program(path, POOL, k=3, settings=["rounds=1"], adaptive=True).rounds.value == 1
    with pytest.raises(PolyhopError, match="does not search, so --retriever means nothing to it"):
        build_program(artifact(Direct(), tmp_path), POOL, retriever="bm25")


def test_what_of_an_artifact_differs_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Prism(ChainRetriever())
    before.rounds.high = 9
    build_program(artifact(before, tmp_path), POOL)
    assert "the range of rounds was 1..9, and is 1..6" in capsys.readouterr().err


def test_a_folder_that_is_no_artifact_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolyhopError, match="is not an artifact: it has no manifest.json"):
        build_program(str(tmp_path), POOL)
    with pytest.raises(PolyhopError, match="or the folder of an artifact"):
        build_program(str(tmp_path / "none"), POOL)


def test_a_state_sets_nothing_but_the_prompt(tmp_path: Path) -> None:
    state = Direct().dump_state()
    state["answerer"] |= {"config": {"api_base": "http://elsewhere"}, "forward": 1, "callbacks": [1]}
    (tmp_path / "x.json").write_text(json.dumps(state))
    answerer = build_program(str(tmp_path / "x.json"), POOL).answerer
    assert (answerer.config, answerer.callbacks) == ({}, [])
    assert callable(answerer.forward)


@pytest.mark.parametrize(
    ("name", "called"),
    [("prism", "prism"), ("runs/x.json", "x"), ("runs/a/best", "best"), ("runs/a/best-0.5/", "best-0.5")],
)
def test_what_a_program_is_called(name: str, called: str) -> None:
    assert label(name) == called


def test_a_tuned_program_is_called_by_its_program_and_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = save(Naive(), tmp_path / "runs" / "tuned" / "best")
    candidate = save(Naive(), tmp_path / "runs" / "tuned" / "start")
    assert label(str(tuned)) == "naive (runs/tuned)"
    assert label(str(candidate)) == "naive (tuned/start)"
    monkeypatch.chdir(tuned.parent)
    assert label("best") == "naive (runs/tuned)"  # however it is reached, so that a run goes on
    (tuned / "manifest.json").write_text("{}")
    assert label("best") == "best"


@pytest.mark.parametrize("name", ["dense", "fused", "chain-dense"])
@pytest.mark.parametrize("source", [POOL, None])
def test_vectors_need_an_index(name: str, source: Any) -> None:
    with pytest.raises(PolyhopError, match="--retriever needs an --index with vectors: polyhop index .* --dense"):
        build_program("prism", source, retriever=name)


def test_tunables_are_set_by_name() -> None:
    settings = ["rounds=1", "search.k=7", "stop=never", "bridging=false", "search.b=0.5"]
    program = build_program("prism", POOL, settings=settings)
    values = {name: tunable.value for name, tunable in tunables(program).items()}
    expected = {"rounds": 1, "search.k": 7, "stop": "never", "bridging": False, "search.b": 0.5}
    assert {name: values[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "round=1",
            r"no tunable in 'round=1': did you mean rounds=VALUE\? There are search\.k, search\.k1, search\.b, rounds",
        ),
        ("rounds", r"no tunable in 'rounds': did you mean rounds=VALUE\?"),
        ("search.chain[link]=2", r"did you mean search\.chain\['link'\]=VALUE or "),
        (
            "colour=red",
            r": say NAME=VALUE\. There are search\.k, [^\[]*, unit, and the weights search\.chain\[\.\.\.\]$",
        ),
        ("rounds=99", r"--set rounds=99: must be an integer in 1\.\.6, got 99"),
        ("rounds=", "--set rounds=: "),
        ("bridging=maybe", "must be one of"),
        ("bridging=truth", "--set bridging=truth"),
    ],
)
def test_a_setting_that_is_none(setting: str, message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        build_program("prism", POOL, settings=[setting])


def test_what_a_program_without_chain_or_tunables_says_to_a_setting() -> None:
    with pytest.raises(PolyhopError, match=r"There are search\.k, search\.k1, search\.b$"):
        build_program("naive", POOL, retriever="bm25", settings=["colour=red"])
    with pytest.raises(PolyhopError, match="no tunable in 'rounds=1': this program has none"):
        build_program("direct", None, settings=["rounds=1"])


# --- profiles --------------------------------------------------------------------------------------------------------


@pytest.fixture
def profile(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "models.toml"
        path.write_text(text)
        return str(path)

    return write


def test_a_profile_on_the_command_line(profile: Callable[[str], str]) -> None:
    path = profile('lm = "a/b"\n[roles]\nselector = "lexical"\nmoderator = "c/d"')
    program = build_program("prism", POOL, [path, "adder=e/f"])
    models = {name: predictor.lm.model for name, predictor in program.named_predictors()}
    assert models == {"analyzer": "a/b", "selector": "lexical", "adder": "e/f", "answerer": "a/b"}
    assert build_program("direct", None, [path]).answerer.lm.model == "a/b"


def test_a_role_that_no_program_has(profile: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = profile('[roles]\nselektor = "lexical"')
    for models in ([path], []):
        with pytest.raises(PolyhopError, match="models.toml: no program has a role 'selektor'; there are .*selector"):
            build_program("prism", POOL, models)
        monkeypatch.setenv("POLYHOP_LM", path)


def test_a_misspelt_role_beside_a_profile(profile: Callable[[str], str]) -> None:
    with pytest.raises(PolyhopError, match="no role 'selektor' in Prism"):
        build_program("prism", POOL, [profile(""), "selektor=lexical"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lm = ", "models.toml is not a profile"),
        ('lm = "gpt-4o"', "no language model 'gpt-4o'"),
        ('[models.x]\napi_key = "sk-planted"', "keys do not stand in profiles"),
        ('lm = "a/b"\n[models."a/b"]\napi_key_env = "NO_SUCH_VARIABLE"', "export NO_SUCH_VARIABLE="),
        ('lm = "openai/gpt-5"\n[models."openai/*"]\ntemperature = 0.2', "reasoning models require"),
    ],
)
def test_a_profile_that_is_none(text: str, message: str, profile: Callable[[str], str]) -> None:
    with pytest.raises(PolyhopError, match=message):
        build_program("prism", POOL, [profile(text)])


def test_a_profile_that_is_not_there() -> None:
    with pytest.raises(PolyhopError, match="cannot read the profile none.toml: No such file"):
        build_program("prism", POOL, ["none.toml"])
