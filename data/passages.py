"""Passages, hits, evidence, and the `Retriever` protocol.

A passage without an id gets a hash of its title and text, so that it has the same id in an index, in a question's own
pool and on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Literal, NamedTuple, Protocol, Self, runtime_checkable

from .languages import LANGUAGES
from .links import file_words
from .text import clean, plain, split_sentences, with_code_parts

PAGE = 20_000
"""Programs read this many characters of a passage; the rest is only searched."""

MOST_LINKS, MOST_ANCHORS = 200, 200  # of a passage

_HITS_A_DOCUMENT = 4  # that are looked at first for one hit a document
_TOLD = 2_000  # characters of a passage in the result of a tool


class Fact(NamedTuple):
    """The ids of an evidence: one sentence of a passage, or the whole passage (``sentence`` is None).

    In gold, the id can be that of a document, whose sentences are counted through all of its passages.
    """

    passage_id: str
    sentence: int | None = None


class Place(NamedTuple):
    """Where a passage is in the document that it was split from."""

    document: str  # its id
    sentence: int = 0  # the number, from 0, of its first sentence among those of the document
    headings: tuple[str, ...] = ()  # above it, from the outermost; without the document's title


LinkKind = Literal["text", "contents", "see"]
"""Of a link in a list or a region whose text is almost only links, "contents"; under a heading such as "See also" or in
such a box, "see"; elsewhere "text"."""


class Link(NamedTuple):
    """A hyperlink of a passage."""

    target: str  # what it leads to, see `polyhop.data.links.resolve`: "python/library/os.html#os.urandom"
    text: str  # what is underlined, with white space folded, at most 200 characters
    sentence: int  # the number of the sentence in the passage that it stands in
    kind: LinkKind = "text"


@dataclass(frozen=True)
class Passage:
    """A titled piece of text.

    Attributes:
        id: Unique within a corpus.
        title: May be empty or the same as another passage's.
        text: The whole text, without the title.
        given_sentences: The corpus's own sentences, if any; gold facts refer to these.
        place: Where it is in its document; None for a whole document.
        metadata: What else the corpus says about its document, as JSON.
        links: Its hyperlinks in order, at most `MOST_LINKS`.
        anchors: The fragment identifiers that start in it, at most `MOST_ANCHORS`.
        language: In which it is, one of `polyhop.data.languages.LANGUAGES`; English is not told in records.
    """

    id: str
    title: str
    text: str
    given_sentences: tuple[str, ...] | None = field(default=None, repr=False)
    place: Place | None = field(default=None, repr=False)
    metadata: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    links: tuple[Link, ...] = field(default=(), repr=False)
    anchors: tuple[str, ...] = field(default=(), repr=False)
    language: str = field(default="en", repr=False)

    @classmethod
    def of(
        cls,
        title: str,
        text: str | None = None,
        *,
        sentences: Iterable[str] | None = None,
        breaks: Collection[int] = (),
        id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Passage:
        """Build a passage from a text or from sentences.

        Args:
            breaks: The numbers of the sentences that start a line of the text, as those of code do: with any, the
                sentences keep their indentation.

        Raises:
            ValueError: neither or both of ``text`` and ``sentences`` are given.
        """
        if (text is None) == (sentences is None):
            raise ValueError("give either text or sentences")
        title = clean(title).strip()
        cleaned = None
        if sentences is not None:
            cleaned = tuple(clean(sentence).rstrip() if breaks else clean(sentence).strip() for sentence in sentences)
            text = _joined(cleaned, breaks)
        text = text or "" if breaks else clean(text or "").strip()
        return cls(clean(id) if id else content_id(title, text), title, text, cleaned, metadata=metadata)

    @property
    def document(self) -> str:
        """The id of its document; its own if it is one."""
        return self.place.document if self.place else self.id

    @property
    def opens(self) -> bool:
        """Whether it opens its document: no sentence is before it but the headings above it."""
        return not self.place or self.place.sentence <= len(self.place.headings)

    @property
    def heading(self) -> str:
        """The document's title and the headings above the passage."""
        return " > ".join(filter(None, (self.title, *self.place.headings))) if self.place else self.title

    @property
    def searched(self) -> str:
        """What an index finds it by: the heading, the words of its file's name, the text, and the parts of words of
        code."""
        return with_code_parts("\n".join(filter(None, (self.heading, file_words(self.document), self.text))))

    def fact_of(self, sentence: int | None) -> Fact:
        """A sentence, numbered as in the document, or the document itself."""
        return Fact(self.document, sentence if sentence is None or not self.place else self.place.sentence + sentence)

    @property
    def all_sentences(self) -> Sequence[str]:
        """The given sentences, or else the text split by `split_sentences`."""
        return self.given_sentences if self.given_sentences is not None else split_sentences(self.text)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """`all_sentences` of the first `PAGE` characters."""
        if len(self.text) <= PAGE:
            return tuple(self.all_sentences)
        if self.given_sentences is None:
            return tuple(split_sentences(self.text[:PAGE]))
        starts = accumulate(map(len, self.given_sentences), initial=0)
        return tuple(
            text[: PAGE - start] for text, start in zip(self.given_sentences, starts, strict=False) if start < PAGE
        )

    def to_record(self) -> dict[str, Any]:
        """The JSON object that `from_record` reads back to an equal passage."""
        record: dict[str, Any] = {"id": self.id, "title": self.title}
        if self.given_sentences is not None:
            record["sentences"] = list(self.given_sentences)
            record |= {"breaks": breaks} if (breaks := self._breaks(self.given_sentences)) else {}
        else:
            record["text"] = self.text
        if self.place:
            record["place"] = self.place._asdict() | {"headings": list(self.place.headings)}
        if self.links:
            record["links"] = [list(link) if link.kind != "text" else list(link[:3]) for link in self.links]
        if self.anchors:
            record["anchors"] = list(self.anchors)
        if self.language != "en":
            record["language"] = self.language
        return record | {"metadata": self.metadata} if self.metadata else record

    def _breaks(self, sentences: Sequence[str]) -> list[int]:
        if "\n" not in self.text:
            return []
        ends = accumulate((len(sentence) + 1 for sentence in sentences), initial=-1)
        breaks = [number for number, end in enumerate(ends) if end >= 0 and self.text[end : end + 1] == "\n"]
        return breaks if _joined(sentences, breaks) == self.text else []

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Passage:
        """Read ``{id?, title?, text}`` or ``{id?, title?, sentences, breaks?}``, each with ``links?: [[target, text,
        sentence, kind?], ...]``, ``anchors?``, ``metadata?`` and ``place?``; of the last two, what others call so is
        left out.
        """
        if not isinstance(record, Mapping):
            raise ValueError(f"expected an object with 'title' and 'text', got {type(record).__name__}")
        fields = {name: record.get(name) for name in _KINDS}
        for name, value in fields.items():
            kind, kind_name = _KINDS[name]
            if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
                raise ValueError(f"{name!r} must be {kind_name}, got {type(value).__name__}")
        id, title, text, sentences = fields.values()
        if not all(isinstance(sentence, str) for sentence in sentences or ()):
            raise ValueError("'sentences' must be a list of strings")
        if text is None and sentences is None:
            raise ValueError("neither 'text' nor 'sentences' is given")
        metadata, place = record.get("metadata"), record.get("place")
        passage = cls.of(
            title or "",
            text if sentences is None else None,
            sentences=sentences,
            breaks=record.get("breaks", ()),
            id=None if id is None else str(id),
            metadata=metadata if isinstance(metadata, dict) else None,
        )
        links, anchors = (Link(*link) for link in record.get("links", ())), record.get("anchors", ())
        language = record.get("language")
        return replace(
            passage,
            place=_place(place),
            links=tuple(links),
            anchors=tuple(anchors),
            language=language if language in LANGUAGES else "en",
        )


