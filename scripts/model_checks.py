"""What `polyhop doctor` asks of a language model: that it answers an agent, in its fields and as JSON.

Two short requests a model, without DSPy's cache and without retries, each within a time limit. What a provider says may
hold the key or the address that it was reached by, so nothing of it is told before `private` has gone over it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..data.errors import PolyhopError
from ..engines.secrets import SECRET, without_secrets
from .checks import Finding, failed, ok, warning

if TYPE_CHECKING:
    import dspy

    from ..engines.profile import Profile

SECONDS = 30.0  # for one request
_QUESTION = "In which country was the director of the film Solaris born?"

_ADDRESS = re.compile(r"(BASE|URL|ENDPOINT|HOST)$", re.IGNORECASE)
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_LOOKS_LIKE_AN_ADDRESS = re.compile(
    r"\b[a-z]+://[^\s'\"<>)]+"
    r"|\b(?:localhost|(?:[\w-]+\.)+[\w-]+):\d{2,5}\b|\blocalhost\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-f:]*:[0-9a-f:]*\]",
    re.IGNORECASE,
)


def private(text: str) -> str:
    """A text without the keys and addresses of the environment, and without whatever looks like one."""
    hidden = []
    for name, value in os.environ.items():
        if _ADDRESS.search(name) and value:
            host = urlsplit(value if "//" in value else f"//{value}").hostname
            hidden += [value, host] if host else [value]
    text = without_secrets(text)
    for value in sorted(hidden, key=len, reverse=True):  # one may be in another
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "***", text, flags=re.IGNORECASE)
    return _LOOKS_LIKE_AN_ADDRESS.sub("***", text)


def named_models(texts: Sequence[str]) -> dict[str, Profile | None]:
    """The specs in ``SPEC``, ``ROLE=SPEC`` and profiles, each with the profile that tells how to reach it; with what
    serves the other roles if all have a role.

    Raises:
        PolyhopError: a profile cannot be read.
    """
    from ..engines.models import chosen_models
    from ..engines.profile import SUFFIX

    profiles = [text for text in texts if text.endswith(SUFFIX)]
    said, default, profile = chosen_models(profiles)  # the profile may be the one that the environment names
    others = [chosen_models([*profiles, text])[0] for text in texts if text not in profiles] or [said]
    specs = [spec for chosen in others for spec in chosen.values()]
    if not any("" in chosen for chosen in others):
        specs.append(default)
    return dict.fromkeys(specs, profile)


def check_model(spec: str, profile: Profile | None = None, seconds: float = SECONDS) -> Iterator[Finding]:
    """Whether a model can be had, answers, keeps to an agent's fields, and can be asked for JSON."""
    import dspy

    from ..engines.endpoint import unguarded
    from ..engines.models import explain, language_model
    from ..engines.profile import ProfileError

    check = private(f"model {spec}")
    try:
        lm = language_model(spec, profile)
    except PolyhopError as error:
        told = private(explain(error))
        missing = _missing(spec, "not_configured", told) if isinstance(error, ProfileError) else []
        fix = f"export {missing[0]}=..." if missing else "polyhop doctor --lm PROVIDER/NAME, or --lm lexical"
        yield failed(check, told, fix)
        return
    if not isinstance(unguarded(lm).engine, str):  # embedded: it reads prompts of fields only
        yield _finding(check, _try(lm, _plain_adapter(), seconds))
        return
    lm = unguarded(lm).copy(cache=False, num_retries=0, timeout=seconds)
    in_fields = _try(lm, _plain_adapter(), seconds)
    if in_fields.error and not in_fields.unreadable:
        yield _failure(check, spec, in_fields, seconds)
        return
    as_json = _try(lm, dspy.JSONAdapter(), seconds)
    if in_fields.unreadable and not as_json.error:
        told = f"answers, but not in the fields it was asked for; as JSON it does ({as_json.cost})"
        yield warning(check, told, "name a more capable model with --lm: each agent would cost this one a second call")
    else:
        yield _finding(check, in_fields)
    yield _json_finding(f"{check}: JSON", lm, as_json)


def _finding(check: str, trial: _Trial) -> Finding:
    if trial.error:
        return failed(check, _told(trial.error), "name a more capable model with --lm")
    return ok(check, f"answers in the fields it was asked for ({trial.cost})")


