"""`polyhop index`: build a BM25 index, add vectors to it, or check one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from .text import warn

if TYPE_CHECKING:
    from ..data.dense import Encoder
    from ..data.errors import Problem
    from ..data.lucene.index import BuildProgress


HOME = ".polyhop"
"""The index of a folder of documents, in it: a hidden folder, which is not indexed itself."""

_SHOWN = 5  # of what is skipped, and kinds of files
_LINE_EVERY = 30.0  # seconds, where there is no terminal


def index(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CORPUS...",
            help="Documents (.txt, .md, .html, .pdf, .docx, .csv), records (JSON Lines, plain or gzip; each a 'title' "
            "and a 'text' or 'sentences'), folders of these, or a benchmark's questions with their contexts.  "
            "[default: the current folder]",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The folder of the index.  [default: .polyhop]")
    ] = None,
    max_words: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Split what has more words, at sentence boundaries; 0: nothing.  [default: documents at 120]",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad or duplicate record.")] = False,
    dense: Annotated[
        bool,
        typer.Option("--dense", help="Add vectors for dense retrieval: to the new index, or to an existing one."),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="NAME",
            help="With --dense: a model of sentence-transformers, by its name or its folder.  [default: "
            "sentence-transformers/all-MiniLM-L6-v2]",
        ),
    ] = None,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Add what the chain retriever needs to an index of Anserini or Pyserini (DIR or pyserini:NAME).",
        ),
    ] = False,
    add: Annotated[bool, typer.Option("--add", help="Add files or folders to the index in --out.")] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete documents, by id or file name, from the index in --out.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Read again what has changed in folders of the index in --out.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Verify the checksums of an existing index.")] = False,
) -> None:
    """Build a BM25 index of a corpus, or --add, --delete or --update documents of one; --adopt one of Pyserini, add
    --dense vectors to one, or --check one.

    An existing index in DIR is replaced when the new one is complete; an interrupted build leaves it unchanged. An
    interrupted `polyhop index --dense DIR` resumes. Readers see a change at their next search.
    """
    if check + dense + adopt + add + delete + update > 1:
        raise typer.BadParameter("choose one of --add, --delete, --update, --adopt, --check and --dense")
    names = names or []
    if adopt or check or (dense and not (names and out)):
        from ..data.lucene.pyserini import locate

        named: list[Path | str] = [*names, *([out] if out else [])] or [HOME]
        if len(named) > 1:
            raise typer.BadParameter("name one index, such as polyhop index --check DIR")
        existing = locate(named[0])
        if dense:
            _embed(existing, _encoder(model))
        else:
            (_adopt if adopt else _check)(existing)
        return
    if delete and not names:
        raise typer.BadParameter("name what to delete: polyhop index --delete notes.md")
    names, out = names or ["."], out or Path(HOME)
    corpus = [Path(name) for name in names]
    if add or delete or update:
        _change(out, add=corpus * add, delete=names * delete, folders=corpus * update)
        return
    encoder = _encoder(model) if dense else None  # fails early if it is not installed
    _build(corpus, out, max_words, strict)
    if encoder:
        _embed(out, encoder)


def _adopt(folder: Path) -> None:
    from ..data.lucene.index import adopt_index
    from .bar import progress_bar

    started = monotonic()
    with progress_bar("adopting") as bar:
        task = bar.add_task("", total=None)
        manifest = adopt_index(folder, on_progress=lambda done, total: bar.update(task, completed=done, total=total))
    added = manifest.home(folder)
    _print_rows(
        index=str(folder),
        passages=f"{manifest.passages:,}",
        added=f"{_megabytes(added)} in {added}",
        time=_rate(manifest.passages, started),
    )


def _build(corpus: list[Path], out: Path, max_words: int | None, strict: bool) -> None:
    from ..data.lucene.index import build_index
    from ..data.lucene.layout import PROBLEMS
    from ..data.passages import PAGE

    skipped, started = _Skipped(), monotonic()
    with _progress() as show:
        manifest = build_index(corpus, out, max_words=max_words, strict=strict, on_progress=show, on_problem=skipped)
    is_split = manifest.documents < manifest.passages
    _print_rows(
        index=str(out),
        corpus=", ".join(manifest.corpus),
        passages=f"{manifest.passages:,}" + (f" of {manifest.documents:,} documents" if is_split else ""),
        skipped=skipped.summary,
        size=_megabytes(out),
        time=_rate(manifest.passages, started),
    )
    if manifest.overlong:
        warn(
            f"  of {manifest.overlong:,} passages only the first {PAGE:,} characters are read: split them with "
            "--max-words 120"
        )
    skipped.tell(manifest.home(out) / PROBLEMS)


def _change(index: Path, add: list[Path], delete: list[str], folders: list[Path]) -> None:
    from ..data.lucene.layout import PROBLEMS
    from ..data.lucene.update import update_index

    had_vectors = any(index.glob("polyhop/*/vectors-*.npy"))
    skipped, started = _Skipped(), monotonic()
    with _progress() as show:
        changes = update_index(index, add=add, delete=delete, folders=folders, on_progress=show, on_problem=skipped)
    manifest = changes.manifest
    _print_rows(
        index=str(index),
        passages=f"{manifest.passages:,} of {manifest.documents:,} documents",
        changed=f"{changes.added:,} passages added, {changes.deleted:,} deleted",
        skipped=skipped.summary,
        time=f"{monotonic() - started:.1f} s",
    )
    skipped.tell(manifest.home(index) / PROBLEMS)
    if had_vectors and changes.added + changes.deleted:
        warn(f"  the vectors were those of the index before: polyhop index --dense {index}")


def _encoder(model: str | None) -> Encoder:
    from ..data.dense import DEFAULT_MODEL, SentenceEncoder

    return SentenceEncoder(model or DEFAULT_MODEL)


def _embed(folder: Path, encoder: Encoder) -> None:
    from ..data.dense import embed_index
    from .bar import progress_bar

    started, known = monotonic(), list[int]()
    with progress_bar("embedding") as bar:
        task = bar.add_task("", total=None)

        def show(done: int, rows: int) -> None:
            known.append(done)
            bar.update(task, completed=done, total=rows)

        vectors = embed_index(folder, encoder, on_progress=show)
    made = vectors.rows - known[0]
    _print_rows(
        index=str(folder),
        vectors=f"{vectors.rows:,} of {vectors.dimension} dimensions, {vectors.size / 1e6:,.1f} MB",
        encoder=vectors.encoder,
        time=_rate(made, started) if made else "already complete",
    )


def _check(folder: Path) -> None:
    from ..data.lucene.index import check_index
    from ..data.lucene.layout import rebuild

    report = check_index(folder)
    if report.problems:
        for problem in report.problems:
            warn(f"  {problem}")
        raise PolyhopError(f"the index {folder} is damaged. {rebuild(folder)}")
    manifest = report.manifest
    typer.echo(
        f"{folder} is sound: {manifest.passages:,} passages of {', '.join(manifest.corpus)}, built "
        f"{manifest.created.isoformat()}"
    )


# --- what is shown ----------------------------------------------------------------------------------------------------


class _Skipped:
    """Counts what is skipped, and remembers the first ones; for ``on_problem``."""

    def __init__(self) -> None:
        self._counts, self._suffixes = Counter[str](), Counter[str]()
        self._first: list[Problem] = []

    def __call__(self, problem: Problem) -> None:
        self._counts[problem.kind] += 1
        if problem.kind == "other":  # of no interest one by one
            self._suffixes[PurePosixPath(problem.where).suffix.lower() or "without a suffix"] += 1
        elif len(self._first) < _SHOWN:
            self._first.append(problem)

    @property
    def summary(self) -> str:
        """One line: "2 damaged; 1 duplicate; 3 without a reader: 2 .py, 1 .png"."""
        parts = [f"{self._counts[kind]:,} {kind}" for kind in ("damaged", "duplicate")]
        if count := self._counts["other"]:
            kinds = [f"{number:,} {suffix}" for suffix, number in self._suffixes.most_common(_SHOWN)]
            parts.append(f"{count:,} without a reader: {', '.join(kinds)}")
        return "; ".join(parts)

    def tell(self, listed: Path) -> None:
        for problem in self._first:
            warn(f"  {problem.where}: {problem.reason}")
        if self._counts:
            typer.echo(f"  all of them: {listed}", err=True)


@contextmanager
def _progress() -> Iterator[Callable[[BuildProgress], None]]:
    """A function that shows how far an index is: as a bar in a terminal, else as a line now and then."""
    from .bar import progress_bar

    told = monotonic()
    with progress_bar("indexing") as bar:
        task = bar.add_task("", total=100)

        def show(built: BuildProgress) -> None:
            nonlocal told
            state = f"{built.passages:,} passages, {PurePosixPath(built.file).name or 'merging'}"
            bar.update(task, completed=round(100 * built.done), description=state)
            if bar.disable and monotonic() - told >= _LINE_EVERY:
                told = monotonic()
                typer.echo(f"indexing: {built.done:.0%}, {plain(state)}", err=True)

        yield show


def _print_rows(**rows: str) -> None:
    for name, value in rows.items():
        typer.echo(f"{name:<10}{value}")


def _megabytes(folder: Path) -> str:
    return f"{sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()) / 1e6:,.1f} MB"


def _rate(passages: int, started: float) -> str:
    seconds = monotonic() - started
    return f"{seconds:.1f} s ({passages / max(seconds, 1e-9):,.0f} passages/s)"
