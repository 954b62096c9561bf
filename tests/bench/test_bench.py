"""What measures and trains: each script can be imported and says what it does; small runs of what measures retrieval,
over a generated corpus that is the same on every machine."""

from __future__ import annotations

from hashlib import sha256
from importlib import import_module
from itertools import islice
from pathlib import Path

import pytest

from polyhop.bench import ablation, benchmark
from polyhop.bench.generated import GeneratedCorpus

SCRIPTS = sorted(path.stem for path in Path(benchmark.__file__).parent.glob("*.py") if path.stem != "generated")


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        import_module(f"polyhop.bench.{name}").main(["--help"])
    assert ended.value.code == 0
    assert f"python -m bench.{name}" in capsys.readouterr().out


def test_the_corpus_is_the_same_everywhere() -> None:
    corpus = GeneratedCorpus(3_000)
    text = repr([*islice(corpus, 100), *corpus.questions(20)])
    assert sha256(text.encode()).hexdigest()[:12] == "b99553e1aeb7"


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
