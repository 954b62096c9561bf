"""The token budget of one call, with every program at its default settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyhop
from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.engines.costs import Ledger
from polyhop.engines.replies import estimated_tokens
from polyhop.optimizers.tunables.space import SearchSpace
from polyhop.programs import PROGRAMS, new_program
from polyhop.programs.candidates import Candidates
from polyhop.programs.excerpts import excerpt
from polyhop.programs.scope import PROMPT_TOKENS
from polyhop.programs.trace import Shortened
from polyhop.signatures.fields import NumberedPassages

from .scripted import FILM, QUESTION, answer, playing, scripted, steps

MOST = 8_000
FILLER = "The yearly report describes further meetings of several committees in the region."
BRIDGE = "Its founder was Otto Lind, an engineer of note."
ASKED = "Who founded the company that Ada Berg works for?"
CHINESE = "公司在北京成立并且每年出版一份很长的报告其中没有空格"


def long(title: str, stated: str, sentences: int) -> Passage:
    half = [FILLER] * (sentences // 2)
    return Passage.of(title, " ".join([*half, stated, *half]))


def corpus(sentences: int) -> list[Passage]:
    ada = long("Ada Berg", "Ada Berg works for Kestrel Instruments, a company of Oslo.", sentences)
    kestrel = long("Kestrel Instruments", f"Kestrel Instruments is a company. {BRIDGE}", sentences)
    return [ada, kestrel, *(long(f"Company {n}", f"Company {n} was founded by nobody.", sentences) for n in range(20))]


@cache
def pool(kind: str) -> PassagePool:
    return PassagePool(POOLS[kind]())


POOLS: dict[str, Callable[[], list[Passage]]] = {
    "12 kB": lambda: corpus(150),
    "1 MB": lambda: corpus(12_000)[:3],
    "1,000 passages": lambda: [Passage.of(f"Company {n}", f"Ada Berg works for company {n}.") for n in range(1_000)],
    "no end": lambda: [
        Passage.of(f"Ada Berg {n}", "the company that Ada Berg works for and " * 2_000) for n in range(9)
    ],
    "no space": lambda: [Passage.of(f"Ada Berg {n}", "Berg" + "x" * 50_000) for n in range(9)],
    "Chinese": lambda: [Passage.of(f"公司 {n}", CHINESE * 800) for n in range(20)],
    "titles": lambda: [Passage.of(f"Ada Berg {n} " * 3_000, "Ada Berg works for a company.") for n in range(20)],
}


class Largest(Ledger):
    """Keeps the largest call, as the embedded engine counts it."""

    largest = 0

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        super().add_usage(lm, usage_entry)
        self.largest = max(self.largest, usage_entry["total_tokens"])


def ask(name: str, searched: PassagePool, question: str) -> tuple[dspy.Prediction, int]:
    ledger = Largest()
    program = new_program(name, ChainRetriever(searched))
    with dspy.context(lm=polyhop.lm("lexical"), usage_tracker=ledger):
        return program(question=question), ledger.largest


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("direct", "oracle")])
@pytest.mark.parametrize("kind", POOLS)
def test_no_call_of_any_program_exceeds_the_budget(name: str, kind: str) -> None:
    question = "北京的公司是谁成立的?" if kind == "Chinese" else ASKED
    prediction, largest = ask(name, pool(kind), question)
    assert 0 < largest < MOST
    for step in steps(prediction, Shortened):
        assert step.shown <= PROMPT_TOKENS < step.needed


def test_what_matches_is_shown_and_the_trace_says_what_was_cut() -> None:
    prediction, _ = ask("naive", pool("12 kB"), ASKED)
    (cut,) = steps(prediction, Shortened)
    assert cut.agent == "answerer"
    assert cut.needed > 10_000
    assert {"Ada Berg", "Kestrel Instruments"} <= set(cut.cut)
    prediction, _ = ask("polyhop", pool("12 kB"), ASKED)
    assert BRIDGE in [item.text for item in prediction.evidence]


def test_short_passages_are_shown_as_they_are() -> None:
    prediction, _ = ask("full_context", PassagePool(corpus(2)), ASKED)
    assert not steps(prediction, Shortened)


def test_the_budget_is_a_tunable_that_optimizers_leave_alone() -> None:
    program = polyhop.Naive(pool("12 kB"))
    program.prompt_tokens.value = 100_000
    with playing(scripted(answerer=[answer("Otto Lind")])) as script:
        prediction = program(question=ASKED)
    assert not steps(prediction, Shortened)
    assert estimated_tokens(script.requests[0].prompt) > PROMPT_TOKENS
    program.prompt_tokens.value = PROMPT_TOKENS
    assert "prompt_tokens" not in SearchSpace.of(program).distributions
    assert "prompt_tokens" in SearchSpace.of(program, ranges={"prompt_tokens": (2_000, 8_000)}).distributions


def test_the_cut_is_counted_beside_the_costs() -> None:
    ledger = Ledger()
    with dspy.context(lm=polyhop.lm("lexical"), usage_tracker=ledger):
        polyhop.Naive(pool("12 kB"))(question=ASKED)
    assert ledger.incidents == {"passages shortened": 1}


def test_parts_of_a_program_share_its_budget_and_its_trace() -> None:
    program = polyhop.ParRag(pool("12 kB"))
    program.prompt_tokens.value = 2_000
    with dspy.context(lm=polyhop.lm("lexical")):
        found = steps(program(question=ASKED), Shortened)
    assert {"step_answerer", "accuracy_judge"} <= {step.agent for step in found}
    assert all(step.shown <= 2_000 for step in found)


def test_long_items_of_lists_are_cut_and_the_oldest_left_out() -> None:
    program = polyhop.Kair(PassagePool([FILM]))
    facts = [f"Fact {n} {'of the film ' * 400}(1s1)" for n in range(20)]
    update = {"new_facts": facts, "contradicted": [], "gaps": ["Who directed Vertigo?"]}
    script = scripted(updater=update, querier={"queries": ["director Vertigo"]}, checker={
        "supported": [str(n) for n in range(1, 21)], "relevant": [str(n) for n in range(1, 21)], "contradicted": []
    })  # fmt: skip
    with playing(script):
        program(question=QUESTION)
    sent = [estimated_tokens(f"{each.system}{each.prompt}") for each in script.requests]
    assert max(sent) < MOST
    last = script.asked("answerer")[0].inputs["known"]
    assert "Fact 19" in last
    assert "Fact 0 " not in last


# --- one excerpt -----------------------------------------------------------------------------------------------------


def shown(passages: list[Passage], marked: list[str] = []) -> NumberedPassages:  # noqa: B006
    candidates = Candidates(passages)
    return candidates.show(selected=candidates.resolve(marked)[0])


def test_sentences_keep_their_numbers() -> None:
    (passage,) = excerpt(shown([long("Kestrel", BRIDGE, 100)]), "Who was the founder?", 100).passages
    assert passage.sentences[51] == BRIDGE
    assert set(passage.sentences) <= set(range(1, 102))


def test_selected_sentences_are_kept_first() -> None:
    (passage,) = excerpt(shown([long("Kestrel", BRIDGE, 100)], ["1s7", "1s90"]), "Who was the founder?", 60).passages
    assert {7, 90} <= set(passage.sentences)


def test_every_passage_shows_its_best_sentence_while_there_is_room() -> None:
    found = excerpt(shown(corpus(60)), ASKED, 3_000)
    assert [each.number for each in found.passages] == list(range(1, 23))
    assert all(any("founded by nobody" in text for text in each.sentences.values()) for each in found.passages[2:])


def test_a_sentence_that_mentions_another_passage_is_shown() -> None:
    passages = [
        long("Notes", "She moved to Kestrel Instruments in spring.", 200),
        Passage.of("Kestrel Instruments", "A firm."),
    ]
    found = excerpt(shown(passages), "Where did Ada go?", 200)
    assert "She moved to Kestrel Instruments in spring." in found.passages[0].sentences.values()


def test_a_sentence_without_an_end_is_cut_around_what_matches() -> None:
    text = "the rain went on and on " * 300 + "until Otto Lind founded Kestrel, " + "and it rained again " * 300
    (passage,) = excerpt(shown([Passage.of("Rain", text)]), "Who founded Kestrel?", 250).passages
    assert "Otto Lind founded Kestrel" in passage.sentences[1]
    assert passage.sentences[1].startswith("… ")
    assert "…" in passage.sentences[1].partition("Kestrel")[2]


@given(
    texts=st.lists(st.text("ab é公。. ,[#1\n", max_size=3_000), min_size=1, max_size=5),
    asked=st.text("ab é公", max_size=20),
    tokens=st.integers(100, 2_000),
)
def test_an_excerpt_is_short_enough_and_verbatim(texts: list[str], asked: str, tokens: int) -> None:
    before = shown([Passage.of(f"T{n}", text) for n, text in enumerate(texts)])
    after = excerpt(before, asked, tokens)
    assert estimated_tokens("\n".join(t for p in after.passages for t in (p.title, *p.sentences.values()))) <= tokens
    full = {passage.number: passage.sentences for passage in before.passages}
    numbers = [passage.number for passage in after.passages]
    assert all(a < b for a, b in pairwise(numbers))
    for passage in after.passages:
        for n, text in passage.sentences.items():
            assert all(part.strip() in full[passage.number][n] for part in text.split("…"))
