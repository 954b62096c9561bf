"""Answers without passages: small talk."""

from __future__ import annotations

import re
from typing import Any

from ....signatures import AnswerDirectly
from ..prompt import ParsedPrompt
from ..registry import skill

_MUCH = r"(?: (?:so|very) much| a lot| again| everyone| all| there| for (?:your|the|all) \w+| for everything)*"
_SMALL_TALK = (
    (rf"(?:ok(?:ay)? |many )?thanks?(?: you)?{_MUCH}", "You are welcome."),
    (r"i appreciate (?:it|that|your help)", "You are welcome."),
    (rf"(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day)){_MUCH}", "Hello!"),
    (r"(?:good ?bye|bye|bye bye|see you(?: later| soon)?|good night|farewell)", "Goodbye!"),
    (r"have a (?:nice|good|great) \w+", "Goodbye!"),
    (r"how are you(?: doing| today)*|how do you do", "I am well, thank you."),
)


@skill(AnswerDirectly, "question -> answer")
def answer_directly(prompt: ParsedPrompt) -> dict[str, Any]:
    """Answer small talk; everything else is unknown."""
    if reply := small_talk(prompt.question):
        return {"reasoning": "Small talk needs no look-up.", "answer": reply, "confidence": 1.0}
    return {"reasoning": "There is nothing to read.", "answer": "unknown", "confidence": 0.0}


def small_talk(text: str) -> str | None:
    """The reply to thanks, a greeting or a farewell; None for anything else."""
    said = " ".join(re.findall(r"[a-z]+", text.lower()))
    return next((reply for pattern, reply in _SMALL_TALK if re.fullmatch(pattern, said)), None)
