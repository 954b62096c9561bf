"""The keyless engine: what it plans, which passages it chains, what it guesses, and that any module runs on it."""

from __future__ import annotations

from typing import Literal

import dspy
import pytest

import polyhop
from polyhop import signatures
from polyhop.data.sample import load_sample, sample_passages
from polyhop.engines.lexical import LexicalEngine, Page, Reading, Sentence, asked_for, plan, read_prompt, spans
from polyhop.programs import new_program
from polyhop.signatures.fields import NumberedPassage, NumberedPassages

KESTREL = "Who founded the company that Ada Berg works for?"
TEXTS = {
    "Ada Berg": "Ada Berg (born 3 May 1961) is an engineer. She works for Kestrel in Oslo.",
    "Kestrel": "Kestrel is a company that makes kites. It was founded by Otto Lind in 1987.",
    "Otto Lind": "Otto Lind is a Danish pilot. He lives in Aarhus.",
    "Oslo": "Oslo is a city by a fjord. Its company of buses is old.",
}


def pages() -> list[Page]:
    shown = []
    for number, (title, text) in enumerate(TEXTS.items(), 1):
        rows = text.replace(". ", ".\n").splitlines()
        shown.append(Page(str(number), title, tuple(Sentence(f"{number}s{n}", row) for n, row in enumerate(rows, 1))))
    return shown


def numbered() -> NumberedPassages:
    shown = [(page, dict(enumerate((row.text for row in page.sentences), 1))) for page in pages()]
    return NumberedPassages(
        passages=[NumberedPassage(number=int(page.number), title=page.title, sentences=rows) for page, rows in shown]
    )


@pytest.mark.parametrize(
    ("question", "steps"),
    [
        ("Where was Ada Berg born?", ["Where was Ada Berg born?"]),
        ("Where was the director of Solaris born?", ["Who is the director of Solaris?", "Where was #1 born?"]),
        ("Who is Ada Berg's employer's founder?", ["Who is Ada Berg's employer?", "Who is #1's founder?"]),
        (
            "What is the capital of the country that Otto Lind visited in 1990?",
            ["Which country Otto Lind visited in 1990?", "What is the capital of #1?"],
        ),
        ("Which film came out first, Solaris or Stalker?", ["Which film came out first Solaris?", "... Stalker?"]),
        ("Is it so?", ["Is it so?"]),
        ("", ["?"]),
    ],
)
def test_questions_are_split_by_patterns(question: str, steps: list[str]) -> None:
    planned = plan(question)
    assert len(planned) == len(steps)
    assert all(ours == theirs or theirs.startswith("...") for ours, theirs in zip(planned, steps, strict=True)), planned


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was Ada Berg born?", "date"),
        ("In what year was Kestrel founded?", "year"),
        ("How many kites does Kestrel make?", "number"),
        ("Where does Otto Lind live?", "place"),
        ("Who founded Kestrel?", "person"),
        ("Which kite flew?", "thing"),
        ("Is Otto Lind a pilot?", "verdict"),
        ("Who is older, Ada Berg or Otto Lind?", "verdict"),
        ("Name the kite", "other"),
    ],
)
def test_the_kind_that_a_question_asks_for(question: str, kind: str) -> None:
    assert asked_for(question)[0] == kind


def test_spans_are_names_dates_numbers_code_and_phrases() -> None:
    found = {span.text: span.kind for span in spans('On 3 May 1961 Ada Berg sold 1,200 red kites, "Dust" and os.path.')}
    expected = {"3 May 1961": "date", "1961": "year", "Ada Berg": "name", "1,200": "number", "Dust": "quoted"}
    assert expected.items() <= found.items()
    assert found["os.path"] == "name"
    assert found["red kites"] == "phrase"
    assert "On" not in found


def test_a_chain_follows_mentions_and_ends() -> None:
    reading = Reading(KESTREL, (), pages())
    assert [page.title for page in reading.chosen][:2] == ["Ada Berg", "Kestrel"]
    assert "Oslo" not in [page.title for page in reading.chosen]
    options = {page.title: features for page, features in reading.chain.options(reading.chosen[:1]) if page}
    assert options["Kestrel"]["next link"] > options["Otto Lind"]["next link"] == 0.0
    assert Reading("Zebra?", (), pages()).chosen == []  # no passage has a word of it


def test_what_is_kept_is_extended_and_not_chosen_again() -> None:
    ada, *_ = shown = pages()
    reading = Reading(KESTREL, (), shown, [ada])
    assert reading.chosen[0] is ada
    assert [page.title for page in reading.added][:1] == ["Kestrel"]
    assert ada not in reading.added


def test_a_guess_quotes_a_sentence_and_later_steps_use_earlier_answers() -> None:
    reading = Reading(KESTREL, ["Which company does Ada Berg work for?", "Who founded #1?"], pages())
    assert [step.guess.text for step in reading.steps] == ["Kestrel", "Otto Lind"]
    assert reading.steps[1].question == "Who founded Kestrel?"
    assert "Otto Lind" in str(reading.guess.sentence)
    assert 0 < reading.guess.probability < 1


def test_it_says_nothing_of_comparisons_and_open_steps_and_less_of_strangers() -> None:
    assert not Reading("Who is older, Ada Berg or Otto Lind?", (), pages()).guess
    assert not Reading("Is Otto Lind a pilot?", (), pages()).guess
    assert not Reading("Who founded Kestrel?", (), []).guess
    step, *_ = Reading("Who founded Sparrow Airways?", (), pages()).steps
    assert not step.guess
    asked = [Reading(f"When was Kestrel founded{by}?", (), pages()).guess.probability for by in ("", " by Mary Zorn")]
    assert asked[0] > asked[1]


