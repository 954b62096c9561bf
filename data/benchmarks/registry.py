"""The seven benchmarks, and questions of one's own, by name."""

from __future__ import annotations

from ..errors import DatasetError
from .benchmark import Benchmark
from .hotpotqa import HOTPOTQA
from .multihoprag import MULTIHOPRAG
from .musique import MUSIQUE
from .nq import NQ
from .own import OWN
from .record import Record
from .squad import SQUAD
from .triviaqa import TRIVIAQA
from .twowiki import TWOWIKI

SAMPLE = "sample"
BENCHMARKS = {item.name: item for item in (HOTPOTQA, TWOWIKI, MUSIQUE, MULTIHOPRAG, NQ, SQUAD, TRIVIAQA, OWN)}


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of that name or alias; capitals, spaces, hyphens and underscores do not matter.

    Raises:
        DatasetError: there is none; the message lists those that there are.
    """
    for benchmark in BENCHMARKS.values():
        if _folded(name) in {_folded(known) for known in (benchmark.name, benchmark.title, *benchmark.aliases)}:
            return benchmark
    raise DatasetError(f"There is no benchmark {name!r}. Known are {', '.join(BENCHMARKS)} and {SAMPLE}.")


def recognise(record: Record) -> list[Benchmark]:
    """The benchmarks that a record may be of, judged by its fields; what has those of none may be one's own."""
    likely = [each for each in BENCHMARKS.values() if each.recognises(record)]
    plain = all(each in (NQ, OWN) for each in likely)
    return [each for each in likely if plain or each is not OWN]


def _folded(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
