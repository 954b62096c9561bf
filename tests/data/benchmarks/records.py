"""Invented records in the official format of every benchmark, and in our own, and files to put them in."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from polyhop.data.records import Record

HOTPOTQA: dict[str, Any] = {
    "_id": "h1",
    "question": "Who founded the town where Ada Quill was born?",
    "answer": "Ben Marsh",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Ada Quill", 0], ["Tarn", 1], ["Tarn", 1]],
    "context": [
        ["Ada Quill", ["Ada Quill was born in Tarn.", " She wrote odes."]],
        ["Tarn", ["Tarn is a town.", " Ben Marsh founded it."]],
        ["Moss", ["Moss is another town."]],
    ],
}


def columns(rows: list[Any], *names: str) -> dict[str, list[Any]]:
    """A table as on the hub."""
    return {name: [row[n] for row in rows] for n, name in enumerate(names)}


HOTPOTQA_COLUMNS: dict[str, Any] = {
    **{name: value for name, value in HOTPOTQA.items() if name != "_id"},
    "id": "h1",
    "supporting_facts": columns(HOTPOTQA["supporting_facts"], "title", "sent_id"),
    "context": columns(HOTPOTQA["context"], "title", "sentences"),
}
TWOWIKI: dict[str, Any] = {
    "_id": "w1",
    "question": "Who is the father of the director of Slow Rain?",
    "answer": "Otto Venn",
    "type": "compositional",
    "context": [
        ["Slow Rain", ["Slow Rain is a film by Mia Venn."]],
        ["Mia Venn", ["Mia Venn is a director.", "Her father is Otto Venn."]],
        ["Moss", ["Moss is a town."]],
    ],
    "supporting_facts": [["Slow Rain", 0], ["Mia Venn", 1]],
    "evidences": [["Slow Rain", "director", "Mia Venn"], ["Mia Venn", "father", "Otto Venn"]],
    "answer_id": "Q3",
}
TWOWIKI_COLUMNS: dict[str, Any] = {
    **{name: value for name, value in TWOWIKI.items() if name != "_id"},
    "id": "w1",
    "context": columns(TWOWIKI["context"], "title", "content"),
    "supporting_facts": columns(TWOWIKI["supporting_facts"], "title", "sent_id"),
    "evidences": columns(TWOWIKI["evidences"], "fact", "relation", "entity"),
}
TWOWIKI_OPEN: dict[str, Any] = {
    "_id": "w2",
    "question": TWOWIKI["question"],
    "answer": "Otto Venn",
    "answer_aliases": ["O. Venn", "Otto Venn"],
    "supporting_titles": ["Slow Rain", "Mia Venn"],
    "type": None,
    "supporting_facts": None,
    "evidences": None,
}
MUSIQUE: dict[str, Any] = {
    "id": "2hop__12_34",
    "question": "Which river flows through the birthplace of Ada Quill?",
    "answer": "the Orm",
    "answer_aliases": ["Orm", "the Orm"],
    "answerable": True,
    "paragraphs": [
        {"idx": 0, "title": "Tarn", "paragraph_text": "Tarn is a novel.", "is_supporting": False},
        {"idx": 1, "title": "Ada Quill", "paragraph_text": "Ada Quill was born in Tarn.", "is_supporting": True},
        {"idx": 2, "title": "Tarn", "paragraph_text": "The Orm flows through Tarn.", "is_supporting": True},
    ],
    "question_decomposition": [
        {"id": 12, "question": "Ada Quill >> place of birth", "answer": "Tarn", "paragraph_support_idx": 1},
        {"id": 34, "question": "Which river flows through #1?", "answer": "the Orm", "paragraph_support_idx": 2},
    ],
}
MULTIHOPRAG: dict[str, Any] = {
    "query": "Do The Bell and The Horn agree on the price of tin?",
    "answer": "no",
    "question_type": "comparison_query",
    "evidence_list": [
        {"title": "Tin rises", "url": "https://bell.example/tin", "source": "The Bell", "fact": "Tin rose  by 2%."},
        {"title": "Tin falls", "url": "https://horn.example/tin", "source": "The Horn", "fact": "Tin fell."},
    ],
}
NULL_QUERY: dict[str, Any] = {
    "query": "What does The Drum say about zinc?",
    "answer": "Insufficient information.",
    "question_type": "null_query",
    "evidence_list": [],
}
NQ: dict[str, Any] = {"question": "who founded tarn", "answer": ["Ben Marsh", "Marsh", "Ben Marsh"]}
TRIVIAQA: dict[str, Any] = {
    "id": "t1",
    "question": "Which town did Ben Marsh found?",
    "golden_answers": ["Tarn", "Tarn town"],
}
TRIVIAQA_COLUMNS: dict[str, Any] = {
    "question": TRIVIAQA["question"],
    "question_id": "t1",
    "answer": {
        "value": "Tarn",
        "aliases": ["Tarn", "Tarn-Town"],
        "normalized_aliases": ["tarn", "tarn town"],
        "normalized_value": "tarn",
    },
}
TRIVIAQA_DOCUMENT: dict[str, Any] = {
    "Domain": "Web",
    "Data": [
        {
            "Question": TRIVIAQA["question"],
            "QuestionId": "t1",
            "Answer": {"Value": "Tarn", "Aliases": ["Tarn", "Tarn-Town"], "NormalizedAliases": ["tarn", "tarn town"]},
        }
    ],
}


def _asked(id: str, question: str, *answers: str) -> dict[str, Any]:
    return {"id": id, "question": question, "answers": [{"answer_start": 0, "text": answer} for answer in answers]}


SQUAD: dict[str, Any] = {
    "version": "1.1",
    "data": [
        {
            "title": "Tarn_(town)",
            "paragraphs": [
                {
                    "context": "Tarn was founded by Ben Marsh.",
                    "qas": [
                        _asked("s1", "Who founded Tarn?", "Ben Marsh", "Marsh", "Ben Marsh"),
                        _asked("s2", "What did Marsh found?", "Tarn"),
                    ],
                },
                {"context": "The Orm flows through Tarn.", "qas": [_asked("s3", "What flows through Tarn?", "Orm")]},
            ],
        },
        {
            "title": "Moss",
            "paragraphs": [{"context": "Moss is a town.", "qas": [_asked("s4", "What is Moss?", "a town")]}],
        },
    ],
}
SQUAD_FLAT: list[dict[str, Any]] = [
    {
        "id": asked["id"],
        "title": article["title"],
        "context": paragraph["context"],
        "question": asked["question"],
        "answers": {
            "text": [answer["text"] for answer in asked["answers"]],
            "answer_start": [0 for _ in asked["answers"]],
        },
    }
    for article in SQUAD["data"]
    for paragraph in article["paragraphs"]
    for asked in paragraph["qas"]
]

OWN: dict[str, Any] = {
    "question": "Who founded the town where Ada Quill was born?",
    "answer": "Ben Marsh",
    "gold": ["Ada Quill", {"title": "Tarn", "sentence": 1}],
    "type": "bridge",
    "passages": [
        {"title": "Ada Quill", "text": "Ada Quill was born in Tarn. She wrote odes."},
        {"title": "Tarn", "sentences": ["Tarn is a town.", " Ben Marsh founded it."]},
        {"title": "Moss", "text": "Moss is another town."},
    ],
}


HOVER = {
    "uid": "v1",
    "claim": "The town where Ada Quill was born was founded by Ben Marsh.",
    "supporting_facts": [["Ada Quill", 0], ["Tarn", 1], ["Tarn", 1]],
    "label": "SUPPORTED",
    "num_hops": 2,
    "hpqa_id": "h1",
}
HOVER_COLUMNS = {
    **HOVER,
    "supporting_facts": [{"key": "Ada Quill", "value": 0}, {"key": "Tarn", "value": 1}],
    "label": 1,
}

FRAMES = {
    "id": "f1",
    "Prompt": "Who founded the town where the author of Odes was born?",
    "Answer": "Ben Marsh",
    "wikipedia_link_1": "https://en.wikipedia.org/wiki/Ada_Quill",
    "reasoning_types": "Multiple constraints",
    "wiki_links": "['https://en.wikipedia.org/wiki/Ada_Quill', 'https://en.wikipedia.org/wiki/Tarn_(town)#History']",
}

BAMBOOGLE = {"id": "b1", "Question": "Who founded the town where Ada Quill was born?", "Answer": "Ben Marsh"}

POPQA = {
    "id": 7,
    "question": "Who is the founder of Tarn?",
    "possible_answers": '["Ben Marsh", "B. Marsh"]',
    "prop": "founder",
    "s_wiki_title": "Tarn",
    "paragraphs": [
        {"title": "Tarn", "text": "Ben Marsh founded Tarn.", "is_supporting": True},
        {"title": "Moss", "text": "Moss is a town.", "is_supporting": False},
    ],
}

BROWSECOMP_PLUS = {
    "query_id": "769",
    "query": "Name the founder of the town where the author of Odes was born.",
    "answer": "Ben Marsh",
    "gold_docs": [{"docid": "12", "text": "Ben Marsh founded Tarn."}],
    "evidence_docs": [{"docid": "12", "text": "Ben Marsh founded Tarn."}, {"docid": "5", "text": "Ada Quill."}],
    "negative_docs": [{"docid": "99", "text": "Moss."}],
}


FIRST_RECORDS = {
    "hotpotqa": HOTPOTQA,
    "2wiki": TWOWIKI,
    "musique": MUSIQUE,
    "multihoprag": MULTIHOPRAG,
    "nq": NQ,
    "squad": SQUAD,
    "triviaqa": TRIVIAQA,
    "hover": HOVER,
    "frames": FRAMES,
    "bamboogle": BAMBOOGLE,
    "popqa": POPQA,
    "browsecomp-plus": BROWSECOMP_PLUS,
    "own": OWN,
}


def lines(records: Iterable[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def write(path: Path, content: str) -> Path:
    """Write a text, packed if the name ends in .gz."""
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


def as_record(value: Any) -> Record:
    return Record(value, "file:1")
