"""`polyhop doctor`: checks the installation, an index and language models.

A model gets two short requests, without cache and retries. A provider's message may contain the key or the address that
was used, so nothing of it is printed before `private` has redacted it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from .checks import Finding, failed, ok, warning

if TYPE_CHECKING:
    import dspy

    from ..data.lucene.bm25 import BM25Index
    from ..engines.models import Profile

_WIDTH = 16  # of a check's name; models may be longer
_COLORS = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "failed": typer.colors.RED}
_QUESTION = "In which country was the director of the film Solaris born?"
_ADDRESS = re.compile(r"(BASE|URL|ENDPOINT|HOST)$", re.IGNORECASE)
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_LOOKS_LIKE_AN_ADDRESS = re.compile(
    r"\b[a-z]+://[^\s'\"<>)]+"
    r"|\b(?:localhost|(?:[\w-]+\.)+[\w-]+):\d{2,5}\b|\blocalhost\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-f:]*:[0-9a-f:]*\]",
    re.IGNORECASE,
)


def doctor(
    index: Annotated[Path | None, typer.Option("--index", metavar="DIR", help="Also verify an index.")] = None,
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Questions with gold: also say which retriever finds it in the index."),
    ] = None,
    lm: Annotated[
        list[str] | None,
        typer.Option(
            "--lm",
            metavar="[ROLE=]SPEC",
            help="Test this model, or the models of a profile (FILE.toml), with two short requests each. May be "
            "repeated.  [default: $POLYHOP_LM or lexical]",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Timeout of a request to a model.")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check the installation, an index and language models, with a fix for each problem.

    Uses the network only for the models that are named. Does not print keys or addresses of models. Exits with status 1
    if a check fails; warnings do not count.
    """
    import json
    from dataclasses import asdict

    findings: list[Finding] = []
    if questions is not None and index is None:
        raise typer.BadParameter("--questions needs --index")
    for finding in _findings(index, questions, lm or (), seconds):
        findings.append(finding)
        if not as_json:
            _print(finding)
    success = all(finding.status != "failed" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": success, "checks": [asdict(each) for each in findings]}, ensure_ascii=False))
    if not success:
        raise typer.Exit(1)


def _findings(index: Path | None, questions: Path | None, models: Sequence[str], seconds: float) -> Iterator[Finding]:
    from . import checks

    yield checks.check_python()
    yield checks.check_packages()
    java = checks.check_java()
    yield java
    if index is not None and java.status == "failed":
        yield warning("index", "not checked, because Java does not work", "fix Java first")
    elif index is not None:
        sound = True
        for finding in checks.check_index_folder(index):
            sound &= finding.status != "failed"
            yield finding
        if sound:
            yield from check_ties(index, questions)
    for spec, profile in named_models(models).items():
        yield from check_model(spec, profile, seconds)


def _print(finding: Finding) -> None:
    mark = typer.style(f"{finding.status:<9}", fg=_COLORS[finding.status])
    typer.echo(f"{mark}{finding.check:<{_WIDTH}}  {finding.found}")
    if finding.fix:
        typer.echo(f"{'':<{9 + _WIDTH}}  -> {finding.fix}")


# --- which retriever -------------------------------------------------------------------------------------------------


def check_ties(index: Path, questions: Path | None) -> Iterator[Finding]:
    """How the documents of an index are tied, how the retrievers do on questions, and which one to use."""
    from ..data.lucene.bm25 import BM25Index
    from ..data.text import count
    from ..eval.linkage import linkage_of

    with BM25Index(index) as opened:
        if not opened.has_titles or not len(opened):
            yield warning("ties", "not looked at: the index has no titles", f"polyhop index --adopt {index}")
            return
        ties = linkage_of(opened.store)
        part = ties.sampled < ties.documents
        least = "at least " if part else ""
        drawn = f", of which {ties.sampled:,} were looked at" if part else ""
        yield ok("documents", f"{count(ties.documents, 'document')} of {count(ties.passages, 'passage')}{drawn}")
        linked = f"{least}{ties.linked:.0%} are linked by others"
        yield ok("hyperlinks", f"{ties.linking:.0%} of the documents link to others, {linked}")
        yield ok("names", f"{least}{ties.mentioned:.0%} of the documents are mentioned by others, by title or alias")
        if questions is not None:
            yield from _trial(opened, questions)
        else:
            why = f"{least}{ties.tied:.0%} of the documents are tied by links or names"
            yield ok("retriever", f"{ties.retriever}, because {why}; to be sure, name --questions with gold")


def _trial(index: BM25Index, file: Path) -> Iterator[Finding]:
    from ..eval.linkage import trial_of
    from ..eval.questions import Questions
    from .source import dataset_of

    try:
        trial = trial_of(Questions(dataset_of(str(file)), str(file), setting="open"), index)
    except (PolyhopError, ValueError) as error:
        yield failed("questions", str(error), 'each line needs a "question" and its "gold": ["Title", "file.md"]')
        return
    if trial.without:
        found = f"{trial.without} of {trial.questions + trial.without} have no gold document in the index"
        yield warning("questions", found, "correct the names in gold, or leave these questions out")
    if trial.pairs:
        found = f"{trial.tied:.0%} of {trial.pairs} are tied, {trial.linked:.0%} by a hyperlink"
        yield ok("gold pairs", found)
    means = (f"{name} {100 * trial.recall[name]:.1f} ({100 * trial.all_gold[name]:.1f})" for name in trial.recall)
    yield ok("Recall@5", f"{'; '.join(means)} by document (all gold@5)")
    versus, least = trial.versus, 100 * trial.smallest
    mean, low, high = (f"{100 * value:+.1f}" for value in versus.difference)
    found = f"{mean} points for chain against {trial.better} ({low} to {high}, p = {versus.p_permutation:.2g})"
    yield ok("difference", f"{found}; {trial.questions} questions mostly show one of {least:.1f} points or more")
    if trial.retriever is None:
        yield ok("retriever", "no clear difference: take the higher one, or ask more questions")
    else:
        yield ok("retriever", trial.retriever)


# --- models ----------------------------------------------------------------------------------------------------------


def private(text: str) -> str:
    """The text without keys and addresses of the environment, and without what looks like one."""
    from ..engines.secrets import without_secrets

    hidden = []
    for name, value in os.environ.items():
        if _ADDRESS.search(name) and value:
            host = urlsplit(value if "//" in value else f"//{value}").hostname
            hidden += [value, host] if host else [value]
    text = without_secrets(text)
    for value in sorted(hidden, key=len, reverse=True):  # one may contain another
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "***", text, flags=re.IGNORECASE)
    return _LOOKS_LIKE_AN_ADDRESS.sub("***", text)