_KINDS: dict[str, tuple[Any, str]] = {
    "id": (str | int, "a string or an integer"),
    "title": (str, "a string"),
    "text": (str, "a string"),
    "sentences": (list, "a list of strings"),
}


def _place(record: Any) -> Place | None:
    """The place in a record; None for what others call so."""
    match record:
        case {"document": str(document), "sentence": int(sentence), "headings": list(headings)} if (
            sentence >= 0 and all(isinstance(heading, str) for heading in headings)
        ):
            return Place(document, sentence, tuple(headings))
    return None


def _joined(sentences: Sequence[str], breaks: Collection[int]) -> str:
    if not breaks:
        return " ".join(sentences)
    breaks = frozenset(breaks)
    return "".join(("\n" if number in breaks else " ") + text for number, text in enumerate(sentences))[1:]


def content_id(title: str, text: str) -> str:
    """The id of a passage without one: 16 hex digits, a hash of title and text (white space folded)."""
    folded = " ".join(title.split()) + "\n" + " ".join(text.split())
    return blake2b(folded.encode("utf-8", "replace"), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Reason:
    """Why the chain retriever chose a passage.

    Attributes:
        via: "words" (it has words of the question), "named" (the question names it), "link" (an earlier passage
            mentions it), "back" (it mentions an earlier passage), "shared" (both mention a name), "hyperlink" (an
            earlier passage links to it), "linked" (it links to an earlier passage), "near" (its vector is near to that
            of the question, or of the question and an earlier passage).
        name: The folded name, of a hyperlink its text, words of code as written; empty for "words", and for a hyperlink
            without a text.
        source: The id of the earlier passage; None for "words" and "named".
        words: The question's words in the passage or, with a source, in the sentence of the mention.
    """

    via: str
    name: str
    source: str | None
    words: tuple[str, ...]

    def told(self, titles: Mapping[str, str]) -> str:
        """The reason as people read it, on one line.

        Args:
            titles: Of earlier passages, by id; without one, the id stands for it.
        """
        source = titles.get(self.source or "") or self.source or ""
        anchor = f" as “{self.name}”" if self.name else ""
        reason = {
            "named": f"the question names it: {self.name}",
            "link": f"{source} mentions it: {self.name}",
            "back": f"mentions {source}",
            "shared": f"mentions {self.name}, as {source} does",
            "hyperlink": f"{source} links to it{anchor}",
            "linked": f"links to {source}{anchor}",
            "near": f"near to the question after {source}" if source else "near to the question",
        }.get(self.via, "has words of the question")
        return plain(reason + (f" ({', '.join(self.words)})" if self.words else ""))


@dataclass(frozen=True)
class Hit:
    """A passage found by a retriever."""

    passage: Passage
    score: float  # higher is better
    rank: int  # from 1, in the whole result list
    reason: Reason | None = None  # why it was chosen, if the retriever says so
    document: int | None = field(default=None, compare=False, repr=False)  # Lucene's number, if it is from an index


@dataclass(frozen=True)
class Evidence:
    """A sentence of a passage, or the whole passage (``sentence`` is None), that supports an answer."""

    passage: Passage
    sentence: int | None = None

    @property
    def fact(self) -> Fact:
        return Fact(self.passage.id, self.sentence)

    @property
    def text(self) -> str:
        """At most `PAGE` characters."""
        return self.passage.text[:PAGE] if self.sentence is None else self.passage.sentences[self.sentence]


@runtime_checkable
class Retriever(Protocol):
    """Ranks passages for a query; thread-safe."""

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The hits of rank ``offset + 1`` to ``offset + k``, best first; fewer if fewer match.

        Raises:
            ValueError: ``k`` is not positive or ``offset`` is negative.
        """
        ...


def one_a_document(search: Callable[[str, int], list[Hit]], query: str, k: int, offset: int = 0) -> list[Hit]:
    """The best hit of each document that `Retriever.search` finds: those of rank ``offset + 1`` to ``offset + k``, with
    ranks among documents and the scores of their passages. Searches deeper until there are so many, or no more hits.

    Raises:
        ValueError: ``k`` is not positive or ``offset`` is negative.
    """
    check_page(k, offset)
    depth = _HITS_A_DOCUMENT * (offset + k)
    while True:
        hits, best = search(query, depth), dict[str, Hit]()
        for hit in hits:
            best.setdefault(hit.passage.document, hit)
        if len(best) >= offset + k or len(hits) < depth:
            return [replace(hit, rank=rank) for rank, hit in enumerate(best.values(), 1)][offset : offset + k]
        depth *= _HITS_A_DOCUMENT


class Shared:
    """A resource, such as an open index: a copy is the object itself."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class PassageText(str):
    """A passage as text; `dspy.Retrieve` reads its ``long_text``, where the retriever is ``dspy.settings.rm``."""

    long_text = property(str)


ON_TOOL_SEARCH: ContextVar[Callable[[str, list[Hit], int], None] | None] = ContextVar("on tool search", default=None)
"""Told the query, the hits and the offset of each search by a `SearchTool`."""


class SearchTool:
    """Makes a retriever a tool of DSPy's agents: ``dspy.Tool(retriever)``, ``dspy.ReAct(..., tools=[retriever])``."""

    __name__ = "search"  # of the tool

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        retriever = super().__new__(cls)
        retriever.__doc__ = cls.__call__.__doc__  # what the tool says of itself
        return retriever

    def __call__(self, query: str, k: int = 5, offset: int = 0) -> list[str]:
        """Search the documents; returns the k best passages, each as "title | text". An offset skips the first ones."""
        hits: list[Hit] = self.search(query, k, offset)  # type: ignore[attr-defined]
        if (listener := ON_TOOL_SEARCH.get()) is not None:
            listener(query, hits, offset)
        return [PassageText(f"{hit.passage.title} | {hit.passage.text[:_TOLD]}") for hit in hits]


def check_page(k: int, offset: int = 0) -> None:
    """Raise `ValueError` unless ``k`` is positive and ``offset`` is not negative."""
    if k <= 0 or offset < 0:
        raise ValueError(f"k must be positive and offset not negative, got k={k}, offset={offset}")
