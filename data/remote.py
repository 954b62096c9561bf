"""An index on another machine, behind `polyhop serve`, as a retriever.

    program = PolyHop(RemoteIndex("http://search.example:8080"))

The server follows the chain of evidence, so that one request is one search.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Annotated, Any, Literal, Self

import httpx
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, TypeAdapter

from .errors import IndexFault
from .passages import Hit, Passage, Reason, SearchTool, Shared, check_page, search_each
from .text import clean, plain

_SECONDS = 60.0  # for a reply, and between two parts of it
_MOST = 32 << 20  # bytes of a reply
_MOST_OBJECTS = 200_000  # of a reply: each may take a hundred times its bytes
_LONGEST_MESSAGE = 300  # characters


class RemoteIndex(SearchTool, Shared):
    """A thread-safe `Retriever` over the index of a server.

    Args:
        address: ``http://host:port``.
        retriever: How the server searches: "chain" or "bm25".
        token: The server's token; by default ``POLYHOP_TOKEN`` of the environment.
        k1, b: Parameters of BM25; None for the server's.

    Raises:
        IndexFault: the server cannot be reached, refuses the token, or has nothing to search.
    """

    def __init__(
        self,
        address: str,
        retriever: str = "chain",
        token: str | None = None,
        k1: float | None = None,
        b: float | None = None,
    ) -> None:
        self.path = address.rstrip("/")
        self.kind, self._token, self._k1, self._b = retriever, token, k1, b
        token = token or os.environ.get("POLYHOP_TOKEN")
        headers = {"accept-encoding": "identity"} | ({"authorization": f"Bearer {token}"} if token else {})
        try:
            self._client = httpx.Client(base_url=self.path, headers=headers, timeout=_SECONDS)
        except (httpx.InvalidURL, ValueError) as error:
            raise IndexFault(f"{plain(self.path)[:200]} is not the address of a server: {error}") from error
        self._size: int = self._told("GET", "/index", _INDEX).passages

    k1 = property(lambda self: 0.9 if self._k1 is None else self._k1)
    b = property(lambda self: 0.4 if self._b is None else self._b)

    def __len__(self) -> int:
        return self._size

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        check_page(k, offset)
        bm25 = {"k1": self._k1, "b": self._b}
        asked = {"query": query, "k": k, "offset": offset, "retriever": self.kind, **bm25}
        hits = self._told("POST", "/search", _HITS, json=asked).hits
        if len(hits) > k:
            raise IndexFault(f"{self.path} replied with {len(hits):,} passages instead of {k:,}")
        return [hit.of(self._passage(hit.passage)) for hit in hits]

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return search_each(self.search, queries, k)

    def passages(self, ids: Iterable[str]) -> list[Passage]:
        """The passages with these ids, in their order."""
        return [self._passage(self._told("GET", "/read", _RECORD, params={"id": id})) for id in ids]

    def following(self, retriever: str) -> RemoteIndex:
        """The same index, searched by another retriever of the server."""
        return self._view(kind=retriever)

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> RemoteIndex:
        """A view with other parameters."""
        known = {name: value for name, value in (("_k1", k1), ("_b", b)) if value is not None}
        unchanged = (k1, b) == (self.k1, self.b)  # the server's own
        return self if unchanged else self._view(**known)

    def _view(self, **changes: Any) -> RemoteIndex:
        view = RemoteIndex.__new__(RemoteIndex)
        view.__dict__.update(self.__dict__, **changes)
        return view

    def _told(self, method: str, path: str, form: TypeAdapter[Any], **request: Any) -> Any:
        answer = self._asked(method, path, **request)
        try:
            return form.validate_python(answer)
        except ValueError as error:
            raise IndexFault(f"{self.path} replied with something else than passages") from error

    def _passage(self, record: dict[str, Any]) -> Passage:
        try:
            return Passage.from_record(record)
        except ValueError as error:
            raise IndexFault(f"{self.path} replied with something else than passages") from error

    def _asked(self, method: str, path: str, **request: Any) -> Any:
        try:
            with self._client.stream(method, path, **request) as reply:
                body = self._read(reply)
            answer = httpx.Response(reply.status_code, content=body).json()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise IndexFault(f"the index {self.path} cannot be reached ({error}): is polyhop serve running?") from error
        except (ValueError, RecursionError) as error:
            raise IndexFault(f"{self.path} is not a polyhop server") from error
        if not reply.is_success or not isinstance(answer, dict):
            told = answer.get("error") if isinstance(answer, dict) else None
            message = told.get("message") if isinstance(told, dict) else f"status {reply.status_code}"
            advice = " (set POLYHOP_TOKEN)" if reply.status_code == 401 else ""
            raise IndexFault(f"the index {self.path} refuses: {plain(str(message))[:_LONGEST_MESSAGE]}{advice}")
        return answer

    def _read(self, reply: httpx.Response) -> bytes:
        """The body of a reply, within bounds."""
        until = monotonic() + _SECONDS
        if reply.headers.get("content-encoding", "identity") != "identity":
            raise IndexFault(f"{self.path} compresses its replies, which was not asked for")
        body, objects = bytearray(), 0
        for chunk in reply.iter_raw():
            body += chunk
            objects += chunk.count(b"{") + chunk.count(b"[")
            if len(body) > _MOST or objects > _MOST_OBJECTS:
                raise IndexFault(f"{self.path} replied with more than {_MOST >> 20} MB or {_MOST_OBJECTS:,} objects")
            if monotonic() > until:
                raise IndexFault(f"{self.path} took more than {_SECONDS:g} s to reply")
        return bytes(body)

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.path, self.kind, self._token, self._k1, self._b)

    def __repr__(self) -> str:
        return f"RemoteIndex({self.path!r}, {self.kind!r})"


# --- replies ---------------------------------------------------------------------------------------------------------


_Text = Annotated[str, AfterValidator(clean)]


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class _Index(_Reply):
    passages: NonNegativeInt


class _Reason(_Reply):
    via: Literal["words", "named", "link", "back", "shared"]
    name: _Text
    source: _Text | None
    words: list[_Text]


class _Hit(_Reply):
    passage: dict[str, Any]
    score: Annotated[float, Field(allow_inf_nan=False)]
    rank: PositiveInt
    reason: _Reason | None

    def of(self, passage: Passage) -> Hit:
        why = self.reason
        reason = Reason(why.via, why.name, why.source, tuple(why.words)) if why else None
        return Hit(passage, self.score, self.rank, reason)


class _Hits(_Reply):
    hits: list[_Hit]


_INDEX, _HITS, _RECORD = TypeAdapter(_Index), TypeAdapter(_Hits), TypeAdapter(dict[str, Any])
