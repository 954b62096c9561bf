"""A question that KAIR answers in two steps, and the replies of its agents."""

from __future__ import annotations

import json
from typing import Any

import dspy

from polyhop.data.passages import Hit, Passage, Retriever
from polyhop.programs import Kair

from .scripted import ALBUM, FILM, MAN, QUESTION, Script, answer, playing, scripted

POOL = [FILM, MAN, ALBUM]
DIRECTED, BORN = "Alfred Hitchcock directed Vertigo.", "Alfred Hitchcock came from Leytonstone."
GAP = "Where was Alfred Hitchcock born?"
FILM_SPAN, MAN_SPAN = "1s2 Its director was Alfred Hitchcock.", "2s2 He came from Leytonstone."
WALK: dict[str, Any] = {
    "querier": {"queries": [QUESTION, "Vertigo album", "Alfred Hitchcock born", "Hitchcock", "Leytonstone"]},
    "updater": [
        {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": [GAP]},
        {"new_facts": [f"{BORN} (2s2)"], "gaps": []},
    ],
    "checker": {"supported": [1], "relevant": [1]},
    "filterer": [{"spans": [FILM_SPAN]}, {"spans": [MAN_SPAN, FILM_SPAN]}],
    "answerer": answer("Leytonstone"),
}


def play(
    adapter: Any = None,
    *,
    pool: list[Passage] | None = None,
    retriever: Retriever | None = None,
    settings: dict[str, Any] | None = None,
    **replies: Any,
) -> tuple[Script, dspy.Prediction]:
    """The walk-through below, with other replies; one passage a search, so that the chain takes two steps."""
    program = Kair(retriever, k=1)
    for name, value in (settings or {}).items():
        target = program.search if name == "k" else program
        getattr(target, name).value = value
    if pool is None and retriever is None:
        pool = POOL
    with playing(scripted(**{agent: _whole(reply) for agent, reply in (WALK | replies).items()}), adapter) as script:
        prediction = program(question=QUESTION, pool=pool)
    assert prediction.trace.lm_calls == len(script.requests)
    return script, prediction


def _whole(reply: Any) -> Any:
    """A reply with the fields that it does not speak of: no contradictions, nothing supported, a diversity of 0.5."""
    if isinstance(reply, list):
        return [_whole(each) for each in reply]
    if callable(reply) and not isinstance(reply, BaseException):
        return lambda request: _whole(reply(request))
    if isinstance(reply, dict) and "queries" in reply:
        return {"diversity": 0.5, **reply}
    if isinstance(reply, dict) and "spans" in reply:
        return {"supported": [], **reply}
    if isinstance(reply, dict) and ("new_facts" in reply or "relevant" in reply):
        return {"contradicted": [], **reply}
    return reply


def known(script: Script) -> list[str]:
    """What the filter of the last step was told is known."""
    texts: list[str] = json.loads(script.asked("filterer")[-1].inputs["known"])
    return texts


class Shelf:
    """Finds the film for whatever speaks of Vertigo, and nothing else."""

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        return [Hit(POOL[0], 1.0, 1)] if "Vertigo" in query else []
