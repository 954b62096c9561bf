"""How an agent asks a model: with a bound, by a schema where the server enforces one, and read leniently.

The prompts are those of DSPy's `ChatAdapter`; where a reply follows a schema, those of its `JSONAdapter` without the
template. A reply without a main field is requested once more, in the other form.
"""

from __future__ import annotations

from typing import Any

import dspy
from dspy import AdapterParseError, LMInvalidRequestError
from pydantic import TypeAdapter

from ..engines.costs import reasons, record_incident
from ..engines.limits import LimitedLM, ServerTraits
from ..engines.replies import CutReplyError
from ..signatures.fields import Bound, bound_of, passages_in, tokens_of
from .reading import Reading, read
from .run import record
from .trace import Unread


class _Brief(dspy.JSONAdapter):
    """DSPy's JSON without the template of a reply, which a schema enforces: a fifth fewer tokens to read."""

    def format_field_structure(self, signature: type[dspy.Signature]) -> str:
        return (
            "All interactions end with a reply. Outputs will be a JSON object with the output fields, in their order."
        )

    def user_message_output_requirements(self, signature: type[dspy.Signature]) -> str:
        return (
            "Respond with a JSON object in the following order of fields: " + ", ".join(signature.output_fields) + "."
        )


_CHAT, _JSON, _BRIEF = dspy.ChatAdapter(), dspy.JSONAdapter(), _Brief()
_OWN = {"max_tokens", "max_completion_tokens", "reasoning_effort"}  # settings in place of our bound
_MOST_IDS = 80  # that a schema lists; of more it gives the form
_ID = r"^[0-9]{1,3}(s[0-9]{1,3})?$"
_LETTERS = 8  # of a word, with the space: more than most have
_LONGEST = 1_000  # characters of a text, whatever it needs: llama.cpp crashes with 4,000
_REFUSED = ("response_format", "json_schema", "schema", "grammar", "structured")


class Asking(dspy.ChatAdapter):
    """The adapter of one call.

    Args:
        role: Of the agent, for the trace.
        like: The adapter that DSPy is configured with. If it is for JSON, prompts ask for JSON also without a schema.
    """

    def __init__(self, role: str, like: dspy.ChatAdapter | None = None) -> None:
        super().__init__(callbacks=like.callbacks if like else None, use_json_adapter_fallback=False)
        self.role, self.as_json = role, isinstance(like, dspy.JSONAdapter)
        self._form, self._cut = _CHAT, False
        self._read: list[Reading] = []

    def __call__(
        self,
        lm: dspy.BaseLM,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        # Another model does not tell whether a reply was cut in its thinking: it has no bound.
        server = lm.traits if isinstance(lm, LimitedLM) else ServerTraits(structured=False, thinks=True)
        asked = {name for name, value in {**lm.kwargs, **lm_kwargs}.items() if value is not None}
        bound = None if _OWN & asked or server.thinks or reasons(lm.model) else tokens_of(signature)
        schema, as_json = None if server.structured is False else schema_of(signature, inputs), self.as_json
        try:
            values = self._ask(lm, lm_kwargs, signature, demos, inputs, as_json or schema is not None, bound, schema)
        except LMInvalidRequestError as error:
            if schema is None or not any(word in str(error).lower() for word in _REFUSED):
                raise
            server.structured = False
            record_incident("schema refused")
            return self(lm, lm_kwargs, signature, demos, inputs)
        except AdapterParseError as error:
            if server.structured is None:
                server.structured = False
            record_incident("reply unreadable")
            if bound and self._cut and not error.lm_response.strip():  # it thinks before it writes
                server.thinks, bound = True, None
            else:
                as_json, bound = not (as_json or schema), bound and 2 * bound
            values = self._ask(lm, lm_kwargs, signature, demos, inputs, as_json, bound, None)
        else:
            if server.structured is None and not self._cut:
                server.structured = all(reading.is_object for reading in self._read)
        for reading in self._read:
            if reading.unread:
                record(Unread(self.role, tuple(reading.unread), tuple(filter(None, reading.unread.values()))))
        return values

    def _ask(
        self,
        lm: dspy.BaseLM,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
        as_json: bool,
        bound: int | None,
        schema: dict[str, Any] | None,
    ) -> list[dict[str, Any]]:
        """One request; raises an `AdapterParseError` if a main field is missing."""
        self._form = _BRIEF if schema else _JSON if as_json else _CHAT
        self._cut, self._read = False, []
        more: dict[str, Any] = {"max_tokens": bound} if bound else {}
        if schema:
            named = {"name": signature.__name__, "schema": schema, "strict": True}
            more["response_format"] = {"type": "json_schema", "json_schema": named}
        try:
            values: list[dict[str, Any]] = super().__call__(lm, {**lm_kwargs, **more}, signature, demos, inputs)
            return values
        except CutReplyError as error:
            record_incident("reply cut")
            self._cut = True
            return [self.parse(signature, error.reply)]

    def format_field_structure(self, signature: type[dspy.Signature]) -> str:
        return str(self._form.format_field_structure(signature))

    def user_message_output_requirements(self, signature: type[dspy.Signature]) -> str:
        return str(self._form.user_message_output_requirements(signature))

    def format_assistant_message_content(
        self, signature: type[dspy.Signature], outputs: dict[str, Any], missing_field_message: Any = None
    ) -> str:
        return str(self._form.format_assistant_message_content(signature, outputs, missing_field_message))

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        reading = read(signature, completion, self._cut)
        if missing := signature.output_fields.keys() - reading.values.keys():
            raise AdapterParseError(
                adapter_name="polyhop",
                signature=signature,
                lm_response=completion,
                message=f"without {sorted(missing)}",
            )
        self._read.append(reading)
        return reading.values


def schema_of(signature: type[dspy.Signature], inputs: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a reply: texts and lists have a bound, and ids are those of the passages that are shown."""
    ids = list[str]()
    for passage in passages_in(inputs):
        ids += [str(passage.number), *(f"{passage.number}s{n}" for n in passage.sentences)]
    properties = {}
    for name, field in signature.output_fields.items():
        form, bound = TypeAdapter(field.annotation).json_schema(), bound_of(field) or Bound(24, 100)
        if form == {"type": "string"}:
            form["maxLength"] = min(bound.items * bound.words * _LETTERS, _LONGEST)
        elif form.get("type") == "array":
            form["maxItems"] = bound.items
            if bound.of_ids and form["items"] == {"type": "string"} and ids:
                form["items"] = {"type": "string"} | ({"enum": ids} if len(ids) <= _MOST_IDS else {"pattern": _ID})
            elif form["items"] == {"type": "string"}:
                form["items"]["maxLength"] = max(300, bound.words * _LETTERS)
        properties[name] = form
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
