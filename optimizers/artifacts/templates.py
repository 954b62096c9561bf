"""Prompts as Jinja templates, which make of an agent's inputs the very messages that DSPy would send.

    messages = json.loads(jinja2.Template(text).render(question="Where was ...?", candidates=[...], ...))

A template renders to a JSON list of messages. It needs nothing but Jinja2, with its default settings: how passages,
lists and numbers are written is part of it.
"""

from __future__ import annotations

import re

from .prompts import Prompt, place

_HEAD = """\
{#
The agent %(agent)s of %(program)s, as DSPy's %(adapter)s sends it. Renders to a JSON list of messages:

    json.loads(jinja2.Template(text).render(%(inputs)s))

%(notes)s
#}
"""

# The names of macros begin as those of fields cannot. As in `polyhop.signatures.fields`, "[[" before "##" and at the
# end is broken up, so that nothing in a passage can pass for a field.
_PASSAGES = """\
{%- macro _line(text) -%}
{{ ((text.split() | join(" ")) ~ "\\n") | replace("[[ ##", "[ [ ##") | replace("[[##", "[ [##")
   | replace("[[\\n", "[ [") | replace("<<CUSTOM-TYPE", "< <CUSTOM-TYPE")
   | replace("<</CUSTOM-TYPE", "< </CUSTOM-TYPE") | trim }}
{%- endmacro -%}
{%- macro _passages(shown) -%}
{%- if shown is string -%}{{ shown }}
{%- else -%}
{%- for passage in shown -%}
{{ "" if loop.first else "\\n" }}[{{ passage["number"] }}] {{ _line(passage["title"]) or "(untitled)" }}
{%- for number, text in passage["sentences"].items() -%}
{{ "\\n" }}{{ passage["number"] }}s{{ number }} {{ _line(text) }}
{%- endfor -%}
{%- else -%}(none)
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
"""

# What json.dumps(..., ensure_ascii=False) writes, which Jinja's own filter does not.
_VALUE = """\
{%%- macro _quoted(text) -%%}
{%%- set written = namespace(text=text | replace("\\\\", "\\\\\\\\") | replace('"', '\\\\"')) -%%}
{%%- for character, name in [%(controls)s] -%%}
{%%- set written.text = written.text | replace(character, "\\\\" ~ name) -%%}
{%%- endfor -%%}
"{{ written.text }}"
{%%- endmacro -%%}
{%%- macro _json(item) -%%}
{%%- if item is string -%%}{{ _quoted(item) }}
{%%- elif item is none -%%}null
{%%- elif item is boolean -%%}{{ "true" if item else "false" }}
{%%- elif item is mapping -%%}
{{ "{" }}{%% for name, inner in item.items() %%}
{{- "" if loop.first else ", " }}{{ _quoted(name ~ "") }}: {{ _json(inner) }}
{%%- endfor %%}{{ "}" }}
{%%- elif item is iterable -%%}
[{%% for inner in item %%}{{ "" if loop.first else ", " }}{{ _json(inner) }}{%% endfor %%}]
{%%- else -%%}{{ item }}
{%%- endif -%%}
{%%- endmacro -%%}
{%%- macro _value(item) -%%}
{%%- if item is mapping or (item is iterable and item is not string) -%%}{{ _json(item) }}
{%%- else -%%}{{ item }}
{%%- endif -%%}
{%%- endmacro -%%}
"""
_NAMED = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}
_CONTROLS = ", ".join(f'("\\x{n:02x}", "{_NAMED.get(chr(n), f"u{n:04x}")}")' for n in range(32))

_NOTES = {
    "text": "a text",
    "passages": 'a list of {"number": 2, "title": "John Farrow", "sentences": {1: "...", 3: "..."}}',
    "value": "a number, a list or an object",
}

_TAG = re.compile(r"\{(?=[{%#\r]|\Z)")


def jinja_template(prompt: Prompt, program: str) -> str:
    """The template of one agent.

    Args:
        program: What the program is called.
    """
    formats = prompt.formats
    notes = [f"{name}: {_NOTES[kind]}" for name, kind in formats.items()]
    extra = "_exemplars" if "exemplars" in formats else "exemplars"
    notes.append(
        f'{extra}: messages to put before the last one, each {{"role": ..., "content": ...}}; may be left out'
        + (". The program shows some to this agent at each call, chosen for the question" * prompt.shown_exemplars)
    )
    head = {
        "agent": prompt.agent,
        "program": program.replace("#}", "# }"),  # which would end the comment
        "adapter": {"chat": "ChatAdapter", "json": "JSONAdapter"}[prompt.adapter],
        "inputs": ", ".join(f"{name}=..." for name in formats),
        "notes": "\n".join(notes),
    }
    parts = [_HEAD % head]
    parts += [_PASSAGES] if "passages" in formats.values() else []
    parts += [_VALUE % {"controls": _CONTROLS}] if "value" in formats.values() else []
    *before, last = prompt.messages
    content = _escaped(last["content"])
    for name, kind in formats.items():
        shown = name if kind == "text" else f"_{kind}({name})"
        content = content.replace(_escaped(place(name)), f"{{{{ {shown} }}}}", 1)
    more = f"{{% for _message in {extra} or [] %}}{{{{ _message | tojson }}}},\n{{% endfor %}}"
    messages = [*(_message(each["role"], _escaped(each["content"])) + ",\n" for each in before), more]
    return "".join([*parts, "[\n", *messages, _message(last["role"], content), "\n]\n"])


def _message(role: str, content: str) -> str:
    return f'{{"role": "{role}", "content": {{% filter tojson %}}{content}{{% endfilter %}}}}'


def _escaped(text: str) -> str:
    """A text that Jinja leaves as it is: what would open a tag, or be another line end to it, is printed by one."""
    return _TAG.sub('{{ "{" }}', text).replace("\r", r'{{ "\r" }}')
