"""Where the hyperlinks of passages lead in a collection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import place_numbers
from .reading import anchor_number, document_number
from .store import Store


def rows_of(store: Store, targets: Sequence[str]) -> dict[str, int]:
    """The row of the passage that each target names (see `polyhop.data.links.resolve`): where its fragment starts, or
    else the one that opens the document. Targets outside of the collection are left out."""
    documents = np.array([document_number(target) for target in targets], np.uint64)
    anchors = np.array([anchor_number(target) for target in targets], np.uint64)
    found = dict[str, int]()
    for numbers in (place_numbers(documents, anchors), documents):
        rows, which = store.placed(numbers)
        for row, at in zip(rows.tolist(), which.tolist(), strict=True):
            found.setdefault(targets[at], row)
    return found
