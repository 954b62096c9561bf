"""What `polyhop optimize` tunes, and on which questions; told so that other processes can make it again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.errors import PolyhopError
from .options import build_program
from .source import Setting, Source, setting_of

if TYPE_CHECKING:
    import dspy

    from ..eval.questions import Questions
    from ..optimizers.joint.plan import Splits

_FEWEST = 4  # train questions


@dataclass(frozen=True)
class Setup:
    """What is tuned, on what, with what: all that another process needs to make it again."""

    program: str
    dataset: str
    train: str | None
    val: str | None
    test: str | None
    index: Path | None
    setting: str | None
    models: tuple[str, ...]
    k: int | None
    retriever: str | None
    adaptive: bool
    settings: tuple[str, ...]
    limit: int | None
    seed: int


class Opened:
    """The questions and the program of a setup, in this process."""

    def __init__(self, setup: Setup) -> None:
        from ..eval.questions import Questions

        self.setup = setup
        self.sample = setup.dataset.casefold() == "sample"
        if self.sample and (setup.train or setup.val or setup.test):
            raise PolyhopError("the sample brings its own questions: name the --dataset that your files are of")
        if not setup.train and not self.sample:
            raise PolyhopError(f"name the questions to tune on: --dataset {setup.dataset} --train FILE")
        named = {"train": setup.train, "val": setup.val, "test": setup.test}
        if self.sample:
            named = {"train": "train", "test": "dev"}
        self.files = {name: file for name, file in named.items() if file}
        self.sources = dict(self.files)
        setting = setting_of(setup.dataset, Setting(setup.setting) if setup.setting else None, setup.index)
        self.source = Source(Questions(setup.dataset, setup.train, setting=setting), setup.index)
        self.read: list[Questions] = []

    def program(self) -> dspy.Module:
        setup = self.setup
        program = build_program(
            setup.program,
            self.source.searched,
            setup.models,
            setup.k,
            retriever=setup.retriever,
            adaptive=setup.adaptive,
            settings=setup.settings,
        )
        self.source.check(setup.program, program)
        return program

    def splits(self) -> Splits:
        """The questions by what they are for. What is not named is dealt out of what is: ``sources`` says of what."""
        from ..optimizers.joint.plan import Splits, divide

        setup = self.setup
        train, val, test = self._read("train"), self._read("val"), self._read("test")
        if len(train) < _FEWEST:
            raise PolyhopError(f"{len(train)} train questions are too few: at least {_FEWEST} are needed")
        source = self.files["train"]
        if not val and not test:
            self.sources |= {"val": source, "test": source}
            train, val, test = divide(train, (0.5, 0.25, 0.25), setup.seed)
        elif not val:
            self.sources["val"] = source
            train, val = divide(train, (0.6, 0.4), setup.seed)
        elif not test:
            self.sources["test"] = self.files["val"]
            val, test = divide(val, (0.5, 0.5), setup.seed)
        return Splits(train, val, test)

    def _read(self, name: str) -> list[dspy.Example]:
        from ..eval.questions import Questions

        if name not in self.files:
            return []
        limit = self.setup.limit
        questions = Questions(
            self.setup.dataset,
            None if self.sample else self.files[name],
            split=self.files[name] if self.sample else None,
            setting=self.source.questions.setting,
            limit=limit,
            seed=self.setup.seed if limit else None,
        )
        self.read.append(questions)
        return list(questions)
