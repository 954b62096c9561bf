"""What the tests of the lexical engine share."""

from __future__ import annotations

import json
from typing import Any

import dspy

from polyhop.engines.lexical import ParsedPrompt
from polyhop.engines.lexical.engine import find_skill


def play(signature: type[dspy.Signature], **inputs: Any) -> dict[str, Any]:
    """The reply of a signature's skill, without an adapter; an input that is not given is empty."""
    rendered = {name: value if isinstance(value, str) else json.dumps(value) for name, value in inputs.items()}
    prompt = ParsedPrompt(dict.fromkeys(signature.input_fields, "") | rendered, tuple(signature.output_fields))
    return find_skill(prompt)(prompt)
