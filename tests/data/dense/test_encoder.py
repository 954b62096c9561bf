"""Models of sentence-transformers: any name or folder, not installed, and broken."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from polyhop.data.dense import DEFAULT_MODEL, DenseIndex, SentenceEncoder, embed_index
from polyhop.data.errors import PolyhopError

from .hashing import Hashing, build, file

INSTALLED = pytest.mark.skipif(not find_spec("sentence_transformers"), reason="the extra `dense` is not installed")


def test_the_encoder_is_that_of_the_vectors(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.data.dense.find_spec", lambda name: True)
    assert DenseIndex(own).encoder.name == "tests/hashing"
    embed_index(own, Hashing("tests/other"))
    with pytest.raises(PolyhopError, match="has vectors of tests/hashing, tests/other"):
        DenseIndex(own)
    embed_index(own, Hashing(DEFAULT_MODEL))
    assert DenseIndex(own).encoder.name == DEFAULT_MODEL


@INSTALLED
def test_a_model_of_random_weights(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = "[PAD] [UNK] [CLS] [SEP] [MASK] moon river stone castle . tarn".split()
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(words), **size)).save_pretrained(tmp_path / "model")
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "model")

    path = build(tmp_path, [{"id": "a", "text": "moon river"}, {"id": "b", "text": "castle stone tarn"}])
    encoder = SentenceEncoder(str(tmp_path / "model"))
    assert embed_index(path, encoder).dimension == 32
    assert file(path).exists()
    with DenseIndex(path) as index:  # finds the model by the vectors
        assert index.encoder.name == str(tmp_path / "model")
        assert [hit.passage.id for hit in index.search("castle stone tarn", 2)] == ["b", "a"]
        with ThreadPoolExecutor(4) as pool:
            hits = list(pool.map(lambda n: index.search(f"moon {n % 2 * 'tarn'}", 2), range(20)))
        assert hits[:2] * 10 == hits
        assert pickle.loads(pickle.dumps(index)).search("moon", 2) == index.search("moon", 2)
