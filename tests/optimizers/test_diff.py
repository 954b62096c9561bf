"""What differs between two programs."""

from __future__ import annotations

from pathlib import Path

import dspy

import polyhop
from polyhop.optimizers.artifact import Provenance, Score, dump, read
from polyhop.optimizers.diff import Change, about, diff
from polyhop.programs import Exemplar, ExemplarMemory, PolyHop, Prism


def test_tuned_programs() -> None:
    after = PolyHop()
    after.rounds.value, after.rounds.high = 2, 4
    text = after.gatherer.signature.instructions
    after.gatherer.signature = after.gatherer.signature.with_instructions(f"{text} Keep all.")
    after.planner.demos = [dspy.Example(question="Who?", route="single", sub_questions=["Who?"])] * 2
    own = Exemplar("Who?", ("Who?",), 1)
    after.exemplars.memory = ExemplarMemory([own, *after.exemplars.memory.exemplars[2:]])
    old, new = dump(PolyHop()), dump(after)
    found = diff(old, new)
    assert set(found) == {"rounds", "gatherer", "planner", "exemplars.memory"}
    assert found["rounds"] == Change([f"{old['rounds']['value']} (1..6)"], ["2 (1..4)"])
    assert found["gatherer"] == Change([], ["Keep all."])
    demo = '{"question": "Who?", "route": "single", "sub_questions": ["Who?"]}'
    assert found["planner"] == Change([], [demo, demo])
    assert diff(new, old)["planner"] == Change([demo, demo], [])
    once = {**new, "planner": {**new["planner"], "demos": new["planner"]["demos"][:1]}}
    assert diff(once, new) == {"planner": Change([], [demo])}  # one of two equal demos is new
    memory = found["exemplars.memory"]
    assert (len(memory.removed), len(memory.added), "Who?" in memory.added[0]) == (2, 1, True)
    assert diff(new, new) == {}
    assert diff({"a": {"x": 1}}, {"a": {"x": 2.0}, "b": {"y": 3}}) == {
        "a": Change(["x: 1"], ["x: 2"]),
        "b": Change([], ["y: 3"]),
    }


def test_scores_and_provenance(tmp_path: Path) -> None:
    score = Score(mean=0.5, low=0.4, high=0.6)
    known = Provenance(dataset="hotpotqa", scores={"val": {"f1": score}}, spent={"lm_calls": 9})
    program = Prism(rounds=2)
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))
    paths = [polyhop.save(Prism(), tmp_path / "a"), polyhop.save(program, tmp_path / "b", provenance=known)]
    found = about(*(read(path).manifest for path in paths))
    assert found["provenance.scores.val.f1.mean"] == Change([], ["0.5"])
    assert found["provenance.dataset"] == Change(["null"], ["hotpotqa"])
    assert found["lms.selector"] == Change(["null"], ["openai/gpt-4o-mini"])
    assert not {"program.retriever", "state", "hash"} & set(found)
