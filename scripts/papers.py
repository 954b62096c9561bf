"""The experiments of the four papers for `polyhop reproduce`: their rows, metrics and published figures.

Published figures are texts as far as we could read them: of PRISM and PAR-RAG digests, of KAIR the paper, of C-3PO an
article without figures. A figure of several versions of a paper is a range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """A program with settings.

    Attributes:
        set: Tunables.
        published: Dataset, then metric, then the figure.
    """

    name: str
    program: str
    set: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """What a paper measures.

    Attributes:
        retriever: Also of the baselines.
        questions: Of each dataset; None if the source does not say.
        models: That wrote the published figures.
        notes: What the figures do not say.
    """

    title: str
    arxiv: str
    retriever: str
    datasets: Sequence[str]
    questions: int | None
    models: str
    metrics: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = ()


_BASELINES = (Row("no retrieval", "direct"), Row("one search", "naive"), Row("IRCoT", "ircot"))

PRISM = Paper(
    "PRISM: Agentic Retrieval with LLMs for Multi-Hop Question Answering",
    "2510.14278",
    "bm25",
    ("hotpotqa", "2wiki", "musique", "multihoprag"),
    500,
    "GPT-4o",
    ("evidence_precision", "evidence_recall", "fact_recall", "answer_em", "answer_f1", "lm_calls"),
    (
        Row(
            "PRISM",
            "prism",
            published={
                "hotpotqa": {"evidence_recall": "90.9"},
                "2wiki": {"evidence_recall": "91.1"},
                "musique": {"evidence_recall": "83.2"},
                "multihoprag": {"evidence_recall": "40.64"},
            },
        ),
        Row("N = 1", "prism", {"rounds": 1}),
        Row("N = 2", "prism", {"rounds": 2}),
        Row("without the Analyzer", "prism", {"analyze": False}),
        Row("without the Selector", "prism", {"select": False}),
        Row("without the Adder", "prism", {"add": False}),
        Row("Selector without bridging facts", "prism", {"bridging": False}),
        *_BASELINES,
        Row("set selection", "set_selection"),
        Row("full context", "full_context"),
        Row("oracle", "oracle"),
    ),
    ("The paper does not say whether recall counts passages or sentences, nor what the pool of each dataset is.",),
)

KAIR = Paper(
    "Knowledge-Aware Iterative Retrieval for Multi-Agent Systems",
    "2503.13275",
    "bm25",
    ("hotpotqa", "2wiki", "musique", "nq", "squad", "triviaqa"),
    200,
    "GPT-4o-mini (agents), GPT-3.5-turbo (answers)",
    ("token_precision", "token_recall", "token_f1", "answer_f1", "rounds"),
    (
        Row("one search", "naive"),
        *(
            Row(
                f"KAIR, {agents} agent{'s' if agents > 1 else ''}",
                "kair",
                {"agents": agents},
                {
                    dataset: dict(zip(("rounds", "token_f1"), figures[agents - 1], strict=True))
                    for dataset, figures in {
                        "musique": (("4.90", "46.3"), ("3.82", "44.8"), ("4.11", "45.0")),
                        "2wiki": (("3.85", "42.5"), ("2.33", "46.3"), ("2.99", "45.0")),
                    }.items()
                },
            )
            for agents in (1, 2, 3)
        ),
        Row("KAIR, 3 agents with roles", "kair", {"agents": 3, "roles": True}),
        Row("KAIR with a moderator", "kair", {"moderated": True}),
        Row("ground truth", "oracle"),
        Row("IRCoT", "ircot"),
    ),
    (
        "Rounds are the paper's steps. Cost units: python -m polyhop.scripts.studies.agent_costs, in a checkout.",
        "Retrieval F1 counts the tokens of the kept text and of the gold passages. The text and the tables disagree "
        "on some of its figures; these are of the tables.",
    ),
)

PAR_RAG = Paper(
    "Credible Plan-Driven RAG Method for Multi-Hop Question Answering (PAR-RAG)",
    "2504.16787",
    "dense",
    ("2wiki", "hotpotqa", "musique", "triviaqa"),
    None,
    "GPT-4o",
    ("answer_em", "answer_f1", "passage_recall@5", "lm_calls", "tokens", "seconds"),
    (
        Row(
            "PAR-RAG",
            "par_rag",
            published={
                "2wiki": {"answer_em": "71 to 73", "tokens": "9,000 to 11,000", "seconds": "14 to 33"},
                "hotpotqa": {"answer_em": "61 to 75", "tokens": "9,000 to 11,000", "seconds": "14 to 33"},
                "musique": {"answer_em": "33 to 40", "tokens": "9,000 to 11,000", "seconds": "14 to 33"},
            },
        ),
        Row("without a plan", "par_rag", {"planned": False}),
        Row("accuracy only", "par_rag", {"review.judges": "accuracy"}),
        Row("credibility only", "par_rag", {"review.judges": "credibility"}),
        Row("without the review", "par_rag", {"review.judges": "none"}),
        Row("one hop too few", "par_rag", {"misjudged": -1}),
        Row("one hop too many", "par_rag", {"misjudged": 1}),
        Row("without exemplars", "par_rag", {"exemplars.mode": "none"}),
        Row("random exemplars", "par_rag", {"exemplars.mode": "random"}),
        Row("similar exemplars of any complexity", "par_rag", {"exemplars.mode": "similar"}),
        Row("alpha = 0.5", "par_rag", {"review.confidence.adaptive": False}),
        *_BASELINES,
    ),
    ("Versions of the paper differ in their figures, and ours do not give the number of questions.",),
)

C3PO = Paper(
    "C-3PO: Compact Plug-and-Play Proxy Optimization to Achieve Human-like Retrieval-Augmented Generation",
    "2502.06205",
    "dense",
    ("hotpotqa", "2wiki", "musique", "nq", "triviaqa"),
    None,
    "not known to us",
    ("answer_em", "answer_f1", "evidence_recall", "lm_calls", "searches", "tokens"),
    (
        Row("C-3PO", "c3po"),
        Row("always planned", "c3po", {"routes": "plan"}),
        Row("always one search", "c3po", {"routes": "single"}),
        *_BASELINES,
    ),
    ("We had an article about the paper, without figures; the proxy is not trained here.",),
)

PAPERS: Mapping[str, Paper] = {"prism": PRISM, "kair": KAIR, "par_rag": PAR_RAG, "c3po": C3PO}
