"""The passages around a question: which titles it has, and what ties two passages."""

from __future__ import annotations

import pytest

from polyhop.data.chain import ChainWeights
from polyhop.data.chain.graph import BACK, LINK, Graph
from polyhop.data.chain.retriever import follow
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool


def graph_of(question: str, *passages: Passage) -> Graph:
    graph = Graph(question, PassagePool(passages))
    graph.start()
    return graph


def ties(graph: Graph, chosen: str, other: str) -> dict[int, set[str]]:
    """The names that tie two passages, by relation."""
    nodes = {graph.passage(node).id: node for node in range(len(graph))}
    edges = graph.edges(nodes[chosen])
    found: dict[int, set[str]] = {}
    for node, relation, place, length in zip(edges.node, edges.relation, edges.place, edges.length, strict=True):
        if node == nodes[other]:
            found.setdefault(int(relation), set()).add(graph.text(int(place), int(length)))
    return found


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Besançon", "He lives in Besancon."),
        ("Help! (film)", "It was heard in Help!, a success."),
        ("Paris, Texas", "It was shot in Paris, Texas, and elsewhere."),
        ("Paris, Texas (film)", "It was shot in Paris."),
        ("J. R. R. Tolkien", "It is a book of J.R.R. Tolkien's."),
        ("John Ronald Tolkien", "It is a book by John Tolkien."),
        ("The Beatles", "It is a Beatles song."),
        ("Spider-Man", "There is Spider Man."),
        ("Will &amp; Grace", "It was like Will & Grace."),  # HotpotQA has HTML entities in titles
        ("Love & Other Drugs", "She is in Love and Other Drugs."),
        ("Zola", "It was Zola’s house."),
        ("दिल्ली", "भारत की राजधानी दिल्ली है।"),
        ("東京都", "首都 は 東京都 です。"),
    ],
)
def test_a_title_is_recognized_as_texts_write_it(title: str, text: str) -> None:
    passages = Passage.of("One", text, id="one"), Passage.of(title, "It is old.", id="other")
    graph = graph_of("Who?", *passages)
    assert LINK in ties(graph, "one", "other")
    assert BACK in ties(graph, "other", "one")
    asked = graph_of(text, *passages)
    [other] = [node for node in range(2) if asked.passage(node).id == "other"]
    assert asked.match_certainty[other] > 0


def test_a_passage_that_explains_nothing_lends_less_to_those_that_it_mentions() -> None:
    def gain(work: str) -> float:
        graph = graph_of(
            "Where was the wife of the director of Solaris born?",
            Passage.of("Solaris", "Its maker was Andrei Tarkovsky.", id="film"),
            Passage.of("Andrei Tarkovsky", f"He was a {work}. He married Irma Rausch.", id="maker"),
            Passage.of("Irma Rausch", "She grew up there.", id="person"),
        )
        gains = {graph.passage(step.node).id: step.gain for step in follow(graph, ChainWeights(), 3)}
        return gains["person"]

    assert 0 < gain("sailor") < 0.9 * gain("director")


def test_a_shared_name_counts_more_if_the_chosen_passage_has_it_with_the_questions_words() -> None:
    graph = graph_of(
        "Which band did the drummer of Norrsken join?",
        Passage.of("Norrsken", "Norrsken had the drummer Lena Quist. It was seen by Hal Vance.", id="first"),
        Passage.of("Silver", "It was with Lena Quist from 1990 on.", id="drummer"),
        Passage.of("Golden", "It was with Hal Vance from 1990 on.", id="listener"),
    )
    gains = {graph.passage(step.node).id: step.gain for step in follow(graph, ChainWeights(), 3)}
    assert gains["drummer"] > 1.6 * gains["listener"] > 0  # also though the passage explains these words
