"""MuSiQue's steps in words: "#1 >> place of birth" as "Where was #1 born?".

`_QUESTIONS` has the relations of Wikidata for which "What is the ... of X?" does not read well.
"""

from __future__ import annotations

import re

_SHORT = re.compile(r"^(?P<subject>.+?)\s*>>\s*(?P<relation>[^>]+?)\s*$")
_PERSONS = frozenset(
    "architect author chairperson characters child composer creator designer developer director editor employer "
    "father founder inventor lyricist manufacturer mother occupant operator performer producer publisher screenwriter "
    "sibling spouse uncle winner".split()
)
_QUESTIONS = {
    "applies to jurisdiction": "To which jurisdiction does {} apply?",
    "award received": "Which award did {} receive?",
    "capital of": "What is {} the capital of?",
    "conflict": "In which conflict did {} take part?",
    "contains administrative territorial entity": "Which administrative territorial entity does {} contain?",
    "country": "In which country is {}?",
    "crosses": "What does {} cross?",
    "educated at": "Where was {} educated?",
    "followed by": "What followed {}?",
    "follows": "What does {} follow?",
    "has part": "What is a part of {}?",
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
    "named after": "What is {} named after?",
    "owned by": "By whom is {} owned?",
    "part of": "What is {} a part of?",
    "participant in": "In what did {} take part?",
    "place of birth": "Where was {} born?",
    "place of death": "Where did {} die?",
    "position held": "Which position did {} hold?",
    "shares border with": "With what does {} share a border?",
    "work location": "Where did {} work?",
}


def readable(step: str) -> str:
    """A step as a question."""
    if match := _SHORT.match(step):
        relation = match["relation"].lower()
        plain = f"{'Who' if relation in _PERSONS else 'What'} is the {relation} of {{}}?"
        return _QUESTIONS.get(relation, plain).replace("{}", _closed_up(match["subject"]))
    text = _closed_up(step).rstrip("?. ")
    return f"{text[:1].upper()}{text[1:]}?"


def _closed_up(text: str) -> str:
    return re.sub(r"(\S)\s+(?=['’]s\b|[?.,)])", r"\1", " ".join(text.split()))
