"""A joint run as sections of a report: what was tuned, what it brought, how it was found, what changed, what it cost.

    for section in sections(Path("runs/mine")):
        ...

The run is only read, and can be under way.

reading.py    what stands in its folder
overview.py   the plan and its stages, the test, what was spent
search.py     a search over tunables
changes.py    the programs, side by side
together.py   several runs, a row each
"""

from __future__ import annotations

from pathlib import Path

from ....data.errors import PolyhopError
from ....eval.folder import RunError
from ....eval.report.page import Section
from .changes import changes
from .overview import plan, spent, test
from .reading import read_run
from .search import searches
from .together import together

__all__ = ["sections", "together"]


def sections(path: Path) -> list[Section]:
    """The sections of a joint run; each of their names is another one.

    Raises:
        RunError: the folder is not that of a joint run, or is damaged.
    """
    try:
        run = read_run(path)
        found = [plan(run), test(run), *searches(run), changes(run), spent(run)]
    except RunError:
        raise
    except PolyhopError as error:
        raise RunError(f"The run {path} cannot be reported: {error}") from error
    return [section for section in found if section is not None]
