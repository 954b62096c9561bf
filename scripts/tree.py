"""A trace as a readable tree: what was asked, found, kept, judged and answered, branch by branch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import zip_longest

import dspy
from rich.text import Text
from rich.tree import Tree

from ..data.passages import Evidence, Fact, Passage, Reason
from ..programs.trace import (
    Added,
    Answered,
    Checked,
    Decided,
    Decomposed,
    Estimated,
    Judged,
    Learned,
    Parallel,
    Proposed,
    Recalled,
    Refined,
    Replaced,
    Required,
    Revised,
    Routed,
    Searched,
    Selected,
    StepAnswered,
    Stopped,
    Thought,
    Trace,
    TraceStep,
    Weighed,
)
from .text import address, count, plain, short

MOST_HITS = 10  # of a search, in the tree; the JSON has them all


def trace_tree(prediction: dspy.Prediction) -> Tree:
    """Every step of a run, with the texts that it was about."""
    passages = {passage.id: passage for passage in prediction.ranking}
    tree = Tree(Text(f"{sum(1 for _ in prediction.trace.flat())} steps"), guide_style="dim")
    _grow(tree, prediction.trace, passages)
    return tree


def _grow(tree: Tree, trace: Trace, passages: Mapping[str, Passage]) -> None:
    for step in trace.steps:
        if isinstance(step, Parallel):
            branch = _branch(tree, "side by side", count(len(step.branches), "branch", "branches"))
            for number, each in enumerate(step.branches, 1):
                _grow(branch.add(Text(f"branch {number}", style="dim")), each, passages)
        else:
            _add_step(tree, step, passages)
            if invalid := getattr(step, "invalid", ()):
                tree.children[-1].add(Text("ignored: " + ", ".join(short(text) for text in invalid), style="yellow"))


def _add_step(tree: Tree, step: TraceStep, passages: Mapping[str, Passage]) -> None:
    match step:
        case Estimated(probabilities):
            likely = ", ".join(f"{hops} {share:.0%}" for hops, share in enumerate(probabilities, 1))
            _branch(tree, "estimated", f"hops: {likely}")
        case Recalled(questions):
            _list(_branch(tree, "recalled", count(len(questions), "solved question")), questions)
        case Routed(route, query):
            _branch(tree, "routed", route + (f": “{plain(query)}”" if query else ""))
        case Decomposed(sub_questions, _, thoughts, route):
            says = f"{plain(route)}, " if route else ""
            branch = _branch(tree, "asked", says + count(len(sub_questions), "sub-question"))
            for number, (text, thought) in enumerate(zip_longest(sub_questions, thoughts, fillvalue=""), 1):
                branch.add(Text.assemble(f"#{number} {plain(text)}", (f"  {plain(thought)}" if thought else "", "dim")))
        case Searched():
            _add_search(tree, step)
        case Selected(number, facts) | Added(number, facts):
            verb = "kept" if isinstance(step, Selected) else "added"
            _facts(_branch(tree, verb, f"{len(facts) or 'nothing'} in round {number}"), facts, passages)
        case Proposed(queries):
            branch = _branch(tree, "proposed", count(len(queries), "query", "queries"))
            _list(branch, (f"{score:.2f}  {query}" for query, score in queries))
        case Learned(known, required):
            branch = _branch(tree, "learned", f"{count(len(known), 'fact')}, {len(required) or 'nothing'} required")
            _list(branch, (f"known: {text}" for text in known))
            _list(branch, (f"required: {text}" for text in required))
        case Required(questions):
            _list(_branch(tree, "required", "nothing more" if not questions else str(len(questions))), questions)
        case Checked(supported, unsupported):
            branch = _branch(tree, "checked", f"{len(supported)} supported, {len(unsupported)} not")
            _list(branch, (f"not supported: {text}" for text in unsupported))
        case Decided(action, query, thought):
            branch = _branch(tree, "decided", action + (f": “{plain(query)}”" if query else ""))
            _list(branch, [thought] if thought else [])
        case Thought(text):
            _branch(tree, "thought", plain(text))
        case StepAnswered(number, question, answer, cited):
            branch = _branch(tree, f"answered #{number}", f"{plain(answer)}  ← {plain(question)}")
            _facts(branch, cited, passages)
        case Judged(aspect, score, verdict):
            _branch(tree, "judged", f"{aspect} {score:.2f}" + (f", {plain(verdict)}" if verdict else ""))
        case Weighed(alpha, confidence, passed):
            verdict = "passed" if passed else "did not pass"
            _branch(tree, "weighed", f"{confidence:.2f} (alpha {alpha:.2f}): {verdict}")
        case Revised(answer, reason, accepted):
            branch = _branch(tree, "revised", plain(answer) if accepted else f"not: {plain(answer)}")
            _list(branch, [reason] if reason else [])
        case Replaced(answer, reason):
            _branch(tree, "replaced", f"by {plain(answer)}: {plain(reason)}")
        case Refined(number, question):
            _branch(tree, "refined", f"#{number} {plain(question)}")
        case Answered(answer, reasoning, confidence):
            branch = _branch(tree, "answered", f"{plain(answer)} ({confidence:.2f})")
            _list(branch, reasoning.splitlines())
        case Stopped(reason):
            _branch(tree, "stopped", reason)
        case _:
            raise TypeError(f"{type(step).__name__} steps cannot be shown")


def _add_search(tree: Tree, step: Searched) -> None:
    further = f", from rank {step.offset + 1}" if step.offset else ""
    branch = _branch(tree, "found", f"{count(len(step.found), 'passage')} for “{plain(step.query)}”{further}")
    titles = {id: title for id, title, _ in step.found}
    for (_, title, score), reason in zip_longest(step.found[:MOST_HITS], step.reasons[:MOST_HITS]):
        why = f"  {_why(reason, titles)}" if reason else ""
        branch.add(Text.assemble(f"{score:6.2f}  {plain(title)}", (why, "dim")))
    if len(step.found) > MOST_HITS:
        branch.add(Text(f"... and {len(step.found) - MOST_HITS} more", style="dim"))


def _why(reason: Reason, titles: Mapping[str, str]) -> str:
    """Why a passage belongs to the chain, in words."""
    source = plain(titles.get(reason.source or "") or reason.source or "")
    words = f" ({plain(', '.join(reason.words))})" if reason.words else ""
    match reason.via:
        case "named":
            return f"the question names it: {reason.name}{words}"
        case "link":
            return f"{source} mentions it: {reason.name}{words}"
        case "back":
            return f"mentions {source}{words}"
        case "shared":
            return f"mentions {reason.name}, as {source} does{words}"
        case _:
            return f"has words of the question{words}"


def _branch(tree: Tree, verb: str, rest: str) -> Tree:
    return tree.add(Text.assemble((f"{verb} ", "cyan"), rest))


def _list(branch: Tree, texts: Iterable[str]) -> None:
    for text in texts:
        branch.add(Text(plain(text)))


def _facts(branch: Tree, facts: Collection[Fact], passages: Mapping[str, Passage]) -> None:
    for fact in facts:
        item = Evidence(passages[fact.passage_id], fact.sentence)
        title = (plain(item.passage.title), "bold")
        branch.add(Text.assemble(title, f"  {short(item.text)}  ", (address(fact), "dim")))
