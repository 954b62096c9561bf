"""Demos from annotations, for every agent of every program."""

from __future__ import annotations

from functools import cache
from typing import Any

import dspy
import pytest
from pydantic import TypeAdapter

from polyhop import signatures
from polyhop.data.benchmarks import load_questions
from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.engines.models import language_model
from polyhop.eval import metrics
from polyhop.optimizers.prompts import gold_demos, optimize_prompts
from polyhop.optimizers.prompts.annotated import MOST_WORDS, solved
from polyhop.programs import Prism
from polyhop.scripts.options import build_program

from .world import players, program, questions

PROGRAMS = ("polyhop", "prism", "kair", "par_rag", "c3po", "ircot", "naive", "direct")
UNKNOWN = {"kair": {"querier", "updater", "checker"}, "ircot": {"reasoner"}}
"""Agents without annotations."""
PLANNERS = {signatures.AnalyzeQuestion, signatures.PlanResearch, signatures.PlanSteps, signatures.DrawRoadmap}
"""Their replies depend on demos, also with the lexical engine."""


@cache
def demos_of(name: str) -> dict[str, list[dspy.Example]]:
    composed = [example for example in load_sample("train") if example.hops > 1]
    return gold_demos(build_program(name, PassagePool(sample_passages())), composed[:9])


@pytest.mark.parametrize("name", PROGRAMS)
def test_agents_get_complete_demos_that_adapters_render_and_parse(name: str) -> None:
    built, demos = build_program(name, None), demos_of(name)
    assert {agent for agent, given in demos.items() if not given} == UNKNOWN.get(name, set())
    for agent, predictor in built.named_predictors():
        fields = predictor.signature.fields
        for demo in demos[agent]:
            assert set(demo.keys()) == set(fields)
            assert sum(len(str(value).split()) for value in demo.values()) <= MOST_WORDS
            for field, info in fields.items():
                assert TypeAdapter(info.annotation).validate_python(demo[field]) == demo[field], (agent, field)
        inputs = dict.fromkeys(predictor.signature.input_fields, "")
        for adapter in (dspy.ChatAdapter(), dspy.JSONAdapter()):
            messages = adapter.format(predictor.signature, demos[agent], inputs)[1:-1]
            for demo, asked, replied in zip(demos[agent], messages[::2], messages[1::2], strict=True):
                assert "not supplied" not in (asked["content"] + replied["content"]).lower()
                read = adapter.parse(predictor.signature, replied["content"])
                assert read == {field: demo[field] for field in predictor.signature.output_fields}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_lexical_engine_replies_as_without_demos(name: str) -> None:
    built, demos = build_program(name, None), demos_of(name)
    planning = {frozenset(dspy.Predict(planner).signature.fields) for planner in PLANNERS}
    for agent, predictor in built.named_predictors():
        if not demos[agent] or frozenset(predictor.signature.fields) in planning:
            continue
        predictor.lm = language_model()
        for task in demos[agent][-2:]:
            inputs = {field: task[field] for field in predictor.signature.input_fields}
            bare, shown = predictor(**inputs), predictor(**inputs, demos=demos[agent][:3])
            assert bare.toDict() == shown.toDict(), agent


def test_a_demo_says_what_the_dataset_says() -> None:
    example = questions(1, 0)[0]
    demos = gold_demos(Prism(), [example])
    (analyzed,), (selected,), _, (added,), (answered,) = demos.values()
    assert analyzed.sub_questions == ["Who wrote Book 0?", "Where was #1 born?"]
    assert [passage.title for passage in selected.candidates.passages] == ["Book 0", "Writer 0", "Stones"]
    assert (selected.selected, selected.keep) == ([], ["1s2", "2s1"])
    assert (added.selected, added.add) == (["1s2"], ["2s1"])
    assert answered.evidence.format() == "[1] Book 0\n1s2 It was written by Writer 0.\n" + (
        "[2] Writer 0\n2s1 Writer 0 was born in Aldea."
    )
    assert answered.answer == "Aldea"
    assert answered.reasoning == "Who wrote Book 0? Writer 0 [1s2]. Where was Writer 0 born? Aldea [2s1]."


def test_the_demos_of_a_gatherer_show_its_cases() -> None:
    built = build_program("polyhop", None)
    gatherer = gold_demos(built, questions(2, 0))["gatherer"]
    assert [(demo.answers, demo.keep, demo.required) for demo in gatherer] == [
        (["Writer 0 [1s2]", "Aldea [2s1]"], ["1s2", "2s1"], []),
        (["Writer 1 [1s2]", "unknown"], ["1s2"], ["Where was Writer 1 born?"]),
    ]
    assert [passage.title for passage in gatherer[1].passages.passages] == ["Book 1", "Stones"]


