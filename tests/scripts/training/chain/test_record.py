"""The record of the tuning run and what is shipped are the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files

from polyhop.data.chain import ChainWeights


def test_the_shipped_weights_are_those_of_the_record() -> None:
    record = json.loads((files("polyhop.scripts.training.chain") / "weights.json").read_text())
    # Chosen after the run: two on dev questions, the rest, which Wikipedia does not use, on documentation.
    later = {"origin", "second", "hyperlink", "linked", "listing", "spread", "unnamed"}
    unused = {"similarity", "later"} | later
    tuned = {name: value for name, value in record["weights"].items() if name not in unused}
    assert tuned == {name: value for name, value in asdict(ChainWeights()).items() if name not in unused}
