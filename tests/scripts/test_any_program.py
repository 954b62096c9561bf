"""Programs that people already have: every command takes any `dspy.Module` as it is, and tells its predictors apart."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from typer.testing import CliRunner

from polyhop.data.importing import import_named
from polyhop.eval.metrics import METRICS
from polyhop.scripts.main import app

from ..eval.small import read_lines
from ..faults.server import Server

QUESTION = "Who founded the company that Ada Berg works for?"
PROGRAM = '''
import dspy

DOCUMENTS = {"Kestrel": "Kestrel was founded by Otto Lind.", "Ada Berg": "Ada Berg works for Kestrel."}


def find(query: str) -> list[str]:
    return [text for title, text in DOCUMENTS.items() if title.lower() in query.lower()]


class Hop(dspy.Module):
    """Look something up twice, then answer."""

    def __init__(self):
        super().__init__()
        self.scout = dspy.ChainOfThought("question, notes -> query")
        self.respond = dspy.Predict("question, notes -> answer")

    def forward(self, question):
        notes = find(question)
        notes += find(self.scout(question=question, notes=notes).query)
        return dspy.Prediction(answer=self.respond(question=question, notes=notes).answer, notes=notes)


class Over(dspy.Module):
    """Takes a retriever."""

    def __init__(self, retriever):
        super().__init__()
        self.retriever = retriever
        self.respond = dspy.Predict("context, question -> answer")

    def forward(self, question, threshold=0.5):
        return self.respond(context=self.retriever(question, k=2), question=question)


class Hops(dspy.Module):
    """Searches by DSPy's default retriever, with a list of predictors, and has no answer."""

    def __init__(self):
        self.retrieve = dspy.Retrieve(k=2)
        self.queries = [dspy.ChainOfThought("claim, notes -> query") for _ in range(2)]

    def forward(self, claim):
        notes = []
        for scout in self.queries:
            notes += self.retrieve(scout(claim=claim, notes=notes).query).passages
        return dspy.Prediction(notes=notes)


class Text(str):
    long_text = property(str)


def rm(query, k):
    return [Text(text) for text in find(query)[:k]]


claims = [dspy.Example(claim=f"Kestrel is older than {n}.", page=str(n % 2)).with_inputs("claim") for n in range(12)]


def paged(example, prediction, trace=None):
    return float(example.page == "0" and "Otto Lind" in " ".join(prediction.notes))


instance = Hop()


def make():
    return Hop()


def search(query: str) -> str:
    return "; ".join(find(query))


agent = dspy.ReAct("question -> answer", tools=[search], max_iters=2)


def noted(example, prediction, trace=None):
    return float(any(example.answer in note for note in prediction.notes))


def judged(gold, pred, trace, pred_name, pred_trace):
    return dspy.Prediction(score=pred.get("answer") == gold.answer, feedback="Copy the name.")
