"""Worked examples that `PolyHop`'s reader is shown: a comparison, a yes or no, and a chain. Nothing in them exists."""

from __future__ import annotations

import dspy

from ..signatures import NumberedPassage, NumberedPassages


def _example(
    passages: dict[str, tuple[str, ...]], question: str, reasoning: str, answer: str, citations: list[str]
) -> dspy.Example:
    numbered = [
        NumberedPassage(number=number, title=title, sentences=dict(enumerate(sentences, 1)))
        for number, (title, sentences) in enumerate(passages.items(), 1)
    ]
    return dspy.Example(
        passages=NumberedPassages(passages=numbered),
        question=question,
        reasoning=reasoning,
        answer=answer,
        confidence=0.95,
        citations=citations,
        missing="none",
    )


EXAMPLES = (
    _example(
        {
            "Ann Lee": ("Ann Lee (1921-1990) was a novelist.", "Her first novel is Dust."),
            "Bo Larsen": ("Bo Larsen, born in 1934, is a Danish painter.",),
        },
        "Who was born earlier, Bo Larsen or Ann Lee?",
        "Bo Larsen was born in 1934 [2s1]. Ann Lee was born in 1921 [1s1]. 1921 is before 1934, so Ann Lee was born "
        "earlier.",
        "Ann Lee",
        ["2s1", "1s1"],
    ),
    _example(
        {
            "Lake Vens": ("Lake Vens is a lake in the south of France.",),
            "Lake Orda": ("Lake Orda is a small lake in northern Italy.", "It lies west of Lake Salo."),
        },
        "Are Lake Orda and Lake Vens in the same country?",
        "Lake Orda is in Italy [2s1]. Lake Vens is in France [1s1]. Italy is not France, so the answer is no.",
        "no",
        ["2s1", "1s1"],
    ),
    _example(
        {
            "Emil Varga": (
                "Emil Varga is a Hungarian director who was born in Tiszakert in 1951.",
                "He lives in Graz.",
            ),
            "The Salt Road": ("The Salt Road is a film of 1988 by Emil Varga.", "It was shot near the Vistula."),
            "Tiszakert": ("Tiszakert is a city in the south of Hungary.", "The Maros flows through it."),
        },
        "Which river flows through the city where the director of The Salt Road was born?",
        "The director of The Salt Road is Emil Varga [2s1]. Emil Varga was born in Tiszakert [1s1]. The river through "
        "Tiszakert is the Maros [3s2], so the answer is the Maros.",
        "Maros",
        ["2s1", "1s1", "3s2"],
    ),
)
