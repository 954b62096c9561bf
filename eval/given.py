"""Predictions that were made elsewhere, scored as those of a program are.

    {"id": "q1", "answer": "Tarn", "evidence": ["Kestrel Mill", ["berg.md", 0]], "ranking": ["berg.md"]}

A prediction names its question by ``id`` or by ``question``; everything but the answer is optional. Evidence is a
title, id or file, alone or with a sentence counted from 0; or an object with ``title`` and ``sentence``, as `polyhop
ask` writes. A ``confidence`` is from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import dspy

from ..data.errors import PolyhopError, Problem
from ..data.passages import Evidence, Passage
from ..data.records import read_records
from ..data.text import plain
from ..programs.tunable import choice
from .gold import LookUp


class GivenPredictions(dspy.Module):
    """Answers each question with the prediction that a file has for it; a question without one fails.

    Args:
        questions: Those that are asked.
        look_up: Finds passages by title: `BM25Index.named`.
    """

    def __init__(self, path: Path, questions: Iterable[dspy.Example], look_up: LookUp | None = None) -> None:
        super().__init__()
        self._look_up = look_up
        digest = blake2b(path.read_bytes(), digest_size=8).hexdigest()
        self.predictions = choice(digest, (digest,))  # which a run remembers: other predictions are another run
        texts, self._made = {each.get("id"): each.question for each in questions}, dict[str, dict[str, Any]]()
        for made in given_records(path):
            named = [texts.get(str(made.get("id"))), made.get("question")]
            about = {str(question) for question in named if question is not None}
            if len(about) > 1 or any(self._made.get(question, made) != made for question in about):
                told = plain(str(made.get("id", made.get("question"))))[:80]
                raise PolyhopError(f"{path}: {told!r} has two predictions, or an id and a question that do not fit")
            self._made |= dict.fromkeys(about, made)

    def forward(self, question: str, pool: Any = None) -> dspy.Prediction:
        made = self._made.get(question)
        if made is None or not isinstance(made.get("answer"), str):
            raise PolyhopError("there is no prediction with an answer for this question")
        found: dict[str, Any] = {name: made[name] for name in ("answer", "confidence") if name in made}
        if "evidence" in made:
            found["evidence"] = [self._evidence(each, pool) for each in made["evidence"]]
        if "ranking" in made:
            found["ranking"] = [self._evidence(each, pool).passage for each in made["ranking"]]
        return dspy.Prediction(**found)

    def _evidence(self, item: Any, pool: Any) -> Evidence:
        if isinstance(item, dict):
            item = [item.get("title") or item.get("passage_id"), item.get("sentence")]
        name, sentence = item if isinstance(item, list) else (item, None)
        known = [*(pool or ()), *(self._look_up(str(name)) if self._look_up else ())]
        found = next((passage for passage in known if name in (passage.title, passage.id, passage.document)), None)
        return Evidence(found or Passage.of(str(name), sentences=[str(name)] * (1 + (sentence or 0))), sentence)


def given_records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, each with an id or a question.

    Raises:
        PolyhopError: one is malformed or has neither.
    """
    for record in read_records(path):
        if isinstance(record, Problem):
            raise PolyhopError(f"{record.where}: {record.reason}")
        if not record.has("id", "question"):
            raise PolyhopError(f"{record.where} has no id")
        yield dict(record)
