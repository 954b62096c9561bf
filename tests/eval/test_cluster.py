"""A Ray cluster of three nodes on this machine gives the records of one process, also when it loses a node."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import cloudpickle
import dspy
import pytest

from polyhop.data.errors import PolyhopError
from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.engines.models import language_model
from polyhop.eval.cluster import Answerer, Ray, workers_of
from polyhop.eval.run import RunProgress, evaluate
from polyhop.eval.workers import Processes
from polyhop.programs import Naive

from . import small, test_workers
from .small import Fake, mixed, numbered
from .test_workers import Asking, Recorder, facts

installed = pytest.mark.skipif(not util.find_spec("ray"), reason="Ray is not installed: pip install 'polyhop[ray]'")


def test_the_workers_that_options_ask_for() -> None:
    assert workers_of(None, 8) is None
    assert workers_of(2, 8) == Processes(2, 8)
    assert workers_of(2, 8, "auto") == Ray("auto", 2, 8)
    with pytest.raises(PolyhopError, match="--ray auto needs --workers N"):
        workers_of(None, 8, "auto")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    dashboards = signal.getsignal(signal.SIGTERM)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    for module in (small, test_workers):  # the nodes do not have the tests
        cloudpickle.register_pickle_by_value(module)
    try:
        yield cluster
    finally:
        for module in (small, test_workers):
            cloudpickle.unregister_pickle_by_value(module)
        ray.shutdown()
        cluster.shutdown()
        signal.signal(signal.SIGTERM, dashboards)


@installed
@pytest.mark.slow
def test_a_cluster_that_loses_a_node_gives_the_records_of_threads(cluster: Any, tmp_path: Path) -> None:
    program, questions = Fake(mixed(60), seconds=0.2), numbered(60)
    nodes = list(cluster.worker_nodes)

    def lose(progress: RunProgress) -> None:
        if progress.done == 10:
            cluster.remove_node(nodes[0])

    executor = Ray(cluster.address, workers=3, threads=2)
    evaluate(program, questions, tmp_path / "ray", executor=executor, on_progress=lose)
    assert len(cluster.worker_nodes) == 1
    evaluate(program, questions, tmp_path / "threads", threads=6)
    assert facts(tmp_path / "ray") == facts(tmp_path / "threads")


@installed
@pytest.mark.slow
def test_actors_share_a_budget_and_replies_and_search_lucene(cluster: Any, tmp_path: Path) -> None:
    from polyhop.data.lucene.bm25 import BM25Index
    from polyhop.data.lucene.index import build_index

    executor, log = Ray(cluster.address, workers=2, threads=2), tmp_path / "log"
    program = Asking(dspy.LM("made/up", engine=Recorder(log), temperature=0.5))
    budget = Budget(calls=8)
    budget.meter_program(program)
    with pytest.raises(BudgetSpent, match="8 LM calls"):
        evaluate(program, numbered(20), tmp_path / "run", executor=executor)
    assert budget.spent.calls == 8
    assert log.read_text().count("begin") <= 8

    (tmp_path / "questions.md").write_text("# Question 3\n\nQuestion 3 was asked by Otto Lind in 2004.")
    build_index([tmp_path / "questions.md"], tmp_path / "index")
    naive = Naive(BM25Index(tmp_path / "index"))
    naive.set_lm(language_model())
    evaluate(naive, numbered(6), tmp_path / "naive", executor=executor)
    assert [(fact["ranking"] != [], fact["error"]) for fact in facts(tmp_path / "naive")] == [(True, None)] * 6


def test_a_batch_of_a_dataset_gets_answers() -> None:
    batch = {"question": ["question 1", "question 7", "question 3"], "id": [1, 7, 3]}
    found = Answerer(Fake(mixed(10)), threads=2)(batch)
    assert found["id"] == [1, 7, 3]
    assert found["answer"] == ["France", None, "the wrong country"]
    assert found["evidence"] == ['["paris"]', "[]", '["paris"]']
    assert found["error"] == [None, "ValueError: no luck", None]
