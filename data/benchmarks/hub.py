"""Records from the Hugging Face hub, or from a local folder that the `datasets` library can read."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import DatasetError, Problem
from .record import Record

PREFIX = "hub:"


def hub_records(name: str, split: str) -> Iterator[Record | Problem]:
    """The records of one split, downloaded once and then read from the library's cache on disk.

    Args:
        name: ``OWNER/NAME`` or ``OWNER/NAME:CONFIG``; also a folder of Parquet or JSON files, named after the splits.
        split: As `datasets.load_dataset` takes it: ``validation``, ``train[:500]``, ...

    Raises:
        DatasetError: it cannot be loaded; at once.
    """
    rows = _load(name, split)
    return (Record(row, f"{name}:{split}:{number}") for number, row in enumerate(rows, 1))


def _load(name: str, split: str) -> Iterator[object]:
    from datasets import Dataset, load_dataset

    path, _, config = name.partition(":")
    try:
        rows: Dataset = load_dataset(path, config or None, split=split)
    except Exception as error:  # the library and what it downloads with raise errors of many families
        raise DatasetError(
            f"The split {split!r} of the dataset {name!r} cannot be loaded: {type(error).__name__}: {error} "
            f"A hub name is written {PREFIX}OWNER/NAME[:CONFIG]."
        ) from error
    return iter(rows)
