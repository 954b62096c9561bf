"""Running a program over questions: scored, failures recorded, costs counted, nothing lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15

from polyhop.data.passages import Evidence, Passage
from polyhop.engines.costs import Ledger, sum_costs
from polyhop.engines.replies import respond
from polyhop.eval.folder import RunError, RunRecord
from polyhop.eval.metrics import COSTS, METRICS
from polyhop.eval.run import QuestionTask, RunProgress, evaluate
from polyhop.eval.summary import summarize
from polyhop.programs import Agent, Program

from .small import PASSAGE, Fake, examples, mixed, numbered, read_lines


def fail() -> None:
    raise ZeroDivisionError("over\nand over")


def steady(summary: dict[str, Any]) -> str:
    """What must be the same whenever the same run is made: everything but the timing, to the byte."""
    kept = {name: value for name, value in summary.items() if name != "timing"}
    for part in ("metrics", "intervals"):
        kept[part] = {name: value for name, value in summary[part].items() if not name.startswith("seconds")}
    return json.dumps(kept)


def test_a_right_answer_scores(tmp_path: Path) -> None:
    summary = evaluate(Fake(), examples("a"), tmp_path / "run")
    perfect = {name: 1.0 for name in METRICS if not name.startswith(("fact_", "joint_", "token_"))}
    metrics = summary["metrics"]
    assert {name: metrics[name] for name in perfect} == perfect
    # One of two sentences: precision 1, recall 1/2.
    assert (metrics["fact_precision"], metrics["fact_recall"], metrics["fact_f1"]) == (1, 0.5, pytest.approx(2 / 3))
    assert metrics["joint_f1"] == pytest.approx(2 / 3)
    assert metrics["lm_calls"] == metrics["lm_calls_critical_path"] == 1
    assert metrics["searches"] == metrics["cost_usd"] == 0
    assert set(metrics) <= {*METRICS, *COSTS, "seconds_p50", "seconds_p95"}
    assert summary["intervals"].keys() == metrics.keys() - {"seconds_p50", "seconds_p95"}
    assert summary["counts"] == {"questions": 1, "answered": 1, "failed": 0, "skipped": 0, "gold_not_found": 0}
    assert set(summary["timing"]) == {"seconds_mean", "seconds_total"}
    assert 0 < metrics["seconds_p50"] <= metrics["seconds_p95"]


@pytest.mark.parametrize("threads", [1, 4])
def test_a_failure_scores_zero_and_keeps_its_cause(threads: int, tmp_path: Path) -> None:
    summary = evaluate(Fake({"b": fail}), examples("abcd"), tmp_path / "run", threads=threads)
    lines = list(read_lines(tmp_path / "run"))
    assert [line["id"] for line in lines] == ["id-a", "id-b", "id-c", "id-d"]
    error = lines[1]["error"]
    assert (error["cause"], error["message"]) == ("exception", "ZeroDivisionError: over and over")
    assert error["at"].startswith("test_run.py:")
    assert lines[1]["answer"] is None
    assert summary["metrics"]["answer_em"] == summary["metrics"]["passage_recall@5"] == 0.75
    assert (summary["counts"]["answered"], summary["counts"]["failed"]) == (3, 1)
    assert summary["failures"] == [{"cause": "exception", "message": "ZeroDivisionError: over and over", "count": 1}]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: 7, "a dspy.Prediction, got 7"),
        (lambda: dspy.Prediction(), "must return an answer"),
        (lambda: dspy.Prediction(answer=["x"]), "an answer that is a string, got ['x']"),
        (lambda: dspy.Prediction(answer="x", evidence=[Evidence(PASSAGE, 9)]), "has no sentence 9"),
    ],
)
def test_what_is_no_prediction_is_a_failure(made: Callable[[], Any], message: str, tmp_path: Path) -> None:
    evaluate(Fake({"a": made}), examples("a"), tmp_path / "run")
    (line,) = read_lines(tmp_path / "run")
    assert line["error"]["cause"] == "prediction"
    assert message in line["error"]["message"]


def test_tokens_and_cost_are_counted_also_of_failures(tmp_path: Path, parrot: Callable[[str], Any]) -> None:
    class Twice(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = dspy.Predict("question -> answer")

        def forward(self, question: str) -> dspy.Prediction:
            self.ask(question=question)
            if question == "b":
                raise ValueError
            return self.ask(question=question + "?")

    with dspy.context(lm=parrot("[[ ## answer ## ]]\nFrance")):
        summary = evaluate(Twice(), examples("ab"), tmp_path / "run", threads=2)
    first, second = (line["costs"] for line in read_lines(tmp_path / "run"))
    assert (first["lm_calls"], first["tokens_in"], first["tokens_out"], first["tokens"]) == (2, 2, 2, 4)
    assert (second["lm_calls"], second["tokens"]) == (1, 2)
    assert summary["totals"]["tokens"] == 6
    assert "cost_usd" not in summary["metrics"]  # nobody knows what a parrot costs


def test_threads_change_nothing_but_the_time() -> None:
    program, questions = Fake(mixed(40), seconds=0.001), numbered(40)
    one, many = (evaluate(program, questions, threads=threads) for threads in (1, 8))
    assert steady(one) == steady(many)


# --- stopping --------------------------------------------------------------------------------------------------------


def test_a_question_that_takes_too_long_fails_and_holds_nobody_up(tmp_path: Path) -> None:
    never = threading.Event()
    program = Fake({"b": never.wait})
    summary = evaluate(program, examples("abcd"), tmp_path / "run", timeout=2.0)
    never.set()
    lines = list(read_lines(tmp_path / "run"))
    assert [line["id"] for line in lines if "error" in line] == ["id-b"]
    assert lines[1]["error"] == {"cause": "timeout", "type": "Timeout", "message": "no answer after 2 s"}
    assert summary["counts"] == {"questions": 4, "answered": 3, "failed": 1, "skipped": 0, "gold_not_found": 0}


def test_who_took_too_long_makes_no_more_calls(parrot: Callable[[str], Any]) -> None:
    calls, go_on, ended = [], threading.Event(), threading.Event()

    class Slow(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = dspy.Predict("question -> answer")

        def forward(self, question: str) -> dspy.Prediction:
            try:
                go_on.wait(60)
                for n in range(3):
                    calls.append(n)
                    self.ask(question=question)
            finally:
                ended.set()
            return dspy.Prediction(answer="x")

    with dspy.context(lm=parrot("[[ ## answer ## ]]\nFrance")):
        summary = evaluate(Slow(), examples("a"), timeout=0.05)
    go_on.set()
    assert ended.wait(60)
    assert summary["failures"][0]["cause"] == "timeout"
    assert calls == [0]


def test_what_is_no_exception_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    class Spent(BaseException):
        pass

    def stop() -> None:
        raise Spent

    with pytest.raises(Spent):
        evaluate(Fake({"c": stop}), examples("abcd"), tmp_path / "run")
    assert [line["id"] for line in read_lines(tmp_path / "run")] == ["id-a", "id-b"]
    again = evaluate(Fake(), examples("abcd"), tmp_path / "run")
    assert again["counts"]["answered"] == 4


def test_too_many_failures_stop_the_run_which_can_go_on(tmp_path: Path) -> None:
    broken, questions = Fake(dict.fromkeys("bcdef", fail)), examples("abcdefgh")
    with pytest.raises(RunError, match=r"Stopped after 2 failures, with 3 of 8 questions done.*ZeroDivision"):
        evaluate(broken, questions, tmp_path / "run", max_failures=2)
    assert len(list(read_lines(tmp_path / "run"))) == 3
    with pytest.raises(RunError, match="5 of 8"):
        evaluate(broken, questions, tmp_path / "run", max_failures=2)
    summary = evaluate(Fake(), questions, tmp_path / "run", max_failures=2)
    assert (summary["counts"]["answered"], summary["counts"]["failed"]) == (4, 4)


def test_failed_questions_can_be_asked_again(tmp_path: Path) -> None:
    questions = examples("abcd")
    assert evaluate(Fake(dict.fromkeys("bc", fail)), questions, tmp_path / "run")["counts"]["failed"] == 2
    summary = evaluate(Fake(), questions, tmp_path / "run", retry_failed=True)
    assert steady(summary) == steady(evaluate(Fake(), questions))
    assert [line["id"] for line in read_lines(tmp_path / "run")] == ["id-a", "id-b", "id-c", "id-d"]


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([], "no questions"),
        ([{"question": "x"}], "Question 1 must be a dspy.Example"),
        ([dspy.Example(question="x", answer=[5])], "needs a string 'answer'"),
        ([dspy.Example(question="x")], "needs a string 'answer'"),
        ([dspy.Example(question="x", answer="y", id="a")] * 2, "Question 2 repeats the id 'a'"),
    ],
)
def test_questions_that_cannot_be_scored_are_refused_before_any_is_asked(
    tmp_path: Path, questions: list[Any], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        evaluate(Fake(), questions, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_late_result_is_a_timeout_even_if_it_waits_to_be_read() -> None:
    record = QuestionTask(Fake(seconds=0.05), timeout=0.01).ask(0, examples("a")[0], Ledger())
    assert record.error is not None
    assert (record.error.cause, record.answer) == ("timeout", None)


def test_the_calls_of_a_question_are_not_kept_by_dspy(parrot: Callable[[str], Any]) -> None:
    """Its trace would grow to 10,000 calls, with all that they read."""
    with dspy.context(lm=parrot('{"answer": "x"}'), trace=[], adapter=dspy.JSONAdapter()):
        record = QuestionTask(dspy.Predict("question -> answer")).ask(0, examples("a")[0], Ledger())
        assert (record.answer, dspy.settings.trace) == ("x", [])


class Reader(Program):
    """Answers with the number of gold sentences that it is given."""

    def forward(self, question: str, pool: Any = None, gold: list[Evidence] | None = None) -> dspy.Prediction:
        return dspy.Prediction(answer="none" if gold is None else f"{len(gold)} of {len(pool)}", evidence=gold or ())


class Knowing(Reader):
    reads_gold = True


def test_only_a_program_that_says_so_gets_the_gold_evidence() -> None:
    pool = (Passage.of("A", sentences=["One.", "Two."], id="a"), Passage.of("B", "Three.", id="b"))
    asked = dspy.Example(question="Which?", answers=("x",), pool=pool, gold_facts=[("a", 1)])
    for program, answer in ((Reader(), "none"), (Knowing(), "1 of 2")):
        record = QuestionTask(program).ask(0, asked.with_inputs("question", "pool"), Ledger())
        assert record.answer == answer
    assert record.scores["fact_f1"] == 1.0


# --- costs -----------------------------------------------------------------------------------------------------------


class Player:
    """Plays every agent: first the replies and errors that it is given, then it answers."""

    def __init__(self, *first: str | Exception) -> None:
        self.first, self.calls = list(first), 0

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.calls += 1
        reply = self.first.pop(0) if self.first else "[[ ## reasoning ## ]]\nBecause.\n\n[[ ## answer ## ]]\nFrance"
        if isinstance(reply, Exception):
            raise reply
        return respond(request, reply)


class Pair(Program):
    """Two agents, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Agent("question -> reasoning, answer"), Agent("question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        self.one(question=question)
        return dspy.Prediction(answer=self.other(question=question).answer)


def test_dollars_are_told_for_all_or_not_at_all(tmp_path: Path) -> None:
    """One agent's price is known, the other's is not: a part of what it cost would look like all of it."""
    program = Pair()
    program.one.lm = dspy.LM("lexical", engine=Player(), cache=False)
    program.other.lm = dspy.LM("made/up", engine=Player(), cache=False)
    seen: list[RunProgress] = []
    summary = evaluate(program, examples("ab"), tmp_path / "run", on_progress=seen.append)
    assert "cost_usd" in summary["by_agent"]["one"]
    assert "cost_usd" not in summary["by_agent"]["other"]
    assert "cost_usd" not in summary["totals"]
    assert "cost_usd" not in summary["metrics"]
    assert not seen[-1].priced
    assert "cost_usd" not in sum_costs(summary["by_agent"].values())


def test_what_failed_is_asked_again_but_for_good_replies(tmp_path: Path) -> None:
    """After an error they come from DSPy's cache. After a bad reply, which is there, too, nothing does."""
    first, other, program = Player(), Player(lm15.AuthError("no key"), *["Once upon ..."] * 4), Pair()
    program.one.lm, program.other.lm = dspy.LM("one", engine=first), dspy.LM("other", engine=other, num_retries=0)
    failed = [evaluate(program, examples("a"), tmp_path / "run", retry_failed=True)["counts"]["failed"] for _ in "1234"]
    assert failed == [1, 1, 1, 0]
    assert other.calls == 1 + 2 + 2 + 1  # a bad reply is asked for in fields and as JSON
    assert first.calls == 1 + 0 + 1 + 1
    (record,) = read_lines(tmp_path / "run")
    assert (record["attempt"], record["answer"]) == (3, "France")


def line(n: int, costs: dict[str, float] | None = None, /, **scores: float) -> RunRecord:
    nothing: dict[str, Any] = {
        "question": "?",
        "gold_answers": (),
        "gold": (),
        "answer": "a",
        "evidence": [],
        "ranking": [],
    }
    return RunRecord(n=n, id=str(n), scores=scores, costs={"seconds": 1.0, **(costs or {})}, **nothing)


def test_a_mean_cost_needs_the_price_of_every_question() -> None:
    priced, unpriced = line(0, {"cost_usd": 0.5}), line(1)
    assert summarize([priced, priced])["metrics"]["cost_usd"] == 0.5
    for some in ([priced, unpriced], [unpriced, priced]):
        assert "cost_usd" not in summarize(some)["metrics"]


def test_joint_f1_needs_one_unit_and_each_metric_says_how_many_questions_have_it() -> None:
    sentences, passages, neither = {"joint_f1": 1.0, "fact_f1": 1.0}, {"joint_f1": 0.5}, {"answer_f1": 1.0}
    assert "joint_f1" not in summarize([line(0, **sentences), line(1, **passages)])["metrics"]
    for same in (sentences, passages):
        summary = summarize([line(0, **same), line(1, **same), line(2, **neither)])
        assert summary["metrics"]["joint_f1"] == same["joint_f1"]
        assert (summary["scored"]["joint_f1"], summary["scored"]["answer_f1"]) == (2, 1)
