"""`python -m polyhop.scripts.studies.faults`: the table of faults. Exits with 1 if a question is lost, hung or
wrong."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterable
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from .study import CASES, Row, Study, cases_named

_COLUMNS = (
    "fault",
    "hit by it",
    "hits",
    "requests",
    "what happened",
    "questions",
    "answered",
    "failed",
    "other",
    "wrong",
    "lost",
    "hung",
    "seconds",
)
_WORDS = frozenset({"fault", "hit by it", "what happened", "failed"})
_FOOTNOTE = (
    "other: answered or scored differently, because agents had less or other text to read, or a judge's verdict was "
    "unreadable, which counts against an answer. wrong: differently without such a reason."
)


def cells(row: Row) -> tuple[str, ...]:
    """A row of the table."""
    numbers = (row.other, row.wrong, row.lost, row.hung)
    return (
        row.case.name,
        row.case.when,
        f"{row.injected:,}",
        f"{row.requests:,}",
        _counted(row.done),
        f"{row.questions:,}",
        f"{row.answered:,}",
        _counted(row.failed) or "0",
        *map(str, numbers),
        f"{row.seconds:.1f}",
    )


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def markdown(rows: Iterable[Row]) -> str:
    """The table in Markdown."""
    lines = [_COLUMNS, [":--" if name in _WORDS else "--:" for name in _COLUMNS], *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{_FOOTNOTE}\n"


def _table(rows: Iterable[Row]) -> Table:
    table = Table(caption=_FOOTNOTE, box=None, padding=(0, 1, 0, 0))
    for name in _COLUMNS:
        word = name in _WORDS
        table.add_column(name, justify="left" if word else "right", no_wrap=not word or name == "fault")
    for row in rows:
        table.add_row(*cells(row), style=None if row.sound else "red")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m polyhop.scripts.studies.faults", description=__doc__)
    parser.add_argument("--questions", type=int, default=60, help="of the sample")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--client", choices=("lm15", "litellm"), default="lm15", help="DSPy's own, or LiteLLM")
    names = sorted({case.name.partition(" ")[0] for case in CASES})
    parser.add_argument("--fault", choices=names, action="append", default=[], help="may be repeated")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    logging.getLogger("dspy").setLevel(logging.ERROR)
    study, rows = Study(given.questions, threads=given.threads, client=given.client), list[Row]()
    with Console(stderr=True).status("") as status:
        for case in cases_named(given.fault):
            status.update(f"{case.name}: {case.when}")
            rows.append(study.run(case))
    if given.json:
        print(json.dumps([_plain(row) for row in rows], indent=2))
    elif given.markdown:
        print(markdown(rows))
    else:
        Console().print(_table(rows))
    return 0 if all(row.sound for row in rows) else 1


def _plain(row: Row) -> dict[str, object]:
    case = {"fault": row.case.name, "hits": row.case.when, "program": row.case.program}
    return case | {name: value for name, value in asdict(row).items() if name != "case"}


if __name__ == "__main__":
    sys.exit(main())
