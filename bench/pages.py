"""Whether a passage of a page that the question names is found.

    python -m bench.pages indexes/python indexes/manuals

The questions are made from the index: the title of a page of at least three passages, and two rarer words of a sentence
of one of its passages after the first. Nobody asks so, but what is right is known without reading.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from polyhop.data.chain import ChainRetriever
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.passages import Passage

_RARE = 1 / 15  # largest share of passages that have a word of a question


def questions(index: BM25Index, most: int) -> Iterator[tuple[str, str]]:
    """At most so many questions, each with the id of its passage."""
    dice, pages = random.Random(5), defaultdict[str, list[Passage]](list)
    passages = index.stored(range(len(index.store)))
    for passage in passages:
        pages[passage.document].append(passage)
    held = Counter(word for passage in passages for word in set(_words(passage.text.lower())))
    long = [page for page in pages.values() if len(page) >= 3 and len(page[0].title.split()) <= 6]
    for page in dice.sample(long, min(most, len(long))):
        passage = dice.choice(page[1:])
        title = re.sub(r"\(\d\)", "", passage.title)
        usable = [sentence for sentence in passage.sentences if 6 <= len(sentence.split()) <= 40]
        sentence = dice.choice(usable) if usable else ""
        in_title = _words(title.lower())
        words = [word for word in dict.fromkeys(_words(sentence)) if word not in in_title]
        words = [word for word in words if 0 < held[word] < len(passages) * _RARE]
        if words:
            asked = sorted(dice.sample(words, min(len(words), 2)), key=sentence.find)
            yield f"What is the {' '.join(asked)} in {title}?", passage.id


def _words(text: str) -> list[str]:
    return re.findall(r"\b[a-z]{4,}\b", text)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("indexes", type=Path, nargs="+", metavar="INDEX")
    parser.add_argument("--most", type=int, default=200, help="questions of an index")
    options = parser.parse_args(arguments)
    for path in options.indexes:
        index = BM25Index(path)
        if not (asked := list(questions(index, options.most))):
            print(path, "has no page of three passages")
            continue
        for name, retriever in (("bm25", index), ("chain", ChainRetriever(index))):
            rankings = [[hit.passage.id for hit in retriever.search(question, 10)] for question, _ in asked]
            shares = (sum(id in ids[:k] for ids, (_, id) in zip(rankings, asked, strict=True)) for k in (5, 10))
            print(path, len(asked), name, *(f"{share / len(asked):.1%}" for share in shares))


if __name__ == "__main__":
    main()
