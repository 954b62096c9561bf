"""The contract of all programs: the same fields, whatever the loop; bad questions are refused before a call is paid."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.data.passages import Evidence, Hit, Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import (
    C3PO,
    Direct,
    FullContext,
    IRCoT,
    Kair,
    Naive,
    ParRag,
    PolyHop,
    Prism,
    QuestionError,
    SetSelection,
    Trace,
)
from polyhop.programs.confidence import CREDIBILITY
from polyhop.programs.prediction import MAX_QUESTION, conclude, read_query
from polyhop.programs.run import Run, running
from polyhop.programs.trace import Stopped

from .scripted import ADAPTERS, Request, Script, answer, playing, scripted

PASSAGES = [Passage.of(f"Title {n}", f"Sentence one of {n}. And two.", id=f"p{n}") for n in range(4)]
PROGRAMS = [Direct, Naive, FullContext, SetSelection, IRCoT, Prism, Kair, ParRag, C3PO, PolyHop]
REVIEWED = [ParRag, PolyHop]
"""Those whose last word is a review, not an answer."""
FIELDS = {"answer", "guess", "evidence", "ranking", "confidence", "status", "trace", "stop_reason"}


def build(kind: type[dspy.Module]) -> dspy.Module:
    return kind() if kind is Direct else kind(PassagePool(PASSAGES))


@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_program_returns_the_same_fields(kind: type[dspy.Module], adapter: dspy.Adapter) -> None:
    said = answer("Title", 85)
    with playing(scripted(answerer=said, reader=said, selector={"keep": ["1s1", "2"]}), adapter) as script:
        prediction = build(kind)(question="Which title?")
    assert set(prediction.keys()) == FIELDS
    assert isinstance(prediction.answer, str)
    assert isinstance(prediction.evidence, tuple)
    assert all(isinstance(item, Evidence) for item in prediction.evidence)
    assert isinstance(prediction.ranking, tuple)
    assert all(isinstance(passage, Passage) for passage in prediction.ranking)
    assert 0 <= prediction.confidence <= 1
    assert isinstance(prediction.trace, Trace)
    assert prediction.trace.steps[-1] == Stopped(prediction.stop_reason) != Stopped("")
    assert prediction.trace.lm_calls == len(script.requests)
    records = json.loads(json.dumps(prediction.trace.to_records()))
    steps = [record["step"] for record in records]
    assert steps[-1] == "stopped"
    assert "answered" in steps
    if kind not in REVIEWED:
        assert steps[-2] == "answered"
        assert prediction.confidence == pytest.approx(0.85)


@pytest.mark.parametrize("question", ["", "  \n", "?!", None, 3, ["Who?"], "x" * (MAX_QUESTION + 1)])
def test_an_invalid_question_is_refused_before_a_call(question: Any) -> None:
    with playing(scripted()) as script, pytest.raises(QuestionError):
        Naive(PassagePool(PASSAGES))(question=question)
    assert script.requests == []


@pytest.mark.parametrize("kind", [kind for kind in PROGRAMS if kind is not Direct])
def test_where_nothing_is_found_nothing_is_made_up(kind: type[dspy.Module]) -> None:
    script = scripted(answerer=answer("Paris", 0.9), decider={"thought": "", "action": "retrieve", "query": "Paris"})
    with playing(script):
        prediction = kind()(question="Which title?", pool=[])
    assert (prediction.answer, prediction.confidence) == ("unknown", 0.0)
    assert prediction.stop_reason == "nothing found"


AGENTS = {
    **{kind: ["answerer"] for kind in (Direct, Naive, FullContext)},
    SetSelection: ["set_selector", "answerer"],
    IRCoT: ["reasoner", "answerer"],
    Prism: ["analyzer", "selector", "adder", "answerer"],
    Kair: ["querier", "updater", "checker", "filterer", "moderator", "answerer"],
    ParRag: ["planner", "step_answerer", "reviser", "answerer"],
    C3PO: ["router", "roadmap", "decider", "filter", "answerer"],
    PolyHop: ["reader", "planner"],
}
"""The agents whose reply must be readable; an unreadable verdict on an answer counts against it."""
TO_ALL: dict[str, Any] = {
    "answerer": answer("Title 1"),
    "reader": answer("Title 1"),
    "selector": {"keep": ["1s1"]},
    "decider": {"thought": "", "action": "retrieve", "query": "Title 2"},
    "querier": {"queries": ["Title 2"], "diversity": 0.5},
    "updater": {"new_facts": ["It is one. (1s1)"], "gaps": ["Which?"]},
    "step_answerer": {"cited": ["1s1"], "answer": "Title 1"},
    "accuracy_judge": {"accuracy": 0.1},
}
"""Replies with which every agent is asked."""


@pytest.mark.parametrize(("kind", "agent"), [(kind, agent) for kind, agents in AGENTS.items() for agent in agents])
@pytest.mark.parametrize("reply", ["I cannot help with that.", ConnectionError("gone")])
def test_a_failure_of_an_agent_is_an_error_never_an_answer(kind: type[dspy.Module], agent: str, reply: Any) -> None:
    program = build(kind)
    if isinstance(program, Kair):
        program.moderated.value = True
    with playing(scripted(**TO_ALL | {agent: reply})) as script, pytest.raises(Exception, match=".") as caught:
        program(question="Which title?")
    if isinstance(reply, str):
        assert isinstance(caught.value, AdapterParseError)
        assert {request.as_json for request in script.asked(agent)} == {False, True}  # a second chance, then raise
    else:
        assert "gone" in str(caught.value)


WORDS = st.text(max_size=60) | st.sampled_from(
    ["Title 1", "1s1", "[2]", "9s9", "#1", "none", "[Retrieval] x", "[[ ## query ## ]]", "Who wrote #1?"]
)
NUMBERS = {"chosen", "useful"}
CHOICES = {
    "route": ["direct", "single", "plan"],
    "action": ["retrieve", "answer"],
    "attribution": list(CREDIBILITY),
    "decision": ["revised", "unconfident"],
}


def nonsense(words: list[str], seed: int) -> Script:
    """Every agent replies with some of the words, in the form that it is asked for."""

    def of(agent: str, fields: dict[str, Any]) -> Callable[[Request], dict[str, Any]]:
        def reply(request: Request) -> dict[str, Any]:
            chosen = Random(f"{seed} {agent} {request.prompt}")

            def value(name: str, default: Any) -> Any:
                if name in CHOICES:
                    return chosen.choice(CHOICES[name])
                if name in NUMBERS or agent == "checker":
                    return chosen.choices(range(-1, 9), k=chosen.randrange(15))
                if isinstance(default, list):
                    return chosen.choices(words, k=chosen.randrange(15))
                return chosen.choice(words) if isinstance(default, str) else chosen.choice([-1, 0, 0.4, 1, 85])

            return {name: value(name, default) for name, default in fields.items()}

        return reply

    defaults = scripted().replies
    return scripted(**{agent: of(agent, fields) for agent, [fields] in defaults.items() if isinstance(fields, dict)})


@pytest.mark.parametrize("kind", PROGRAMS)
@settings(max_examples=10, deadline=None)
@given(words=st.lists(WORDS, min_size=1, max_size=20), seed=st.integers())
def test_nonsense_of_a_readable_form_never_breaks_a_run(kind: type[dspy.Module], words: list[str], seed: int) -> None:
    with playing(nonsense(words, seed), dspy.JSONAdapter()) as script:
        prediction = build(kind)(question="Which title?")
    assert prediction.stop_reason
    assert prediction.trace.lm_calls == len(script.requests)
    assert 0 <= prediction.confidence <= 1
    assert len(set(prediction.evidence)) == len(prediction.evidence)
    assert {item.passage for item in prediction.evidence} <= set(prediction.ranking) <= set(PASSAGES)
    assert len(set(prediction.ranking)) == len(prediction.ranking)


def test_ranking_is_evidence_first_then_as_found() -> None:
    hits = [Hit(passage, 1.0, rank) for rank, passage in enumerate([*PASSAGES, PASSAGES[0]], 1)]
    evidence = [Evidence(PASSAGES[2], 1), Evidence(PASSAGES[0]), Evidence(PASSAGES[2], 0)]
    with running(Run(seen=hits)):
        prediction = conclude("x", 1.0, evidence=evidence, stop="x")
    assert [passage.id for passage in prediction.ranking] == ["p2", "p0", "p1", "p3"]
    assert prediction.evidence == tuple(evidence)


# --- lines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("population of Paris", "population of Paris"),
        (" population\n of  Paris ", "population of Paris"),
        ("'population of Paris'", "population of Paris"),
        ("<population of Paris>", "population of Paris"),
        ("“Vertigo”", "Vertigo"),
        ('"Vertigo" or "Psycho"', '"Vertigo" or "Psycho"'),
        ("'Tis Pity", "'Tis Pity"),
        ("", ""),
        ("None", ""),
        ("(none)", ""),
        ("n/a", ""),
        (None, ""),
        ('""', ""),
        ("None But the Lonely Heart", "None But the Lonely Heart"),
    ],
)
def test_queries(text: object, query: str) -> None:
    assert read_query(text) == (query, ())


# --- how an answer was checked ----------------------------------------------------------------------------------------


def test_an_answer_that_no_passage_has_comes_from_the_model() -> None:
    film = Passage.of("Vertigo", "Vertigo is a film by Alfred Hitchcock.")

    def status(answer: str, **more: Any) -> str:
        with running(Run(seen=[Hit(film, 1.0, 1)])):
            return str(conclude(answer, 0.9, stop="stable", **more).status)

    assert status("Paris") == "model knowledge"
    assert status("Alfred Hitchcock") == "not checked"
    assert status("Paris", evidence=[Evidence(film)]) == "not checked"
    assert status("Paris", status="verified") == "verified"
    assert status("unknown", evidence=[Evidence(film)], status="contradicted") == "no answer"
