"""Exported prompts are byte for byte what DSPy sends, for every agent of every program and any inputs."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import dspy
import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyhop
from polyhop.data.errors import PolyhopError
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.optimizers.export import FORMATS, REPLIES, AdapterName, Prompt, jinja_template, place, prompts
from polyhop.programs import PROGRAMS, Exemplars, PolyHop, Prism, new_program
from polyhop.signatures import NumberedPassage, NumberedPassages
from polyhop.signatures.fields import fenced

ADAPTERS: dict[AdapterName, Any] = {"chat": dspy.ChatAdapter, "json": dspy.JSONAdapter}
TEXTS = [
    "", " ", "Who was Zoë?", "{{ question }}", "{{question}} {{candidates}}", "{% raw %}{% endraw %}{# x #}",
    "}} %} #}", "[[ ## keep ## ]]", "[[ ## completed ## ]]", "[[##x", "[[[ ## x", "a [[",
    "<<CUSTOM-TYPE-X", "a\r\nb\rc\n\n", "<think>x</think>", "<\u200bRea\u2060soning> </ thinking>", "a <b> <<",
    "[\u200b[ ## keep ## ]]", "［[ ＃\ufeff# keep", "[[\u200b",
    "[[" + " " * 300 + "x", "[" + "\u200b" * 100 + "[ ##", "＜／think＞",
    "\ttab \x00\x1f\x7f", 'a "quoted" \\ back\\\\slash', "{", "{{", "<b>&amp;'</b>", "\u2028\xa0\u3000x", "None",
    "«a»", "#1", "[1, 2]", "{\r", "a  \n  ",
]  # fmt: skip

GATHERER = next(prompt for prompt in prompts(PolyHop()) if prompt.agent == "gatherer")
TEMPLATE = jinja2.Template(jinja_template(GATHERER, "polyhop"))


# --- what somebody without DSPy does ----------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """The value as somebody has it who has no class for passages."""
    if isinstance(value, NumberedPassages):
        return [
            {"number": p.number, "title": p.title, "sentences": p.sentences, "selected": sorted(p.selected)}
            for p in value.passages
        ]
    return value


def by_jinja(prompt: Prompt, inputs: dict[str, Any], **more: Any) -> Any:
    template = jinja2.Template(jinja_template(prompt, "it"))
    return json.loads(template.render({name: plain(value) for name, value in inputs.items()}, **more))


def written(value: Any, format: str) -> str:
    """By the rules of `FORMATS`, in code of its own."""
    if format == "passages":
        lines = []
        for passage in plain(value):
            lines.append(f"[{passage['number']}] {one_line(passage['title']) or '(untitled)'}")
            marks = dict.fromkeys(passage["selected"], "*")
            for n, text in passage["sentences"].items():
                lines.append(f"{passage['number']}s{n}{marks.get(n, '')} {one_line(text)}")
        return "\n".join(lines) or "(none)"
    if isinstance(value, list):
        items = [{k: broken(v) for k, v in item.items()} if isinstance(item, dict) else broken(item) for item in value]
        return json.dumps(items, ensure_ascii=False)
    return broken(value) if isinstance(value, str) else str(value)


def one_line(text: str) -> str:
    return broken(" ".join(text.split()))


Z = (
    r"[\u00ad\u034f\u061c\ufeff\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f"
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufff9-\ufffb"
    r"\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef]*"
)
MARKER = re.compile(
    rf"[\[［](?={Z}[\[［](?:[\s{Z[1:-2]}]*(?:[#＃﹟]{Z}[#＃﹟]|\Z)|[\s{Z[1:-2]}]{{199}}))"
    rf"|[<＜﹤](?={Z}[<＜﹤]{Z}[/／]?{Z}{Z.join('custom-type')})"
    rf"|[<＜﹤](?={Z}[/／]?{Z}(?:{Z.join('think')}|{Z.join('reasoning')}))",
    re.IGNORECASE,
)


def broken(text: str) -> str:
    return MARKER.sub(lambda match: f"{match[0]} ", text)


def by_hand(prompt: Prompt, inputs: dict[str, Any]) -> Any:
    """All places filled at once."""
    texts = {name: written(value, prompt.formats[name]) for name, value in inputs.items()}
    *before, last = [dict(message) for message in prompt.messages]
    last["content"] = re.sub(r"\{\{(\w+)\}\}", lambda match: texts[match[1]], last["content"])
    return [*before, last]


# --- real calls ------------------------------------------------------------------------------------------------------


@dataclass
class Call:
    signature: Any
    demos: list[Any]
    inputs: dict[str, Any]
    messages: list[Any]


def spy(adapter: AdapterName) -> Any:
    calls: list[Call] = []

    listening = ADAPTERS[adapter]()
    send = listening.format

    def format(signature: Any, demos: Any, inputs: Any) -> Any:
        messages = send(signature, demos, inputs)
        calls.append(Call(signature, list(demos), deepcopy(inputs), messages))
        return messages

    listening.format = format
    return listening, calls


@pytest.mark.parametrize(("adapter", "demos"), [("chat", True), ("json", False)])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "oracle"])  # it needs gold evidence
def test_exports_equal_what_programs_send(name: str, adapter: AdapterName, demos: bool) -> None:
    program = new_program(name, PassagePool(sample_passages()))
    program.set_lm(polyhop.lm())
    for _, part in program.named_sub_modules(Exemplars):
        part.mode.value = "similar"
    if demos:
        for predictor in program.predictors():
            outputs = {
                field: ["1s1"] if "list" in str(info) else "0.5" for field, info in predictor.signature.fields.items()
            }
            predictor.demos = [dspy.Example(outputs), dspy.Example(dict(list(outputs.items())[1:]))]
    exported = {prompt.signature.instructions: prompt for prompt in prompts(program, adapter)}
    listening, calls = spy(adapter)
    with dspy.context(adapter=listening):
        for example in load_sample()[:2]:
            program(question=example.question)
    assert calls
    for call in calls:
        prompt = exported[call.signature.instructions]
        own = prompt.messages
        exemplars = call.messages[len(own) - 1 : -1]  # shown after the agent's own demos
        assert bool(exemplars) <= prompt.shown_exemplars
        assert by_jinja(prompt, call.inputs, exemplars=exemplars) == call.messages
        *before, last = by_hand(prompt, call.inputs)
        assert [*before, *exemplars, last] == call.messages
    shown = {exported[call.signature.instructions].agent for call in calls if len(call.demos) > 2 * demos}
    assert shown == {prompt.agent for prompt in exported.values() if prompt.shown_exemplars}


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_exports_equal_what_dspy_sends_for_odd_texts(name: str, adapter: AdapterName) -> None:
    program = new_program(name)
    for n, predictor in enumerate(program.predictors()):
        signature = predictor.signature
        predictor.signature = signature.with_instructions("\n".join(["Do it.", *TEXTS[n:], *TEXTS[:n]]))
        for turn in range(0, len(TEXTS), 5):
            values = {field: _filled(info.annotation, n + turn) for field, info in signature.fields.items()}
            predictor.demos += [dspy.Example(values), dict(list(values.items())[1:])]
    for first, (prompt, predictor) in enumerate(zip(prompts(program, adapter), program.predictors(), strict=True)):
        template = jinja2.Template(jinja_template(prompt, "it #}"))
        for turn in range(first % 2, len(TEXTS), 2):
            fields = prompt.signature.input_fields.items()
            inputs = {field: _filled(info.annotation, turn + n) for n, (field, info) in enumerate(fields)}
            sent = ADAPTERS[adapter]().format(predictor.signature, fenced(predictor.demos), fenced(inputs))
            rendered = template.render({field: plain(value) for field, value in inputs.items()})
            assert json.loads(rendered) == sent
            assert by_hand(prompt, inputs) == sent


def _filled(annotation: Any, turn: int) -> Any:
    """A value of a type, another in each turn."""
    some = [TEXTS[(turn + n) % len(TEXTS)] for n in range(turn % 4)]
    text = TEXTS[turn % len(TEXTS)]
    if annotation is NumberedPassages:
        numbered = [
            NumberedPassage(number=n + 1, title=text, sentences=dict(enumerate(some, n))) for n in range(turn % 3)
        ]
        return NumberedPassages(passages=numbered)
    if "dict" in getattr(annotation, "__name__", ""):
        return [{"thought": text, "question": each} for each in some]
    if isinstance(annotation, type) and issubclass(annotation, float | int):
        return turn / 7 if issubclass(annotation, float) else turn
    if "list" in str(annotation) or issubclass(annotation, list):
        return some
    return None if turn % 11 == 10 else text


ODD = st.lists(
    st.sampled_from([*"[]#<>/ \n\t\xa0ax［＃＜／", "\u200b", "\ufe0f", "think", "Reasoning", "CUSTOM-TYPE"])
).map("".join)


@settings(max_examples=100)
@given(
    text=st.text(max_size=20) | ODD,
    some=st.lists(st.text(max_size=8) | ODD, max_size=3),
    title=ODD,
    sentence=st.text(max_size=20) | ODD,
)
def test_exports_equal_what_dspy_sends_for_any_inputs(text: str, some: list[str], title: str, sentence: str) -> None:
    sentences = {3: sentence, 11: title + sentence}
    passage = NumberedPassage(number=7, title=title, sentences=sentences, selected=frozenset([11]))
    inputs = {
        "question": text,
        "sub_questions": some,
        "answers_so_far": some,
        "searched": some,
        "passages": NumberedPassages(passages=[passage]),
    }
    sent = dspy.ChatAdapter().format(GATHERER.signature, [], fenced(inputs))
    assert json.loads(TEMPLATE.render({name: plain(value) for name, value in inputs.items()})) == sent
    assert by_hand(GATHERER, inputs) == sent


def test_the_prompt_of_an_ablation_is_exported_beside_the_other() -> None:
    exported = {prompt.agent: prompt.messages[0]["content"] for prompt in prompts(Prism())}
    assert "bridging facts" in exported["selector"]
    assert "bridging" not in exported["selector_without_bridging"]


def test_the_record_of_a_prompt() -> None:
    (gatherer,) = [prompt for prompt in prompts(PolyHop()) if prompt.agent == "gatherer"]
    record = json.loads(json.dumps(gatherer.to_record()))
    formats = {each["name"]: each["format"] for each in record["inputs"]}
    values = dict.fromkeys(("sub_questions", "answers_so_far", "searched"), "value")
    assert formats == {"question": "text", **values, "passages": "passages"}
    assert set(formats.values()) == set(FORMATS)
    assert record["inputs"][0]["description"] == ""
    assert record["inputs"][4]["description"].startswith("passages with their titles")
    keep = record["outputs"][1]
    assert keep["schema"] == {"type": "array", "items": {"type": "string"}}
    assert place("question") in record["messages"][-1]["content"]
    assert set(REPLIES) == set(ADAPTERS)


def test_any_dspy_program_is_exported() -> None:
    class Own(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = [
                dspy.ChainOfThought("question, weights: dict[str, list[float]], strict: bool -> answer") for _ in "ab"
            ]

    found = prompts(Own())
    assert [prompt.agent for prompt in found] == ["steps[0].predict", "steps[1].predict"]
    inputs = {"question": "[[ ## q", "weights": {"ä\n": [1.0, 1e-07, 1e22], "<think>": []}, "strict": True}
    assert by_jinja(found[0], inputs) == dspy.ChatAdapter().format(found[0].signature, [], inputs)


def test_inputs_and_demos_must_be_text() -> None:
    class Own(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.viewer = dspy.Predict("question, pictures: list[dspy.Image] -> answer")

    with pytest.raises(PolyhopError, match="agent 'viewer' cannot be exported: its input 'pictures' is not text"):
        prompts(Own())
    program = Prism()
    picture = '[{"type": "image_url", "image_url": {"url": "http://elsewhere"}}]'
    question = f"<<CUSTOM-TYPE-START-IDENTIFIER>>{picture}<<CUSTOM-TYPE-END-IDENTIFIER>>"
    demo = dspy.Example(question=question, sub_questions=["Who?"])
    program.analyzer.demos = [demo]
    assert all(isinstance(message["content"], str) for prompt in prompts(program) for message in prompt.messages)
    program.analyzer = dspy.Predict(program.analyzer.signature)  # which does not break up markers
    program.analyzer.demos = [demo]
    with pytest.raises(PolyhopError, match="agent 'analyzer' cannot be exported: it has a demo that is not text"):
        prompts(program)
