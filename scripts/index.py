"""`polyhop index`: build a BM25 index, change it, add vectors to it, or check one."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath
from time import monotonic

import typer

from ..data import dense
from ..data.errors import PolyhopError, Problem
from ..data.languages import AUTO, ENGLISH
from ..data.lucene.index import BuildProgress, adopt_index, build_index, check_index
from ..data.lucene.layout import HOME, PROBLEMS, index_above, index_of, rebuild
from ..data.lucene.pyserini import locate
from ..data.lucene.update import update_index
from ..data.passages import PAGE
from ..data.text import count, plain
from .options import Index
from .terminal import progress_bar, warn

_SHOWN = 5  # of what is skipped, and kinds of files
_LINE_EVERY = 10.0  # seconds at least, and a tenth of the work, where there is no terminal


def index(options: Index) -> None:
    out, names = options.out, list(options.names)
    if options.check + options.dense + options.adopt + options.add + options.delete + options.update > 1:
        raise typer.BadParameter("choose one of --add, --delete, --update, --adopt, --check and --dense")
    if options.delete and not names:
        raise typer.BadParameter("name what to delete: polyhop index --delete notes.md")
    is_there = options.adopt or options.check or (options.dense and not (names and out))
    named: list[Path | str] = [*names, *([out] if out else [])]
    if is_there and len(named) > 1:
        raise typer.BadParameter("name one index, such as polyhop index --check DIR")
    encoder = dense.SentenceEncoder(options.encoder) if options.dense else None  # fails early if it is not installed
    folder = locate([*named, HOME][0]) if is_there else out or Path(HOME)
    if options.update and not (out or folder.exists()) and len(names) == 1:
        folder = Path(names[0])
    if options.add or options.delete or options.update:  # `locate` sees to the others
        if not out and not index_of(folder).exists():
            folder = index_above() or folder
            names = names or [str(folder.parent)]
        folder = index_of(folder)
    if not is_there:
        _write(options, folder, names or ["."])
    if options.check:
        _check(folder)
    if options.adopt:
        _adopt(folder, ENGLISH if options.language == AUTO else options.language)
    if encoder:
        _embed(folder, encoder)


def _check(folder: Path) -> None:
    report = check_index(folder)
    for problem in report.problems:
        warn(f"  {problem}")
    if report.problems:
        raise PolyhopError(f"the index {folder} is damaged. {rebuild(folder)}")
    made, corpus = report.manifest.created.isoformat(), plain(", ".join(report.manifest.corpus))
    typer.echo(f"{folder} is sound: {report.manifest.passages:,} passages of {corpus}, built {made}")


def _adopt(folder: Path, language: str) -> None:
    started = monotonic()
    with progress_bar("adopting") as bar:
        task = bar.add_task("", total=None)

        def show(done: int, passages: int) -> None:
            bar.update(task, completed=done, total=passages)

        manifest = adopt_index(folder, language=language, on_progress=show)
    home = manifest.home(folder)
    _print_rows(
        index=str(folder),
        passages=f"{manifest.passages:,}",
        added=f"{_megabytes(home)} in {home}",
        time=_rate(manifest.passages, started),
    )


class _Skipped:
    """Counts what an index leaves out, by kind, and keeps the first of it."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self._first = defaultdict[str, list[Problem]](list)
        self._names = defaultdict[str, list[str]](list)  # of files without a reader, by suffix

    def add(self, problem: Problem) -> None:
        self.counts[problem.kind] += 1
        if problem.kind == "other":  # of no interest one by one
            path = PurePosixPath(problem.where)
            self._names[path.suffix.lower() or "without a suffix"].append(path.name)
        elif len(self._first[problem.kind]) < _SHOWN:
            self._first[problem.kind].append(problem)

    def __str__(self) -> str:
        parts = [f"{self.counts[kind]:,} {kind}" for kind in ("damaged", "duplicate")]
        if self.counts["partial"]:
            parts.append(f"parts of {count(self.counts['partial'], 'file')}")
        if self.counts["other"]:
            kinds = list[str]()
            for kind, names in sorted(self._names.items(), key=lambda item: -len(item[1]))[:_SHOWN]:
                examples = ", ".join([*names[:2], *(["..."] if len(names) > 2 else [])])
                kinds.append(f"{len(names):,} {kind} ({examples})")
            parts.append(plain(f"{self.counts['other']:,} without a reader: {', '.join(kinds)}"))
        return "; ".join(parts)

    @property
    def first(self) -> list[Problem]:
        return [*self._first["damaged"], *self._first["partial"], *self._first["duplicate"]][:_SHOWN]


