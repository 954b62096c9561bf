"""A provider that trains."""

from __future__ import annotations

from typing import Any

from dspy.clients.provider import Provider


class School(Provider):
    """Keeps what it is sent; the trained model has the same engine."""

    def __init__(self) -> None:
        super().__init__()
        self.finetunable = True
        self.lessons: list[tuple[str, list[dict[str, Any]], Any, Any]] = []

    def finetune(self, job: Any, model: str, train_data: Any, train_data_format: Any, train_kwargs: Any = None) -> str:
        self.lessons.append((model, train_data, train_data_format, train_kwargs))
        return "trained"
