"""Language models by name, and which agent of a program talks to which.

A model is named by a spec: ``lexical`` is the embedded engine, anything else a LiteLLM name such as
``openai/gpt-4o-mini`` or ``ollama_chat/qwen3``. ``ROLE=SPEC`` gives a model to one agent; a role is the name of a
predictor in the program (``analyzer``, ``selector``, ...). Keys are LiteLLM's business: it reads them from the
environment, and none passes through here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import dspy
from dspy.utils.exceptions import AdapterParseError, DSPyError, LMError

from ..data.errors import PolyhopError

DEFAULT = "lexical"
VARIABLE = "POLYHOP_LM"
"""The environment variable that replaces the default."""

_PROVIDER_AND_NAME = re.compile(r"[\w.-]+(/[^\s/]+)+")
_ROLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class ModelError(PolyhopError):
    """A language model is not known, cannot be reached, or does not answer what it is asked."""


def language_model(spec: str = DEFAULT) -> dspy.LM:
    """The language model of a spec. Nothing is called yet: whether the model answers shows at the first question.

    Raises:
        ModelError: the spec is neither ``lexical`` nor of the form ``PROVIDER/NAME``.
    """
    if spec == "lexical":
        from .lexical import LexicalEngine

        # DSPy's cache knows a model by its name: it would serve the replies of an older engine after an update. Nor
        # would it pay: 0.2 ms for a new entry and 80 ms to open the store, against about 1 ms for the engine's work.
        return dspy.LM("lexical", engine=LexicalEngine(), cache=False)
    if not _PROVIDER_AND_NAME.fullmatch(spec):
        raise ModelError(
            f"no language model {spec!r}: say 'lexical' (embedded, needs no key) or a LiteLLM name with its provider, "
            "such as 'openai/gpt-4o-mini' or 'ollama_chat/qwen3'"
        )
    return dspy.LM(spec)


def roles(program: dspy.Module) -> dict[str, list[dspy.Predict]]:
    """The agents of a program: its predictors under their short names, in the order of the program.

    The short name of ``search.rewriter.predict`` is ``rewriter``; predictors with the same short name are one role.
    """
    found: dict[str, list[dspy.Predict]] = {}
    for name, predictor in program.named_predictors():
        parts = [part for part in re.split(r"[.\[\]'\"]+", name) if part and not part.isdigit() and part != "predict"]
        found.setdefault(parts[-1] if parts else "predict", []).append(predictor)
    return found


def assign_models(program: dspy.Module, specs: Sequence[str] = ()) -> None:
    """Give every predictor of a program its model, in place.

    Args:
        program: Any DSPy program.
        specs: ``SPEC`` for all predictors, ``ROLE=SPEC`` for one of them, in any order. Predictors that no spec covers
            get the model that the environment variable ``POLYHOP_LM`` names, else the lexical engine.

    Raises:
        ModelError: an unknown role or model, or two specs for the same thing.
    """
    agents = roles(program)
    chosen: dict[str, str] = {}
    for text in specs:
        match = _ROLE.fullmatch(text)
        role, spec = (match[1], match[2]) if match else ("", text)
        if role and role not in agents:
            raise ModelError(f"no role {role!r} in {type(program).__name__}: its roles are {', '.join(agents)}")
        if role in chosen:
            raise ModelError(f"two models for {f'the {role}' if role else 'all roles'}: {chosen[role]!r} and {spec!r}")
        chosen[role] = spec
    default = chosen.get("") or os.environ.get(VARIABLE) or DEFAULT
    model = cache(language_model)  # one object for each spec, so that its predictors share history and limits
    for role, predictors in agents.items():
        for predictor in predictors:
            predictor.lm = model(chosen.get(role, default))


@contextmanager
def model_errors() -> Iterator[None]:
    """Turn what DSPy raises about a model, inside, into a `ModelError` that says what to do."""
    try:
        yield
    except (LMError, AdapterParseError) as error:
        raise ModelError(explain(error)) from error


def explain(error: BaseException) -> str:
    """One line on what went wrong, with the way out where there is one."""
    if isinstance(error, AdapterParseError):
        wanted = ", ".join(error.signature.output_fields)
        reply = " ".join(str(error.lm_response).split()) or "nothing"
        return (
            f"the model's reply to {error.signature.__name__} has not the fields it was asked for ({wanted}): "
            f"{reply[:160]!r}. Try a more capable model for this role."
        )
    if isinstance(error, DSPyError):
        # What follows the first line is advice for who writes the program, and the provider's own small print.
        first, _, _ = str(error).strip().partition("\n")
        return first + _WAY_OUT.get(error.code or "", "")
    text = " ".join(str(error).split())
    return text if isinstance(error, PolyhopError) else f"{type(error).__name__}: {text}".rstrip(": ")


_WAY_OUT = {
    "not_configured": " Or use --lm lexical, which needs no key.",
    "auth": " (check the provider's key in the environment)",
    "transport": " (is the server up and the network reachable? --lm lexical needs neither)",
    "rate_limit": " (wait, or use fewer --threads)",
    "context_window_exceeded": " (give the program fewer passages with -k)",
}