def named_models(texts: Sequence[str]) -> dict[str, Profile | None]:
    """The models in ``SPEC``, ``ROLE=SPEC`` and profiles, with the profile; and the default if all have a role."""
    from ..engines.models import SUFFIX, chosen_models

    profiles = [text for text in texts if text.endswith(SUFFIX)]
    chosen, default, profile = chosen_models(profiles)
    others = [chosen_models([*profiles, text])[0] for text in texts if text not in profiles] or [chosen]
    specs = [spec for each in others for spec in each.values()]
    if not any("" in each for each in others):
        specs.append(default)
    return dict.fromkeys(specs, profile)


def check_model(spec: str, profile: Profile | None = None, seconds: float = 30.0) -> Iterator[Finding]:
    """Whether a model can be reached, answers in the expected fields, and can return JSON."""
    import dspy

    from ..engines.limits import unlimited
    from ..engines.models import ProfileError, language_model
    from ..engines.replies import explain

    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)  # JSON is tested separately
    check = private(f"model {spec}")
    try:
        lm = unlimited(language_model(spec, profile))
    except PolyhopError as error:
        found = private(explain(error))
        missing = _missing_variables(spec, "not_configured", found) if isinstance(error, ProfileError) else []
        yield failed(check, found, f"export {missing[0]}=..." if missing else "use --lm PROVIDER/NAME, or --lm lexical")
        return
    if not isinstance(lm.engine, str):  # embedded: reads prompts with fields only
        yield _fields_finding(check, _try(lm, adapter, seconds))
        return
    import litellm  # noqa: F401  # before the first request, as it takes seconds

    lm = lm.copy(cache=False, num_retries=0, timeout=seconds)
    in_fields = _try(lm, adapter, seconds)
    if in_fields.error and not in_fields.unreadable:
        yield _failure(check, spec, in_fields, seconds)
        return
    as_json = _try(lm, dspy.JSONAdapter(), seconds)
    if in_fields.unreadable and not as_json.error:
        found = f"answers only as JSON, not in the expected fields ({as_json.cost})"
        yield warning(check, found, "use a more capable model: with this one each agent needs a second call")
    else:
        yield _fields_finding(check, in_fields)
    yield _json_finding(f"{check}: JSON", lm, as_json)