def _json_finding(check: str, lm: dspy.LM, trial: _Trial) -> Finding:
    if trial.error:
        told = f"cannot be used: {_told(trial.error)}"
        return warning(check, told, "nothing, unless you use dspy.JSONAdapter yourself: polyhop asks for fields")
    if "response_format" not in lm.supported_params:
        return ok(check, f"by request only, DSPy knows of no JSON mode for it ({trial.cost})")
    return ok(check, f"{'structured output' if lm.supports_response_schema else 'JSON mode'} ({trial.cost})")


def _failure(check: str, spec: str, trial: _Trial, seconds: float) -> Finding:
    """A model that did not answer, with the first thing that would have to be changed."""
    if isinstance(trial.error, TimeoutError):
        return failed(check, f"no answer in {seconds:g} s", "is the server up, and not loading the model still?")
    code, told = getattr(trial.error, "code", None), _told(trial.error)
    if missing := _missing(spec, code, told):
        return failed(check, told, f"export {missing[0]}=...")
    if "connection error" in told.lower():  # what LiteLLM makes of it has the code of a provider's error
        code = "transport"
    fixes = {
        "auth": "export the key that the provider knows; the one in the environment was refused",
        "billing": "look at the account at the provider",
        "rate_limit": "wait a minute, or raise the limit at the provider",
        "transport": "start the server, or mend its address in the environment or the profile; --lm lexical needs none",
    }
    return failed(check, told, fixes.get(code or "", "name another model with --lm; --lm lexical always works"))


def _missing(spec: str, code: str | None, told: str) -> list[str]:
    """The environment variables that would have to be set: those that the error names, or that LiteLLM looks for."""
    named = [name for name in _VARIABLE.findall(told) if name not in os.environ]
    if code != "not_configured":
        named = [name for name in named if SECRET.search(name)]
    if code == "auth" and not named:
        import litellm

        named = [name for name in litellm.validate_environment(spec)["missing_keys"] if SECRET.search(name)]
    return named


def _told(error: BaseException | None) -> str:
    from ..engines.models import explain
    from .text import plain

    return private(plain(explain(error))) if error else ""


# --- one request -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Trial:
    """What came of a request."""

    seconds: float
    tokens: int = 0
    error: BaseException | None = None

    @property
    def unreadable(self) -> bool:
        """There was a reply, and it did not say what it was asked for."""
        from dspy.utils.exceptions import AdapterParseError

        return isinstance(self.error, AdapterParseError)

    @property
    def cost(self) -> str:
        return f"{self.seconds:.1f} s, {self.tokens:,} tokens"


def _plain_adapter() -> dspy.Adapter:
    """polyhop's own, without its second try in JSON: that is a trial of its own here."""
    from ..programs.agent import ChatAdapter

    return ChatAdapter(json_fallback=False)


def _try(lm: dspy.LM, adapter: dspy.Adapter, seconds: float) -> _Trial:
    """Let an agent ask a model, and leave it alone when the time is over, whatever its client makes of time limits."""
    started = monotonic()
    reply: Future[int] = Future()

    def ask() -> None:
        try:
            reply.set_result(_ask(lm, adapter))
        except BaseException as error:  # noqa: BLE001  # it is told by who waits
            reply.set_exception(error)

    Thread(target=ask, daemon=True).start()  # of no executor, which would wait for it in the end
    try:
        error = reply.exception(timeout=seconds + 1)  # the client's own limit has a chance to say more
    except TimeoutError:
        return _Trial(seconds, error=TimeoutError())
    taken = monotonic() - started
    if error:
        return _Trial(taken, error=TimeoutError() if taken >= seconds else error)
    return _Trial(taken, reply.result())


def _ask(lm: dspy.LM, adapter: dspy.Adapter) -> int:
    """The tokens that it took to have a question analysed."""
    import dspy

    from ..signatures import AnalyzeQuestion

    with dspy.context(lm=lm, adapter=adapter, disable_history=True), dspy.track_usage() as usage:
        dspy.Predict(AnalyzeQuestion)(question=_QUESTION)
    used: Any = usage.get_total_tokens().values()
    return sum(each.get("prompt_tokens", 0) + each.get("completion_tokens", 0) for each in used)