def _write(options: Index, out: Path, names: list[str]) -> None:
    """Build an index, or change one."""
    skipped, started, tenths = _Skipped(), monotonic(), 0
    last_line = started

    def show(built: BuildProgress) -> None:
        nonlocal last_line, tenths
        state = plain(f"{built.passages:,} passages, {PurePosixPath(built.file).name or 'merging'}")
        bar.update(task, completed=100 * built.done, description=state)
        if bar.disable and monotonic() - last_line >= _LINE_EVERY and int(10 * built.done) > tenths:
            last_line, tenths = monotonic(), int(10 * built.done)
            typer.echo(f"indexing: {built.done:.0%}, {state}", err=True)

    corpus, rows, changes = [Path(name) for name in names], {"index": str(out)}, None
    with progress_bar("indexing") as bar:
        task = bar.add_task("", total=100)
        if options.add or options.delete or options.update:
            changes = update_index(
                out,
                add=corpus * options.add,
                delete=names * options.delete,
                folders=corpus * options.update,
                on_progress=show,
                on_problem=skipped.add,
            )
            manifest = changes.manifest
            change = f"{count(changes.added, 'passage')} added, {changes.deleted:,} deleted"
            of_documents = f"{count(changes.documents, 'document')}: {change}"
            rows["changed"] = of_documents if changes.documents else "nothing"
            if changes.unreadable:
                rows["removed"] = f"{count(changes.unreadable, 'document')} whose files cannot be read any more"
        else:
            manifest = build_index(
                corpus,
                out,
                max_words=options.max_words,
                language=options.language,
                strict=options.strict,
                on_progress=show,
                on_problem=skipped.add,
            )
            rows |= {"corpus": plain(", ".join(manifest.corpus)), "size": _megabytes(out)}
        if manifest.languages != (ENGLISH,):
            rows["languages"] = ", ".join(manifest.languages)
    documents = f" of {manifest.documents:,} documents" if manifest.documents < manifest.passages else ""
    rows |= {"passages": f"{manifest.passages:,}{documents}", "skipped": str(skipped)}
    _print_rows(**rows, time=_rate(0 if changes else manifest.passages, started))
    if not changes and manifest.overlong:
        warn(f"  of {manifest.overlong:,} passages only the first {PAGE:,} characters are read: try --max-words 120")
    for problem in skipped.first:
        warn(f"  {problem.where}: {problem.reason}")
    if skipped.counts:
        typer.echo(f"  all of them: {manifest.home(out) / PROBLEMS}", err=True)
    for name in dense.outdated_encoders(out, manifest) if changes else ():
        try:
            _embed(out, dense.SentenceEncoder(name))  # what is new
        except PolyhopError as error:
            again = f"polyhop index --dense {out}" + ("" if name == dense.DEFAULT_MODEL else f" --encoder {name}")
            warn(f"  the vectors are those of the index before ({error}). Add those of what is new: {again}")


def _embed(folder: Path, encoder: dense.Encoder) -> None:
    started, before = monotonic(), list[int]()
    with progress_bar("embedding") as bar:
        task = bar.add_task("", total=None)

        def show(done: int, rows: int) -> None:
            before.append(done)
            bar.update(task, completed=done, total=rows)

        vectors = dense.embed_index(folder, encoder, on_progress=show)
    made = vectors.rows - before[0]
    _print_rows(
        index=str(folder),
        vectors=f"{vectors.rows:,} of {vectors.dimension} dimensions, {vectors.size / 1e6:,.1f} MB",
        encoder=vectors.encoder,
        time=_rate(made, started) if made else "already complete",
    )


def _print_rows(**rows: str) -> None:
    for name, value in rows.items():
        typer.echo(f"{name:<10}{value}")


def _megabytes(folder: Path) -> str:
    return f"{sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()) / 1e6:,.1f} MB"


def _rate(passages: int, started: float) -> str:
    seconds = monotonic() - started
    rate = f" ({passages / seconds:,.0f} passages/s)" if passages > seconds else ""
    return f"{seconds:.1f} s{rate}"
