"""Questions over a generated folder of documents, indexed whole and as passages.

python -m polyhop.scripts.studies.folder.study
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import dspy
import typer
from dspy import lm15

from ....data.lucene.index import build_index
from ....engines.lexical import LexicalEngine
from ....eval.questions import Questions
from ....eval.run import evaluate
from ...program import build_program
from ...source import Source
from .world import write_questions, write_world

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class _Measured(LexicalEngine):
    """The lexical engine, and the tokens of the largest of its calls."""

    most = 0

    def complete(self, request: lm15.Request) -> lm15.Response:
        response = super().complete(request)
        self.most = max(self.most, response.usage.total_tokens or 0)
        return response


_SHOWN = ("answer_f1", "evidence_f1", "passage_recall@5", "tokens", "lm_calls", "seconds_p50")


@app.command()
def study(
    documents: Annotated[int, typer.Option(min=8)] = 200,
    questions: Annotated[int, typer.Option(min=1)] = 60,
    program: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    seed: int = 0,
) -> None:
    """Print a Markdown table: whole documents, and passages of 120 words."""
    with TemporaryDirectory(prefix="polyhop-folder-") as name:
        home = Path(name)
        folder = home / "archive"
        folder.mkdir()
        asked = write_world(folder, documents, questions, seed)
        write_questions(home / "questions.jsonl", asked)
        kinds = Counter(path.suffix for path in folder.iterdir())
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        typer.echo(f"{documents} documents ({', '.join(f'{n} {kind}' for kind, n in kinds.items())}), {size:.1f} MB\n")
        names = ["answer F1", "evidence F1", "Recall@5", "tokens", "calls", "seconds", "largest call"]
        typer.echo(f"| documents | passages | index, s | program | {' | '.join(names)} |")
        typer.echo("|---|---:|---:|---|" + "---:|" * len(names))
        for label, max_words in (("whole", 0), ("in passages", None)):
            started = time.monotonic()
            manifest = build_index([folder], home / label, max_words=max_words)
            seconds = time.monotonic() - started
            source = Source(Questions("own", str(home / "questions.jsonl")), home / label)
            for each in program or ["naive", "polyhop"]:
                built, engine = build_program(each, source.searched), _Measured()
                built.set_lm(dspy.LM("lexical", engine=engine, cache=False))
                found: dict[str, Any] = evaluate(built, source.questions, look_up=source.look_up)["metrics"]
                figures = " | ".join(_figure(name, found[name]) for name in _SHOWN)
                typer.echo(
                    f"| {label} | {manifest.passages:,} | {seconds:.0f} | {each} | {figures} | {engine.most:,} |"
                )


def _figure(name: str, value: float) -> str:
    return f"{100 * value:.1f}" if "f1" in name or "@" in name else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


if __name__ == "__main__":
    app()
