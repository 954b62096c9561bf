"""KAIR step by step: who is asked when, what each agent sees, what may enter K and D, and when it stops."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from polyhop.data.passages import Hit, Passage, Retriever
from polyhop.data.pool import PassagePool
from polyhop.engines.lexical import LexicalEngine
from polyhop.programs import Kair
from polyhop.programs.kair import ALONE, FOCI, MOST
from polyhop.programs.trace import Checked, Judged, Learned, Parallel, Proposed, Searched, Selected

from .scripted import Request, Script, answer, playing, scripted

QUESTION = "Where was the director of Vertigo born?"
POOL = [
    Passage.of("Vertigo (film)", sentences=["Vertigo is a film.", "Its director was Alfred Hitchcock."], id="film"),
    Passage.of("Alfred Hitchcock", sentences=["Hitchcock made films.", "He came from Leytonstone."], id="man"),
    Passage.of("Vertigo (album)", sentences=["Vertigo is an album.", "It was produced by Dan."], id="album"),
]
ADAPTERS = [dspy.ChatAdapter(), dspy.JSONAdapter()]
DIRECTED, BORN = "Alfred Hitchcock directed Vertigo.", "Alfred Hitchcock came from Leytonstone."
GAP = "Where was Alfred Hitchcock born?"
FILM_SPAN, MAN_SPAN = "1s2 Its director was Alfred Hitchcock.", "2s2 He came from Leytonstone."
WALK: dict[str, Any] = {
    "querier": {"queries": [QUESTION, "Vertigo album", "Alfred Hitchcock born", "Hitchcock", "Leytonstone"]},
    "updater": [
        {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": [GAP]},
        {"new_facts": [f"{BORN} (2s2)"], "gaps": []},
    ],
    "checker": {"supported": ["1"], "relevant": ["1"]},
    "filterer": [{"spans": [FILM_SPAN]}, {"spans": [MAN_SPAN, FILM_SPAN]}],
    "answerer": answer("Leytonstone"),
}


def play(
    adapter: Any = None,
    *,
    pool: list[Passage] | None = None,
    retriever: Retriever | None = None,
    settings: dict[str, Any] | None = None,
    **replies: Any,
) -> tuple[Script, dspy.Prediction]:
    """The walk-through below, with other replies; one passage a search, so that the chain takes two steps."""
    program = Kair(retriever, k=1)
    for name, value in (settings or {}).items():
        target = program.search if name == "k" else program
        getattr(target, name).value = value
    if pool is None and retriever is None:
        pool = POOL
    with playing(scripted(**(WALK | replies)), adapter) as script:
        prediction = program(question=QUESTION, pool=pool)
    assert prediction.trace.lm_calls == len(script.requests)
    return script, prediction


def facts(prediction: dspy.Prediction) -> list[tuple[str, int | None]]:
    return [tuple(item.fact) for item in prediction.evidence]


def steps(prediction: dspy.Prediction, kind: type) -> list[Any]:
    return [step for step in prediction.trace.flat() if isinstance(step, kind)]


def known(script: Script) -> list[str]:
    texts: list[str] = json.loads(script.asked("answerer")[0].inputs["known"])
    return texts


# --- the walk-through ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_two_steps_one_after_the_other(adapter: Any) -> None:
    script, prediction = play(adapter)
    read = ["updater", "checker", "filterer"]
    assert script.order == [*read, "querier", *read, "answerer"]

    film = "[1] Vertigo (film)\n1s1 Vertigo is a film.\n1s2 Its director was Alfred Hitchcock."
    man = "[2] Alfred Hitchcock\n2s1 Hitchcock made films.\n2s2 He came from Leytonstone."
    kept = "[1] Vertigo (film)\n1s2 Its director was Alfred Hitchcock."
    first, second = (request.inputs for request in script.asked("updater"))
    assert first == {
        "question": QUESTION,
        "focus": ALONE,
        "known": "[]",
        "required": json.dumps([QUESTION]),
        "passages": film,
    }
    assert second == first | {
        "known": json.dumps([DIRECTED]),
        "required": json.dumps([GAP]),
        "passages": f"{kept}\n{man}",
    }
    # The facts are held against the passages that they cite, with the gaps that were open before.
    assert [request.inputs for request in script.asked("checker")] == [
        {"required": json.dumps([QUESTION]), "passages": film, "statements": json.dumps([f"1. {DIRECTED}"])},
        {"required": json.dumps([GAP]), "passages": man, "statements": json.dumps([f"1. {BORN}"])},
    ]
    # The filter goes by the new knowledge: g comes before h.
    first, second = (request.inputs for request in script.asked("filterer"))
    state = {"known": json.dumps([DIRECTED]), "required": json.dumps([GAP])}
    assert first == {"question": QUESTION, **state, "passages": film}
    assert second["known"] == json.dumps([DIRECTED, BORN])
    assert second["required"] == "[]"
    assert second["passages"] == f"{kept}\n{man}"
    assert script.asked("querier")[0].inputs == {
        "question": QUESTION,
        "focus": ALONE,
        "count": "3",
        **state,
        "earlier": json.dumps([QUESTION]),
        "evidence": kept,
    }
    assert script.asked("answerer")[0].inputs == {
        "question": QUESTION,
        "known": json.dumps([DIRECTED, BORN]),
        "evidence": f"[2] Alfred Hitchcock\n2s2 He came from Leytonstone.\n{kept}",
    }
    assert (prediction.answer, prediction.confidence) == ("Leytonstone", 0.9)
    assert facts(prediction) == [("man", 1), ("film", 1)]
    assert [passage.id for passage in prediction.ranking] == ["man", "film"]
    assert prediction.stop_reason == "complete"
    kinds = [record["step"] for record in prediction.trace.to_records()]
    learned = ["searched", "learned", "checked", "selected"]
    assert kinds == [*learned, "proposed", *learned, "answered", "stopped"]
    assert prediction.trace.lm_calls == prediction.trace.lm_calls_critical_path == 8


# --- f and rule (2): which query is asked ----------------------------------------------------------------------------


def test_the_first_query_is_the_question_and_costs_no_call() -> None:
    script, prediction = play(settings={"steps": 1})
    assert script.asked("querier") == []
    assert [step.query for step in steps(prediction, Searched)] == [QUESTION]


@pytest.mark.parametrize(
    ("alpha", "query"), [(0.5, "Alfred Hitchcock born"), (0.0, "Alfred Hitchcock born"), (1.0, "Dan")]
)
def test_the_query_that_is_most_diverse_and_most_relevant_is_asked(alpha: float, query: str) -> None:
    proposed = {"queries": ["director of Vertigo", "Dan", "Alfred Hitchcock born"]}
    _, prediction = play(querier=proposed, settings={"diversity": alpha})
    assert steps(prediction, Searched)[1].query == query
    (step,) = steps(prediction, Proposed)
    assert step.queries[0][0] == query
    assert [worth for _, worth in step.queries] == sorted((worth for _, worth in step.queries), reverse=True)
    assert step.invalid == ()


def test_earlier_queries_repeats_and_too_many_are_left_out() -> None:
    _, prediction = play(querier={"queries": ["where was the director of vertigo born", "A B", "a  b", "", "C"]})
    (step,) = steps(prediction, Proposed)
    assert {query for query, _ in step.queries} == {"A B", "C"}
    assert step.invalid == ("where was the director of vertigo born", "a b")
    _, prediction = play()
    assert len(steps(prediction, Proposed)[0].queries) == 3
    assert steps(prediction, Proposed)[0].invalid == (QUESTION, "Leytonstone")


def test_the_number_of_candidate_queries_is_said_and_kept_to() -> None:
    script, prediction = play(settings={"proposals": 1})
    assert script.asked("querier")[0].inputs["count"] == "1"
    assert [query for query, _ in steps(prediction, Proposed)[0].queries] == ["Vertigo album"]


@pytest.mark.parametrize("queries", [[], [QUESTION], ["", "  "]])
def test_no_new_query_ends_the_loop(queries: list[str]) -> None:
    script, prediction = play(querier={"queries": queries})
    assert prediction.stop_reason == "no new query"
    assert script.order == ["updater", "checker", "filterer", "querier", "answerer"]
    assert facts(prediction) == [("film", 1)]  # what was kept until then


# --- g and rule (5): what enters K and R -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "entered", "unsupported", "irrelevant"),
    [
        ({"supported": ["1", "2"], "relevant": ["1", "2"]}, ["A.", "B."], (), ()),
        ({"supported": ["2"], "relevant": ["1", "2"]}, ["B."], ("A.",), ()),
        ({"supported": ["1", "2"], "relevant": ["1"]}, ["A."], (), ("B.",)),
        ({"supported": ["1"], "relevant": ["2"]}, [], ("B.",), ("A.",)),
        ({"supported": [], "relevant": []}, [], ("A.", "B."), ()),
        ({"supported": "none", "relevant": "1, 2"}, [], ("A.", "B."), ()),
    ],
)
def test_only_facts_that_are_supported_and_relevant_are_known(
    verdict: Any, entered: list[str], unsupported: tuple[str, ...], irrelevant: tuple[str, ...]
) -> None:
    updater = {"new_facts": ["A. (1s1)", "B. (1s2)"], "gaps": [GAP]}
    script, prediction = play(updater=updater, checker=verdict, settings={"steps": 1})
    assert known(script) == entered
    assert steps(prediction, Learned) == [Learned(("A.", "B."), (GAP,))]
    assert steps(prediction, Checked) == [Checked(tuple(entered), unsupported, (), irrelevant)]


def test_a_fact_that_cites_nothing_is_held_against_everything_read() -> None:
    updater = {"new_facts": ["A. (1s1)", "B."], "gaps": []}
    script, _ = play(updater=updater, settings={"steps": 1, "k": 2})
    shown = script.asked("checker")[0].inputs["passages"]
    assert shown == script.asked("updater")[0].inputs["passages"]
    assert "[2] " in shown


def test_without_facts_nothing_is_checked() -> None:
    script, prediction = play(updater={"new_facts": [], "gaps": [GAP]}, settings={"steps": 1})
    assert script.order == ["updater", "filterer", "answerer"]
    assert steps(prediction, Checked) == []


def test_gaps_stay_open_if_the_fact_that_closed_them_is_not_supported() -> None:
    wrong = {"supported": [], "relevant": ["1"]}
    updater = {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": []}
    script, prediction = play(updater=updater, checker=wrong, settings={"steps": 1})
    assert json.loads(script.asked("filterer")[0].inputs["required"]) == [QUESTION]
    assert prediction.stop_reason == "steps"
    # A true fact that merely is of no use reopens nothing.
    _, prediction = play(updater=updater, checker={"supported": ["1"], "relevant": []})
    assert prediction.stop_reason == "complete"


def test_what_is_known_is_not_learned_again() -> None:
    updater = {"new_facts": [f"{DIRECTED} (1s2)", "alfred hitchcock directed vertigo"], "gaps": [GAP, GAP, ""]}
    script, prediction = play(updater=updater, settings={"steps": 2})
    assert known(script) == [DIRECTED]
    assert len(script.asked("checker")) == 1
    first, second = steps(prediction, Learned)
    assert first == Learned((DIRECTED,), (GAP,), ("alfred hitchcock directed vertigo",))
    assert second == Learned((), (GAP,), (DIRECTED, "alfred hitchcock directed vertigo"))


def test_runaway_lists_are_cut_and_citations_of_nothing_reported() -> None:
    many = [f"Fact number {n}." for n in range(MOST + 2)]
    updater = {"new_facts": ["One. (1s9)", *many], "gaps": [f"Who is {n}?" for n in range(MOST + 1)]}
    verdict = {"supported": ["1", "2"], "relevant": ["1", "2", "3"]}
    script, prediction = play(updater=updater, checker=verdict, settings={"steps": 1})
    (step,) = steps(prediction, Learned)
    assert (len(step.known), len(step.required)) == (MOST, MOST)
    assert step.invalid == ("1s9", *many[-3:], f"Who is {MOST}?")
    assert known(script) == ["One.", many[0]]
    assert prediction.trace.dropped == 5


# --- h and rules (3), (4): what enters D -----------------------------------------------------------------------------


def test_spans_that_stand_in_no_document_are_dropped_and_counted() -> None:
    spans = ["Its director was Sir Alfred Hitchcock.", "1s2 Its  director was\nAlfred Hitchcock", "9s9"]
    _, prediction = play(filterer={"spans": spans}, settings={"steps": 1})
    assert facts(prediction) == [("film", 1)]
    assert steps(prediction, Selected)[0].invalid == (spans[0], "9s9")
    assert prediction.trace.dropped == 2


ALBUM = "It was produced by Dan."


def test_a_sentence_that_no_fact_and_no_gap_accepts_is_not_kept() -> None:
    _, prediction = play(filterer={"spans": ["Vertigo is an album.", FILM_SPAN]}, settings={"steps": 1, "k": 3})
    assert facts(prediction) == [("album", 0), ("film", 1)]  # shares "Vertigo" with the fact
    _, prediction = play(
        filterer={"spans": ["Vertigo is an album.", FILM_SPAN]}, settings={"k": 3, "steps": 1, "acceptance": 0.9}
    )
    assert facts(prediction) == [("film", 1)]  # it is cited
    (step,) = steps(prediction, Selected)
    assert (step.kept, step.flagged) == ((("film", 1),), (("album", 0),))


def test_a_sentence_that_only_a_gap_accepts_is_flagged_and_stands_last() -> None:
    updater = {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": ["Who made films?"]}
    spans = {"spans": ["Hitchcock made films.", FILM_SPAN]}
    settings = {"k": 3, "steps": 1, "acceptance": 0.6}
    _, prediction = play(updater=updater, filterer=spans, settings=settings)
    assert facts(prediction) == [("film", 1), ("man", 0)]
    (step,) = steps(prediction, Selected)
    assert step.flagged == (("man", 0),)


def test_or_is_discarded() -> None:
    updater = {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": ["Who made films?"]}
    spans = {"spans": ["Hitchcock made films.", FILM_SPAN]}
    settings = {"k": 3, "steps": 1, "acceptance": 0.6, "unsupported": "discard"}
    _, prediction = play(updater=updater, filterer=spans, settings=settings)
    assert facts(prediction) == [("film", 1)]
    assert steps(prediction, Selected)[0].flagged == (("man", 0),)


def test_the_context_is_what_the_last_filter_kept() -> None:
    _, prediction = play(filterer=[{"spans": [FILM_SPAN]}, {"spans": [MAN_SPAN]}])
    assert facts(prediction) == [("man", 1)]


# --- rule (1): when it stops -----------------------------------------------------------------------------------------


def forever(kind: str) -> Callable[[Request], dict[str, Any]]:
    """Always something new."""
    turns = iter(range(1000))
    if kind == "querier":
        return lambda request: {"queries": [f"{'Hitchcock album Dan'.split()[next(turns) % 3]} {next(turns)}"]}
    return lambda request: {"new_facts": [f"Hitchcock is number {next(turns)}. (1s2)"], "gaps": [GAP]}


@pytest.mark.parametrize("limit", [1, 2, 6])
def test_the_steps_are_limited(limit: int) -> None:
    script, prediction = play(querier=forever("querier"), updater=forever("updater"), settings={"steps": limit})
    assert len(script.asked("updater")) == limit
    assert prediction.stop_reason == "steps"
    assert prediction.trace.lm_calls == 3 * limit + (limit - 1) + 1
    assert prediction.trace.searches == limit


def test_six_steps_of_ten_passages_are_the_default() -> None:
    program = Kair()
    assert (program.steps.value, program.search.k.value, program.agents.value) == (6, 10, 1)
    assert (program.diversity.value, program.acceptance.value, program.sufficiency.value) == (0.5, 0.3, 0.75)
    assert (program.proposals.value, program.moderated.value) == (3, False)


def test_a_step_that_finds_and_teaches_nothing_new_is_the_last() -> None:
    updater = {"new_facts": [], "gaps": [GAP]}
    script, prediction = play(updater=updater, querier=forever("querier"), settings={"k": 3})
    assert prediction.stop_reason == "stable"
    assert len(script.asked("updater")) == 2  # the first replaced the question by the gap


@pytest.mark.parametrize(
    ("score", "stop", "asked"), [(0.75, "sufficient", 1), ("0.7", "complete", 1), (80, "sufficient", 1)]
)
def test_the_moderator_may_stop_it(score: Any, stop: str, asked: int) -> None:
    script, prediction = play(moderator={"sufficiency": score}, settings={"moderated": True})
    assert prediction.stop_reason == stop
    assert len(script.asked("moderator")) == asked  # not where nothing is required any more
    kept = "[1] Vertigo (film)\n1s2 Its director was Alfred Hitchcock."
    assert script.asked("moderator")[0].inputs == {"question": QUESTION, "evidence": kept}
    assert [step.aspect for step in steps(prediction, Judged)] == ["sufficiency"]


def test_by_default_there_is_no_moderator() -> None:
    script, _ = play(moderator={"sufficiency": 1})
    assert script.asked("moderator") == []


def test_nothing_found_means_nothing_to_read() -> None:
    script, prediction = play(pool=[], answerer=answer("London", 0.9))
    assert script.order == []
    assert (prediction.answer, prediction.evidence, prediction.ranking) == ("unknown", (), ())
    assert prediction.stop_reason == "nothing found"


class Shelf:
    """Finds the film for whatever speaks of Vertigo, and nothing else."""

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        return [Hit(POOL[0], 1.0, 1)] if "Vertigo" in query else []

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [self.search(query, k) for query in queries]


def test_nothing_found_later_keeps_what_there_is() -> None:
    script, prediction = play(querier={"queries": ["xyzzy"]}, retriever=Shelf())
    assert prediction.stop_reason == "nothing found"
    assert script.order == ["updater", "checker", "filterer", "querier", "answerer"]
    assert facts(prediction) == [("film", 1)]


# --- several agents --------------------------------------------------------------------------------------------------


def by_focus(**replies: dict[str, Any]) -> Callable[[Request], dict[str, Any]]:
    """A reply for each focus, by its first word."""
    return lambda request: replies[request.inputs["focus"].split(":")[0]]


COMPETE: dict[str, Any] = {"agents": 2, "k": 1}


def compete(settings: dict[str, Any] | None = None, **replies: Any) -> tuple[Script, dspy.Prediction]:
    common: dict[str, Any] = {
        "querier": by_focus(entities={"queries": ["Leytonstone"]}, relations={"queries": ["Alfred Hitchcock"]}),
        "updater": by_focus(
            entities={"new_facts": [f"{DIRECTED} (1s2)"], "gaps": ["Who?", "Where?"]},
            relations={"new_facts": [f"{BORN} (2s2)"], "gaps": ["Where?"]},
        ),
        "filterer": {"spans": [MAN_SPAN, FILM_SPAN]},
    }
    return play(settings=COMPETE | (settings or {}), **(common | replies))


def test_of_competing_agents_the_one_with_the_fewest_gaps_writes_the_context() -> None:
    script, prediction = compete({"steps": 1})
    assert script.order[0] == "querier"  # the first asks the question; the second would only repeat it
    assert script.asked("querier")[0].inputs["focus"] == FOCI[1]
    assert script.asked("querier")[0].inputs["earlier"] == json.dumps([QUESTION])
    assert {step.query for step in steps(prediction, Searched)} == {QUESTION, "Alfred Hitchcock"}
    assert len(script.asked("updater")) == len(script.asked("checker")) == 2
    (request,) = script.asked("filterer")
    assert request.inputs["known"] == json.dumps([BORN])
    assert request.inputs["required"] == json.dumps(["Where?"])
    assert request.inputs["passages"].startswith("[2] Alfred Hitchcock")  # D_new is what the winner found
    assert "[1] " not in request.inputs["passages"]
    assert known(script) == [BORN]
    assert prediction.trace.lm_calls == 7
    assert prediction.trace.lm_calls_critical_path == 5  # querier, updater, checker, filterer, answerer
    assert sum(isinstance(step, Parallel) for step in prediction.trace.steps) == 2


def test_no_competing_agent_repeats_the_first_query() -> None:
    replies = by_focus(entities={"queries": []}, relations={"queries": [QUESTION.upper(), "Alfred Hitchcock"]})
    _, prediction = compete({"steps": 1}, querier=replies)
    assert {step.query for step in steps(prediction, Searched)} == {QUESTION, "Alfred Hitchcock"}


def test_ties_go_to_the_first() -> None:
    both = {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": ["Where?"]}
    other = {"new_facts": [f"{BORN} (2s2)"], "gaps": ["Who?"]}
    script, _ = compete({"steps": 1}, updater=by_focus(entities=both, relations=other))
    assert known(script) == [DIRECTED]


def test_competing_agents_know_their_own_and_share_the_context() -> None:
    script, _ = compete({"steps": 2})
    seen = {
        request.inputs["focus"]: request.inputs
        for request in script.asked("querier")
        if request.inputs["known"] != "[]"
    }
    assert set(seen) == set(FOCI[:2])
    assert seen[FOCI[0]]["known"] == json.dumps([DIRECTED])
    assert seen[FOCI[0]]["earlier"] == json.dumps([QUESTION])
    assert seen[FOCI[0]]["required"] == json.dumps(["Who?", "Where?"])
    assert seen[FOCI[1]]["known"] == json.dumps([BORN])
    assert seen[FOCI[1]]["earlier"] == json.dumps([QUESTION, "Alfred Hitchcock"])
    assert seen[FOCI[0]]["evidence"] == seen[FOCI[1]]["evidence"] != "(none)"


def test_any_agent_without_gaps_ends_the_competition() -> None:
    done = {"new_facts": [f"{BORN} (2s2)"], "gaps": []}
    script, prediction = compete(updater=by_focus(entities={"new_facts": [], "gaps": ["A?", "B?"]}, relations=done))
    assert prediction.stop_reason == "complete"
    assert len(script.asked("updater")) == 2
    assert known(script) == [BORN]


def test_an_agent_that_found_nothing_makes_no_proposal() -> None:
    script, prediction = compete({"steps": 1}, querier={"queries": ["xyzzy"]}, retriever=Shelf())
    assert known(script) == [DIRECTED]  # though two gaps are more than the question that the other was left with
    assert len(script.asked("updater")) == 1
    assert prediction.stop_reason == "steps"


def collaborate(settings: dict[str, Any] | None = None, **replies: Any) -> tuple[Script, dspy.Prediction]:
    def update(request: Request) -> dict[str, Any]:
        if request.inputs["required"] == json.dumps([QUESTION]):
            return {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": ["Who is A?", "Who is B?", "Who is C?"]}
        if "Who is A?" in request.inputs["required"]:
            return {"new_facts": ["A is known. (1s1)"], "gaps": ["Who is C?", "Who is B?"]}
        return {"new_facts": ["B is known. (1s1)"], "gaps": ["Who is A?"]}

    common: dict[str, Any] = {
        "querier": by_focus(
            entities={"queries": ["Hitchcock"]}, relations={"queries": ["album"]}, **{ALONE: {"queries": ["actor"]}}
        ),
        "updater": update,
        "filterer": {"spans": [FILM_SPAN, "2s1"]},
    }
    return play(settings={"agents": 2, "mode": "collaboration"} | (settings or {}), **(common | replies))


def test_collaborating_agents_are_dealt_the_gaps() -> None:
    script, prediction = collaborate({"steps": 2})
    # One gap, the question, is for one agent; of three, the first and third are for the first agent.
    shares = {request.inputs["focus"]: request.inputs["required"] for request in script.asked("querier")}
    assert shares == {FOCI[0]: json.dumps(["Who is A?", "Who is C?"]), FOCI[1]: json.dumps(["Who is B?"])}
    assert {request.inputs["earlier"] for request in script.asked("querier")} == {json.dumps([QUESTION])}
    assert {request.inputs["known"] for request in script.asked("querier")} == {json.dumps([DIRECTED])}
    assert len(script.asked("updater")) == 3
    _, second = script.asked("filterer")  # one context, from what all found
    assert second.inputs["known"] == json.dumps([DIRECTED, "A is known.", "B is known."])
    # The second closed its gap, whatever the first says of it, and may not reopen the first's.
    assert second.inputs["required"] == json.dumps(["Who is C?"])
    assert second.inputs["passages"].count("[") == 3
    assert known(script) == [DIRECTED, "A is known.", "B is known."]
    assert prediction.trace.lm_calls == 3 + 2 * 3 + 1 + 1
    assert prediction.trace.lm_calls_critical_path == 3 + 4 + 1


def test_collaborating_agents_end_when_nothing_is_required() -> None:
    _, prediction = collaborate(updater={"new_facts": [f"{DIRECTED} (1s2)"], "gaps": []})
    assert prediction.stop_reason == "complete"


def test_queries_of_all_are_remembered_on_the_blackboard() -> None:
    script, _ = collaborate({"steps": 3})
    last = script.asked("querier")[-1].inputs
    assert last["earlier"] == json.dumps([QUESTION, "Hitchcock", "album"])


# --- replies that are none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["updater", "checker", "filterer", "querier", "answerer", "moderator"])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_reply_that_cannot_be_read_is_an_error_never_an_answer(agent: str, adapter: Any) -> None:
    replies: dict[str, Any] = {agent: "I am afraid I cannot do that.\nSorry."}
    with pytest.raises(AdapterParseError):
        play(adapter, settings={"moderated": True}, **replies)


@pytest.mark.parametrize("agents", [1, 3])
def test_an_error_of_the_engine_comes_through(agents: int) -> None:
    with pytest.raises(Exception, match="out of memory"):
        play(updater=RuntimeError("out of memory"), settings={"agents": agents}, querier={"queries": ["album"]})


def test_nonsense_numbers_and_lists_as_text() -> None:
    script, prediction = play(
        updater={"new_facts": f"- {DIRECTED} (1s2)\n- It is a film. (1s1)", "gaps": "none"},
        checker={"supported": ["7", "2", "1", "1"], "relevant": "1, 2, 0"},
        filterer={"spans": "- 1s2 Its director was Alfred Hitchcock.\n- 1s2"},
    )
    assert known(script) == [DIRECTED, "It is a film."]
    assert facts(prediction) == [("film", 1)]
    assert steps(prediction, Checked)[0].invalid == ("7", "0")
    assert prediction.stop_reason == "complete"


def test_an_answer_longer_than_a_page_is_cut() -> None:
    _, prediction = play(answerer=answer("word " * 2000))
    assert len(prediction.answer) <= 400
    assert prediction.trace.dropped == 3  # and two queries


# --- with the embedded engine ----------------------------------------------------------------------------------------

WORLD = [
    Passage.of("Solaris (1972 film)", sentences=["Solaris is a film directed by Andrei Tarkovsky.", "It is long."]),
    Passage.of("Andrei Tarkovsky", sentences=["Andrei Tarkovsky was a director.", "He was born in Zavrazhye."]),
    Passage.of("Zavrazhye", sentences=["Zavrazhye is a village on the Volga."]),
    Passage.of("Lake Solaris", sentences=["Lake Solaris is a lake where a director of parks was born in Canada."]),
    Passage.of("Volga", sentences=["The Volga flows through Russia."]),
]


@pytest.mark.parametrize("k", [1, 10])
@pytest.mark.parametrize(("agents", "mode"), [(1, "competition"), (3, "competition"), (2, "collaboration")])
def test_the_lexical_engine_plays_all_agents(k: int, agents: int, mode: str) -> None:
    program = Kair(k=k, agents=agents, mode=mode)
    program.moderated.value = True
    with dspy.context(lm=dspy.LM("lexical", engine=LexicalEngine(), cache=False)):
        prediction = program(question="Where was the director of Solaris (1972 film) born?", pool=WORLD)
    assert prediction.answer == "Zavrazhye"
    assert prediction.stop_reason == "complete"
    assert {item.text for item in prediction.evidence} >= {WORLD[0].sentences[0], WORLD[1].sentences[1]}
    assert "Lake Solaris" not in {item.passage.title for item in prediction.evidence}
    assert prediction.trace.searches >= (2 if k == 1 else 1)


def test_programs_are_saved_and_loaded(tmp_path: Any) -> None:
    program = Kair(PassagePool(POOL), k=7, steps=3, agents=2, mode="collaboration")
    program.unsupported.value = "discard"
    program.save(tmp_path / "kair.json")
    fresh = Kair(PassagePool(POOL))
    fresh.load(tmp_path / "kair.json")
    assert (fresh.search.k.value, fresh.steps.value, fresh.agents.value) == (7, 3, 2)
    assert (fresh.mode.value, fresh.unsupported.value) == ("collaboration", "discard")
