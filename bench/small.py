"""`polyhop` for a small model: demos from its own right runs over the sample, of which questions of a benchmark choose
a set. So no text of a benchmark is in the program.

python -m bench.small RUN --lm models.toml --train hotpotqa_train.json.gz --index indexes/hotpotqa --limit 50

The search reads each question once, with one call instead of two or more. An interrupted run resumes. RUN/best is the
program, to be measured with `polyhop evaluate --program RUN/best`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from polyhop import ChainRetriever, PolyHop, Questions
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.pool import PassagePool
from polyhop.data.sample import sample_passages
from polyhop.engines.models import assign_models, protect_cache
from polyhop.eval.metrics import METRICS
from polyhop.optimizers.artifact import Provenance, Split, save
from polyhop.optimizers.exemplars import successes, with_demos
from polyhop.optimizers.tunables import VARIANT, TunableSearch

SETS, TRIALS, SEED = 12, 20, 0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="RUN")
    parser.add_argument("--lm", required=True)
    parser.add_argument("--train", type=Path, required=True, help="questions of a benchmark")
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="so many of them")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    protect_cache()
    sample, questions = list(Questions("sample", split="train")), Questions(str(options.train), setting="open")
    questions.limit, questions.seed = options.limit, SEED
    asked = list(questions)

    def with_models(program: PolyHop) -> PolyHop:
        assign_models(program, (options.lm,))
        return program

    teacher = with_models(PolyHop(ChainRetriever(PassagePool(sample_passages()))))
    runs = successes(teacher, sample, METRICS["answer_em"], options.threads)
    print(f"{len(runs)} of {len(sample)} questions of the sample ended right")
    program = with_models(PolyHop(ChainRetriever(BM25Index(options.index))))
    student: PolyHop = program.deepcopy()
    student.review.value, student.rounds.value, student.abstain_below.value = "never", 1, 0.0
    sets = with_demos(student, runs, SETS, SEED)
    search = TunableSearch(
        METRICS["answer_f1"],
        trials=TRIALS,
        variants=sets,
        freeze=["*"],
        seed=SEED,
        threads=options.threads,
        storage=options.out / "study.journal",
        on_trial=lambda trials: print(
            f"trial {trials[-1].number}: {trials[-1].values}, {100 * trials[-1].score:.1f} after "
            f"{trials[-1].questions} questions" + " (stopped)" * trials[-1].pruned
        ),
    )
    search.compile(student, valset=asked)
    assert search.result is not None
    chosen = search.result.best.values[VARIANT]
    print(f"chosen: {chosen}")
    if chosen is not None:
        for ours, theirs in zip(program.predictors(), sets[chosen].predictors(), strict=True):
            ours.demos = theirs.demos
    splits = {"demos": Split.of("sample", sample), "train": Split.of(options.train, asked)}
    save(program, options.out / "best", provenance=Provenance(metric="answer_f1", splits=splits, seed=SEED))


if __name__ == "__main__":
    main()
