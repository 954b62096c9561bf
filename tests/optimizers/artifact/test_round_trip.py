"""Saved programs load with the same parameters, prompts (byte for byte) and predictions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Lock
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import polyhop
from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Evidence
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.optimizers.artifact import ArtifactError, read
from polyhop.optimizers.artifact_format import rendered
from polyhop.programs import PROGRAMS, Exemplar, Exemplars, Prism, Tunable, new_program, tunables
from polyhop.programs.complexity import Complexity, ComplexityEstimator
from polyhop.programs.tunable import choice, integer, real
from polyhop.signatures import NumberedPassage, NumberedPassages

RETRIEVERS = {"bm25": None, "chain": ChainRetriever()}
KINDS = [(name, "chain" if kind.searches and name != "prism" else "bm25") for name, kind in PROGRAMS.items()]
POOL = PassagePool(sample_passages())


def build(name: str, kind: str) -> Any:
    return new_program(name, RETRIEVERS[kind])


def state(program: dspy.Module) -> Any:
    """With the values as JSON has them."""
    return json.loads(json.dumps(program.dump_state()))


# --- values ----------------------------------------------------------------------------------------------------------

texts = st.one_of(
    st.text(max_size=30), st.sampled_from(["{{ question }}", "{% if %}", "[[ ## keep ## ]]", "a\r\nb\x00"])
)
sentences = st.dictionaries(st.integers(1, 30), texts, max_size=3)
passages = st.builds(
    lambda shown: NumberedPassages(passages=shown),
    st.lists(st.builds(NumberedPassage, number=st.integers(1, 99), title=texts, sentences=sentences), max_size=2),
)


def value_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values as bootstrapped demos carry them: of the field's type."""
    if annotation is NumberedPassages:
        return passages
    if isinstance(annotation, type) and issubclass(annotation, float):
        return st.floats(0, 1)
    if isinstance(annotation, type) and issubclass(annotation, list):
        if "dict" in annotation.__name__:
            return st.lists(st.fixed_dictionaries({"thought": texts, "question": texts}), max_size=2)
        return st.lists(texts, max_size=3).map(annotation)
    if annotation == list[str]:
        return st.lists(texts, max_size=3)
    return st.integers(0, 9) if annotation is int else texts


def value_in(tunable: Tunable[Any]) -> st.SearchStrategy[Any]:
    if tunable.choices:
        return st.sampled_from(tunable.choices)
    if isinstance(tunable.low, int):
        return st.integers(tunable.low, tunable.high)
    return st.floats(tunable.low, tunable.high)


def exemplars() -> st.SearchStrategy[Exemplar]:
    text = st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip()) and "#" not in text)
    return st.builds(Exemplar, text, st.lists(text, min_size=1, max_size=3).map(tuple), st.integers(1, 4), texts)


def tune(program: Any, data: st.DataObject) -> None:
    """Change everything that an optimizer can."""
    for tunable in tunables(program).values():
        tunable.value = data.draw(value_in(tunable))
    for predictor in program.predictors():
        signature = predictor.signature
        if data.draw(st.booleans()):
            predictor.signature = signature.with_instructions(data.draw(texts.filter(bool)))
        demos = data.draw(st.integers(0, 2))
        drawn = [{name: data.draw(value_of(field.annotation)) for name, field in signature.fields.items()}] * demos
        wraps = [lambda demo: dspy.Example(augmented=True, **demo), dict]
        predictor.demos = [data.draw(st.sampled_from(wraps))(demo) for demo in drawn]
    for part in (part for _, part in program.named_sub_modules(Exemplars)):
        drawn = [each.to_record() for each in data.draw(st.lists(exemplars(), max_size=3))]
        most = data.draw(st.dictionaries(st.sampled_from("1234"), st.integers(0, 8)))
        part.memory.load_state({"exemplars": drawn, "most": most})


@pytest.mark.parametrize(("name", "kind"), KINDS)
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_everything_tuned_is_loaded(name: str, kind: str, data: st.DataObject, tmp_path: Path) -> None:
    before = build(name, kind)
    tune(before, data)
    polyhop.save(before, tmp_path / "best")
    after = polyhop.load(tmp_path / "best", RETRIEVERS[kind])
    assert type(after) is type(before)
    assert state(after) == state(before)
    for old, new in zip(before.predictors(), after.predictors(), strict=True):
        assert new.signature.__name__ != "StringSignature"
        for demo, loaded in zip(old.demos, new.demos, strict=True):
            assert rendered(new.signature, loaded) == rendered(old.signature, demo)
    polyhop.save(after, tmp_path / "again")
    assert read(tmp_path / "again").state == read(tmp_path / "best").state


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_it_answers_as_before(name: str, kind: str, tmp_path: Path) -> None:
    retriever = ChainRetriever(POOL) if kind == "chain" else POOL
    before = new_program(name, retriever)
    if "rounds" in tunables(before):
        before.rounds.value = 2
    if kind == "chain":
        before.search.chain["link"].value = 0.4
    polyhop.save(before, tmp_path / "best")
    after = polyhop.load(tmp_path / "best", retriever if before.searches else None)
    for program in (before, after):
        program.set_lm(polyhop.lm())
    for example in load_sample()[:3]:
        gold: dict[str, Any] = {"gold": [Evidence(POOL.passages[0])]} if before.reads_gold else {}
        first, second = before(question=example.question, **gold), after(question=example.question, **gold)
        assert (first.answer, first.confidence, first.evidence) == (second.answer, second.confidence, second.evidence)
        assert first.trace.to_records() == second.trace.to_records()


