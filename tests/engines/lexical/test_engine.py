"""The engine finds a skill for every signature, and plays whole programs on a small world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dspy
import pytest

from polyhop import signatures
from polyhop.data.passages import Passage
from polyhop.engines.lexical import LexicalEngine, ParsedPrompt, engine, skill
from polyhop.programs import Prism
from polyhop.programs.candidates import Candidates
from polyhop.signatures import AddEvidence, SelectEvidence

from .play import play

SIGNATURES: list[Any] = [
    each for each in vars(signatures).values() if isinstance(each, type) and issubclass(each, dspy.Signature)
]

QUESTION = "Where was the director of Solaris (1972 film) born?"


@pytest.fixture(autouse=True)
def lexical() -> Iterator[None]:
    """The engine as DSPy's language model."""
    with dspy.context(lm=dspy.LM("lexical", engine=LexicalEngine(), cache=False)):
        yield


PARTS = [
    ("Solaris (1972 film)", "The film Solaris (1972 film) was shown in Cannes, where the director was born again."),
    ("Solaris (1972 film)", "It is a Soviet film directed by Andrei Tarkovsky."),
    ("Andrei Tarkovsky", "Andrei Tarkovsky (4 April 1932 – 29 December 1986) was a Soviet director."),
    ("Andrei Tarkovsky", "He was born in Zavrazhye."),
    ("Lake Solaris", "Lake Solaris is a lake in Canada where a director of parks was born."),
]
WORLD = [Passage.of(title, text, id=text) for title, text in PARTS]


def test_passages_of_one_document_are_read_together() -> None:
    steps = ["Who is the director of Solaris (1972 film)?", "Where was #1 born?"]
    task = {"question": QUESTION, "sub_questions": steps, "candidates": Candidates(WORLD).show()}
    assert {"2s1", "4s1"} <= set(dspy.Predict(SelectEvidence)(**task, selected=[]).keep)
    assert dspy.Predict(AddEvidence)(**task, selected=["2s1", "4s1"]).add == []


def test_the_loop_ends_stable_with_the_chain_and_the_answer() -> None:
    prediction = Prism()(question=QUESTION, pool=WORLD)
    assert (prediction.answer, prediction.stop_reason) == ("Zavrazhye", "stable")
    assert {"Solaris (1972 film)", "Andrei Tarkovsky"} <= {item.passage.title for item in prediction.evidence}


def test_replies_do_not_depend_on_the_process(printed: Callable[[str], set[str]]) -> None:
    """The order of sets does (PYTHONHASHSEED), and so does which thread is first."""
    code = (
        "import dspy, polyhop\n"
        "from polyhop.data.sample import load_sample, sample_passages\n"
        "from polyhop.programs import C3PO, IRCoT, ParRag, Prism\n"
        "dspy.configure(lm=polyhop.lm('lexical'))\n"
        "chain = polyhop.ChainRetriever(polyhop.PassagePool(sample_passages()))\n"
        "for kind in (C3PO, IRCoT, ParRag, Prism):\n"
        "    print([kind(chain)(**q.inputs()).trace.to_records() for q in list(load_sample('dev'))[:1]])"
    )
    assert len(printed(code)) == 1


@pytest.mark.parametrize("asked", ["question -> poem", "question -> answer, mood", "text -> answer"])
def test_a_signature_without_a_skill_is_an_error_that_says_how_to_register_one(asked: str) -> None:
    inputs, outputs = (", ".join(sorted(names.split(", "))) for names in asked.split(" -> "))
    message = rf"no skill for the signature '{inputs} -> {outputs}': name a language model with --lm, or register one"
    with pytest.raises(Exception, match=message):
        dspy.Predict(asked)(question="Solaris?", text="Solaris?")


class CountWords(dspy.Signature):
    """Count."""

    text: str = dspy.InputField()
    unit: str = dspy.InputField()
    count: int = dspy.OutputField()


def test_a_skill_of_a_users_program_serves_its_signature_whatever_the_order_of_its_fields(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "_SKILLS", engine._SKILLS.copy())

    @skill(CountWords)
    def count_words(prompt: ParsedPrompt) -> dict[str, Any]:
        return {"count": len(prompt.inputs["text"].split())}

    for signature in (CountWords, "unit, text -> count: int", "text, unit -> reasoning, count: int"):
        assert dspy.Predict(signature)(text="a b c", unit="word").count == 3


@pytest.mark.parametrize("signature", SIGNATURES)
def test_skills_survive_nonsense(signature: type[dspy.Signature]) -> None:
    for text in ("", "[1] \n", "]]][[[", "[1] T\n1s1 \n", "no ids", "[1] A\n9s9 x", "#1 a -> b"):
        reply = play(signature, **dict.fromkeys(signature.input_fields, text))
        assert set(reply) >= set(signature.output_fields) - {"reasoning"}
