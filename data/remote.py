"""An index on another machine, behind `polyhop serve`, as a retriever.

    program = PolyHop(RemoteIndex("http://search.example:8080"))

The server follows the chain of evidence, so that one request is one search.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Self

import httpx

from .errors import IndexFault
from .passages import Hit, Passage, Reason, SearchTool, Shared, check_page, search_each

_SECONDS = 60.0
_MOST = 32 << 20  # bytes of a reply


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
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=self.path, headers=headers, timeout=_SECONDS)
        self._size = int(self._asked("GET", "/index")["passages"])

    k1 = property(lambda self: 0.9 if self._k1 is None else self._k1)
    b = property(lambda self: 0.4 if self._b is None else self._b)

    def __len__(self) -> int:
        return self._size

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        check_page(k, offset)
        bm25 = {"k1": self._k1, "b": self._b}
        asked = {"query": query, "k": k, "offset": offset, "retriever": self.kind, **bm25}
        try:
            return [_hit(record) for record in self._asked("POST", "/search", json=asked)["hits"]]
        except (KeyError, TypeError, ValueError) as error:
            raise IndexFault(f"{self.path} replied with something else than passages") from error

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return search_each(self.search, queries, k)

    def passages(self, ids: Iterable[str]) -> list[Passage]:
        """The passages with these ids, in their order."""
        return [Passage.from_record(self._asked("GET", "/read", params={"id": id})) for id in ids]

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

    def _asked(self, method: str, path: str, **request: Any) -> Any:
        try:
            with self._client.stream(method, path, **request) as reply:
                body = bytearray()
                for chunk in reply.iter_bytes():
                    body += chunk
                    if len(body) > _MOST:
                        raise IndexFault(f"{self.path} replied with more than {_MOST >> 20} MB")
            answer = httpx.Response(reply.status_code, content=bytes(body)).json()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise IndexFault(f"the index {self.path} cannot be reached ({error}): is polyhop serve running?") from error
        except ValueError as error:
            raise IndexFault(f"{self.path} is not a polyhop server") from error
        if reply.is_error or not isinstance(answer, dict):
            told = answer.get("error") if isinstance(answer, dict) else None
            message = told.get("message") if isinstance(told, dict) else f"status {reply.status_code}"
            advice = " (set POLYHOP_TOKEN)" if reply.status_code == 401 else ""
            raise IndexFault(f"the index {self.path} refuses: {message}{advice}")
        return answer

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.path, self.kind, self._token, self._k1, self._b)

    def __repr__(self) -> str:
        return f"RemoteIndex({self.path!r}, {self.kind!r})"


def _hit(record: Any) -> Hit:
    reason = record["reason"]
    found = reason and Reason(reason["via"], reason["name"], reason["source"], tuple(reason["words"]))
    return Hit(Passage.from_record(record["passage"]), float(record["score"]), int(record["rank"]), found)
