"""Fit the weights of the keyless engine on train questions, and write them to `engines/lexical.json`.

    python -m bench.lexical --on hotpotqa:hotpotqa_train.json.gz --on musique:musique_ans_train.jsonl.gz \
        --on 2wiki:2wiki_train.json.gz

The sample's train questions are always used. Three models, each a logit with an L2 penalty: the next passage of a chain
(its positives are the gold passages, then the end), the span that answers, and whether a guess is right. Every set
counts the same.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import dspy
import numpy as np
from scipy.optimize import minimize
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression

from polyhop.data.benchmarks import load_questions
from polyhop.data.chain import ChainRetriever
from polyhop.data.form import replace_references
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.data.text import title_key
from polyhop.engines import lexical
from polyhop.engines.lexical import Page, Reading, Sentence
from polyhop.eval.gold import gold_of
from polyhop.eval.scoring import answer_scores, exact_match

Features = Mapping[str, float]
PASSAGES = (5, 10)  # of a prompt
RELATIONS = {  # of 2WikiMultihopQA, as people ask for them
    "date of birth": "When was {} born?",
    "place of birth": "Where was {} born?",
    "date of death": "When did {} die?",
    "place of death": "Where did {} die?",
    "director": "Who directed {}?",
    "country of citizenship": "What is the nationality of {}?",
    "publication date": "When was {} released?",
    "educated at": "Where did {} study?",
}


class Asked(NamedTuple):
    """A question with the passages of its prompt, and the numbers of those that are gold."""

    question: str
    answers: Sequence[str]
    pages: tuple[Page, ...]
    gold: frozenset[str]
    weight: float
    fold: int = 0


class Choice(NamedTuple):
    """One decision: the features of every option, and which are right."""

    options: Sequence[Features]
    right: list[int]
    weight: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", action="append", default=[], metavar="DATASET:FILE")
    options = parser.parse_args(arguments)
    asked = [*prompts(load_sample("train"), PassagePool(sample_passages()))]
    for name in options.on:
        dataset, _, file = name.partition(":")
        asked += prompts(list(load_questions(dataset, Path(file))), None)
    whole = [question for question in asked if question.gold]
    weights = lexical.WEIGHTS
    weights["chain"] = fitted([choice for question in whole for choice in chain_choices(question)], penalty=1.0)
    weights["least"] = {"next": best_end(whole)}
    # Whether a guess is right is learned on the questions that its weights have not seen.
    choices = [(question.fold, choice) for question in asked if (choice := span_choice(question))]
    signs = list[tuple[Features, float, float]]()
    for fold in (0, 1):
        weights["span"] = fitted([choice for seen, choice in choices if seen != fold], penalty=2.0)
        held_out = [question for question in whole if question.fold == fold]
        signs += filter(None, map(told, [*held_out, *map(unanswerable, held_out)]))
    weights["right"] = fitted_logistic(signs)
    weights["span"] = fitted([choice for _, choice in choices], penalty=2.0)
    Path(lexical.__file__).with_suffix(".json").write_text(json.dumps(weights, indent=1, ensure_ascii=False) + "\n")


def prompts(examples: Sequence[dspy.Example], corpus: PassagePool | None) -> Iterator[Asked]:
    """The questions as a prompt of a program has them, with the chain retriever's first passages."""
    weight = 1 / (len(examples) * len(PASSAGES))
    for fold, example in enumerate(examples):
        if example.answers[0] == "unknown":
            continue
        pool = corpus or PassagePool(example.pool)
        gold = set(gold_of(example).passages)
        for size in PASSAGES:
            hits = ChainRetriever(pool).search(example.question, k=size)
            pages = tuple(
                Page(
                    str(n),
                    hit.passage.title,
                    tuple(Sentence(f"{n}s{m}", text) for m, text in enumerate(hit.passage.sentences, 1)),
                )
                for n, hit in enumerate(hits, 1)
            )
            numbers = frozenset(str(n) for n, hit in enumerate(hits, 1) if hit.passage.id in gold)
            yield Asked(example.question, example.answers, pages, numbers, weight, fold % 2)
            for question, answers in parts(example):
                yield Asked(question, answers, pages, frozenset(), weight / 3, fold % 2)


def parts(example: dspy.Example) -> Iterator[tuple[str, Sequence[str]]]:
    """The questions of one hop that a benchmark tells: MuSiQue's, and 2WikiMultihopQA's relations in words."""
    answers = [step.answer for step in example.sub_questions]
    for step in example.sub_questions:
        question = replace_references(step.question, lambda n: answers[n - 1])
        subject, mark, relation = question.partition(" >> ")
        yield f"What is the {relation} of {subject}?" if mark else question, (step.answer,)
    for subject, relation, answer in example.get("evidences") or ():
        yield RELATIONS.get(relation, f"Who is the {relation} of {{}}?").format(subject), (answer,)


