"""Feedback names what was missed, agent by agent."""

from __future__ import annotations

import inspect
from typing import Any

import dspy

from polyhop.data.passages import Evidence, Fact, Passage
from polyhop.data.sample import SubQuestion
from polyhop.eval import metrics
from polyhop.eval.feedback import explain, with_feedback
from polyhop.programs.trace import Added, Selected, Trace

FILM = Passage.of("Solaris", sentences=["Solaris is a film.", "Andrei Tarkovsky directed it."], id="film")
DIRECTOR = Passage.of("Andrei Tarkovsky", sentences=["He was a director.", "He was born in Zavrazhye."], id="director")
NOISE = Passage.of("Solaris (novel)", sentences=["A novel by Lem."], id="noise")
EXAMPLE = dspy.Example(
    question="Where was the director of Solaris born?",
    answers=("Zavrazhye", "Zavrazhye village"),
    gold_passages=("film", "director"),
    gold_facts=(Fact("film", 1), Fact("director", 1)),
    sub_questions=(
        SubQuestion("Who directed Solaris?", "Andrei Tarkovsky", "film"),
        SubQuestion("Where was #1 born?", "Zavrazhye", "director"),
    ),
).with_inputs("question")


def prediction(
    answer: str = "Zavrazhye",
    evidence: tuple[Evidence, ...] = (Evidence(FILM, 1), Evidence(DIRECTOR, 1)),
    ranking: tuple[Passage, ...] = (FILM, DIRECTOR, NOISE),
    steps: tuple[Any, ...] = (),
) -> dspy.Prediction:
    return dspy.Prediction(answer=answer, evidence=evidence, ranking=ranking, trace=Trace(list(steps)))


def test_all_is_well() -> None:
    assert explain(EXAMPLE, prediction()) == (
        'The answer "Zavrazhye" is right. The search found all needed passages. '
        "The evidence is complete and has nothing irrelevant in it."
    )


def test_a_wrong_answer_names_the_expected_one() -> None:
    text = explain(EXAMPLE, prediction("Moscow"))
    assert 'The answer "Moscow" is wrong: expected "Zavrazhye" (or "Zavrazhye village").' in text
    assert "shares words" not in text
    assert "shares words" in explain(EXAMPLE, prediction("Zavrazhye in Russia"))


def test_missing_and_irrelevant_evidence_is_named_by_title_and_words() -> None:
    text = explain(EXAMPLE, prediction(evidence=(Evidence(FILM, 1), Evidence(NOISE))))
    assert 'misses "Andrei Tarkovsky" (He was born in Zavrazhye.)' in text
    assert 'also contains what the answer does not need: "Solaris (novel)".' in text


def test_the_analyzer_hears_what_was_not_found() -> None:
    text = explain(EXAMPLE, prediction(evidence=(Evidence(FILM, 1),), ranking=(FILM, NOISE)), "analyzer.predict")
    assert "(1) Who directed Solaris? (2) Where was #1 born?" in text
    assert 'The search did not find "director"' in text  # never seen: the id is all there is
    pool = explain(EXAMPLE.copy(pool=[FILM, DIRECTOR]), prediction(evidence=(), ranking=(FILM,)), "analyzer")
    assert 'The search did not find "Andrei Tarkovsky"' in pool


def test_the_selector_hears_what_it_dropped_and_kept_in_vain() -> None:
    steps = (Selected(1, (Fact("film", 0), Fact("noise", 0))), Added(1, (Fact("film", 1), Fact("director", 1))))
    text = explain(EXAMPLE, prediction(steps=steps), "selector")
    assert text == explain(EXAMPLE, prediction(steps=steps), "gatherer")
    assert 'Round 1 dropped "Solaris" (Andrei Tarkovsky directed it.), "Andrei Tarkovsky" (He was born' in text
    assert (
        'Round 1 kept what the answer does not need: "Solaris" (Solaris is a film.), "Solaris (novel)" (A nov' in text
    )
    unseen = explain(EXAMPLE, prediction(steps=(Selected(1, (Fact("film", 1),)),), ranking=(FILM,)), "selector")
    assert "dropped" not in unseen  # what was never a candidate was not dropped


def test_the_adder_hears_what_it_could_have_added() -> None:
    steps = (Selected(1, (Fact("film", 1),)), Added(1, (Fact("noise", None),)))
    text = explain(EXAMPLE, prediction(steps=steps), "adder")
    assert 'Round 1 should have added "Andrei Tarkovsky" (He was born in Zavrazhye.).' in text
    assert 'Round 1 added what the answer does not need: "Solaris (novel)".' in text


def test_rounds_without_fault_are_said_to_be_so() -> None:
    both = (Fact("film", 1), Fact("director", 1))
    given = prediction(steps=(Selected(1, both), Added(1, ())))
    assert "kept what was needed" in explain(EXAMPLE, given, "selector")
    assert "Nothing was left to add" in explain(EXAMPLE, given, "adder")
    assert explain(EXAMPLE, prediction(), "selector").startswith("The evidence is complete")  # no rounds in the trace


def test_the_answerer_hears_whether_it_had_the_evidence() -> None:
    assert "The evidence was complete" in explain(EXAMPLE, prediction("Moscow"), "answerer")
    without = explain(EXAMPLE, prediction("Moscow", evidence=(Evidence(FILM, 1),)), "answerer")
    assert 'did not contain "Andrei Tarkovsky"' in without


def test_a_question_without_evidence() -> None:
    example = dspy.Example(question="q", answers=("unknown",))
    given = prediction("Paris", evidence=(), ranking=())
    for agent in (None, "analyzer", "selector", "adder", "answerer"):
        assert explain(example, given, agent)


def test_the_metric_is_what_gepa_wants() -> None:
    metric: Any = with_feedback(metrics.answer_em)
    inspect.signature(metric).bind(None, None, None, None, None)
    result = metric(EXAMPLE, prediction("Moscow"), [], "answerer", [])
    assert isinstance(result, dspy.Prediction)
    assert result.score == 0.0
    assert "expected" in result.feedback
    assert metric(EXAMPLE, prediction(), []) is True  # exemplars are collected: a verdict
    assert metric(EXAMPLE, prediction()).score == 1.0


class Constant(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.answerer = dspy.Predict("question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        self.answerer(question=question)
        return prediction("Moscow", evidence=(Evidence(FILM, 1),))


def test_gepa_takes_it() -> None:
    reflection = dspy.utils.DummyLM([{"new_instruction": "Answer well."}] * 10)
    with dspy.context(lm=dspy.utils.DummyLM([{"answer": "x"}] * 50)):
        gepa = dspy.GEPA(metric=with_feedback(), max_metric_calls=8, reflection_lm=reflection, num_threads=1)
        gepa.compile(Constant(), trainset=[EXAMPLE] * 3, valset=[EXAMPLE] * 2)
    assert "The evidence did not contain" in str(reflection.history)
