"""Other names of answers, which version 1.1 of 2WikiMultihopQA's official script accepts.

The file ``id_aliases.json`` of github.com/Alab-NII/2wikimultihop has a line for each Wikidata entity: ``{"Q_id": ...,
"aliases": [...], "demonyms": [...]}``. As in the script, an answer's entity is its ``answer_id``. Aliases become
further answers of a question, so that all metrics accept them. The script also accepts them in evidence triples, which
no program here makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from ..errors import DatasetError, Problem
from .files import read_records
from .question import QuestionRecord, distinct
from .records import Id, Malformed, RecordModel, Texts


class _Entity(RecordModel):
    id: Id = Field(validation_alias="Q_id")
    aliases: Texts = Field(default=[])
    demonyms: Texts = Field(default=[])


def read_aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """Aliases and demonyms by Wikidata id.

    Raises:
        DatasetError: the file cannot be read, or a line is something else.
    """
    found: dict[str, tuple[str, ...]] = {}
    for record in read_records(path):
        if isinstance(record, Problem):
            raise DatasetError(f"{record.where}: {record.reason}.")
        try:
            entity = record.parse(_Entity)
        except Malformed as error:
            raise DatasetError(f"{record.where} is not a line of id_aliases.json: {error}.") from None
        found[entity.id] = distinct(*found.get(entity.id, ()), *entity.aliases, *entity.demonyms)
    return found


def with_aliases(
    questions: Iterable[QuestionRecord], aliases: Mapping[str, tuple[str, ...]]
) -> Iterator[QuestionRecord]:
    """The questions, each with the other names of its answer."""
    for question in questions:
        names = aliases.get(question.answer_id or "", ())
        yield replace(question, answers=distinct(*question.answers, *names)) if names else question
