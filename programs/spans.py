"""Reading what agents say about documents: facts with citations, verbatim spans, numbers of statements.

Forgiving in form, strict in substance: what addresses nothing, or stands in no document, is dropped and reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..data.passages import Evidence, Fact, Passage
from ..signatures.fields import fenced
from .candidates import Candidates
from .citations import SENTENCE, split_citations
from .knowledge import Known

_NUMBER = re.compile(
    r"(?:[-*•>]\s+)?[*`]*(?:[\[(](\d{1,6})(?:s\d{1,6})?[\])]|(\d{1,6})s\d{1,6}\b)[*`]*(?:\s*[-–:.,])?\s*"
)
_COUNT = re.compile(r"\W*(?:statement\W+)?(\d{1,4})(?!\w)", re.IGNORECASE)
_ID = re.compile(rf"[\[(]?{SENTENCE}[\])]?")
_QUOTES = str.maketrans("’‘‛“”„‟«»", '\'\'\'""""""')


def read_facts(texts: Iterable[str], documents: Candidates) -> tuple[list[Known], tuple[str, ...]]:
    """Facts with the sentences that they cite ("... (2s1)"), and the citations that address nothing."""
    facts, invalid = [], list[str]()
    for text in (" ".join(text.split()) for text in texts):
        fact, ids = split_citations(text)
        support, wrong = documents.resolve(ids)
        invalid += wrong
        facts.append(Known(fact, tuple(support)))
    return [fact for fact in facts if fact.text], tuple(invalid)


def read_spans(spans: Iterable[str], documents: Candidates) -> tuple[list[Evidence], tuple[str, ...]]:
    """The sentences in which verbatim spans lie, in the order of the spans, and the spans that stand in no document.

    A span with an id before it ("2s1 He was ...", "[2] He was ...") has to stand in that passage; the id of a sentence
    alone stands for the whole of it.
    """
    found: dict[Fact, Evidence] = {}
    invalid = []
    for span in spans:
        items = _addressed(span.strip(), documents)
        found |= {item.fact: item for item in items if item.fact not in found}
        if not items:
            invalid.append(span[:80])
    return list(found.values()), tuple(invalid)


def _addressed(span: str, documents: Candidates) -> Sequence[Evidence]:
    if _ID.fullmatch(span):
        return documents.resolve([span])[0]
    mark = _NUMBER.match(span)
    if mark is None and (cited := split_citations(span))[1]:  # "He was ... (2s1)"
        mark = _NUMBER.match(span := f"[{cited[1][0]}] {cited[0]}")
    number = int(mark[1] or mark[2]) if mark else 0
    if mark and 1 <= number <= len(documents.passages):
        return locate(span[mark.end() :], documents.passages[number - 1])
    return next((items for passage in documents.passages if (items := locate(span, passage))), ())


def locate(span: str, passage: Passage) -> tuple[Evidence, ...]:
    """The sentences of a passage in which a verbatim part of it lies; none if it is no part.

    White space and the shape of quotation marks may differ, and marks may stand around the whole span; a passage's text
    is meant as agents are shown it.
    """
    sentences = [_folded(sentence) for sentence in passage.sentences]
    text = " ".join(sentence for sentence in sentences if sentence)
    for wanted in (_folded(span), _folded(span).strip("\"'` ….")):
        start = text.find(wanted)
        if start >= 0 and any(character.isalnum() for character in wanted):
            break
    else:
        return ()
    items, position = [], 0
    for number, sentence in enumerate(sentences):
        if sentence and position < start + len(wanted) and start < position + len(sentence):
            items.append(Evidence(passage, number))
        position += len(sentence) + bool(sentence)
    return tuple(items)


def _folded(text: str) -> str:
    return " ".join(fenced(text.translate(_QUOTES)).split())


def read_numbers(reply: Iterable[str], most: int) -> tuple[set[int], tuple[str, ...]]:
    """The numbers from 1 to ``most`` in a reply ("2", "[2]", "2. Ann Lee wrote Dust."), and the entries without."""
    found: set[int] = set()
    invalid = []
    for entry in reply:
        mark = _COUNT.match(entry)
        if mark and 1 <= int(mark[1]) <= most:
            found.add(int(mark[1]))
        else:
            invalid.append(entry[:80])
    return found, tuple(invalid)
