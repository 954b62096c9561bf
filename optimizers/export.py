"""Prompts for use without polyhop and DSPy: messages as an adapter sends them, Jinja templates, Markdown, JSON.

    for prompt in prompts(program):
        print(prompt.agent, prompt.messages)

    messages = json.loads(jinja2.Template(jinja_template(prompt, "polyhop")).render(question="Where was ...?", ...))

In the last message of a prompt, ``{{name}}`` is the placeholder of an input. `FORMATS` says how inputs are written,
`REPLIES` how replies are read. Replace all placeholders in one pass, since an input may contain one.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import dspy
from dspy.adapters.utils import serialize_for_json

from ..data.errors import PolyhopError
from ..engines.models import roles
from ..programs.agent import Agent
from ..programs.exemplars import Exemplars
from ..programs.tunable import tunables
from ..signatures import NumberedPassages
from ..signatures.fields import AFTER_ANGLE, ANGLES, BRACKETS, FEWEST_VISIBLE, LOOK_ALIKES, MARKER_WINDOW, fenced
from .artifact_format import Manifest, TunableState, field_states

AdapterName = Literal["chat", "json"]

FORMATS = {
    "text": (
        'The text with field markers broken up: "[[" before "##" or at the end becomes "[ [", "<<" before '
        '"CUSTOM-TYPE" or "/CUSTOM-TYPE" becomes "< <", and "<" before "think", "/think", "reasoning" or "/reasoning" '
        'becomes "< ", in upper or lower case, also with invisible or fullwidth characters. Agents of your own that '
        "are a plain `dspy.Predict` are sent the text unchanged."
    ),
    "passages": (
        'For each passage a line with its number in brackets and its title, such as "[2] John Farrow" ("(untitled)" if '
        'it has none), then a line for each sentence: the number of the passage, "s", the number of the sentence and '
        'the text, such as "2s1 John Farrow was a director."; "*" follows the number of a selected sentence ("2s1*"). '
        'Lines are joined by "\\n". White space in a title or sentence, including line breaks, becomes one space, and '
        'field markers are broken up as in a text. Without passages: "(none)".'
    ),
    "value": (
        "Numbers, True, False and None as Python prints them; a list or object as JSON on one line, with a space after "
        'each comma and colon and without escapes for letters beyond ASCII, such as ["Who was Zoë?", "2s1"]. Field '
        "markers in its texts are broken up as in a text."
    ),
}
"""How inputs are written into a prompt."""

_LENIENT = (
    "polyhop also accepts common deviations: lists as lines, ids as numbers, percentages, quotation marks around words."
)
_ONE_RULE = (
    "Blocks of <think>, <thinking> or <reasoning> are removed first. A reply with two different values of a field is "
    "an error."
)
REPLIES: dict[AdapterName, str] = {
    "chat": (
        'A reply consists of sections. A line "[[ ## name ## ]]" begins the section of the output field of that name, '
        'which ends at the next such line; "completed" ends the reply. White space around a section is ignored. A '
        "field of type str is the text of its section, any other is JSON. A reply without sections may be one JSON "
        f"object with all fields. {_ONE_RULE} {_LENIENT}"
    ),
    "json": (
        "A reply is one JSON object with the output fields by name; text around it is ignored. DSPy asks providers "
        f"that support it to enforce the JSON schema of the fields. {_ONE_RULE} {_LENIENT}"
    ),
}
"""How replies are read."""

_ADAPTERS = {"chat": dspy.ChatAdapter(), "json": dspy.JSONAdapter()}


@dataclass(frozen=True)
class Prompt:
    """The prompt of one agent. ``messages`` has the demos with an output, and placeholders for inputs; with
    ``shown_exemplars`` the program adds demos at each call, before the last message.
    """

    agent: str
    adapter: AdapterName
    signature: type[dspy.Signature] = field(repr=False)
    demos: Sequence[dict[str, Any]] = field(repr=False)
    messages: tuple[dict[str, str], ...] = field(repr=False)
    shown_exemplars: bool = False
    fenced: bool = True  # field markers in inputs are broken up

    @property
    def formats(self) -> dict[str, str]:
        """The format of each input, one of `FORMATS`."""
        kinds = {str: "text", NumberedPassages: "passages"}
        return {name: kinds.get(info.annotation, "value") for name, info in self.signature.input_fields.items()}

    def to_record(self) -> dict[str, Any]:
        """Everything another program needs, as JSON."""
        inputs, outputs = [], []
        for each in field_states(self.signature):
            # DSPy's default description is the name of the field.
            description = each.description.removeprefix(f"${{{each.name}}}").lstrip()
            described = {"name": each.name, "type": each.type, "description": description}
            if each.role == "input":
                inputs.append({**described, "format": self.formats[each.name]})
            else:
                outputs.append({**described, "schema": each.schema_})
        return {
            "agent": self.agent,
            "instructions": self.signature.instructions,
            "inputs": inputs,
            "outputs": outputs,
            "demos": list(self.demos),
            "shown_exemplars": self.shown_exemplars,
            "messages": list(self.messages),
        }


def prompts(program: dspy.Module, adapter: AdapterName = "chat") -> list[Prompt]:
    """The prompts of a program's agents, in its order. Works for any DSPy program whose inputs are text.

    Raises:
        PolyhopError: an input or a demo is not text, such as an image.
    """
    short = {id(predictors[0]): role for role, predictors in roles(program).items() if len(predictors) == 1}
    found = []
    for name, predictor in program.named_predictors():
        agent = short.get(id(predictor), name)
        signature = predictor.signature
        for input_, info in signature.input_fields.items():
            types = dspy.Type.extract_custom_type_from_annotation(info.annotation)
            if any(kind is not NumberedPassages for kind in types):
                raise PolyhopError(f"agent {agent!r} cannot be exported: its input {input_!r} is not text")
        fences = isinstance(predictor, Agent)
        demos = fenced(predictor.demos) if fences else predictor.demos
        messages = _ADAPTERS[adapter].format(signature, demos, {each: place(each) for each in signature.input_fields})
        if not all(isinstance(message["content"], str) for message in messages):
            raise PolyhopError(f"agent {agent!r} cannot be exported: it has a demo that is not text")
        plain = [{key: serialize_for_json(value) for key, value in demo.items()} for demo in predictor.demos]
        shown = name in getattr(program, "shown_exemplars", ())
        found.append(Prompt(agent, adapter, signature, plain, tuple(messages), shown, fences))
    return found


def place(name: str) -> str:
    """The placeholder of an input."""
    return f"{{{{{name}}}}}"


def record(program: dspy.Module, name: str, adapter: AdapterName = "chat", agent: str = "") -> Mapping[str, Any]:
    """The prompts (of one ``agent`` or all), exemplars and tunables of the program ``name`` as one JSON object."""
    shown = [prompt for prompt in prompts(program, adapter) if agent in ("", prompt.agent)]
    return {
        "program": name,
        "adapter": adapter,
        "placeholders": "{{name}} in the last message; replace all of them in one pass",
        "formats": FORMATS,
        "replies": REPLIES[adapter],
        "agents": [prompt.to_record() for prompt in shown],
        "exemplars": [
            {
                "count": part.count.value,
                "by_hops": part.memory.most,
                "mode": part.mode.value,
                "memory": part.memory.dump_state()["exemplars"],
            }
            for _, part in program.named_sub_modules(Exemplars)
        ],
        "tunables": {name: tunable.dump_state() for name, tunable in tunables(program).items()},
    }


# --- Jinja -----------------------------------------------------------------------------------------------------------

_HEAD = """\
{#
The agent %(agent)s of %(program)s, as DSPy's %(adapter)s sends it. It renders to a JSON list of messages:

    json.loads(jinja2.Template(text).render(%(inputs)s))

%(notes)s
#}
"""

# Names of macros begin with "_", as those of fields cannot. `_broken` is `polyhop.signatures.fields.fenced`.
_BROKEN = f"""\
{{%- set _plain = {LOOK_ALIKES} -%}}
{{%- macro _broken(text) -%}}
{{%- for character in text -%}}
{{{{ character }}}}
{{%- if character in "{BRACKETS}{ANGLES}" -%}}
{{%- set window = text[loop.index:loop.index + {MARKER_WINDOW}] -%}}
{{%- set rest = window.translate(_plain).lower() -%}}
{{%- set inner = rest[1:].strip() -%}}
{{{{ " " if (not rest[:1].isspace() if window | length == {MARKER_WINDOW} and rest | length < {FEWEST_VISIBLE}
             else rest.startswith("[") and (inner.startswith("##") or not inner) if character in "{BRACKETS}"
             else rest.startswith({AFTER_ANGLE})) else "" }}}}
{{%- endif -%}}
{{%- endfor -%}}
{{%- endmacro -%}}
"""
_TEXT = "{%%- macro _text(item) -%%}{{ %s }}{%%- endmacro -%%}\n"

_PASSAGES = """\
{%- macro _passages(shown) -%}
{%- if shown is string -%}{{ _text(shown) }}
{%- else -%}
{%- for passage in shown -%}
{{ "" if loop.first else "\\n" }}[{{ passage["number"] }}] {{ "" -}}
{{ _broken(passage["title"].split() | join(" ")) or "(untitled)" }}
{%- for number, text in passage["sentences"].items() -%}
{%- set mark = "*" if number | int in passage.get("selected", ()) else "" -%}
{{ "\\n" }}{{ passage["number"] }}s{{ number }}{{ mark }} {{ _broken(text.split() | join(" ")) }}
{%- endfor -%}
{%- else -%}(none)
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
"""

# json.dumps(..., ensure_ascii=False); Jinja's own filter escapes.
_VALUE = """\
{%%- macro _quoted(text) -%%}
{%%- set written = namespace(text=text | replace("\\\\", "\\\\\\\\") | replace('"', '\\\\"')) -%%}
{%%- for character, name in [%(controls)s] -%%}
{%%- set written.text = written.text | replace(character, "\\\\" ~ name) -%%}
{%%- endfor -%%}
"{{ written.text }}"
{%%- endmacro -%%}
{%%- macro _json(item) -%%}
{%%- if item is string -%%}{{ _quoted(_text(item)) }}
{%%- elif item is none -%%}null
{%%- elif item is boolean -%%}{{ "true" if item else "false" }}
{%%- elif item is mapping -%%}
{{ "{" }}{%% for name, inner in item.items() %%}
{{- "" if loop.first else ", " }}{{ _quoted(_text(name ~ "")) }}: {{ _json(inner) }}
{%%- endfor %%}{{ "}" }}
{%%- elif item is iterable -%%}
[{%% for inner in item %%}{{ "" if loop.first else ", " }}{{ _json(inner) }}{%% endfor %%}]
{%%- else -%%}{{ item }}
{%%- endif -%%}
{%%- endmacro -%%}
{%%- macro _value(item) -%%}
{%%- if item is mapping or (item is iterable and item is not string) -%%}{{ _json(item) }}
{%%- else -%%}{{ _text(item) }}
{%%- endif -%%}
{%%- endmacro -%%}
"""
_NAMED = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}
_CONTROLS = ", ".join(f'("\\x{n:02x}", "{_NAMED.get(chr(n), f"u{n:04x}")}")' for n in range(32))

_NOTES = {
    "text": "a text",
    "passages": 'a list of {"number": 2, "title": "John Farrow", "sentences": {1: "...", 3: "..."}, "selected": [3]}',
    "value": "a number, a list or an object",
}

_TAG = re.compile(r"\{(?=[{%#\r]|\Z)")


def jinja_template(prompt: Prompt, program: str) -> str:
    """A Jinja template of one agent, which renders to the messages that DSPy would send, as a JSON list.

    It needs Jinja2 with default settings only: how passages, lists and numbers are written is part of it.
    """
    formats = prompt.formats
    notes = [f"{name}: {_NOTES[kind]}" for name, kind in formats.items()]
    extra = "_exemplars" if "exemplars" in formats else "exemplars"
    notes.append(
        f'{extra}: messages to insert before the last one, each {{"role": ..., "content": ...}}; optional'
        + (". The program shows this agent some at each call, chosen for the question" * prompt.shown_exemplars)
    )
    head = {
        "agent": prompt.agent,
        "program": program.replace("#}", "# }"),  # which would end the comment
        "adapter": {"chat": "ChatAdapter", "json": "JSONAdapter"}[prompt.adapter],
        "inputs": ", ".join(f"{name}=..." for name in formats),
        "notes": "\n".join(notes),
    }
    shown_text = "_broken(item) if item is string else item" if prompt.fenced else "item"
    parts = [_HEAD % head, _BROKEN, _TEXT % shown_text]
    parts += [_PASSAGES] if "passages" in formats.values() else []
    parts += [_VALUE % {"controls": _CONTROLS}] if "value" in formats.values() else []
    *before, last = prompt.messages
    content = _escaped(last["content"])
    for name, kind in formats.items():
        content = content.replace(_escaped(place(name)), f"{{{{ _{kind}({name}) }}}}", 1)
    more = f"{{% for _message in {extra} or [] %}}{{{{ _message | tojson }}}},\n{{% endfor %}}"
    messages = [*(_message(each["role"], _escaped(each["content"])) + ",\n" for each in before), more]
    return "".join([*parts, "[\n", *messages, _message(last["role"], content), "\n]\n"])


def _message(role: str, content: str) -> str:
    return f'{{"role": "{role}", "content": {{% filter tojson %}}{content}{{% endfilter %}}}}'


def _escaped(text: str) -> str:
    """A text that Jinja leaves unchanged: tags and line ends that it would interpret are printed by tags."""
    return _TAG.sub('{{ "{" }}', text).replace("\r", r'{{ "\r" }}')


# --- Markdown --------------------------------------------------------------------------------------------------------


def markdown(
    program: dspy.Module, name: str, adapter: AdapterName = "chat", manifest: Manifest | None = None, agent: str = ""
) -> str:
    """The prompts (of one ``agent`` or all), exemplars and tunables of the program ``name`` as a document."""
    shown = [prompt for prompt in prompts(program, adapter) if agent in ("", prompt.agent)]
    parts = [f"# {name}", _about(program)]
    parts += _provenance(manifest) if manifest else []
    parts += _how(shown, adapter)
    for prompt in shown:
        parts += _agent(prompt)
    parts += [] if agent else [*_exemplars(program), *_tunables(program)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(program: dspy.Module) -> str:
    """The first paragraph of its docstring."""
    return (inspect.getdoc(type(program)) or "").partition("\n\n")[0] if type(program).__doc__ else ""


def _provenance(manifest: Manifest) -> Iterator[str]:
    yield "## Provenance"
    versions = ", ".join(f"{package} {version}" for package, version in manifest.versions.items())
    lines = [f"Saved {manifest.created} by {versions}."]
    if manifest.dataset:
        lines.append(f"Dataset: {manifest.dataset}.")
    lines += [f"{split}: {each.count:,} questions of {each.file}." for split, each in manifest.splits.items()]
    lines += [f"Tuned for {manifest.metric}."] if manifest.metric else []
    for split, scores in manifest.scores.items():
        each = [f"{name} {score.mean:.3f} ({score.low:.3f} to {score.high:.3f})" for name, score in scores.items()]
        lines.append(f"Scores on {split}, with intervals: {', '.join(each)}.")
    lines += [f"Spent: {', '.join(f'{name} {value:g}' for name, value in manifest.spent.items())}."] * bool(
        manifest.spent
    )
    models = sorted({model for model in manifest.lms.values() if model})
    lines += [f"Language models: {', '.join(models)}."] * bool(models)
    yield "\n".join(f"- {line}" for line in lines)


def _how(shown: list[Prompt], adapter: AdapterName) -> Iterator[str]:
    yield "## How to use the prompts"
    yield (
        "Below are the messages of each agent, word for word. In the last one, `{{name}}` is the placeholder of an "
        "input; replace all of them in one pass. Inputs are written like this:"
    )
    used = {kind for prompt in shown for kind in prompt.formats.values()}
    yield "\n".join(f"- **{kind}**: {rule}" for kind, rule in FORMATS.items() if kind in used)
    yield REPLIES[adapter]


def _agent(prompt: Prompt) -> Iterator[str]:
    record = prompt.to_record()
    yield f"## {prompt.agent}"
    yield "\n".join(f"> {line}".rstrip() for line in record["instructions"].splitlines())
    inputs = [(each["name"], each["format"], each["description"]) for each in record["inputs"]]
    yield _table(("input", "format", ""), inputs)
    yield _table(
        ("output", "type", ""), [(each["name"], each["type"], each["description"]) for each in record["outputs"]]
    )
    if prompt.shown_exemplars:
        yield (
            "At each call the program adds exemplars for the question, as pairs of a user and an assistant message, "
            "before the last message. They are not shown here."
        )
    for message in prompt.messages:
        yield f"**{message['role']}**"
        fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", message["content"])), default=0))
        yield f"{fence}text\n{message['content']}\n{fence}"


def _exemplars(program: dspy.Module) -> Iterator[str]:
    for _, part in program.named_sub_modules(Exemplars):
        yield "## Exemplars"
        by_hops = "".join(f"of {hops} hops: {most}; " for hops, most in part.memory.most.items())
        yield (
            f"{len(part.memory)} solved questions, of which up to {part.count.value} are shown for a question "
            f"({by_hops}mode: {part.mode.value}), the most similar last."
        )
        rows = [(each.question, str(each.hops), " / ".join(each.sub_questions)) for each in part.memory.exemplars]
        yield _table(("question", "hops", "sub-questions"), rows)


def _tunables(program: dspy.Module) -> Iterator[str]:
    found = tunables(program).items()
    rows = [(name, json.dumps(each.value), TunableState(**each.dump_state()).range) for name, each in found]
    if rows:
        yield "## Thresholds and switches"
        yield _table(("name", "value", "range"), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
