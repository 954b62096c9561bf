"""How often programs abstain where they should: on questions of the sample without an answer or with a false premise.

    python -m polyhop.scripts.studies.abstention

Every program answers the sample's 155 answerable questions, its 10 unanswerable ones, and the split "unanswerable",
with the embedded engine and the usual threshold. Precision: the share of abstentions at questions without an answer;
recall: the share of these questions at which the program abstains. In parentheses: what it would answer always.
"""

from __future__ import annotations

from pathlib import Path

import dspy

from ...data.benchmarks import SAMPLE
from ...data.chain import ChainRetriever
from ...data.sample import load_sample
from ...engines.models import language_model
from ...eval.scoring import exact_match
from ...programs import PROGRAMS, new_program
from ...programs.prediction import UNKNOWN
from ...programs.run import ABSTAIN_BELOW
from ..source import open_source


def main() -> None:
    """Print a Markdown table."""
    questions = [*load_sample(), *load_sample("unanswerable")]
    source = open_source(Path(SAMPLE))
    print(
        "| program | abstains: false premise | unanswerable | answerable | precision | recall | EM (abstaining never) |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in (name for name, kind in PROGRAMS.items() if kind.searches):
        program = new_program(name, ChainRetriever(source))
        program.abstain_below.value = ABSTAIN_BELOW
        with dspy.context(lm=language_model(), disable_history=True):
            found = [program(question=each.question) for each in questions]
        guesses = [each.guess or each.answer for each in found]
        print(_row(name, questions, [each.answer for each in found], guesses), flush=True)


def _row(name: str, questions: list[dspy.Example], answers: list[str], guesses: list[str]) -> str:
    def silent(kinds: set[str]) -> str:
        at = [answer == UNKNOWN for each, answer in zip(questions, answers, strict=True) if each.kind in kinds]
        return f"{sum(at)} of {len(at)}"

    def right(given: list[str]) -> float:
        pairs = zip(questions, given, strict=True)
        known = [exact_match(answer, each.answers) for each, answer in pairs if each.answers != (UNKNOWN,)]
        return 100 * sum(known) / len(known)

    without = [each.answers == (UNKNOWN,) for each in questions]
    abstained = [answer == UNKNOWN for answer in answers]
    both = sum(a and b for a, b in zip(without, abstained, strict=True))
    kinds = {each.kind for each in questions} - {"unanswerable", "false_premise"}
    cells = (silent({"false_premise"}), silent({"unanswerable"}), silent(kinds))
    shares = (100 * both / max(sum(abstained), 1), 100 * both / sum(without))
    numbers = (*(f"{share:.1f}" for share in shares), f"{right(answers):.1f} ({right(guesses):.1f})")
    return f"| `{name}` | {' | '.join((*cells, *numbers))} |"


if __name__ == "__main__":
    main()
