"""`polyhop demo`: what polyhop does, seen once from beginning to end."""

from __future__ import annotations

from .options import ModelsOption

KINDS = ("bridge", "composition", "comparison", "yes_no")


def demo(lm: ModelsOption = None) -> None:
    """Index the sample corpus and answer four multi-hop questions over it, next to the gold answers."""
    from pathlib import Path
    from tempfile import TemporaryDirectory
    from time import perf_counter

    from ..data.bm25 import BM25Index
    from ..data.sample import CORPUS, load_sample
    from ..engines.models import model_errors
    from .index import index
    from .options import build_program
    from .view import print_answer, say

    with TemporaryDirectory(prefix="polyhop-demo-") as folder:
        out = Path(folder) / "index"
        say("1. Index the corpus that comes with polyhop.\n")
        index([CORPUS], out)

        say("\n2. Ask PRISM the first question of each multi-hop kind in the dev split.\n")
        program = build_program("prism", BM25Index(out), lm or ())
        questions = load_sample("dev")
        for kind in KINDS:
            question = next(question for question in questions if question.kind == kind)
            say(f"{kind.replace('_', '/')}, {question.hops} hops")
            start = perf_counter()
            with model_errors():
                prediction = program(**question.inputs())
            print_answer(question.question, prediction, perf_counter() - start, gold=question)
    say("3. Next: polyhop ask 'QUESTION' --trace, polyhop index FILES --out DIR, polyhop evaluate")
