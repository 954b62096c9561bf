"""What measures and trains: small runs of each script."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyhop.bench import ablation, benchmark


@pytest.mark.slow
def test_the_benchmark_of_retrieval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(
        ["--passages", "300", "100", "--questions", "10", "--out", str(tmp_path), "--systems", "bm25", "chain"]
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["100 bm25", "100 chain", "300 bm25", "300 chain"]
    for line in lines:
        assert float(line.partition("all gold@5 ")[2].split()[0]) > 0.5  # real work was measured


@pytest.mark.slow
def test_the_ablation(capsys: pytest.CaptureFixture[str]) -> None:
    ablation.main(["sample", "--limit", "8"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 3 + len(ablation.FEATURES)
    assert lines[3].startswith("| everything | ")
