"""A question of two hops, its gold passages, and one that is not gold."""

from __future__ import annotations

import dspy

from polyhop.data.passages import Fact, Passage
from polyhop.data.sample import SubQuestion

FILM = Passage.of("Solaris", sentences=["Solaris is a film.", "Andrei Tarkovsky directed it."], id="film")
DIRECTOR = Passage.of("Andrei Tarkovsky", sentences=["He was a director.", "He was born in Zavrazhye."], id="director")
NOISE = Passage.of("Solaris (novel)", sentences=["A novel by Lem."], id="noise")
EXAMPLE = dspy.Example(
    question="Where was the director of Solaris born?",
    answers=("Zavrazhye", "Zavrazhye village"),
    gold_passages=("film", "director"),
    gold_facts=(Fact("film", 1), Fact("director", 1)),
    sub_questions=(
        SubQuestion("Who directed Solaris?", "Andrei Tarkovsky", "film"),
        SubQuestion("Where was #1 born?", "Zavrazhye", "director"),
    ),
).with_inputs("question")