def chain_choices(asked: Asked) -> Iterator[Choice]:
    """The decisions that lead through the gold passages, each time to the one that the present weights prefer."""
    reading = Reading(asked.question, (), asked.pages)
    chosen: list[Page] = []
    while True:
        rows = reading.chain.options(chosen)
        right = [n for n, (page, _) in enumerate(rows) if page is not None and page.number in asked.gold]
        if not right and not chosen:
            return
        options = [features for _, features in rows]
        if not chosen:  # a chain has a first passage
            options, rows = options[:-1], rows[:-1]
        yield Choice(options, right or [len(rows) - 1], asked.weight)
        if not right:
            return
        scores = [
            sum(
                options[n].get(f"{phase} {name}", 0)
                for phase in ("first", "next")
                for name in ("line", "named", "link")
            )
            for n in right
        ]
        chosen.append(rows[right[int(np.argmax(scores))]][0])


def best_end(asked: Sequence[Asked]) -> float:
    """The least probability of a passage with which the evidence F1 is best; of values as good, the highest."""
    scores = {}
    for least in (0.2, 0.24, 0.28, 0.32, 0.36, 0.4, 0.45, 0.5):
        lexical.WEIGHTS["least"] = {"next": least}
        total = 0.0
        for question in asked:
            chosen = {page.number for page in Reading(question.question, (), question.pages).chosen}
            common = len(chosen & question.gold)
            total += question.weight * (2 * common / (len(chosen) + len(question.gold)) if common else 0.0)
        scores[least] = total
        print(f"# evidence F1 with {least}: {total:.4f}")
    return max(least for least, score in scores.items() if score >= max(scores.values()) - 0.01)


def span_choice(asked: Asked) -> Choice | None:
    """The spans of the last sub-question, of which those with a gold answer are right."""
    reading = Reading(asked.question, (), asked.pages)
    if lexical.asked_for(asked.question)[0] == "verdict":
        return None
    answers = {title_key(answer) for answer in asked.answers}
    rows = list(lexical.candidates(reading.chain, reading.steps[-1].question, reading.chosen))
    right = [n for n, (guess, _) in enumerate(rows) if title_key(guess.text) in answers]
    return Choice([features for _, features in rows], right, asked.weight) if right else None


def unanswerable(asked: Asked) -> Asked:
    """The question without the passages that have its answer."""
    keys = [f" {title_key(answer)} " for answer in asked.answers]
    pages = [page for page in asked.pages if not any(key in row.key for key in keys for row in page.sentences)]
    return asked._replace(pages=tuple(pages), weight=asked.weight / 2)


def told(asked: Asked) -> tuple[Features, float, float] | None:
    """The signs of a guess, whether it is right, and how much the question counts."""
    reading = Reading(asked.question, (), asked.pages)
    if not reading.raw:
        return None
    scores = answer_scores(reading.raw.text, asked.answers)
    right = max(exact_match(reading.raw.text, asked.answers), float(scores.f1 >= 0.8))
    return reading.signs(), right, asked.weight


def fitted(choices: Sequence[Choice], penalty: float) -> dict[str, float]:
    """The weights with the best likelihood that one of the right options is chosen."""
    options = [features for choice in choices for features in choice.options]
    table = DictVectorizer(dtype=np.float32)
    matrix = table.fit_transform(options)
    starts = np.cumsum([0, *(len(choice.options) for choice in choices[:-1])])
    owner = np.repeat(np.arange(len(choices)), [len(choice.options) for choice in choices])
    is_right = np.zeros(len(options), bool)
    for start, choice in zip(starts, choices, strict=True):
        is_right[start + np.array(choice.right)] = True
    shares = np.array([choice.weight for choice in choices])
    shares *= len(choices) / shares.sum()

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = matrix @ weights
        odds = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        every = np.add.reduceat(odds, starts)
        right = np.add.reduceat(odds * is_right, starts) + 1e-12
        expected = odds / every[owner] - odds * is_right / right[owner]
        value = shares @ np.log(every / right) + penalty * weights @ weights / 2
        return value, matrix.T @ (shares[owner] * expected) + penalty * weights

    found = minimize(loss, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    print(f"# {len(choices)} choices, mean loss {found.fun / len(choices):.3f}")
    named = zip(table.get_feature_names_out(), found.x, strict=True)
    return {name: round(float(weight), 2) for name, weight in named if abs(weight) >= 0.05}


def fitted_logistic(rows: Sequence[tuple[Features, float, float]]) -> dict[str, float]:
    """The weights of a logistic regression: of features, whether it is right, and how much it counts."""
    signs, right, weights = zip(*rows, strict=True)
    table, shares = DictVectorizer(), np.array(weights) * len(weights) / sum(weights)
    model = LogisticRegression(fit_intercept=False, max_iter=1000)
    model.fit(table.fit_transform(signs), np.array(right) > 0, sample_weight=shares)
    return dict(zip(table.get_feature_names_out(), map(float, model.coef_[0].round(2)), strict=True))


if __name__ == "__main__":
    main()
