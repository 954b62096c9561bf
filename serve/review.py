"""A page to read drafted questions on, and to accept, edit or reject each by a key.

What is decided is appended to ``FILE.reviewed.jsonl`` at once, so that nothing is lost and the page goes on where it
was; the accepted questions are in ``FILE.train.jsonl`` and ``FILE.test.jsonl``, see `polyhop.eval.drafts.split`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import Field

from ..data.errors import PolyhopError
from ..eval.drafts import split
from ..eval.folder import replacing
from ..eval.questions import given_records
from ..programs.prediction import MAX_QUESTION
from .app import add_page
from .chat import Body
from .service import Record


class Decision(Body):
    """What a person says of a question: the body of ``POST /drafts``."""

    id: str
    decision: Literal["accepted", "rejected", "open"]
    question: Annotated[str, Field(max_length=MAX_QUESTION)]
    answer: Annotated[str, Field(max_length=1_000)]


class Review:
    """The drafts of a file, and what was decided about them.

    Raises:
        PolyhopError: the file cannot be read.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.drafts = list(given_records(file))
        ids = [draft.get("id") for draft in self.drafts]
        if not self.drafts or not all(isinstance(id, str) for id in ids) or len(set(ids)) < len(ids):
            raise PolyhopError(f"{file} has no drafts as 'polyhop draft' writes them, each with an id of its own")
        self._log = self.path("reviewed")
        decided = map(Decision.model_validate, given_records(self._log) if self._log.exists() else ())
        self.decisions = {decision.id: decision for decision in decided}
        train, _ = split(self.drafts)  # of all drafts, so that none changes sides
        self._train = {draft["id"] for draft in train}

    def path(self, name: str) -> Path:
        return self.file.with_suffix(f".{name}.jsonl")

    def decide(self, decision: Decision) -> dict[str, int]:
        """Keep a decision; returns how many questions are in each file.

        Raises:
            HTTPException: there is no such draft.
        """
        if all(draft["id"] != decision.id for draft in self.drafts):
            raise HTTPException(404, f"no draft {decision.id!r}")
        with self._log.open("a", encoding="utf-8") as file:
            file.write(decision.model_dump_json() + "\n")
        self.decisions[decision.id] = decision
        return self.write()

    def write(self) -> dict[str, int]:
        """Write the accepted questions."""
        parts: dict[str, list[Record]] = {"train": [], "test": []}
        for draft in self.drafts:
            decision = self.decisions.get(draft["id"])
            if decision and decision.decision == "accepted":
                kept = {name: value for name, value in draft.items() if name not in ("read", "tie")}
                question = {**kept, "question": decision.question, "answer": decision.answer}
                parts["train" if draft["id"] in self._train else "test"].append(question)
        for name, questions in parts.items():
            with replacing(self.path(name)) as file:
                file.writelines(json.dumps(question, ensure_ascii=False) + "\n" for question in questions)
        return {name: len(questions) for name, questions in parts.items()}


def create_review(review: Review) -> FastAPI:
    """The ASGI application of a review, for this machine only."""
    app = FastAPI(title="polyhop", docs_url=None, redoc_url=None)
    add_page(app, "review.html")

    @app.get("/drafts")
    async def drafts() -> Record:
        return {"file": review.file.name, "drafts": review.drafts, "decisions": review.decisions, **review.write()}

    @app.post("/drafts")
    async def decide(decision: Decision) -> dict[str, int]:
        return review.decide(decision)

    return app


def serve_review(file: Path, port: int) -> None:
    """Serve the page until Ctrl-C."""
    review = Review(file)
    config = uvicorn.Config(create_review(review), host="127.0.0.1", port=port, log_level="warning")
    with config.bind_socket() as socket:
        socket.listen()
        typer.echo(f"Read the questions at http://127.0.0.1:{socket.getsockname()[1]}/ (Ctrl-C stops it; it can go on)")
        uvicorn.Server(config).run([socket])
    for name, count in review.write().items():
        typer.echo(f"{review.path(name)}: {count} accepted")
    typer.echo(f"Then: polyhop doctor --index DIR --questions {review.path('test')}")
