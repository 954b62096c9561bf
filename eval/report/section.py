"""What a report is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading of its own.

    Attributes:
        name: What links point at: lower-case letters, digits and hyphens.
        title: What it is called, as plain text.
        body: HTML of its own making, in which every text from outside is escaped. It has no colours of its own: tables
            are ``<table class="numbers">``, pictures ``<figure>`` with an ``<svg>`` and a ``<figcaption>``, and what
            they draw uses the page's colours, ``var(--ink)``, ``var(--muted)``, ``var(--grid)``, ``var(--paper)`` and
            ``var(--series-1)`` to ``var(--series-6)``.
        of: The run that it tells of, if it is one that has several sections.
    """

    name: str
    title: str
    body: str
    of: str = ""
