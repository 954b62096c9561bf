"""PAR-RAG step by step: the plan, steps side by side, what is reviewed, revised and refined, and how it ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.engines.models import language_model, roles
from polyhop.programs import ParRag, tunables
from polyhop.programs.complexity import estimate_complexity
from polyhop.programs.exemplars import Exemplar
from polyhop.programs.plan import MOST_STEPS
from polyhop.programs.trace import (
    Decomposed,
    Estimated,
    Judged,
    Parallel,
    Recalled,
    Refined,
    Revised,
    Searched,
    StepAnswered,
    Weighed,
)

from .scripted import Reply, Request, Script, answer, playing, scripted

QUESTION = "Which film has the younger director, Vertigo or Solaris?"
PLAN = [
    {"thought": "Needs nothing before it.", "question": "Who directed Vertigo?"},
    {"thought": "Needs nothing before it.", "question": "Who directed Solaris?"},
    {"thought": "Needs the answer of step 1.", "question": "When was #1 born?"},
    {"thought": "Needs the answer of step 2.", "question": "When was #2 born?"},
]
POOL = [
    Passage.of("Vertigo", sentences=["Vertigo is a film.", "Vertigo was directed by Alfred Hitchcock."], id="vertigo"),
    Passage.of("Solaris", sentences=["Solaris was directed by Andrei Tarkovsky."], id="solaris"),
    Passage.of("Alfred Hitchcock", sentences=["Alfred Hitchcock was born in 1899."], id="hitchcock"),
    Passage.of("Andrei Tarkovsky", sentences=["Andrei Tarkovsky was born in 1932."], id="tarkovsky"),
]
ANSWERS = {
    "Who directed Vertigo?": "Alfred Hitchcock",
    "Who directed Solaris?": "Andrei Tarkovsky",
    "When was Alfred Hitchcock born?": "1899",
    "When was Andrei Tarkovsky born?": "1932",
}
ADAPTERS = [dspy.ChatAdapter(), dspy.JSONAdapter()]


def reads(answers: Mapping[str, str] = ANSWERS) -> Callable[[Request], dict[str, Any]]:
    """Answers each question as told, and cites the first sentence that has the answer."""

    def reply(request: Request) -> dict[str, Any]:
        text = answers.get(request.inputs["question"], "I don't know")
        lines = (line.split(" ", 1) for line in request.inputs["sources"].splitlines() if not line.startswith("["))
        return {"cited": [id for id, line in lines if text in line][:1], "answer": text}

    return reply


def doubts(*questions: str) -> Callable[[Request], dict[str, Any]]:
    """An accuracy judge that is sure of everything but the answers to some questions."""
    return lambda request: {"accuracy": 0.0 if request.inputs["question"] in questions else 1.0}


def revised(text: str, cited: list[str]) -> dict[str, Any]:
    return {"reason": "Read again.", "decision": "REVISED", "answer": text, "cited": cited}


def play(
    adapter: Any = None,
    *,
    set: Callable[[ParRag], None] = lambda program: None,
    pool: list[Passage] | None = None,
    **replies: Reply | list[Reply],
) -> tuple[Script, dspy.Prediction]:
    given: dict[str, Any] = {"planner": {"steps": PLAN}, "step_answerer": reads(), "answerer": answer("Solaris")}
    program = ParRag()
    program.review.confidence.adaptive.value = False  # accuracy and credibility weigh the same
    set(program)
    with playing(scripted(**(given | replies)), adapter) as script:
        prediction = program(question=QUESTION, pool=POOL if pool is None else pool)
    return script, prediction


def play_with(agent: str, reply: Reply, adapter: Any = None) -> tuple[Script, dspy.Prediction]:
    """A run in which an agent replies so."""
    replies: dict[str, Any] = {agent: reply}
    return play(adapter, **replies)


def steps(prediction: dspy.Prediction, kind: type) -> list[Any]:
    return [step for step in prediction.trace.flat() if isinstance(step, kind)]


def facts(prediction: dspy.Prediction) -> list[tuple[str, int | None]]:
    return [tuple(item.fact) for item in prediction.evidence]


def queries(prediction: dspy.Prediction) -> list[str]:
    return [step.query for step in steps(prediction, Searched)]


def asked(script: Script, agent: str, question: str) -> Request:
    """The one request to an agent about a question; steps side by side ask in any order."""
    (request,) = [each for each in script.asked(agent) if each.inputs["question"] == question]
    return request


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
    asked(script, "step_answerer", "When was Alfred Hitchcock born?")  # the answer stands in place of #1

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
    meeting = threading.Barrier(2, timeout=10)  # nobody passes unless two are running

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
    many = [{"thought": "", "question": f"Who is {n}?"} for n in range(MOST_STEPS + 30)]
    script, prediction = play(planner={"steps": many})
    assert len(script.asked("step_answerer")) == MOST_STEPS
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


def test_the_same_sentence_is_evidence_once_and_a_whole_passage_stands_for_its_sentences() -> None:
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


# --- review ----------------------------------------------------------------------------------------------------------


def test_a_step_that_fails_is_looked_for_again_revised_and_the_next_question_refined() -> None:
    wrong = ANSWERS | {"Who directed Vertigo?": "Dan", "When was Sir Alfred Hitchcock born?": "1899"}
    script, prediction = play(
        planner={"steps": [PLAN[0], PLAN[2]]},
        step_answerer=reads(wrong),
        accuracy_judge=doubts("Who directed Vertigo?"),
        reviser=revised("Alfred Hitchcock", ["1s2"]),
        refiner={"refined_question": "When was Sir Alfred Hitchcock born?"},
    )
    assert queries(prediction) == ["Who directed Vertigo?", "Dan", "When was Sir Alfred Hitchcock born?"]
    assert script.asked("reviser")[0].inputs["draft"] == "Dan"
    assert script.asked("refiner")[0].inputs == {
        "question": QUESTION,
        "trajectory": '["#1 Who directed Vertigo? -> Alfred Hitchcock"]',  # with the correction
        "next_question": "When was #1 born?",
    }
    assert steps(prediction, Refined) == [Refined(2, "When was Sir Alfred Hitchcock born?")]
    assert [step.accepted for step in steps(prediction, Revised)] == [True]
    assert facts(prediction) == [("vertigo", 1), ("hitchcock", 0)]
    assert prediction.trace.lm_calls == len(script.requests) == 1 + 3 + 4 + 3  # "Dan" cites nothing to be judged
    assert prediction.trace.lm_calls_critical_path == 1 + 3 + 3 + 2


def test_only_the_questions_that_need_a_revised_answer_are_refined() -> None:
    script, prediction = play(
        accuracy_judge=doubts("Who directed Solaris?"), reviser=revised("Alexander Sokurov", ["1s1"])
    )
    assert [step.number for step in steps(prediction, Refined)] == [4]
    assert len(script.asked("refiner")) == 1


def test_a_refined_question_may_still_refer_or_be_empty() -> None:
    for reply in ("When was #2 born?", "", None):
        _, prediction = play(
            dspy.JSONAdapter(),
            accuracy_judge=doubts("Who directed Solaris?"),
            reviser=revised("Andrei Tarkovsky", ["1s1"]),
            refiner={"refined_question": reply},
        )
        assert queries(prediction)[-1] == "When was Andrei Tarkovsky born?"


def test_an_unconfident_revision_keeps_the_answer_and_refines_nothing() -> None:
    script, prediction = play(accuracy_judge=doubts("Who directed Solaris?"))
    assert "reviser" in script.order
    assert "refiner" not in script.order
    assert prediction.stop_reason == "confident"
    assert ("solaris", 0) in facts(prediction)


def test_an_unknown_step_is_looked_for_again_by_its_question() -> None:
    script, prediction = play(planner={"steps": PLAN[:1]}, step_answerer={"cited": [], "answer": "I don't know"})
    assert queries(prediction)[:2] == ["Who directed Vertigo?"] * 2
    assert "Who directed Vertigo?" not in {r.inputs["question"] for r in script.asked("accuracy_judge")}


def test_a_judge_that_cannot_be_read_scores_0() -> None:
    _, prediction = play(accuracy_judge="Well,\nhard to say.")
    assert {step.score for step in steps(prediction, Judged) if step.aspect == "accuracy"} == {0.0}
    assert prediction.confidence == pytest.approx(0.5)
    assert prediction.trace.dropped == 5


def test_without_review_every_answer_passes() -> None:
    script, prediction = play(set=lambda program: setattr(program.reviewed, "value", False))
    assert set(script.order) == {"planner", "step_answerer", "answerer"}
    assert prediction.confidence == pytest.approx(0.9)  # the answerer's own
    assert prediction.stop_reason == "plan done"
    assert prediction.trace.lm_calls == len(script.requests) == 6


def test_the_threshold_is_read_at_every_call() -> None:
    program = ParRag()
    program.review.confidence.adaptive.value = False
    for threshold, stop in ((0.9, "confident"), (0.97, "unconfident")):
        program.review.confidence.threshold.value = threshold
        with playing(scripted(planner={"steps": PLAN}, step_answerer=reads(), answerer=answer("Solaris"))):
            assert program(question=QUESTION, pool=POOL).stop_reason == stop


# --- the final answer ------------------------------------------------------------------------------------------------


def test_a_final_answer_that_fails_is_revised_once_and_judged_again() -> None:
    def judge(request: Request) -> dict[str, Any]:
        return {"accuracy": 0.0 if request.inputs["answer"] == "Solaris" else 0.8}

    script, prediction = play(
        planner={"steps": PLAN[:1]}, accuracy_judge=judge, reviser=revised("Vertigo", ["1s2", "2s1"])
    )
    assert script.order[-6:-3] != script.order[-3:]
    assert script.order[-3] == "reviser"
    assert sorted(script.order[-2:]) == ["accuracy_judge", "attribution_judge"]
    assert queries(prediction)[-1] == "Solaris"
    assert (prediction.answer, prediction.stop_reason) == ("Vertigo", "revised")
    assert prediction.confidence == pytest.approx(0.5 * 0.8 + 0.5 * 1.0)
    assert facts(prediction) == [("vertigo", 1), ("solaris", 0)]  # the steps' citations, then the revision's
    assert prediction.trace.lm_calls == len(script.requests)
    assert len(steps(prediction, Weighed)) == 3


def test_a_final_answer_that_stays_unconvincing_is_given_with_its_confidence() -> None:
    _, prediction = play(accuracy_judge=doubts(QUESTION))
    assert (prediction.answer, prediction.stop_reason) == ("Solaris", "unconfident")
    assert prediction.confidence == pytest.approx(0.5)


def test_an_unknown_final_answer_is_looked_for_by_the_question() -> None:
    _, prediction = play(answerer=answer("unknown"), reviser=revised("Solaris", ["2s1"]))
    assert queries(prediction)[-1] == QUESTION
    assert (prediction.answer, prediction.stop_reason) == ("Solaris", "revised")


def test_nothing_found_is_unknown_and_no_call_is_paid_to_read_nothing() -> None:
    script, prediction = play(pool=[], answerer=answer("London"))
    assert script.order == ["planner"]
    assert (prediction.answer, prediction.evidence, prediction.ranking) == ("unknown", (), ())
    assert (prediction.confidence, prediction.stop_reason) == (0.0, "nothing found")


# --- where it searches -----------------------------------------------------------------------------------------------


def test_the_review_looks_in_a_sparse_retriever() -> None:
    pool, other = PassagePool(POOL), PassagePool(POOL[:1])
    assert ParRag(pool).review.search.retriever is pool
    assert ParRag(pool, review_retriever=other).review.search.retriever is other
    assert ParRag(ChainRetriever(pool)).review.search.retriever is pool
    assert ParRag(ChainRetriever()).review.search.retriever is None
    program = ParRag(ChainRetriever())
    with playing(scripted(planner={"steps": PLAN[:1]}, answerer=answer("x"))):
        first, second, *_ = steps(program(question=QUESTION, pool=POOL), Searched)
    assert first.reasons  # a chain through the question's own pool ...
    assert not second.reasons  # ... and BM25 over it


def test_no_retriever_and_no_pool() -> None:
    with playing(scripted()), pytest.raises(PolyhopError, match="nothing to search"):
        ParRag()(question=QUESTION)


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
    names = {name for name, _ in tunables(program)}
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


def test_a_draft_that_is_confirmed_changes_no_question() -> None:
    _, prediction = play(accuracy_judge=doubts("Who directed Solaris?"), reviser=revised("Andrei Tarkovsky", ["1s1"]))
    assert steps(prediction, Refined) == []
