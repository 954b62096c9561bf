"""`polyhop ask` and `polyhop search`: answer a question, or those of a file, and show what a retriever finds.

The answers to a file can be interrupted and resumed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import dspy
import typer
from rich.text import Text

from ..app.named import NamedProgram, NoIndexError, chosen_index, models_of, open_source, paying
from ..data.chain.pairs import path
from ..data.errors import PolyhopError
from ..data.files import read_bytes
from ..data.lucene.bm25 import BM25Index
from ..data.passages import one_a_document
from ..data.pool import PassagePool
from ..data.retrievers import build_retriever
from ..data.text import clean, count, plain
from ..engines.costs import FREE
from ..engines.replies import ModelError
from ..eval.folder import RunRecord
from ..programs.prediction import check_question
from .options import Ask, Index, Search
from .results import check_own, run_into
from .terminal import new_console, warn
from .view import answered, hit_lines, print_answer, print_chain, showing_progress

NO_MODEL = "No language model was asked. To ask one: --lm ollama_chat/qwen3:4b, or --lm openai/gpt-4o-mini"
_DOCUMENTS = "documents|pages|files|articles|notes|records|entries"
_OVER_ALL = re.compile(rf"\s*(?:how many|count|list|name|show|give|which)\b.*\b(?:{_DOCUMENTS})\b", re.IGNORECASE)


def ask(options: Ask) -> None:
    file, out = options.file, options.out
    if (options.question is None) == (file is None) or (out and not file):
        raise typer.BadParameter("ask one question, or those of a --file, whose answers can go to --out")
    questions = list(_read(file)) if file else [("1", check_question(options.question or ""))]
    if out:
        check_own(out)
    named = NamedProgram(options.program)
    index = searched_index(options.index) if named.searches else None
    source = open_source(index) if index else None
    program = named.build(source, options)
    if out:
        examples = [dspy.Example(id=id, question=text, answers=()).with_inputs("question") for id, text in questions]
        run_into(out, program, examples, options, _write, name=named.label, index=index, source=source)
        return
    failed = 0
    with paying(options) as pay:
        pay(program)
        for _, question in questions:
            try:
                _print(program, question, str(index) if index else None, options)
            except ModelError as error:
                if not file:
                    raise
                failed += 1
                warn(f"{question}: {error}")
    if failed:
        raise PolyhopError(f"{count(failed, 'question')} failed")


def _print(program: dspy.Module, question: str, index: str | None, options: Ask) -> None:
    if _OVER_ALL.match(question):
        warn("this asks about all documents; few are read for an answer, so a count or a list is not complete")
    with showing_progress():
        done = answered(program, dspy.Example(question=question).with_inputs("question"))
    if options.as_json:
        print(json.dumps(done.to_record() | {"index": index}, ensure_ascii=False), flush=True)
        return
    asks_models = any(getattr(model, "model", "") not in FREE for model in models_of(program))
    show = print_answer if asks_models or not done.prediction.evidence else print_chain
    show(done, index=index, trace=options.trace)
    if not asks_models:
        typer.secho(f"  {NO_MODEL}\n", dim=True)


def _read(file: str) -> Iterator[tuple[str, str]]:
    """The ids and questions of a file or of stdin; what is none is skipped with a warning. A line that begins
    with a brace is JSON, and so are all lines of a file that is named as JSON."""
    content = sys.stdin.buffer.read() if file == "-" else read_bytes(Path(file))
    ids = set[str]()
    for number, line in enumerate(content.splitlines(), 1):
        try:
            if not (text := line.decode("utf-8-sig").strip()):
                continue
            is_json = text.startswith("{") or file.endswith((".json", ".jsonl"))
            record = json.loads(text) if is_json else {"question": text}
            if not isinstance(record, dict) or not isinstance(record.get("question"), str):
                raise ValueError("no object with a question")
            id, question = clean(str(record.get("id") or number)), check_question(record["question"])
            if id in ids:
                raise ValueError(f"repeats the id {id!r}")
        except (ValueError, RecursionError) as error:
            warn(f"{file}, line {number}: {error}")
            continue
        ids.add(id)
        yield id, question
    if not ids:
        raise PolyhopError(f"{file} has no questions")


def _write(file: IO[str], records: Iterable[RunRecord]) -> str:
    """Write the answers of a run; returns how many there are."""
    done = failed = 0
    for record in records:
        line: dict[str, Any] = {"id": record.id, "question": record.question}
        if record.error:
            failed += 1
            line["error"] = record.error.message
        else:
            done += 1
            line |= record.model_dump(include={"answer", "guess", "confidence", "status", "evidence"})
        file.write(json.dumps({**line, "costs": record.costs}, ensure_ascii=False) + "\n")
    return f"{count(done, 'question')} answered, {failed} failed"


def search(options: Search) -> None:
    query = check_question(options.query)
    source = open_source(searched_index(options.index))
    if options.to:
        _print_path(source, options.query, options.to)
        return
    retriever = build_retriever(options.retriever, source)
    assert retriever is not None  # there is a source
    find = retriever.search
    hits = one_a_document(find, query, options.k) if options.by == "document" else find(query, options.k)
    if options.as_json:
        for hit in hits:
            reason = vars(hit.reason) if hit.reason else None
            record = {"rank": hit.rank, "score": hit.score, "reason": reason, **hit.passage.to_record()}
            typer.echo(json.dumps(record, ensure_ascii=False))
        return
    for line in hit_lines(query, hits):
        new_console().print(line, soft_wrap=True)


def _print_path(source: BM25Index | PassagePool, first: str, last: str) -> None:
    """The chain between two documents, a line for each link with its sentence."""
    ends = []
    for name in (first, last):
        passages = source.named(name)
        documents = list(dict.fromkeys(passage.document for passage in passages))
        if len(documents) != 1:
            listed = f"{len(documents)} documents: {', '.join(documents[:5])}" if documents else "no document"
            raise PolyhopError(f"{name!r} names {listed}")
        ends.append(passages[0])
    if ends[0].document == ends[1].document:
        raise PolyhopError(f"{first!r} and {last!r} name the same document")
    links = path(source, ends[0], ends[1])
    if links is None:
        raise PolyhopError(f"no chain of links and names was found from {first!r} to {last!r}")
    for link in links:
        one, other = (f"{passage.heading} ({passage.document})" for passage in (link.passage, link.to))
        tie = f" {link.verb} {plain(other)}: {plain(link.name)}"
        new_console().print(Text.assemble((plain(one), "bold"), tie), soft_wrap=True)
        new_console().print(Text(f"    {plain(link.passage.sentences[link.sentence])}", "dim"), soft_wrap=True)


def searched_index(index: Path | None) -> Path:
    """The `chosen_index`. In a terminal, a folder that has none is indexed if the user agrees."""
    try:
        return chosen_index(index)
    except NoIndexError as error:
        if not in_terminal():
            raise
        where = error.folder.resolve()
        typer.confirm(f"{where} has no index. Index its documents now?", default=True, abort=True, err=True)
        from .index import index as build  # which reads documents

        build(Index(names=(str(error.folder),), out=error.home))
        return error.home


def in_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # a service may have none
