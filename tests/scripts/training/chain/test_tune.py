"""Tuning the chain retriever: a whole run on the sample, stopped and continued; its parts; and what users do wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from polyhop.data.chain import ChainWeights
from polyhop.data.errors import PolyhopError
from polyhop.data.lucene.index import build_index
from polyhop.data.sample import CORPUS, load_sample, sample_passages
from polyhop.scripts.training.chain.run import RESULT, TRIALS, Journal, Settings, tune
from polyhop.scripts.training.chain.search import outcomes, search, sweep
from polyhop.scripts.training.chain.tune import app
from polyhop.scripts.training.chain.workers import Chain, QuestionSet

SHIPPED = ChainWeights()


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "100"})


def lasting(record: dict[str, Any]) -> dict[str, Any]:
    """What is the same however a run was stopped, and whatever the number of workers."""
    return record | {"seconds": None, "settings": record["settings"] | {"jobs": None}}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexes") / "sample"
    build_index([CORPUS], folder)
    return folder


@pytest.fixture(scope="module")
def hotpotqa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the sample's questions as another benchmark has them."""
    passages = {passage.id: passage for passage in sample_passages()}
    records = [
        {
            "_id": question.id,
            "question": question.question,
            "answer": question.answers[0],
            "type": "bridge",
            "context": [[passages[id].title, list(passages[id].sentences)] for id in question.gold_passages],
            "supporting_facts": [[passages[fact.passage_id].title, fact.sentence] for fact in question.gold_facts],
        }
        for question in load_sample("dev")
        if len(question.gold_passages) == 2
    ]
    path = tmp_path_factory.mktemp("questions") / "apart.json"
    path.write_text(json.dumps(records[:6]))
    return path


@pytest.fixture
def settings(index: Path, hotpotqa: Path) -> Settings:
    sets = (QuestionSet("sample", None, index), QuestionSet("hotpotqa", hotpotqa, index, 0.0))
    return Settings(sets, SHIPPED, limit=16)


# --- a run -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_is_recorded_and_ends_the_same_when_it_is_stopped(settings: Settings, tmp_path: Path) -> None:
    record = tune(settings, tmp_path / "whole", trials=3, jobs=2)
    assert json.loads((tmp_path / "whole" / RESULT).read_text()) == record
    assert record["settings"]["start"] == asdict(SHIPPED)
    assert len(record["settings"]["sets"]["apart"]["sha256"]) == 64
    assert record["files"] == {"sample": None, "apart": "apart.json"}
    assert record["questions"] == {
        "sample": {"questions": 16, "gold_not_found": 0},
        "apart": {"questions": 6, "gold_not_found": 0},
    }
    assert record["kept"] in ("start", "centre", "best")
    assert record["weights"]["similarity"] == SHIPPED.similarity
    ChainWeights(**record["weights"])  # all in range
    for scores in (*record["cross_validation"]["scores"].values(), *record["scores"].values()):
        assert scores["sample"]["questions"] == 16
        assert all(0 < scores[name][metric] <= 1 for name in scores for metric in scores[name] if metric != "questions")
    assert len(record["cross_validation"]["folds"]) == 2
    assert record["cross_validation"]["scores"].keys() == {"before", "start", "centre", "best", "luckiest"}

    seen: list[str] = []

    def stop(part: str, value: float) -> None:
        seen.append(part)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(settings, tmp_path / "stopped", trials=3, on_trial=stop)
    assert seen == ["fold 1"] * 3 + ["fold 2"] * 2
    assert not (tmp_path / "stopped" / RESULT).exists()
    trials = tmp_path / "stopped" / TRIALS
    known = trials.read_text()
    trials.write_text(known + '{"folds": [0')  # killed while it wrote
    assert lasting(tune(settings, tmp_path / "stopped", trials=3)) == lasting(record)
    assert trials.read_text() == (tmp_path / "whole" / TRIALS).read_text()
    assert trials.read_text().startswith(known)


@pytest.mark.slow
def test_another_retriever_is_no_continuation(settings: Settings, tmp_path: Path) -> None:
    with Journal(tmp_path, settings.describe()) as journal:
        scores = {"sample": {"questions": 16, "passage_recall@5": 0.1, "all_gold@5": 0.1}}
        journal.add(settings.start, range(2), scores)
    with pytest.raises(PolyhopError, match="the retriever has changed since .* was started: choose another --out"):
        tune(settings, tmp_path)


# --- its parts -------------------------------------------------------------------------------------------------------


def far_from(goal: dict[str, float]) -> Callable[[ChainWeights], float]:
    return lambda weights: -sum(math.log(getattr(weights, name) / value) ** 2 for name, value in goal.items())


def test_the_search_finds_a_better_place_and_can_be_repeated() -> None:
    score = far_from({"link": 1.0, "cue": 1.5})
    trials = search(score, SHIPPED, 2.5, 150, seed=1)
    assert trials[0] == (SHIPPED, score(SHIPPED))
    assert trials == search(score, SHIPPED, 2.5, 150, seed=1)
    assert trials[:20] == search(score, SHIPPED, 2.5, 20, seed=1)
    assert trials != search(score, SHIPPED, 2.5, 150, seed=2)
    found = outcomes(trials)
    assert found["start"] == SHIPPED
    for way in ("centre", "best", "luckiest"):
        assert score(found[way]) > score(SHIPPED) / 4
        assert (found[way].similarity, found[way].enough) == (SHIPPED.similarity, SHIPPED.enough)


def test_a_chain_stops_at_the_first_small_gain_but_has_a_passage() -> None:
    chain = Chain((0.5, 0.9, 0.3, 0.8), (True, True, False, False), 2)
    assert chain.f1(0.95) == pytest.approx(2 / 3)
    assert chain.f1(0.6) == 1
    assert chain.f1(0.3) == pytest.approx(4 / 6)
    assert chain.f1(0) == pytest.approx(4 / 6)


def test_the_threshold_is_the_middle_of_the_best() -> None:
    chains = {
        "long": [Chain((1.0, 0.8, 0.1), (True, True, False), 2)],
        "apart": [Chain((1.0, 0.8, 0.1), (True, True, True), 3)],
    }
    assert 0.1 < sweep(chains, {"long": 1.0, "apart": 0.0}) < 0.8
    assert sweep(chains, {"long": 0.0, "apart": 1.0}) <= 0.1


# --- what users do wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("2wiki", "is not DATASET:QUESTIONS:INDEX[:WEIGHT]"),
        ("2wiki::somewhere", "is not DATASET:QUESTIONS:INDEX[:WEIGHT]"),
        ("sample:file:somewhere", "sample::INDEX for the sample"),
        ("2wiki:a:b:1:2", "is not DATASET:QUESTIONS:INDEX[:WEIGHT]"),
        ("2wiki:a:b:-1", "a weight must be 0 or more, got -1"),
        ("2wiki:a:b:much", "'much'"),
    ],
)
def test_a_set_is_given_in_one_way(on: str, message: str, tmp_path: Path) -> None:
    result = command("--on", on, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
