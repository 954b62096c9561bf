"""Fills memories of exemplars (`polyhop.programs.exemplars`).

    python -m polyhop.optimizers.exemplars --musique musique_ans_train.jsonl --out exemplars.jsonl
    python -m polyhop.optimizers.exemplars --run runs/prism-hotpotqa --out exemplars.jsonl

Plans come from MuSiQue's gold decompositions, and from a program's own successes: the questions of an evaluation run
that it answered exactly right from the right passages, with the sub-questions that led there. Only train questions may
be used: what stands in the memory is shown for other questions. A run that was stopped has exemplars, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.benchmarks import load_questions
from ..data.errors import PolyhopError
from ..data.text import title_key
from ..eval.records import read_manifest, read_records
from ..eval.run import RunProgress, evaluate
from ..programs.complexity import HOPS
from ..programs.exemplars import Exemplar, ExemplarMemory
from ..scripts.training.command import new_app, run_command

if TYPE_CHECKING:
    import dspy

    from ..eval.gold import LookUp

LEAST_F1 = 0.8

app = new_app()


@app.command()
def fill_memory(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the memory is written, as JSON lines.")],
    musique: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Gold decompositions of MuSiQue. May be repeated.")
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="The successes of a run of `polyhop evaluate --out`. May be repeated."),
    ] = None,
    least_f1: Annotated[
        float, typer.Option(min=0, max=1, help="Of the evidence, in passages, that counts as a success.")
    ] = LEAST_F1,
    limit: Annotated[int | None, typer.Option(min=1, help="At most N exemplars for each number of hops.")] = None,
) -> None:
    """Fill a memory of exemplars from gold decompositions or from a program's successes."""
    if not musique and not run:
        raise typer.BadParameter("name --musique FILE or --run DIR to fill it from")
    found: list[Exemplar] = []
    for file in musique or ():
        found += from_musique(load_questions("musique", file))
    for folder in run or ():
        found += from_run(folder, least_f1)
    kept = limited(found, limit)
    if not kept:
        raise PolyhopError("nothing fit to be an exemplar was found: the run has no success with a plan")
    try:
        ExemplarMemory(kept).save(out)
    except OSError as error:
        raise PolyhopError(f"cannot write {out}: {error.strerror}") from error
    by_hops = ", ".join(f"{sum(each.hops == hops for each in kept)} of {hops}" for hops in HOPS)
    typer.echo(f"{out}: {len(kept)} exemplars, by hops {by_hops}")


def from_musique(questions: Iterable[dspy.Example]) -> Iterator[Exemplar]:
    """The gold decompositions of MuSiQue as plans, put into words by `readable`."""
    for question in questions:
        if question.sub_questions and question.hops in HOPS:
            yield Exemplar(
                question.question,
                tuple(_capitals(readable(step.question), question.question) for step in question.sub_questions),
                question.hops,
                "musique",
            )


def collect(
    program: dspy.Module,
    questions: Iterable[dspy.Example],
    out: Path,
    *,
    least_f1: float = LEAST_F1,
    threads: int = 1,
    look_up: LookUp | None = None,
    on_progress: Callable[[RunProgress], None] = lambda progress: None,
) -> list[Exemplar]:
    """Run a program over questions and return the plans of its successes.

    It is an evaluation run in the folder ``out``: every question is on disk as soon as it is done, and starting it
    again continues it. The arguments are those of `polyhop.eval.run.evaluate`.
    """
    evaluate(program, questions, out, threads=threads, look_up=look_up, on_progress=on_progress)
    return list(from_run(out, least_f1))


def from_run(run: Path, least_f1: float = LEAST_F1) -> Iterator[Exemplar]:
    """The plans of the questions of a run that were answered right (exact match) from the right passages.

    The plan is the last that the trace has. Its complexity is the number of hops that the benchmark gives, else the
    number of sub-questions; a plan that no exemplar may have (a reference to nothing) is left out.

    Raises:
        RunError: it is not the folder of a run, or damaged.
    """
    source = read_manifest(run).program.name
    for record in read_records(run):
        plans = [step["sub_questions"] for step in record.trace if step["step"] == "decomposed"]
        scores = record.scores
        if not plans or scores.get("answer_em") != 1 or scores.get("evidence_f1", 0.0) < least_f1:
            continue
        try:
            yield Exemplar(record.question, tuple(plans[-1]), record.hops or min(len(plans[-1]), HOPS[-1]), source)
        except ValueError:
            continue


