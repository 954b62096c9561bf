"""The official metrics of one question of each benchmark, as fractions, under the authors' names.

A prediction is a mapping, the gold plain values. What a prediction lacks (``None``) scores 0. The rules of the
benchmarks differ in small ways that change published numbers: the docstrings list them.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from unicodedata import normalize as unicode_form

from ..scoring import ZERO, Scores, answer_scores, exact_match, joint, mentions, normalize_answer, scores, token_scores

Prediction = Mapping[str, Any]
SupportingFact = tuple[str, int]
Part = tuple[float, Scores]
"""The exact match and the scores of one task of a question."""

# --- HotpotQA, 2WikiMultihopQA and HoVer -----------------------------------------------------------------------------


def hotpotqa(prediction: Prediction, answers: Collection[str], facts: Collection[SupportingFact]) -> dict[str, float]:
    """HotpotQA, as ``hotpot_evaluate_v1.py`` of github.com/hotpotqa/hotpot has it: ``em``, ``f1``, ``prec``, ``recall``
    of the ``answer``; the same with ``sp_`` and ``joint_``.

    - An answer that is "yes", "no" or "noanswer", given or gold, must match whole; else F1, precision and recall are 0.
    - Supporting facts (``sp``) are a set of (title, sentence number from 0); titles are case-sensitive.
    - Joint precision and recall are products, joint F1 is made from these, joint EM is the product.
    - A missing answer or a missing set of facts scores 0 for itself and for the joint; the other still counts.
    - Nothing predicted where nothing is gold: EM is 1, F1 is 0.
    """
    answer = support = together = None
    if (text := prediction.get("answer")) is not None:
        answer = exact_match(text, answers), answer_scores(text, answers)
    if prediction.get("sp") is not None:
        chosen, wanted = _facts(prediction["sp"]), _facts(facts)
        support = float(chosen == wanted), scores(len(chosen & wanted), len(chosen), len(wanted))
    if answer and support:
        together = answer[0] * support[0], joint(answer[1], support[1])
    return _named({"": answer, "sp_": support, "joint_": together})


def two_wiki(prediction: Prediction, answers: Collection[str], facts: Collection[SupportingFact]) -> dict[str, float]:
    """2WikiMultihopQA, as ``2wikimultihop_evaluate_v1.1.py`` of github.com/Alab-NII/2wikimultihop has it, but for its
    third task: no program makes triples of evidence, so these, and everything jointly, have no scores.

    Like HotpotQA, with these differences:

    - The answer is compared with the gold answer and all of its aliases and demonyms (``id_aliases.json``); EM, F1,
      precision and recall are each the best over these, not necessarily of the same alias.
    - Titles of supporting facts are lower-cased, but repetitions are removed before that: two spellings of one
      predicted fact count twice.
    """
    answer = support = None
    if (text := prediction.get("answer")) is not None:
        by_alias = [answer_scores(text, [alias]) for alias in answers] or [ZERO]
        answer = exact_match(text, answers), Scores(*map(max, zip(*by_alias, strict=True)))
    if prediction.get("sp") is not None:
        pairs, wanted = ([(t.lower(), n) for t, n in _facts(side)] for side in (prediction["sp"], facts))
        right, missed = sum(fact in wanted for fact in pairs), sum(fact not in pairs for fact in wanted)
        support = float(right == len(pairs) and missed == 0), scores(right, len(pairs), right + missed)
    return _named({"": answer, "sp_": support})


def hover(prediction: Prediction, answers: Collection[str], facts: Collection[SupportingFact]) -> dict[str, float]:
    """HoVer, as its paper (arXiv 2011.03088, section 5.5) and its website define the metrics; there is no public
    script.

    - ``accuracy`` is that of the label, the `verdict` of the answer.
    - ``sp_em`` and ``sp_f1`` compare supporting sentences as HotpotQA does.
    - ``hover_score``: the label is right, and every gold page has at least one of its gold sentences among the
      predicted ones. Of a claim of k pages only the first k + 1 predicted pages count, with the first two sentences of
      each.
    """
    answer = prediction.get("answer")
    right = answer is not None and verdict(answer) is bool(verdict(*answers))
    pages = {title for title, _ in facts}
    shown: dict[str, list[int]] = {}
    for title, sentence in prediction.get("sp") or ():
        shown.setdefault(title, []).append(sentence)
    first = list(shown.items())[: len(pages) + 1]
    counted = {(title, sentence) for title, sentences in first for sentence in sentences[:2]}
    complete = pages == {title for title, _ in counted & _facts(facts)}
    support = hotpotqa(prediction, answers, facts)
    sentences = {name: support[name] for name in ("sp_em", "sp_f1")}
    return {"accuracy": float(right), **sentences, "hover_score": float(right and complete)}


def verdict(answer: str) -> bool | None:
    """Whether an answer says that a claim is supported, by its first word; None if it says neither."""
    first = normalize_answer(answer).partition(" ")[0]
    words = dict.fromkeys(("yes", "true", "supported"), True) | dict.fromkeys(("no", "false", "not", "refuted"), False)
    return words.get(first)


def _facts(pairs: Iterable[Iterable[Any]]) -> set[tuple[Any, ...]]:
    return set(map(tuple, pairs))  # JSON has lists


def _named(parts: Mapping[str, Part | None]) -> dict[str, float]:
    """The scores of several tasks; 0 where one is missing."""
    named: dict[str, float] = {}
    for prefix, part in parts.items():
        em, (precision, recall, f1) = part or (0.0, ZERO)
        named |= {f"{prefix}em": em, f"{prefix}f1": f1, f"{prefix}prec": precision, f"{prefix}recall": recall}
    return named


# --- MuSiQue ---------------------------------------------------------------------------------------------------------


def musique(prediction: Prediction, answers: Collection[str], support: Collection[int]) -> dict[str, float]:
    """An answerable question of MuSiQue, as ``evaluate_v1.0.py`` of github.com/StonyBrookNLP/musique has it:
    ``answer_em``, ``answer_f1``, ``support_em`` and ``support_f1``.

    - EM and F1 are each the best over the answer and its aliases. There is no rule for "yes" and "no".
    - Two answers without a word in them agree (F1 1), where HotpotQA and SQuAD say 0.
    - Support is a set of paragraph numbers (``idx``), scored like HotpotQA's supporting facts, but nothing predicted
      where nothing is gold has F1 1.
    """
    answer, golds = normalize_answer(prediction["predicted_answer"]), [normalize_answer(text) for text in answers]
    chosen, wanted = set(prediction["predicted_support_idxs"]), set(support)
    f1 = (token_scores(answer, gold).f1 if answer and gold else float(answer == gold) for gold in golds)
    return {
        "answer_em": float(answer in golds),
        "answer_f1": max(f1, default=0.0),
        "support_em": float(chosen == wanted),
        "support_f1": scores(len(chosen & wanted), len(chosen), len(wanted)).f1 if chosen or wanted else 1.0,
    }


# --- SQuAD, TriviaQA, NQ-open and PopQA ------------------------------------------------------------------------------

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_TO_SPACE = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))


def squad(
    prediction: Prediction, answers: Collection[str], normalize: Callable[[str], str] = normalize_answer
) -> dict[str, float]:
    """SQuAD, as ``evaluate-v1.1.py`` has it: the best exact match (``exact_match``) and the best token F1 (``f1``) over
    the gold answers. There is no rule for "yes" and "no"."""
    if prediction.get("answer") is None:
        return {"exact_match": 0.0, "f1": 0.0}
    answer, golds = normalize(prediction["answer"]), [normalize(text) for text in answers]
    f1 = max((token_scores(answer, text).f1 for text in golds), default=0.0)
    return {"exact_match": float(answer in golds), "f1": f1}


def triviaqa(prediction: Prediction, answers: Collection[str]) -> dict[str, float]:
    """TriviaQA, as ``triviaqa_evaluation.py`` of github.com/mandarjoshi90/triviaqa has it.

    SQuAD's metrics under another normalization: punctuation, underscores and the marks ‘ ’ ´ ` become spaces instead of
    being removed: "twenty-one" is two words and "O’Neill" matches "O Neill". The gold answers are the aliases of the
    dataset and its human answers.
    """
    form = lambda text: " ".join(_ARTICLES.sub(" ", text.lower().translate(_TO_SPACE)).split())  # noqa: E731
    return squad(prediction, answers, form)


def nq_open(prediction: Prediction, answers: Collection[str]) -> dict[str, float]:
    """NQ-open, as ``orqa/utils/eval_utils.py`` of github.com/google-research/language has it.

    The official metric is ``accuracy``: exact match with one of the answers after SQuAD's normalization of the
    *decomposed* text (Unicode NFD). So both encodings of "é" are equal; but the last "a" of "Andréa" follows a
    combining accent, is removed as an article, and "Andréa" matches "André". ``exact_match`` and ``f1``, which papers
    also report, are SQuAD's, without that defect.
    """
    decomposed = squad(prediction, answers, lambda text: normalize_answer(unicode_form("NFD", text)))
    return {"accuracy": decomposed["exact_match"], **squad(prediction, answers)}


def popqa(prediction: Prediction, answers: Collection[str]) -> dict[str, float]:
    """PopQA, as ``run_model.py`` of github.com/AlexTMallen/adaptive-retrieval has it.

    ``accuracy``: the prediction contains a possible answer, as it is written, in lower case, or with a capital and the
    rest in lower case. Parts of words count.
    """
    text = prediction.get("answer") or ""
    forms = (form for answer in answers for form in (answer, answer.lower(), answer.capitalize()))
    return {"accuracy": float(prediction.get("answer") is not None and any(form in text for form in forms))}


# --- MultiHop-RAG ----------------------------------------------------------------------------------------------------

DEPTH = 10
"""How many retrieved texts count."""

_QUOTED_ANSWER = re.compile(r'The answer to the question is "(.*?)"')


def multihop_rag(prediction: Prediction, gold: str, facts: Sequence[str]) -> dict[str, float]:
    """MultiHop-RAG, as ``retrieval_evaluate.py`` and ``qa_evaluate.py`` of github.com/yixuantt/MultiHop-RAG have it.

    Retrieval (``Hits@10``, ``Hits@4``, ``MAP@10``, ``MRR@10``), unless the question is a ``null_query``:

    - A retrieved text is a hit if it contains a gold fact after blanks and line breaks are removed from both.
    - The script reads 11 texts and counts the first 10; so do we.
    - "Average precision" adds, at every hit, the gold facts *first seen there* divided by the rank, and divides the sum
      by the number of gold facts (at most 10). It is not the textbook's MAP, which counts all facts seen so far.

    Answers: the script's precision, recall and F1 are one number, the share *s* of answers that have any word in common
    with the gold answer, so "Insufficient information." matches "no information". It is ``official_overlap``, beside
    ``answer_em`` and ``answer_contained`` (the answer contains the gold answer as whole words). Its "accuracy" is
    another number: from April 2025 on it counts every wrong answer as false positive, as false negative and as true
    negative, which makes it 1 / (3 - 2 *s*), at least 1/3. A later version prints *s* for it.

    Raises:
        ValueError: there are no gold facts, and it is no ``null_query``.
    """
    values = {"official_overlap": 0.0, "answer_em": 0.0, "answer_contained": 0.0}
    if (answer := prediction.get("answer")) is not None:
        quoted = _QUOTED_ANSWER.search(answer)
        words = set((quoted[1] if quoted else answer).lower().split())
        values["official_overlap"] = float(not words.isdisjoint(gold.lower().split()))
        values |= {"answer_em": exact_match(answer, [gold]), "answer_contained": mentions(answer, [gold])}
    if prediction["question_type"] == "null_query":
        return values
    if not facts:
        raise ValueError("a query without gold facts has no retrieval scores (is it a null_query?)")
    wanted = [_squeezed(fact) for fact in facts]
    hits, precisions, seen = [], 0.0, set[str]()
    for rank, text in enumerate(map(_squeezed, prediction["retrieved"][:DEPTH]), 1):
        stated = {fact for fact in wanted if fact in text}
        if stated:
            hits.append(rank)
            precisions += len(stated - seen) / rank
            seen |= stated
    first = min(hits, default=None)
    return values | {
        "Hits@10": float(first is not None),
        "Hits@4": float(first is not None and first <= 4),
        "MAP@10": precisions / min(len(facts), DEPTH),
        "MRR@10": 1 / first if first else 0.0,
    }


def _squeezed(text: str) -> str:
    return text.replace(" ", "").replace("\n", "")
