"""The sections of `polyhop report` on optimization runs: plan and stages, test, searches, changes, spending.

    for section in sections(Path("runs/mine")):
        ...

A run is only read, and may still be running.
"""

from .optimization import comparison, sections

__all__ = ["comparison", "sections"]