OURS = [kind for kind in vars(signatures).values() if isinstance(kind, type) and issubclass(kind, dspy.Signature)]


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()], ids=["chat", "json"])
@pytest.mark.parametrize("signature", OURS, ids=lambda each: each.__name__)
def test_every_agent_of_ours_gets_values_of_its_types(signature: type[dspy.Signature], adapter: dspy.Adapter) -> None:
    texts = {"question": KESTREL, "objective": KESTREL, "next_question": "Who founded #1?"}
    inputs = {
        name: texts.get(name, ["x"] if "list" in str(field) else "x") for name, field in signature.input_fields.items()
    }
    inputs |= {name: numbered() for name in inputs if signature.input_fields[name].annotation is NumberedPassages}
    with dspy.context(lm=polyhop.lm("lexical"), adapter=adapter):
        reply = dspy.Predict(signature)(**inputs)
    assert set(signature.output_fields) <= set(reply.keys())
    for name in {"citations", "keep", "add", "useful", "chosen", "cited"} & set(signature.output_fields):
        assert reply[name], name


def test_to_agree_with_itself_is_no_proof() -> None:
    with dspy.context(lm=polyhop.lm("lexical")):
        told = dspy.Predict(signatures.AnswerFromContext)(question="Who founded Kestrel?", evidence=numbered())
        asked = {"question": "Who founded Kestrel?", "evidence": numbered(), "answer": told.answer}
        judged = dspy.Predict(signatures.JudgeAttribution)(**asked)
    assert (told.answer, judged.attribution) == ("Otto Lind", "extrapolatory")


class Label(dspy.Signature):
    """Somebody else's."""

    claim: str = dspy.InputField()
    evidence: list[str] = dspy.InputField()
    label: Literal["unclear", "founded"] = dspy.OutputField()
    holds: bool = dspy.OutputField()
    year: int = dspy.OutputField()
    weight: float = dspy.OutputField()
    quotes: list[str] = dspy.OutputField()
    more: dict[str, str] = dspy.OutputField()


def test_modules_of_others_run_by_the_names_and_types_of_their_fields() -> None:
    context = [f"{title} | {text}" for title, text in TEXTS.items()]
    with dspy.context(lm=polyhop.lm("lexical")):
        reply = dspy.ChainOfThought("context: list[str], question -> answer")(context=context, question=KESTREL)
        label = dspy.Predict(Label)(claim="In what year was Kestrel founded?", evidence=list(TEXTS.values()))
        plain = dspy.Predict("question -> answer")(question="Who founded Kestrel?")
    assert reply.answer in {"Otto Lind", "Kestrel"}
    assert reply.reasoning
    assert (label.label, label.year, label.weight) == ("founded", 1987, 1987.0)
    assert any("founded" in quote for quote in label.quotes)
    assert plain.answer == "unknown"


class Named(dspy.Signature):
    """Somebody else's, with names of ours and other types."""

    question: str = dspy.InputField()
    context: list[str] = dspy.InputField()
    answer: Literal["no", "yes"] = dspy.OutputField()
    steps: list[str] = dspy.OutputField()
    citations: list[int] = dspy.OutputField()
    cited: list[str] = dspy.OutputField()
    confidence: Literal["low", "high"] = dspy.OutputField()
    accuracy: bool = dspy.OutputField()
    reasoning: int = dspy.OutputField()
    queries: dict[str, int] = dspy.OutputField()


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()], ids=["chat", "json"])
def test_a_field_with_one_of_our_names_gets_a_value_of_its_own_type(adapter: dspy.Adapter) -> None:
    with dspy.context(lm=polyhop.lm("lexical"), adapter=adapter):
        reply = dspy.Predict(Named)(question="When was Kestrel founded?", context=list(TEXTS.values()))
    assert (reply.answer, reply.confidence, reply.accuracy, reply.reasoning) == ("no", "low", True, 1987)
    assert reply.citations == []
    assert all(isinstance(text, str) for text in (*reply.steps, *reply.cited))


def test_it_plays_react_with_one_search() -> None:
    tool = dspy.Tool(polyhop.PassagePool(sample_passages()), name="search")
    with dspy.context(lm=polyhop.lm("lexical")):
        reply = dspy.ReAct("question -> answer", tools=[tool])(question="Who directed Stalker?")
    tools = [value for name, value in reply.trajectory.items() if name.startswith("tool_name")]
    assert tools == ["search", "finish"]
    assert reply.answer == "Andrei Tarkovsky"


def test_it_reads_prompts_of_dspys_adapters_only() -> None:
    with pytest.raises(ValueError, match="reads prompts of dspy.ChatAdapter and dspy.JSONAdapter only"):
        read_prompt("You are helpful.", "Who?")


@pytest.mark.parametrize("name", ["naive", "polyhop", "prism", "kair", "par_rag", "c3po", "ircot", "set_selection"])
def test_programs_find_the_evidence_of_a_bridge_and_repeat_themselves(name: str) -> None:
    question = next(each for each in load_sample() if each.id == "arts-008")
    program = new_program(name, polyhop.ChainRetriever(polyhop.PassagePool(sample_passages())))
    program.set_lm(polyhop.lm("lexical"))
    first, second = (program(question=question.question) for _ in range(2))
    assert set(question.gold_passages) <= {item.passage.id for item in first.evidence}
    assert first.toDict() == second.toDict()


def test_it_has_no_state() -> None:
    assert isinstance(LexicalEngine.load_state(LexicalEngine().dump_state()), LexicalEngine)