def test_verifiers_and_judges_get_right_and_wrong_answers() -> None:
    verified = gold_demos(build_program("polyhop", None), questions(2, 0))["verifier"]
    assert [(demo.proposed_answer, demo.correction, demo.attribution, demo.accuracy) for demo in verified] == [
        ("Aldea", "Aldea", "attributable", 0.95),
        ("Writer 1", "Brunn", "contradictory", pytest.approx(0.05)),
    ]
    judged = gold_demos(build_program("par_rag", None), questions(3, 0))["review.attribution_judge"]
    assert [demo.attribution for demo in judged] == ["attributable", "extrapolatory", "contradictory"]


def test_whole_passages_are_narrowed_to_the_sentence_with_the_answer() -> None:
    example = questions(1, 0)[0]
    example.gold_facts = ()
    case = solved(example)
    assert case is not None
    assert case.ids(case.evidence) == ["1s2", "2s1"]


def test_without_texts_only_agents_of_questions_get_demos() -> None:
    example = questions(1, 0)[0]
    example.pool = None
    demos = gold_demos(build_program("polyhop", None), [example])
    assert {agent for agent, given in demos.items() if given} == {"planner", "direct_answerer"}


def test_passages_of_the_programs_retriever_serve_as_well() -> None:
    example = questions(1, 0)[0]
    pool, example.pool = PassagePool(example.pool), None
    assert all(gold_demos(build_program("polyhop", pool), [example]).values())


def test_long_passages_make_no_demos() -> None:
    example = questions(1, 0)[0]
    first, *others = example.pool
    long = Passage.of(first.title, sentences=[*first.sentences, "And so on. " * 200], id=first.id)
    example.pool = (long, *others)
    demos = gold_demos(Prism(), [example])
    assert {agent for agent, given in demos.items() if given} == {"analyzer"}


@pytest.mark.parametrize("answers", [("unknown",), ()])
def test_a_question_without_an_answer_makes_no_demos(answers: tuple[str, ...]) -> None:
    example = questions(1, 0)[0]
    example.answers = answers
    assert not any(gold_demos(Prism(), [example]).values()) if answers else solved(example) is None


def test_an_agent_is_found_after_its_instructions_change() -> None:
    student = Prism()
    student.analyzer.signature = student.analyzer.signature.with_instructions("Split it.")
    assert gold_demos(student, questions(1, 0))["analyzer"]


def test_agents_of_other_programs_get_fields_of_the_questions() -> None:
    class Own(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = dspy.Predict("question -> topic")
            self.second = dspy.Predict("question, topic -> answer")

    asked = [dspy.Example(question="Who?", topic="people", answers=("Ann",)), dspy.Example(question="Why?")]
    demos = gold_demos(Own(), asked)
    assert [demo.toDict() for demo in demos["first"]] == [{"question": "Who?", "topic": "people"}]
    assert [demo.toDict() for demo in demos["second"]] == [{"question": "Who?", "topic": "people", "answer": "Ann"}]


def test_labeled_makes_no_call() -> None:
    script = players()
    result = optimize_prompts("labeled", program(script), questions(3, 2), [], metrics.answer_em)
    assert not script.requests
    assert [len(predictor.demos) for predictor in result.predictors()] == [2] * 5
    bare = [dspy.Example(question="Who?", answers=("unknown",)).with_inputs("question")]
    with pytest.raises(PolyhopError, match="no annotations"):
        optimize_prompts("labeled", program(script), bare, [], metrics.answer_em)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("benchmark", "file", "without"),
    [
        ("musique", "musique_ans_train.jsonl.gz", set()),
        ("hotpotqa", "hotpotqa_train.json.gz", {"planner"}),
        ("2wiki", "2wiki_train.json.gz", {"planner"}),
    ],
)
def test_benchmarks_make_demos(benchmark: str, file: str, without: set[str], shared_data: Any) -> None:
    asked = []
    for example in load_questions(benchmark, shared_data / file):
        asked.append(example)
        if len(asked) == 40:
            break
    demos = gold_demos(build_program("polyhop", None), asked)
    assert {agent for agent, given in demos.items() if not given} == without
    assert all(len(given) > 10 for agent, given in demos.items() if agent not in without)
