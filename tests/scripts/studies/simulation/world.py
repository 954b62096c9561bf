"""Made-up questions: as files of two benchmarks, as their loaders read them, and put to single agents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy

from polyhop.data.benchmarks import load_questions
from polyhop.data.passages import Evidence
from polyhop.programs.candidates import Candidates
from polyhop.signatures import AddEvidence, SelectEvidence

OTHERS = 8  # passages beside the two gold ones


def two_hops(count: int) -> list[dict[str, Any]]:
    """HotpotQA's format: two gold sentences, the first and the third of two passages."""
    return [
        {
            "_id": f"q{n}",
            "question": f"Where does the river of town {n} rise?",
            "answer": f"Mount {n}",
            "type": "bridge",
            "level": "easy",
            "supporting_facts": [[f"Town {n}", 0], [f"River {n}", 2]],
            "context": [
                *([f"Village {n}-{i}", [f"It has {i} houses.", "It has a church."]] for i in range(OTHERS // 2)),
                [f"River {n}", ["It is long.", "It is deep.", f"It rises on Mount {n}."]],
                *([f"Hill {n}-{i}", [f"It is {i} m high.", "Sheep graze on it."]] for i in range(OTHERS // 2)),
                [f"Town {n}", [f"It lies on River {n}.", "It has a market."]],
            ],
        }
        for n in range(count)
    ]


def three_hops(count: int) -> list[dict[str, Any]]:
    """MuSiQue's format: three gold passages, one of which shares its title with another passage."""
    return [
        {
            "id": f"3hop1__{n}",
            "question": f"Who rules the land of the river of town {n}?",
            "answer": f"Queen {n}",
            "answer_aliases": [f"Her Majesty {n}"],
            "answerable": True,
            "paragraphs": [
                _paragraph(0, f"Town {n}", f"It lies on River {n}.", True),
                _paragraph(1, f"River {n}", "It is a film. It is long.", False),
                _paragraph(2, f"River {n}", f"It flows through Land {n}. It is deep.", True),
                _paragraph(3, f"Land {n}", f"It is ruled by Queen {n}.", True),
                *(_paragraph(4 + i, f"Hill {n}-{i}", f"It is {i} m high.", False) for i in range(OTHERS)),
            ],
            "question_decomposition": [
                {"id": 1, "question": f"river of town {n}", "answer": f"River {n}", "paragraph_support_idx": 0},
                {"id": 2, "question": "#1 >> land", "answer": f"Land {n}", "paragraph_support_idx": 2},
                {"id": 3, "question": "#2 >> ruler", "answer": f"Queen {n}", "paragraph_support_idx": 3},
            ],
        }
        for n in range(count)
    ]


def _paragraph(idx: int, title: str, text: str, supporting: bool) -> dict[str, Any]:
    return {"idx": idx, "title": title, "paragraph_text": text, "is_supporting": supporting}


def write_hotpotqa(folder: Path, count: int) -> Path:
    path = folder / "two_hops.json"
    path.write_text(json.dumps(two_hops(count)), encoding="utf-8")
    return path


def write_musique(folder: Path, count: int) -> Path:
    path = folder / "three_hops.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in three_hops(count)), encoding="utf-8")
    return path


def hotpotqa(folder: Path, count: int = 1) -> list[dspy.Example]:
    return list(load_questions("hotpotqa", str(write_hotpotqa(folder, count)), setting="distractor"))


def musique(folder: Path, count: int = 1) -> list[dspy.Example]:
    return list(load_questions("musique", str(write_musique(folder, count)), setting="distractor"))


def ask(lm: dspy.LM, signature: type[dspy.Signature], **inputs: Any) -> dspy.Prediction:
    """Put one question to one agent, through DSPy."""
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        return dspy.Predict(signature)(**inputs)


def task(example: dspy.Example) -> dict[str, Any]:
    """What Selector and Adder are given in every round."""
    candidates = Candidates(example.pool)
    return {"question": example.question, "sub_questions": ["What?"], "candidates": candidates.show()}


def select(lm: dspy.LM, example: dspy.Example, selected: Sequence[str] = ()) -> list[str]:
    return list(ask(lm, SelectEvidence, **task(example), selected=list(selected)).keep)


def add(lm: dspy.LM, example: dspy.Example, selected: Sequence[str] = ()) -> list[str]:
    return list(ask(lm, AddEvidence, **task(example), selected=list(selected)).add)


def shown(example: dspy.Example, ids: Sequence[str]) -> Any:
    """Some of the candidates, as answerers and judges see them."""
    candidates = Candidates(example.pool)
    evidence: list[Evidence] = candidates.resolve(ids)[0]
    return candidates.show(evidence)
