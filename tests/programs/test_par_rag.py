"""PAR-RAG step by step: the plan, steps side by side, what is reviewed, revised and refined, and how it ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from polyhop.data.chain import ChainRetriever
from polyhop.data.pool import PassagePool
from polyhop.engines.models import language_model, roles
from polyhop.programs import ParRag, tunables
from polyhop.programs.complexity import estimate_complexity
from polyhop.programs.exemplars import Exemplar
from polyhop.programs.par_rag import MAX_STEPS
from polyhop.programs.trace import (
    Decomposed,
    Estimated,
    Parallel,
    Recalled,
    Searched,
    StepAnswered,
    Weighed,
)

from .par_rag_script import (
    ADAPTERS,
    ANSWERS,
    PLAN,
    POOL,
    QUESTION,
    asked,
    facts,
    play,
    play_with,
    queries,
    reads,
    steps,
)
from .scripted import Reply, Request, answer, playing, scripted

# --- the walk-through ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_comparison_step_by_step(adapter: Any) -> None:
    script, prediction = play(adapter)
    assert script.order[0] == "planner"
    assert sorted(script.order[1:7]) == sorted(["step_answerer", "accuracy_judge", "attribution_judge"] * 2)
    assert sorted(script.order[7:13]) == sorted(["step_answerer", "accuracy_judge", "attribution_judge"] * 2)
    assert script.order[13] == "answerer"
    assert sorted(script.order[14:]) == ["accuracy_judge", "attribution_judge"]

    assert script.asked("planner")[0].inputs == {"question": QUESTION}
    first = asked(script, "step_answerer", "Who directed Vertigo?").inputs
    assert first["sources"].startswith("[1] Vertigo\n1s1 Vertigo is a film.\n1s2 Vertigo was directed by")
    assert set(first) == {"question", "sources"}
    asked(script, "step_answerer", "When was Alfred Hitchcock born?")  # the answer replaces #1

    evidence = (
        "[1] Vertigo\n1s2 Vertigo was directed by Alfred Hitchcock.\n"
        "[2] Solaris\n2s1 Solaris was directed by Andrei Tarkovsky.\n"
        "[3] Alfred Hitchcock\n3s1 Alfred Hitchcock was born in 1899.\n"
        "[4] Andrei Tarkovsky\n4s1 Andrei Tarkovsky was born in 1932."
    )
    assert script.asked("answerer")[0].inputs == {
        "question": QUESTION,
        "trajectory": json.dumps([f"#{n} {text} -> {said}" for n, (text, said) in enumerate(ANSWERS.items(), 1)]),
        "evidence": evidence,
    }
    assert asked(script, "attribution_judge", QUESTION).inputs["evidence"] == evidence
    assert "1s1 Vertigo is a film." in asked(script, "accuracy_judge", QUESTION).inputs["sources"]

    assert (prediction.answer, prediction.stop_reason) == ("Solaris", "confident")
    assert prediction.confidence == pytest.approx(0.5 * 0.9 + 0.5 * 1.0)  # the final review's, not the answerer's
    assert facts(prediction) == [("vertigo", 1), ("solaris", 0), ("hitchcock", 0), ("tarkovsky", 0)]
    assert [passage.id for passage in prediction.ranking] == ["vertigo", "solaris", "hitchcock", "tarkovsky"]
    assert queries(prediction) == list(ANSWERS)

    assert [type(step) for step in prediction.trace.steps[:4]] == [Estimated, Recalled, Decomposed, Parallel]
    assert steps(prediction, Decomposed) == [
        Decomposed(tuple(s["question"] for s in PLAN), (), tuple(s["thought"] for s in PLAN))
    ]
    assert [step.number for step in steps(prediction, StepAnswered)] == [1, 2, 3, 4]
    assert prediction.trace.lm_calls == len(script.requests) == 1 + 4 * 3 + 3
    assert prediction.trace.lm_calls_critical_path == 1 + 2 * 2 + 2


def test_independent_steps_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=10)  # passes only if two are running

    def reply(request: Request) -> dict[str, Any]:
        meeting.wait()
        return reads()(request)

    _, prediction = play(step_answerer=reply)
    assert prediction.answer == "Solaris"
    assert [len(step.branches) for step in prediction.trace.steps if isinstance(step, Parallel)][:2] == [2, 2]


def test_a_chain_runs_one_after_the_other() -> None:
    script, prediction = play(planner={"steps": [PLAN[0], PLAN[2]]})
    assert [r.inputs["question"] for r in script.asked("step_answerer")] == list(ANSWERS)[::2]
    assert prediction.trace.lm_calls_critical_path == 1 + 2 * 2 + 2


# --- complexity, exemplars, plan -------------------------------------------------------------------------------------


def test_complexity_is_estimated_and_weighs_the_review() -> None:
    program = ParRag()
    with playing(scripted()):
        prediction = program(question=QUESTION, pool=POOL)
    complexity = estimate_complexity(QUESTION)
    assert prediction.trace.steps[0] == Estimated(complexity.probabilities)
    alphas = {step.alpha for step in steps(prediction, Weighed)}
    assert alphas == {program.review.confidence.alpha(complexity.expected)} != {0.5}


def test_one_exemplar_is_shown_as_a_plan_behind_the_planners_own_demos() -> None:
    def own(program: ParRag) -> None:
        demo = dspy.Example(question="Own?", steps=[{"thought": "t", "question": "Own step?"}])
        program.planner.demos = [demo.with_inputs("question")]

    script, prediction = play(set=own)
    request = script.asked("planner")[0]
    assert request.demos == 2
    (recalled,) = steps(prediction, Recalled)
    assert len(recalled.questions) == 1
    assert "Own?" in request.messages[0].text
    assert recalled.questions[0] in request.messages[2].text
    assert "Needs nothing before it." in request.messages[3].text
    assert all(request.demos == 0 for request in script.requests if request.agent != "planner")


def test_an_exemplar_is_written_as_the_planner_would_write_it() -> None:
    def memory(program: ParRag) -> None:
        program.exemplars = type(program.exemplars)([Exemplar("Q?", ("Who is A?", "Where was #1 born?"), 2)], count=1)

    script, _ = play(dspy.JSONAdapter(), set=memory)
    assert json.loads(script.asked("planner")[0].messages[1].text) == {
        "steps": [
            {"thought": "Needs nothing before it.", "question": "Who is A?"},
            {"thought": "Needs the answer of step 1.", "question": "Where was #1 born?"},
        ]
    }


def test_exemplars_can_be_left_out() -> None:
    script, prediction = play(set=lambda program: setattr(program.exemplars.mode, "value", "none"))
    assert script.asked("planner")[0].demos == 0
    assert steps(prediction, Recalled) == [Recalled(())]


def test_without_a_plan_the_question_is_the_only_step() -> None:
    script, prediction = play(set=lambda program: setattr(program.planned, "value", False))
    assert "planner" not in script.order
    assert [request.inputs["question"] for request in script.asked("step_answerer")] == [QUESTION]
    assert not steps(prediction, Decomposed)
    assert not steps(prediction, Recalled)
    assert prediction.trace.lm_calls == len(script.requests)


@pytest.mark.parametrize("reply", [[], None, [{"thought": "Nothing to do.", "question": ""}]])
def test_a_planner_without_steps_leaves_the_question(reply: Any) -> None:
    script, prediction = play(dspy.JSONAdapter(), planner={"steps": reply})
    assert [request.inputs["question"] for request in script.asked("step_answerer")] == [QUESTION]
    assert steps(prediction, Decomposed) == [Decomposed((QUESTION,), (), ("",))]


def test_a_runaway_plan_is_cut_and_counted() -> None:
    many = [{"thought": "", "question": f"Who is {n}?"} for n in range(MAX_STEPS + 30)]
    script, prediction = play(planner={"steps": many})
    assert len(script.asked("step_answerer")) == MAX_STEPS
    assert prediction.trace.dropped == len(steps(prediction, Decomposed)[0].invalid) == 30


def test_a_plan_as_lines_is_a_plan() -> None:
    script, _ = play(planner="[[ ## steps ## ]]\n1. Who directed Vertigo?\n2. When was #1 born?\n")
    assert [r.inputs["question"] for r in script.asked("step_answerer")] == list(ANSWERS)[::2]


# --- act -------------------------------------------------------------------------------------------------------------


def test_k_are_found_and_the_best_are_shown() -> None:
    program = ParRag(PassagePool(POOL), k=3, shown=2)
    with playing(scripted(planner={"steps": PLAN[:1]}, step_answerer=reads(), answerer=answer("x"))) as script:
        prediction = program(question=QUESTION)
    assert len(steps(prediction, Searched)[0].found) == 3
    assert script.asked("step_answerer")[0].inputs["sources"].count("[") == 2
    assert len(prediction.ranking) == 3  # what was found and not shown was seen, too
    assert (ParRag().search.k.value, ParRag().shown.value) == (10, 5)


def test_every_citation_is_evidence_also_the_last() -> None:
    cited = {"cited": ["1s1", "1s2", "2s1", "3s1", "4s1"], "answer": "Alfred Hitchcock"}
    _, prediction = play(planner={"steps": PLAN[:1]}, step_answerer=cited)
    assert len(facts(prediction)) == 5
    assert len(steps(prediction, StepAnswered)[0].cited) == 5


def test_garbage_citations_are_counted_and_left_out() -> None:
    cited = {"cited": ["0", "1s2", "9s9", "1s2", "Vertigo"], "answer": "Alfred Hitchcock"}
    _, prediction = play(planner={"steps": PLAN[:1]}, step_answerer=cited)
    assert facts(prediction) == [("vertigo", 1)]
    assert steps(prediction, StepAnswered)[0].invalid == ("0", "9s9", "1s2", "Vertigo")


def test_the_same_sentence_is_evidence_once_and_a_whole_passage_replaces_its_sentences() -> None:
    replies: list[Reply] = [{"cited": ["1s2"], "answer": "x"}, {"cited": ["1"], "answer": "y"}]
    plan = [{"thought": "", "question": text} for text in ("Who directed Vertigo?", "Is Vertigo by #1?")]
    _, prediction = play(planner={"steps": plan}, step_answerer=replies)
    assert facts(prediction) == [("vertigo", None)]


def test_an_answer_longer_than_a_page_is_cut() -> None:
    _, prediction = play(planner={"steps": PLAN[:1]}, step_answerer={"cited": [], "answer": "word " * 2_000})
    (step,) = steps(prediction, StepAnswered)
    assert len(step.answer) <= 400
    assert step.invalid


def test_an_unknown_answer_is_described_to_the_steps_that_need_it() -> None:
    _, prediction = play(step_answerer={"cited": ["1s1"], "answer": "I don't know"})
    assert "When was (Who directed Vertigo) born?" in queries(prediction)
    assert facts(prediction) == []  # what is not known rests on nothing


# --- failures, roles, state ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["planner", "step_answerer", "attribution_judge", "answerer"])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_reply_that_cannot_be_read_is_an_error_never_an_answer(agent: str, adapter: Any) -> None:
    with pytest.raises(AdapterParseError):
        play_with(agent, "I am afraid I cannot do that.\nSorry.", adapter)


@pytest.mark.parametrize("agent", ["planner", "step_answerer", "accuracy_judge", "attribution_judge", "answerer"])
def test_an_error_of_the_engine_comes_through(agent: str) -> None:
    with pytest.raises(Exception, match="out of memory"):
        play_with(agent, RuntimeError("out of memory"))


def test_its_roles_and_tunables() -> None:
    program = ParRag()
    assert set(roles(program)) == {
        "planner", "step_answerer", "accuracy_judge", "attribution_judge", "reviser", "refiner", "answerer",
    }  # fmt: skip
    names = set(tunables(program))
    assert names >= {
        "search.k", "shown", "planned", "reviewed", "exemplars.count", "exemplars.mode", "review.search.k",
        "review.confidence.threshold", "review.confidence.adaptive",
    }  # fmt: skip


def test_its_state_is_saved_and_loaded(tmp_path: Any) -> None:
    program = ParRag(PassagePool(POOL))
    program.shown.value, program.review.confidence.threshold.value = 3, 0.5
    program.save(tmp_path / "p.json")
    fresh = ParRag()
    fresh.load(tmp_path / "p.json")
    assert (fresh.shown.value, fresh.review.confidence.threshold.value) == (3, 0.5)
    assert program.deepcopy().review.search.retriever is program.review.search.retriever


def test_many_questions_at_a_time() -> None:
    program = ParRag()
    examples = [dspy.Example(question=f"Who is {n}?", pool=POOL).with_inputs("question", "pool") for n in range(20)]
    echo = scripted(answerer=lambda r: answer(r.inputs["question"].removeprefix("Who is ").rstrip("?")))
    with playing(echo):
        predictions = dspy.Parallel(num_threads=8, disable_progress_bar=True)([(program, each) for each in examples])
    assert [prediction.answer for prediction in predictions] == [str(n) for n in range(20)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (QUESTION, "Solaris"),
        ("When was the director of Vertigo born?", "1899"),
        ("What is the shoe size of Napoleon?", "unknown"),
    ],
)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_end_to_end_with_the_lexical_engine(question: str, expected: str, adapter: Any) -> None:
    with dspy.context(lm=language_model("lexical"), adapter=adapter):
        prediction = ParRag(ChainRetriever(PassagePool(POOL)))(question=question)
    assert prediction.answer == expected
    if expected != "unknown":
        assert {item.passage.id for item in prediction.evidence} >= {"vertigo", "hitchcock"}


@pytest.mark.slow
def test_runs_do_not_depend_on_the_process_or_on_which_thread_is_first(printed: Callable[[str], set[str]]) -> None:
    code = (
        "import dspy, polyhop\n"
        "from polyhop.data.sample import load_sample, sample_passages\n"
        "from polyhop.programs import ParRag\n"
        "dspy.configure(lm=polyhop.lm('lexical'))\n"
        "program = ParRag(polyhop.ChainRetriever(polyhop.PassagePool(sample_passages())))\n"
        "print([program(**q.inputs()).trace.to_records() for q in load_sample('dev')[:6]])"
    )
    assert len(printed(code)) == 1