'''
REPLY = {
    "reasoning": "Kestrel it is.",
    "query": "kestrel",
    "answer": "Otto Lind",
    "next_thought": "Enough.",
    "next_tool_name": "finish",
    "next_tool_args": "{}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the program, its questions, and the profile of a model that always replies the same."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "hop_of_mine.py").write_text(PROGRAM)
    answers = ["Otto Lind", "Otto Lind", "Kestrel", "somebody else"]
    lines = [{"question": f"{QUESTION} ({n})", "answer": answers[n % 4], "gold": ["Kestrel"]} for n in range(12)]
    (folder / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Server(canned="".join(f"[[ ## {name} ## ]]\n{text}\n\n" for name, text in REPLY.items())) as server:
        (folder / "m.toml").write_text(f'lm = "openai/m"\n[models."openai/m"]\napi_base = "{server.url}"\n')
        yield folder
    sys.modules.pop("hop_of_mine", None)


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    known = METRICS.copy()
    yield
    METRICS.clear()
    METRICS.update(known)


def run(*command: str) -> Any:
    result = CliRunner().invoke(app, [each if ":" not in each else f"hop_of_mine.py:{each[1:]}" for each in command])
    assert result.exit_code == 0, (command, result.output)
    return result


def test_an_instance_and_a_factory() -> None:
    assert "Otto Lind" in run("ask", QUESTION, "--program", ":make", "--lm", "m.toml").stdout
    assert "The same" in run("diff", ":instance", ":Hop").stdout


def test_a_class_in_every_command(folder: Path, tmp_path: Path) -> None:
    name, lm, out = ":Hop", ("--lm", "m.toml"), str(tmp_path / "run")
    tuned = ("optimize", "--train", "q.jsonl", "--program", name, "--metric", "answer_f1", "--stages", "prompts", *lm)
    assert "Otto Lind" in run("ask", QUESTION, "--program", name, "--trace", *lm).stdout
    told = run("evaluate", "--questions", "q.jsonl", "--program", name, "--out", out, *lm)
    assert told.stderr.count("returns no evidence and no ranking: not scored") == 1  # and not for each question
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["metrics"]["answer_em"] == 0.5
    assert not {"evidence_f1", "joint_f1", "passage_recall@5"} & summary["metrics"].keys()
    assert summary["totals"]["lm_calls"] == 24
    assert [step["agent"] for step in next(read_lines(tmp_path / "run"))["trace"]] == ["scout", "respond"]
    costs = json.loads(run("diagnose", out, "--program", name, "--json", *lm).stdout)["costs"]
    assert costs["respond"]["answer_f1"]["mean"] == 0.25  # and not for what the notes do not say
    assert costs["respond"]["evidence_f1"] is None
    assert "all stages ran" in run(*tuned, "--out", str(tmp_path / "tuned")).stdout
    best = f"{name}={tmp_path / 'tuned' / 'best'}"
    assert "The same" in run("diff", name, best).stdout
    assert "## scout" in run("export", best).stdout
    assert "Otto Lind" in run("ask", QUESTION, "--program", best, *lm).stdout


@pytest.mark.parametrize(
    ("name", "metric", "score"),
    [(":Hop", ":noted", 0.75), (":Hop", ":judged", 0.5)],
)
def test_metrics_of_dspy_and_gepa(name: str, metric: str, score: float, tmp_path: Path) -> None:
    options = ["--questions", "q.jsonl", "--program", name, "--lm", "m.toml", "--out", str(tmp_path / "run")]
    told = run("evaluate", "--metric", metric, *options)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["metrics"][metric[1:]] == score
    assert metric[1:].capitalize() in told.stdout


def test_an_agent_of_dspy_and_a_program_with_a_retriever(folder: Path, tmp_path: Path) -> None:
    lm = ("--lm", "m.toml")
    told = run("ask", QUESTION, "--program", ":agent", "--trace", *lm).stdout
    assert "react" in told
    assert "extract" in told
    assert "Otto Lind" in run("ask", QUESTION, "--program", ":Over", "--index", "sample", *lm).stdout
    command = ["ask", QUESTION, "--program", "hop_of_mine.py:Over", "-k", "3", "--index", "sample"]
    refused = CliRunner().invoke(app, command)
    assert "-k 3: Over has no search.k" in refused.stderr


def test_examples_of_python_without_an_answer(folder: Path, tmp_path: Path) -> None:
    module = import_named("hop_of_mine.py:rm", "retriever")
    lm, out = ("--lm", "m.toml"), str(tmp_path / "run")
    with dspy.context(rm=module):
        run("evaluate", "--questions", ":claims", "--program", ":Hops", "--metric", ":paged", "--out", out, *lm)
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert (summary["metrics"]["paged"], summary["totals"]["lm_calls"]) == (0.5, 24)
        assert "answer_em" not in summary["metrics"]
        assert next(read_lines(tmp_path / "run"))["question"] == "Kestrel is older than 0."
        command = ("diagnose", out, "--program", ":Hops", "--metric", ":paged", *lm)
        refused = CliRunner().invoke(app, ["diagnose", out, "--program", "hop_of_mine.py:Hops", *lm])
        assert "name them with --questions" in refused.stderr
        assert "queries" in run(*command, "--questions", ":claims").stdout
        tune = ("optimize", "--train", ":claims", "--program", ":Hops", "--metric", ":paged", "--stages", "prompts")
        assert "paged on the validation questions" in run(*tune, "--out", str(tmp_path / "tuned"), *lm).stdout


def test_the_model_that_the_code_configures_is_used(folder: Path, parrot: Any) -> None:
    dspy.configure(lm=parrot("".join(f"[[ ## {name} ## ]]\n{text}\n\n" for name, text in REPLY.items())))
    assert "Otto Lind" in run("ask", QUESTION, "--program", ":Hop").stdout