def limited(exemplars: Iterable[Exemplar], limit: int | None) -> list[Exemplar]:
    """Each question once, and at most ``limit`` of each number of hops, the first ones."""
    seen: set[str] = set()
    kept: list[Exemplar] = []
    for exemplar in exemplars:
        key = title_key(exemplar.question)
        full = limit is not None and sum(each.hops == exemplar.hops for each in kept) >= limit
        if key not in seen and not full:
            seen.add(key)
            kept.append(exemplar)
    return kept


# --- MuSiQue's steps in words ----------------------------------------------------------------------------------------

# Wikidata's relations that do not read well as "What is the ... of X?".
_ASKED_AS = {
    "applies to jurisdiction": "To which jurisdiction does {} apply?",
    "award received": "Which award did {} receive?",
    "capital of": "What is {} the capital of?",
    "cast member": "Who is a cast member of {}?",
    "child": "Who is a child of {}?",
    "conflict": "In which conflict did {} take part?",
    "contains administrative territorial entity": "Which administrative territorial entity does {} contain?",
    "continent": "On which continent is {}?",
    "country": "In which country is {}?",
    "country of citizenship": "What is the country of citizenship of {}?",
    "crosses": "What does {} cross?",
    "educated at": "Where was {} educated?",
    "followed by": "What followed {}?",
    "follows": "What does {} follow?",
    "has part": "What is a part of {}?",
    "headquarters location": "Where are the headquarters of {}?",
    "instance of": "What is {} an instance of?",
    "licensed to broadcast to": "Where is {} licensed to broadcast to?",
    "located in or next to body of water": "In or next to which body of water is {} located?",
    "located in the administrative territorial entity": "In which administrative territorial entity is {} located?",
    "located on terrain feature": "On which terrain feature is {} located?",
    "location": "Where is {} located?",
    "location of formation": "Where was {} formed?",
    "member of": "What is {} a member of?",
    "member of political party": "Of which political party is {} a member?",
    "member of sports team": "Of which sports team is {} a member?",
    "mouth of the watercourse": "What is the mouth of {}?",
    "occupant": "Who is an occupant of {}?",
    "named after": "What is {} named after?",
    "operator": "Who operates {}?",
    "owned by": "By whom is {} owned?",
    "part of": "What is {} a part of?",
    "participant in": "In what did {} take part?",
    "place of birth": "Where was {} born?",
    "place of death": "Where did {} die?",
    "position held": "Which position did {} hold?",
    "shares border with": "With what does {} share a border?",
    "sibling": "Who is a sibling of {}?",
    "sport": "Which sport does {} play?",
    "winner": "Who won {}?",
    "work location": "Where did {} work?",
}
_PERSONS = frozenset(
    "architect author characters child chairperson composer creator designer developer director editor employer father "
    "founder inventor lyricist manufacturer mother performer producer publisher screenwriter spouse uncle".split()
)
_SHORT = re.compile(r"^(?P<subject>.+?)\s*>>\s*(?P<relation>[^>]+?)\s*$")


def readable(step: str) -> str:
    """A step of MuSiQue as a question: ``"#1 >> place of birth"`` becomes ``"Where was #1 born?"``.

    Steps in words keep them, with a capital, a question mark and no space before it.
    """
    if match := _SHORT.match(step):
        relation = match["relation"].lower()
        plain = f"{'Who' if relation in _PERSONS else 'What'} is the {relation} of {{}}?"
        return _ASKED_AS.get(relation, plain).replace("{}", _closed_up(match["subject"]))
    text = _closed_up(step).rstrip("?. ")
    return f"{text[:1].upper()}{text[1:]}?"


def _closed_up(text: str) -> str:
    return re.sub(r"(\S)\s+(?=['’]s\b|[?.,)])", r"\1", " ".join(text.split()))


def _capitals(step: str, question: str) -> str:
    """The step with the words that the question always writes with a capital ("italy", "publix") written so."""
    written: dict[str, set[str]] = {}
    for word in re.findall(r"[^\W\d_]+", question.partition(" ")[2]):
        written.setdefault(word.lower(), set()).add(word)
    names = {lower: next(iter(forms)) for lower, forms in written.items() if len(forms) == 1 and lower not in forms}
    return re.sub(r"[^\W\d_]+", lambda match: names.get(match.group(), match.group()), step)


if __name__ == "__main__":
    run_command(app, "polyhop.optimizers.exemplars")