# --- programs of somebody's own --------------------------------------------------------------------------------------


class Note(BaseModel):
    text: str
    marks: list[int]


class Own(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.depth = integer(3, 1, 9, log=True)
        self.weight = real(0.5, 0.0, 1.0)
        self.strict = choice(True, (True, False))
        self.steps = [dspy.ChainOfThought("question, note: list[str] -> verdict: bool, score: float") for _ in range(2)]
        self.memories = {"first": Exemplars(), "second": Exemplars([Exemplar("Who?", ("Who?",), 1)])}


def test_a_program_of_ones_own_is_loaded_into_one(tmp_path: Path) -> None:
    before = Own()
    before.depth.value, before.strict.value = 7, False
    note = Note(text="é\n", marks=[1])
    before.steps[1].predict.demos = [
        dspy.Example(question="q", note=[note, "b"], reasoning="so", verdict=True, score=0.25).with_inputs("question"),
        {"question": "p", "verdict": None, "score": 1},
    ]
    before.set_lm(polyhop.lm())
    polyhop.save(before, tmp_path / "own")
    with pytest.raises(ArtifactError, match=r"your own class 'Own': load it with polyhop.load\(dir, program="):
        polyhop.load(tmp_path / "own")
    mine = Own()
    mine.set_lm(polyhop.lm())
    assert polyhop.load(tmp_path / "own", program=mine) is mine
    assert (mine.depth.value, mine.strict.value) == (7, False)
    assert [len(part.memory) for part in mine.memories.values()] == [24, 1]
    old, new = before.steps[1].predict, mine.steps[1].predict
    assert [rendered(new.signature, demo) for demo in new.demos] == [
        rendered(old.signature, demo) for demo in old.demos
    ]
    assert new.lm is not None  # models are left alone


def test_a_model_that_cannot_be_copied_is_left_alone(tmp_path: Path) -> None:
    class Engine:
        def __init__(self) -> None:
            self.mine = Lock()

        def complete(self, request: Any) -> Any:
            raise NotImplementedError

    before, after = Own(), Own()
    model = dspy.LM("mine", engine=Engine())
    for program in (before, after):
        program.set_lm(model)
    polyhop.save(before, tmp_path / "own")
    assert polyhop.load(tmp_path / "own", program=after).steps[0].predict.lm is model


class Odd(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.agent = dspy.Predict("question -> answer")


@pytest.mark.parametrize(
    ("demo", "message"),
    [
        ({"question": float("nan"), "answer": "a"}, "agent 'agent', demo 0 cannot be saved: Out of range float"),
        ({"question": "\ud800", "answer": "a"}, "demo 0 cannot be saved: .*surrogates not allowed"),
        ({"question": [1, 2], "answer": "a"}, "demo 0 cannot be saved: argument of type 'int'"),
        ({"question": ("a", "b"), "answer": "a"}, "demo 0 cannot be saved: its JSON gives another prompt"),
    ],
)
def test_a_demo_that_json_cannot_hold_is_refused(demo: Any, message: str, tmp_path: Path) -> None:
    program = Odd()
    program.agent.demos = [demo]
    with pytest.raises(ArtifactError, match=message):
        polyhop.save(program, tmp_path / "odd")
    assert os.listdir(tmp_path) == []


def test_what_would_not_load_is_not_saved(tmp_path: Path) -> None:
    program = Prism()
    program.another = dspy.Predict("question -> answer")
    with pytest.raises(ArtifactError, match="since it would not load: .*agent 'another' is not in this version"):
        polyhop.save(program, tmp_path / "odd")
    program = Prism()
    program.selector.signature = program.selector.signature.with_updated_fields("keep", desc="the best")
    with pytest.raises(ArtifactError, match="agent 'selector': field 'keep' has another description"):
        polyhop.save(program, tmp_path / "odd")
    assert os.listdir(tmp_path) == []


def test_what_copro_tunes_is_kept(tmp_path: Path) -> None:
    program = Prism()
    program.selector.signature = program.selector.signature.with_updated_fields("keep", prefix="Best:")
    polyhop.save(program, tmp_path / "best")
    assert polyhop.load(tmp_path / "best").selector.signature.fields["keep"].json_schema_extra["prefix"] == "Best:"


def test_a_trained_estimator_of_complexity_is_kept(tmp_path: Path) -> None:
    head = ComplexityEstimator().head
    biased = head.model_copy(update={"biases": (0.0, 0.0, 99.0, 0.0)})
    polyhop.save(polyhop.ParRag(estimator=ComplexityEstimator(biased)), tmp_path / "artifact")
    assert all(path.suffix in (".json", ".jsonl") for path in (tmp_path / "artifact").iterdir())
    loaded = polyhop.load(tmp_path / "artifact")
    assert loaded.estimator.head == biased
    with pytest.raises(ArtifactError, match="would not load: .* parameter 'estimator' is not in the artifact"):
        polyhop.save(polyhop.ParRag(estimator=lambda question: Complexity.of(2)), tmp_path / "function")
