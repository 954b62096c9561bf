"""TREC run and qrels files.

White space and ``%`` in ids are percent-encoded, since white space separates the fields; so are lone surrogates, which
UTF-8 cannot encode.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from ..data.errors import PolyhopError
from .folder import replacing


def write_run(path: Path, rankings: Iterable[tuple[str, Sequence[str]]], tag: str) -> None:
    """Write the `run_lines` of (question id, passage ids best first)."""
    with replacing(path) as file:
        for question, ranking in rankings:
            file.writelines(run_lines(question, ranking, tag))


def run_lines(question: str, ranking: Sequence[str], tag: str) -> Iterator[str]:
    """``question Q0 passage rank score tag`` lines.

    trec_eval ignores the order of the lines and the rank, and breaks ties by passage id; so the score counts down to 1.
    A repeated passage keeps its first rank.
    """
    passages = dict.fromkeys(ranking)
    for rank, passage in enumerate(passages, 1):
        yield f"{_safe(question)} Q0 {_safe(passage)} {rank} {len(passages) - rank + 1} {_safe(tag)}\n"


def write_qrels(path: Path, gold: Iterable[tuple[str, Collection[str]]]) -> None:
    """Write ``question 0 passage 1`` lines from (question id, ids of its gold passages)."""
    with replacing(path) as file:
        for question, passages in gold:
            file.writelines(f"{_safe(question)} 0 {_safe(passage)} 1\n" for passage in dict.fromkeys(passages))


def _safe(id: str) -> str:
    if not id:
        raise PolyhopError("A question or a passage of the run has an empty id, which TREC files cannot have.")
    return re.sub(r"[\s%\ud800-\udfff]", lambda match: quote(match.group(), errors="surrogatepass"), id)
