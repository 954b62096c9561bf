"""The vectors of an index: a file of float16 rows beside the Lucene index, row n for Lucene's document n.

    embed_index("indexes/hotpotqa")  # once; as does `polyhop index --dense indexes/hotpotqa`

They are written batch by batch, so that embedding needs no memory that grows with the corpus, and a JSON file beside
them, the last to be written, says that they are complete.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .encoder import Encoder, MiniLM, encode
from .errors import IndexFault
from .lucene.bm25 import open_lucene
from .lucene.index import locked, write_faults
from .lucene.layout import LUCENE, Manifest
from .passages import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .encoder import Floats

_ROW = "<f2"  # how a number is stored: float16, little-endian; it costs no rank and halves the file


@dataclass(frozen=True)
class Vectors:
    """What is in a file of vectors, as the JSON file beside it says.

    Attributes:
        encoder: The encoder's name.
        dimension: Numbers a vector.
        rows: Vectors, one for each document of the Lucene index.
    """

    encoder: str
    dimension: int
    rows: int

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return 2 * self.dimension * self.rows


def embed_index(
    index_path: Path | str,
    encoder: Encoder | None = None,
    batch: int = 256,
    on_progress: Callable[[int, int], None] = lambda done, rows: None,
) -> Vectors:
    """Add vectors to the index in a folder. What a stopped run has written is kept: the next one goes on from there.

    Args:
        index_path: The folder of the index.
        encoder: By default `MiniLM`.
        batch: Passages encoded and written at a time.
        on_progress: Called with the number of passages embedded so far, earlier runs included, and of all.

    Raises:
        IndexFault: there is no finished index, another process is writing to it, or the disk is full.
        PolyhopError: the default encoder's packages or weights are not there.
        ValueError: ``batch`` is not positive, or the encoder does not return one finite vector a text.
    """
    if batch < 1:
        raise ValueError(f"batch must be positive, got {batch}")
    path, encoder = Path(index_path), encoder or MiniLM()
    Manifest.read(path)  # is there an index at all? A lock would be written otherwise
    with locked(path), closing(open_lucene(path)) as lucene:
        rows, file = lucene.manifest.passages, _file(path, lucene.manifest, encoder.name)
        try:
            vectors = _finished(path, lucene.manifest, encoder.name)
        except IndexFault:
            first = _embed(encoder, lucene.stored([0]))
            vectors = Vectors(encoder.name, first.shape[1], rows)
        else:
            on_progress(rows, rows)
            return vectors
        with write_faults(path):
            done = _resume(file, vectors, first, batch)
        while done < rows:
            on_progress(done, rows)
            embedded = _embed(encoder, lucene.stored(range(done, min(done + batch, rows))))
            with write_faults(path), file.open("ab") as out:
                out.write(embedded.astype(_ROW).tobytes())
            done += len(embedded)
        with write_faults(path):
            _commit(file, vectors)
        on_progress(rows, rows)
    return vectors


def _embed(encoder: Encoder, passages: Sequence[Passage]) -> Floats:
    # MiniLM was trained on running text, and a title that ends like a sentence reads as part of it.
    texts = [f"{passage.title}. {passage.text}" if passage.title else passage.text for passage in passages]
    return encode(encoder, texts)


def read_vectors(index: Path, manifest: Manifest, encoder: str) -> tuple[Vectors, NDArray[np.float16]]:
    """What an index has of an encoder, and the rows as an array of float16, mapped into memory.

    Raises:
        IndexFault: nothing, not all, or something else; the message says what to do.
    """
    import numpy as np

    vectors = _finished(index, manifest, encoder)
    shape = (vectors.rows, vectors.dimension)
    return vectors, np.asarray(np.memmap(_file(index, manifest, encoder), _ROW, "r", shape=shape))


def _resume(file: Path, vectors: Vectors, first: Floats, batch: int) -> int:
    """How many rows of a stopped run can stay: its whole batches, if they come from the same encoder."""
    import numpy as np

    if file.with_suffix(".json").exists():  # it was finished, and damaged since: nothing of it is sure
        file.with_suffix(".json").unlink()
        file.unlink(missing_ok=True)
    width = 2 * vectors.dimension
    with file.open("a+b") as out:
        whole = out.seek(0, os.SEEK_END) // width // batch * batch
        out.seek(0)
        # An encoder's numbers vary with the batch and the machine, but not in the second decimal.
        same = whole > 0 and np.allclose(np.frombuffer(out.read(width), _ROW), first[0], atol=0.01)
        done = min(whole, vectors.rows) if same else 0
        out.truncate(done * width)
    return done


def _commit(file: Path, vectors: Vectors) -> None:
    """The JSON file says that all rows are there, so it comes last, and in one step."""
    unfinished = file.with_suffix(".json.part")
    unfinished.write_text(json.dumps(asdict(vectors)) + "\n", "utf-8")
    for written in (file, unfinished):
        with written.open("r+b") as out:
            os.fsync(out.fileno())
    os.replace(unfinished, file.with_suffix(".json"))


def _file(index: Path, manifest: Manifest, encoder: str) -> Path:
    short = re.sub(r"[^A-Za-z0-9]+", "-", encoder)[:100]
    return index / f"{_prefix(manifest)}{short}.f16"


def _prefix(manifest: Manifest) -> str:
    """How the vectors of a build are called: a rebuilt index has none at first."""
    return f"vectors-{manifest.lucene_folder.removeprefix(LUCENE)}-"


def _finished(index: Path, manifest: Manifest, encoder: str) -> Vectors:
    """What the index has of an encoder.

    Raises:
        IndexFault: nothing, not all, or something else; the message says what to do.
    """
    add = f"polyhop index --dense {index}" if encoder == MiniLM.name else f"embed_index({str(index)!r}, encoder)"
    file = _file(index, manifest, encoder)
    try:
        vectors = Vectors(**json.loads(file.with_suffix(".json").read_bytes()))
        size = file.stat().st_size
    except FileNotFoundError:
        raise IndexFault(f"{_what_is_there(index, manifest, file, encoder)}: {add}") from None
    except (OSError, ValueError, TypeError) as error:
        raise IndexFault(f"The vectors of the index {index} cannot be read: {error}. Make them again: {add}") from error
    if (vectors.encoder, vectors.rows) != (encoder, manifest.passages):
        raise IndexFault(
            f"{file} has {vectors.rows} vectors of {vectors.encoder}, where {manifest.passages} of {encoder} are "
            f"needed. Make them: {add}"
        )
    if size != vectors.size:
        raise IndexFault(f"{file} is damaged: it has {size:,} of {vectors.size:,} bytes. Make it again: {add}")
    return vectors


def _what_is_there(index: Path, manifest: Manifest, file: Path, encoder: str) -> str:
    if file.exists():
        return f"The vectors of the index {index} are not finished: the run was stopped or is still going. Go on"
    if others := sorted(index.glob(f"{_prefix(manifest)}*.json")):
        found = ", ".join(other.stem.removeprefix(_prefix(manifest)) for other in others)
        return f"The index {index} has vectors of another encoder ({found}), not of {encoder}. Add them"
    return f"The index {index} has no vectors. Add them"
