"""Programs that people already have: every command takes any `dspy.Module` as it is, and tells its predictors apart."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.data.importing import import_named
from polyhop.eval.metrics import METRICS

from ..faults.server import Server
from .cli import done, of_run, records, refused, written

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
FIELDS = {
    "reasoning": "Kestrel it is.",
    "query": "kestrel",
    "answer": "Otto Lind",
    "next_thought": "Enough.",
    "next_tool_name": "finish",
    "next_tool_args": "{}",
}
REPLY = "".join(f"[[ ## {name} ## ]]\n{text}\n\n" for name, text in FIELDS.items())
LM = ("--lm", "m.toml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the program, its questions, and the profile of a model that always replies the same."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "hop_of_mine.py").write_text(PROGRAM)
    answers = ["Otto Lind", "Otto Lind", "Kestrel", "somebody else"]
    questions = ({"question": f"{QUESTION} ({n})", "answer": answers[n % 4], "gold": ["Kestrel"]} for n in range(12))
    written(folder / "q.jsonl", questions)
    with Server(canned=REPLY) as server:
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


def full(command: tuple[Any, ...]) -> list[str]:
    """With the name of the file before ``:NAME``."""
    return [f"hop_of_mine.py{word}" if str(word).startswith(":") else str(word) for word in command]


def run(*command: Any) -> Any:
    return done(*full(command))


def test_an_instance_and_a_factory() -> None:
    assert "Otto Lind" in run("ask", QUESTION, "--program", ":make", *LM).stdout
    assert "The same" in run("diff", ":instance", ":Hop").stdout


def test_a_class_in_every_command(tmp_path: Path) -> None:
    out, program = tmp_path / "run", ("--program", ":Hop", *LM)
    assert "Otto Lind" in run("ask", QUESTION, *program, "--trace").stdout
    evaluated = run("evaluate", "--questions", "q.jsonl", "--out", out, *program)
    assert evaluated.stderr.count("returns no evidence and no ranking: not scored") == 1  # and not for each question
    summary = of_run(out)
    assert summary["metrics"]["answer_em"] == 0.5
    assert not {"evidence_f1", "joint_f1", "passage_recall@5"} & summary["metrics"].keys()
    assert summary["totals"]["lm_calls"] == 24
    assert [step["agent"] for step in records(out / "predictions.jsonl")[0]["trace"]] == ["scout", "respond"]
    costs = json.loads(run("diagnose", out, *program, "--json").stdout)["costs"]
    assert costs["respond"]["answer_f1"]["mean"] == 0.25  # and not for what the notes do not say
    assert costs["respond"]["evidence_f1"] is None
    tuning = ("--train", "q.jsonl", "--metric", "answer_f1", "--stages", "prompts", "--out", tmp_path / "tuned")
    assert "all stages ran" in run("optimize", *program, *tuning).stdout
    best = f":Hop={tmp_path / 'tuned' / 'best'}"
    assert "The same" in run("diff", ":Hop", best).stdout
    assert "## scout" in run("export", best).stdout
    assert "Otto Lind" in run("ask", QUESTION, "--program", best, *LM).stdout


def test_metrics_of_dspy_and_gepa(tmp_path: Path) -> None:
    both = ("--metric", ":noted", "--metric", ":judged")
    printed = run("evaluate", "--questions", "q.jsonl", "--program", ":Hop", *both, "--out", tmp_path / "run", *LM)
    metrics = of_run(tmp_path / "run")["metrics"]
    assert (metrics["noted"], metrics["judged"]) == (0.75, 0.5)
    assert "Noted" in printed.stdout


def test_an_agent_of_dspy_and_a_program_with_a_retriever() -> None:
    printed = run("ask", QUESTION, "--program", ":agent", "--trace", *LM).stdout
    assert "react" in printed
    assert "extract" in printed
    over = ("ask", QUESTION, "--program", ":Over", "--index", "sample", *LM)
    assert "Otto Lind" in run(*over).stdout
    assert "-k 3: Over has no search.k" in refused(*full((*over, "-k", "3")))


def test_examples_of_python_without_an_answer(tmp_path: Path) -> None:
    out, program = tmp_path / "run", ("--program", ":Hops", "--metric", ":paged", *LM)
    with dspy.context(rm=import_named("hop_of_mine.py:rm", "retriever")):
        run("evaluate", "--questions", ":claims", "--out", out, *program)
        summary = of_run(out)
        assert (summary["metrics"]["paged"], summary["totals"]["lm_calls"]) == (0.5, 24)
        assert "answer_em" not in summary["metrics"]
        assert records(out / "predictions.jsonl")[0]["question"] == "Kestrel is older than 0."
        assert "name them with --questions" in refused(*full(("diagnose", out, "--program", ":Hops", *LM)))
        assert "queries" in run("diagnose", out, *program, "--questions", ":claims").stdout
        tuning = ("--train", ":claims", "--stages", "prompts", "--out", tmp_path / "tuned")
        assert "paged on the validation questions" in run("optimize", *program, *tuning).stdout


def test_the_model_that_the_code_configures_is_used(parrot: Any) -> None:
    dspy.configure(lm=parrot(REPLY))
    assert "Otto Lind" in run("ask", QUESTION, "--program", ":Hop").stdout
