"""C-3PO's decision maker: searches for the first sub-goal that is neither reached nor asked for."""

from __future__ import annotations

import re
from typing import Any

from ....data.text import title_key
from ....signatures import DecideNext
from ..engine import skill
from ..prompt import Prompt
from ..reading import read_pages
from ..subgoals import sub_goals

# Tuned for evidence F1 on train questions of 2WikiMultihopQA, HotpotQA and MuSiQue, with BM25.
SURE = 0.3  # least probability of an answer that spares a search

_ASKED = re.compile(r'^"(?P<query>.*)"(?:, page \d+)? - ')


@skill(DecideNext)
def decide_next(prompt: Prompt) -> dict[str, Any]:
    """Search for the question itself first, then for each open sub-goal once; then answer."""
    question, pages = prompt.inputs.get("question", ""), read_pages(prompt.inputs.get("passages", ""))
    matches = (_ASKED.match(entry) for entry in prompt.listed("queries"))
    asked = {title_key(match["query"]) for match in matches if match}
    goals = sub_goals(prompt.listed("roadmap"), pages, SURE)
    for query in (question, *(goal.question for goal in goals if not goal.answer)):
        if title_key(query) not in asked:
            return {"thought": f"What is to be found out next: {query}", "action": "retrieve", "query": query}
    return {"thought": "All that can be found has been found.", "action": "answer", "query": ""}
