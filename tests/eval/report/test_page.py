"""The page: its sections, its escaping, and the data of the question browser."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode

from polyhop.eval.report.browser import CHUNK, Chunks


def test_chunks_hold_what_was_added() -> None:
    details = [{"n": n, "text": "</script>" * n} for n in range(2 * CHUNK + 1)]
    with Chunks() as chunks:
        for each in details[:-1]:
            chunks.add(each)
        chunks.close()
        chunks.close()
        chunks.add(details[-1])
        chunks.close()
        packed = list(chunks)
        assert len(chunks) == len(packed) == 3
    assert not any("<" in chunk for chunk in packed)
    assert [each for chunk in packed for each in json.loads(gzip.decompress(b64decode(chunk)))] == details
