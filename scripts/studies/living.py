"""A living index under load: passages are added, updated and deleted while processes search, and updates are killed.

python -m polyhop.scripts.studies.living --passages 100000 --changed 1000 --readers 8 --kills 10
"""

from __future__ import annotations

import json
import multiprocessing
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from ...data.chain import ChainRetriever
from ...data.lucene.bm25 import BM25Index
from ...data.lucene.index import build_index, check_index
from ...data.lucene.update import update_index
from .generated import GeneratedCorpus

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_RECORDS = 100  # of a file
_PER_FILE = 10  # records that are added or changed


@app.command()
def living(
    passages: Annotated[int, typer.Option(min=1000)] = 100_000,
    changed: Annotated[int, typer.Option(min=10)] = 1_000,
    readers: Annotated[int, typer.Option(min=1)] = 8,
    kills: Annotated[int, typer.Option(min=0)] = 10,
) -> None:
    """Print a table of the changes: their time, and what the readers saw."""
    with TemporaryDirectory(prefix="polyhop-living-") as folder:
        _run(Path(folder), passages, changed, readers, kills)


def _run(home: Path, passages: int, changed: int, readers: int, kills: int) -> None:
    folder, index = home / "corpus", home / "index"
    _write(folder, passages)
    started = time.monotonic()
    build_index([folder], index)
    typer.echo(f"build: {time.monotonic() - started:.1f} s, {passages:,} passages, {_size(index):,.0f} MB")
    stop = multiprocessing.get_context("spawn").Event()
    counts = multiprocessing.get_context("spawn").Queue()
    spawned = multiprocessing.get_context("spawn").Process
    processes = [spawned(target=_read, args=(str(index), n, stop, counts)) for n in range(readers)]
    for process in processes:
        process.start()
    for _ in processes:
        counts.get()  # it has searched once
    for count in (10, changed):
        _changes(folder, index, count)
    _kills(folder, index, kills, changed)
    stop.set()
    found = [counts.get() for _ in processes]
    for process in processes:
        process.join()
    errors = [error for each in found for error in each["errors"]]
    typer.echo(f"readers: {sum(each['searches'] for each in found):,} searches, {len(errors)} errors {errors[:3]}")
    typer.echo(f"check: {check_index(index).problems or 'sound'}")


def _changes(folder: Path, index: Path, changed: int) -> None:
    with BM25Index(index) as opened:
        for name, change in (("add", _added), ("update", _updated), ("delete", _deleted)):
            word = f"zz{name}{changed}"
            change(folder, changed, word)
            started = time.monotonic()
            changes = update_index(index, folders=[folder])
            seconds = time.monotonic() - started
            seen = len(opened.search(word, changed + 1))
            expected = 0 if name == "delete" else changed
            typer.echo(
                f"{name} {changed}: {seconds:.1f} s, {changes.added:,} added, {changes.deleted:,} deleted; "
                f"the next search finds {seen:,} of {expected:,}"
            )


def _kills(folder: Path, index: Path, kills: int, changed: int) -> None:
    """Kill updates, and start each again."""
    command = [sys.executable, "-m", "polyhop.scripts.main", "index", "--update", str(folder), "--out", str(index)]
    choose, longest = random.Random(7), 0.0
    killed = complete = sound = exact = 0
    for n in range(kills + 1):  # the first is timed, not killed
        before = _passages(folder)
        _updated(folder, changed, f"zzkill{n}")
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        if n:
            time.sleep(choose.uniform(0.1, longest))
            killed += process.poll() is None
            process.kill()
        process.wait()
        longest = longest or time.monotonic() - started
        complete += _has(index, before) or _has(index, _passages(folder))
        sound += not check_index(index).problems
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        exact += _has(index, _passages(folder))
    typer.echo(
        f"kills: {killed} of {kills} updates killed within {longest:.1f} s; of {kills + 1} states {complete} as before "
        f"or after and {sound} sound; the same command again: {exact} exact"
    )


def _passages(folder: Path) -> dict[str, str]:
    """The text of each record of the folder by its id."""
    lines = (line for path in folder.iterdir() for line in path.read_text().splitlines())
    return {record["id"]: record["text"] for record in map(json.loads, lines)}


def _has(index: Path, expected: dict[str, str]) -> bool:
    """Whether an index has these passages and no others."""
    with BM25Index(index) as opened:
        ids = list(expected)
        try:
            batches = [opened.passages(ids[at : at + 1000]) for at in range(0, len(ids), 1000)]
        except KeyError:
            return False
        return len(opened) == len(ids) and all(each.text == expected[each.id] for batch in batches for each in batch)


def _read(index: str, number: int, stop: Any, counts: Any) -> None:
    errors: list[str] = []
    searches = 0
    with BM25Index(index) as opened:
        retriever: Any = ChainRetriever(opened) if number % 2 else opened
        words = random.Random(number)
        while not searches or not stop.is_set():
            try:
                retriever.search(f"zzadd zzupdate passage {words.randrange(1000)}", 5)
            except Exception as error:  # noqa: BLE001  # counted
                errors.append(f"{type(error).__name__}: {error}")
            searches += 1
            if searches == 1:
                counts.put("ready")
            time.sleep(0.25)
    counts.put({"searches": searches, "errors": errors})


def _write(folder: Path, passages: int) -> None:
    folder.mkdir()
    corpus = iter(GeneratedCorpus(passages))
    for n in range(passages // _RECORDS):
        records = [next(corpus) for _ in range(_RECORDS)]
        (folder / f"{n:05}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def _added(folder: Path, changed: int, word: str) -> None:
    for n in range(changed // _PER_FILE):
        records = [
            {"id": f"new-{n}-{m}", "title": f"New {n} {m}", "text": f"{word} is here."} for m in range(_PER_FILE)
        ]
        (folder / f"new{n:05}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def _updated(folder: Path, changed: int, word: str) -> None:
    """Change the first records of as many files."""
    for path in sorted(folder.glob("0*.jsonl"))[: changed // _PER_FILE]:
        lines = path.read_text().splitlines()
        records = [json.loads(line) for line in lines[:_PER_FILE]]
        for record in records:
            record["text"] = f"{word} is here."
        path.write_text("\n".join([*map(json.dumps, records), *lines[_PER_FILE:]]) + "\n")


def _deleted(folder: Path, changed: int, word: str) -> None:
    for path in folder.glob("new*.jsonl"):
        path.unlink()


def _size(index: Path) -> float:
    return sum(path.stat().st_size for path in index.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    app()