def _fields_finding(check: str, trial: _Trial) -> Finding:
    if trial.error:
        return failed(check, _redacted(trial.error), "use a more capable model with --lm")
    return ok(check, f"answers in the expected fields ({trial.cost})")


def _json_finding(check: str, lm: dspy.LM, trial: _Trial) -> Finding:
    if trial.error:
        return warning(check, _redacted(trial.error), "nothing, unless you use dspy.JSONAdapter: polyhop uses fields")
    if "response_format" not in lm.supported_params:
        return ok(check, f"without a JSON mode that DSPy knows ({trial.cost})")
    return ok(check, f"{'structured output' if lm.supports_response_schema else 'JSON mode'} ({trial.cost})")


def _failure(check: str, spec: str, trial: _Trial, seconds: float) -> Finding:
    """A model that did not answer, and the most likely fix."""
    if isinstance(trial.error, TimeoutError):
        return failed(check, f"no answer in {seconds:g} s", "check that the server is up and has loaded the model")
    code, found = getattr(trial.error, "code", None), _redacted(trial.error)
    if missing := _missing_variables(spec, code, found):
        return failed(check, found, f"export {missing[0]}=...")
    if "connection error" in found.lower():  # LiteLLM reports it as a provider's error
        code = "transport"
    fixes = {
        "auth": "export a valid key: the provider rejected the one in the environment",
        "billing": "check your account with the provider",
        "rate_limit": "wait a minute, or raise the limit with the provider",
        "transport": "start the server, or correct its address in the environment or the profile",
    }
    return failed(check, found, fixes.get(code or "", "use another model with --lm; --lm lexical always works"))


def _missing_variables(spec: str, code: str | None, found: str) -> list[str]:
    """Environment variables to set: those that the error names, or that LiteLLM expects."""
    from ..engines.secrets import SECRET

    named = [name for name in _VARIABLE.findall(found) if name not in os.environ]
    if code != "not_configured":
        named = [name for name in named if SECRET.search(name)]
    if code == "auth" and not named:
        import litellm

        named = [name for name in litellm.validate_environment(spec)["missing_keys"] if SECRET.search(name)]
    return named


def _redacted(error: BaseException | None) -> str:
    from ..engines.replies import explain

    return private(plain(explain(error))) if error else ""


@dataclass(frozen=True)
class _Trial:
    """The result of one request."""

    seconds: float
    tokens: int = 0
    error: BaseException | None = None

    @property
    def unreadable(self) -> bool:
        """There was a reply, without the expected fields."""
        from dspy.utils.exceptions import AdapterParseError

        return isinstance(self.error, AdapterParseError)

    @property
    def cost(self) -> str:
        return f"{self.seconds:.1f} s, {self.tokens:,} tokens"


def _try(lm: dspy.LM, adapter: dspy.Adapter, seconds: float) -> _Trial:
    """Ask a model as an agent does; abandon the request after the timeout, whatever the client does."""
    import dspy

    from ..signatures import AnalyzeQuestion

    reply: Future[int] = Future()

    def ask() -> None:
        try:
            with dspy.context(lm=lm, adapter=adapter, disable_history=True), dspy.track_usage() as usage:
                dspy.Predict(AnalyzeQuestion)(question=_QUESTION)
            used: Any = usage.get_total_tokens().values()
            reply.set_result(sum(each.get("prompt_tokens", 0) + each.get("completion_tokens", 0) for each in used))
        except BaseException as error:  # noqa: BLE001  # returned to the waiting thread
            reply.set_exception(error)

    started = monotonic()
    Thread(target=ask, daemon=True).start()  # an executor would wait for it at exit
    try:
        error = reply.exception(timeout=seconds + 1)  # the client's own timeout says more
    except TimeoutError:
        return _Trial(seconds, error=TimeoutError())
    taken = monotonic() - started
    if error:
        return _Trial(taken, error=TimeoutError() if taken >= seconds else error)
    return _Trial(taken, reply.result())
