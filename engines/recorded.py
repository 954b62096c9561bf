"""Recorded replies: ``--record FILE`` keeps what a model replies, and ``--lm recorded:FILE`` replies it again.

For demonstrations and tests, which then need no model, no key and no network. A file has a JSON object a line, and may
have one with ``about``, which tells what was recorded:

    {"about": "Qwen3-8B, 2026-11-28"}
    {"prompt": "c3...", "reply": "{\\"answer\\": \\"Kestrel\\"}", "finish": "stop", "schema": true, "tokens": [812, 9]}

``prompt`` is the SHA-256 of the messages as JSON: a prompt that has changed by one letter is another one. ``schema``
tells whether the reply had to follow a JSON schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import dspy
from dspy import LMInvalidRequestError, LMProviderError, lm15
from pydantic import NonNegativeInt, TypeAdapter, ValidationError

from ..data.errors import PolyhopError, first_error
from .limits import LimitedLM, RateLimit, ServerTraits
from .replies import as_events, read_request

PREFIX = "recorded:"


@dataclass
class About:
    """What a file says of what was recorded."""

    about: str


@dataclass
class Recorded:
    """A reply, and the tokens that were read and written for it."""

    prompt: str
    reply: str
    finish: Literal["stop", "length", "tool_call", "content_filter", "error"]
    schema: bool
    tokens: tuple[NonNegativeInt, NonNegativeInt]


_LINES = TypeAdapter(list[Recorded | About])


class Recorder:
    """Adds replies to a file, each prompt once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._prompts = {line.prompt for line in _lines(path) if isinstance(line, Recorded)} if path.exists() else set()
        self._lock = Lock()

    def begin(self, models: Iterable[str]) -> None:
        """Say in a new file what is recorded; people may say more."""
        if not self.path.exists():
            line = {"about": f"{', '.join(dict.fromkeys(models))}, {date.today().isoformat()}"}
            self.path.write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")

    def __reduce__(self) -> Any:
        """In a worker: it adds to the same file, line by line."""
        return Recorder, (self.path,)

    def keep(self, request: lm15.Request, response: lm15.Response) -> None:
        key = _key(request)
        with self._lock:
            if key in self._prompts:
                return
            self._prompts.add(key)
            line = Recorded(
                key,
                "".join(map(_written, response.message.parts)),
                response.finish_reason or "stop",
                _has_schema(request),
                (response.usage.input_tokens or 0, response.usage.output_tokens or 0),
            )
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(line), ensure_ascii=False) + "\n")


def record(program: dspy.Module, path: Path | str) -> None:
    """Keep each reply of a program's models in a file, from now on; they no longer reply from DSPy's cache.

    Raises:
        PolyhopError: the program asks no language model, or the file is not one of recorded replies.
    """
    recorder, models = Recorder(Path(path)), dict[int, LimitedLM]()
    for predictor in program.predictors():
        if isinstance(predictor.lm, LimitedLM):
            predictor.lm = models.setdefault(id(predictor.lm), predictor.lm.recorded_by(recorder.keep))
    if not models:
        raise PolyhopError("there is nothing to record: name a language model with --lm")
    recorder.begin(model.model for model in models.values())


class RecordedEngine:
    """Replies what a file has."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._replies = {line.prompt: line for line in _lines(self.path) if isinstance(line, Recorded)}
        schemas = sum(line.schema for line in self._replies.values())
        # Of a server that ignores schemas only the first prompts had one.
        self.structured = True if 2 * schemas > len(self._replies) else None if schemas else False

    def complete(self, request: lm15.Request) -> lm15.Response:
        recorded = self._replies.get(_key(request))
        if recorded is None and self.structured is None and _has_schema(request):
            raise LMInvalidRequestError("schema: no such reply is recorded", model=request.model)
        if recorded is None:
            message = f"{self.path} has no reply to this prompt, which may have changed"
            raise LMProviderError(message, model=request.model, code="not_recorded")
        taken, written = recorded.tokens
        return lm15.Response(
            id=recorded.prompt[:16],
            model=request.model,
            message=lm15.Message.assistant(recorded.reply),
            usage=lm15.Usage(input_tokens=taken, output_tokens=written, total_tokens=taken + written),
            finish_reason=recorded.finish,
        )

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        return as_events(self.complete(request))

    def dump_state(self) -> dict[str, Any]:
        return {"path": str(self.path)}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> RecordedEngine:
        return cls(state["path"])


def recorded_model(path: Path | str) -> LimitedLM:
    """The model that replies what a file has. It costs nothing.

    Raises:
        PolyhopError: the file cannot be read, or is not one of recorded replies.
    """
    engine = RecordedEngine(path)
    lm = dspy.LM(f"{PREFIX}{Path(path).name}", engine=engine, cache=False)
    return LimitedLM(lm, RateLimit(), traits=ServerTraits(engine.structured, local=True))


def about(path: Path) -> str:
    """What a file says of what was recorded."""
    return next((line.about for line in _lines(path) if isinstance(line, About)), path.name)


def _lines(path: Path) -> list[Recorded | About]:
    try:
        return _LINES.validate_python([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
    except ValidationError as error:
        wrong = first_error(error)
        raise PolyhopError(f"{path} is not a file of recorded replies, as --record writes it: {wrong}") from None
    except (OSError, ValueError) as error:
        raise PolyhopError(f"cannot read the recorded replies in {path}: {error}") from None


def _written(part: Any) -> str:
    """A part of a reply as the model wrote it, without thinking; DSPy parses some JSON."""
    if isinstance(part, lm15.DataPart):
        return json.dumps(part.value, ensure_ascii=False)
    return part.text if isinstance(part, lm15.TextPart) else ""


def _key(request: lm15.Request) -> str:
    system, messages = read_request(request)
    return sha256(json.dumps([system, *messages], ensure_ascii=False).encode("utf-8", "replace")).hexdigest()


def _has_schema(request: lm15.Request) -> bool:
    return request.config.response_format is not None
