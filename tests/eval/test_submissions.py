"""The official files of a run: scored by the authors' rules, they give the numbers of the summary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
import ir_measures
import pytest

from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Evidence, Hit, Passage
from polyhop.engines.models import assign_models
from polyhop.eval.folder import read_manifest
from polyhop.eval.official import SUBMISSIONS, mean_of
from polyhop.eval.official.scores import hotpotqa
from polyhop.eval.questions import Questions
from polyhop.eval.run import evaluate
from polyhop.eval.summary import run_lines
from polyhop.programs import Prism
from polyhop.programs.prediction import conclude
from polyhop.programs.run import Run, running

from .small import read_lines

CONTEXTS = [[f"Title {n}", [f"Sentence {n}.0 is here. ", f"It names answer {n}."]] for n in range(4)]

IR: Any = ir_measures  # partly untyped


class Reader(dspy.Module):
    """Keeps the first two passages of the pool, their second sentences, and answers as told; fails where told."""

    def __init__(self, answer: str = "answer 1", broken: str = "nothing", passages: Sequence[Passage] = ()) -> None:
        super().__init__()
        self.answer, self.broken, self.passages = answer, broken, tuple(passages)

    def forward(self, question: str, pool: Sequence[Passage] | None = None) -> dspy.Prediction:
        if self.broken in question:
            raise ValueError("broken")
        passages = list(pool or self.passages)
        hits = [Hit(passage, 1.0, rank) for rank, passage in enumerate(passages, 1)]
        evidence = [Evidence(passage, len(passage.sentences) - 1) for passage in passages[:2]]
        with running(Run(seen=hits)):
            return conclude(self.answer, 1.0, evidence=evidence, stop="done")


def write(path: Path, records: Any) -> str:
    path.write_text(json.dumps(records), encoding="utf-8")
    return str(path)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def hotpotqa_record(n: int) -> dict[str, Any]:
    return {
        "_id": f"h{n}",
        "question": f"Question {n}?",
        "answer": f"answer {n}",
        "type": "bridge" if n % 2 else "comparison",
        "level": "hard",
        "context": CONTEXTS,
        "supporting_facts": [[f"Title {n}", 1], ["Title 0", 0]],
    }


def test_hotpotqa(tmp_path: Path) -> None:
    records = [hotpotqa_record(n) for n in range(4)]
    questions = Questions("hotpotqa", write(tmp_path / "dev.json", records))
    summary = evaluate(Reader(broken="3"), questions, tmp_path / "run", manifest=None)
    file = json.loads((tmp_path / "run" / "hotpotqa_predictions.json").read_text())
    predictions = {id: {"answer": text, "sp": file["sp"][id]} for id, text in file["answer"].items()}
    assert set(predictions) == {"h0", "h1", "h2"}
    assert predictions["h1"] == {"answer": "answer 1", "sp": [["Title 0", 1], ["Title 1", 1]]}
    gold = [([record["answer"]], [(t, s) for t, s in record["supporting_facts"]]) for record in records]
    pairs = [(predictions.get(record["_id"], {}), answers) for record, answers in zip(records, gold, strict=True)]
    official = mean_of(hotpotqa)(pairs)
    assert summary["official"] == official
    ours = summary["metrics"]
    names = {"answer_em": "em", "answer_f1": "f1", "fact_f1": "sp_f1", "joint_f1": "joint_f1"}
    names |= {"fact_precision": "sp_prec", "fact_recall": "sp_recall"}
    assert {name: ours[name] for name in names} == pytest.approx({name: official[o] for name, o in names.items()})
    assert summary["counts"]["failed"] == 1


def test_two_wiki_gives_no_support_numbers_where_the_gold_sentences_are_not_known(tmp_path: Path) -> None:
    contexts = {**hotpotqa_record(1), "evidences": [["a", "b", "c"]]}
    del contexts["level"]
    summary = evaluate(Reader(), Questions("2wiki", write(tmp_path / "a.json", [contexts])), tmp_path / "a")
    assert summary["official"]["sp_f1"] == 50.0
    assert {summary["official"][name] for name in ("evi_em", "evi_f1", "joint_f1")} == {"not applicable"}  # no triples
    assert json.loads((tmp_path / "a" / "2wiki_predictions.json").read_text())["evidence"] == {}

    titles = {"_id": "o", "question": "q?", "answer": "answer 1", "supporting_titles": ["Title 0"]}
    questions = Questions("2wiki", write(tmp_path / "b.json", [titles]), setting="open")
    summary = evaluate(Reader(passages=[Passage.of("Title 0", "Some text.")]), questions)
    assert set(summary["official"]) == {"em", "f1", "prec", "recall"}
    assert summary["metrics"]["passage_recall@5"] == 1.0
    assert "fact_f1" not in summary["metrics"]


def test_two_wiki_accepts_the_official_aliases(tmp_path: Path) -> None:
    """Of the answer's entity, in every metric; the script takes demonyms as well."""
    record = {**hotpotqa_record(1), "answer": "United States of Example", "answer_id": "Q7"}
    del record["level"]
    names = [{"Q_id": "Q7", "aliases": ["Answer, 1"], "demonyms": ["Exampler"]}, {"Q_id": "Q8", "aliases": ["nothing"]}]
    file, path = tmp_path / "id_aliases.json", write(tmp_path / "a.json", [record])
    file.write_text("".join(f"{json.dumps({'demonyms': [], **entity})}\n" for entity in names))
    for aliases, right in ((None, 0), (file, 1)):
        summary = evaluate(Reader(), Questions("2wiki", path, aliases=aliases), tmp_path / str(right))
        assert (summary["metrics"]["answer_em"], summary["official"]["em"]) == (right, 100 * right)
    assert read_manifest(tmp_path / "1").questions.aliases == "id_aliases.json"


def musique_record(n: int, answerable: bool = True) -> dict[str, Any]:
    paragraphs = [
        {"idx": 7 + i, "title": "Same", "paragraph_text": f"Text {i}.", "is_supporting": i in (0, 2)} for i in range(4)
    ]
    answers = {"answer": "answer 1", "answer_aliases": [], "answerable": answerable, "question_decomposition": []}
    return {"id": f"2hop__{n}", "question": f"Question {n}?", "paragraphs": paragraphs, **answers}


def test_musique(tmp_path: Path) -> None:
    questions = Questions("musique", write(tmp_path / "dev.json", [musique_record(n) for n in range(2)]))
    summary = evaluate(Reader(broken="1"), questions, tmp_path / "run")
    first, second = lines(tmp_path / "run" / "musique_predictions.jsonl")
    predicted = {"predicted_answer": "answer 1", "predicted_support_idxs": [7, 8], "predicted_answerable": True}
    assert first == {"id": "2hop__0", **predicted}
    assert (second["id"], second["predicted_answer"], second["predicted_support_idxs"]) == ("2hop__1", "", [])
    # Of one question half right, of the other nothing.
    assert summary["official"] == {"answer_f1": 0.5, "answer_em": 0.5, "support_f1": 0.25}
    assert summary["metrics"]["evidence_f1"] == 0.25
    half = write(tmp_path / "half.json", [musique_record(0), musique_record(1, answerable=False)])
    summary = evaluate(Reader(answer="unknown"), Questions("musique", half))
    assert "every id must occur twice" in summary["official"]["none"]
    assert summary["metrics"]["answer_em"] == 0.5  # "unknown" is right about the unanswerable one


def test_multihop_rag(tmp_path: Path) -> None:
    facts = [{"title": "News", "fact": "It rained  today."}, {"title": "More", "fact": "Not there."}]
    records = [
        {"query": "Which?", "answer": "Yes", "question_type": "comparison_query", "evidence_list": facts},
        {"query": "What?", "answer": "Insufficient information.", "question_type": "null_query", "evidence_list": []},
    ]
    passages = [Passage.of("Other", "Nothing."), Passage.of("News", "First. It rained today. Last.")]
    questions = Questions("multihoprag", write(tmp_path / "dev.json", records), setting="open")
    summary = evaluate(Reader(answer="unknown", passages=passages), questions, tmp_path / "run")
    assert (summary["official"]["Hits@4"], summary["official"]["MRR@10"]) == (1.0, 0.5)
    assert summary["official"]["answer_em"] == summary["metrics"]["answer_em"] == 0.5
    assert summary["metrics"]["passage_recall@2"] == 0.5
    answers = json.loads((tmp_path / "run" / "multihoprag_answers.json").read_text())
    assert [answer["model_answer"] for answer in answers] == ["Insufficient information."] * 2
    first, _ = json.loads((tmp_path / "run" / "multihoprag_retrieval.json").read_text())
    assert first["retrieval_list"] == [{"text": "Other\nNothing."}, {"text": "News\nFirst. It rained today. Last."}]
    assert first["gold_list"] == [{"fact": "It rained  today."}, {"fact": "Not there."}]


HOTPOTQA = [
    {"id": "1", "answer": "André", "sp": [('Title "x"', 0)]},
    {"id": "2", "answer": ""},
    {"id": "3", "answer": None, "sp": []},
]
SECTIONS = {"answer": {"1": "André", "2": ""}, "sp": {"1": [['Title "x"', 0]], "3": []}}


@pytest.mark.parametrize(
    ("dataset", "predictions", "written"),
    [
        ("hotpotqa", HOTPOTQA, [SECTIONS]),
        ("2wiki", HOTPOTQA, [{**SECTIONS, "evidence": {}}]),
        (
            "nq",
            [{"id": "who?", "answer": "me\n"}, {"id": "why?", "answer": None}],
            [{"question": "who?", "prediction": "me\n"}],
        ),
    ],
)
def test_files_are_ascii_and_leave_out_what_is_missing(
    dataset: str, predictions: list[Any], written: list[Any], tmp_path: Path
) -> None:
    SUBMISSIONS[dataset].write(tmp_path, [(prediction, ()) for prediction in predictions])
    (file,) = tmp_path.iterdir()
    assert [json.loads(line) for line in file.read_bytes().decode("ascii").splitlines()] == written


PARAGRAPH = {"context": "It names answer 1.", "qas": [{"id": "s", "question": "q?", "answers": [{"text": "no"}]}]}


@pytest.mark.parametrize(
    ("dataset", "records", "official", "file"),
    [
        (
            "popqa",
            [
                {"id": 1, "question": "q?", "possible_answers": ["Answer 1"]},
                {"id": 2, "question": "r?", "possible_answers": ["y"]},
            ],
            {"accuracy": 0.5},
            None,
        ),
        ("bamboogle", [{"Question": "q?", "Answer": "answer 1"}], {"exact_match": 100.0, "f1": 100.0}, None),
        (
            "hover",
            [{"uid": "v", "claim": "c", "supporting_facts": [["T", 0]], "label": "SUPPORTED", "num_hops": 2}],
            {"accuracy": 0.0, "sp_em": 0.0, "sp_f1": 0.0, "hover_score": 0.0},  # "answer 1" is no verdict
            None,
        ),
        (
            "nq",
            [{"question": "q?", "answer": ["answer 1", "x"]}, {"question": "r?", "answer": ["y"]}],
            {"accuracy": 0.5, "exact_match": 0.5, "f1": 0.5},
            ("nq_predictions.jsonl", [{"question": each, "prediction": "answer 1"} for each in ("q?", "r?")]),
        ),
        (
            "triviaqa",
            [{"id": "t", "question": "q?", "golden_answers": ["Answer 1"]}],
            {"exact_match": 100.0, "f1": 100.0},
            ("triviaqa_predictions.json", [{"t": "answer 1"}]),
        ),
        (
            "squad",
            {"version": "1.1", "data": [{"title": "T", "paragraphs": [PARAGRAPH]}]},
            {"exact_match": 0.0, "f1": 0.0},
            ("squad_predictions.json", [{"s": "answer 1"}]),
        ),
    ],
)
def test_single_hop_sets(
    dataset: str, records: Any, official: dict[str, float], file: tuple[str, list[Any]] | None, tmp_path: Path
) -> None:
    questions = Questions(dataset, write(tmp_path / "dev.json", records), setting="open")
    assert evaluate(Reader(), questions, tmp_path / "run")["official"] == official
    if file:
        assert lines(tmp_path / "run" / file[0]) == file[1]


def test_trec_files_give_the_rank_metrics_of_the_summary(tmp_path: Path) -> None:
    records = [hotpotqa_record(n) for n in range(4)]
    summary = evaluate(Reader(), Questions("hotpotqa", write(tmp_path / "dev.json", records)), tmp_path / "run")
    qrels = list(IR.read_trec_qrels(str(tmp_path / "run" / "qrels.trec")))
    ranked = list(IR.read_trec_run(str(tmp_path / "run" / "run.trec")))
    names = ("R@2", "R@5", "R@10", "R@20", "RR", "nDCG@10")
    aggregated = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in names], qrels, ranked)
    measured = {str(measure): value for measure, value in aggregated.items()}
    ours = summary["metrics"]
    assert measured == pytest.approx(
        {
            **{f"R@{k}": ours[f"passage_recall@{k}"] for k in (2, 5, 10, 20)},
            "RR": ours["passage_mrr"],
            "nDCG@10": ours["passage_ndcg@10"],
        }
    )


@pytest.mark.parametrize(
    ("dataset", "name", "official"),
    [
        ("hotpotqa", "hotpotqa_dev_distractor.json.gz", ("em", "f1", "sp_f1", "joint_f1")),
        ("2wiki", "2wiki_dev_with_context.json.gz", ("em", "f1", "sp_f1", None)),
        ("musique", "musique_ans_dev.jsonl.gz", ("answer_em", None, None, None)),
    ],
)
def test_real_questions(
    dataset: str, name: str, official: tuple[str | None, ...], tmp_path: Path, shared_data: Path
) -> None:
    """Our shared definitions and the authors' own agree where they should."""
    program = Prism()
    assign_models(program, ["lexical"])
    summary = evaluate(program, Questions(dataset, str(shared_data / name), limit=6, seed=1), tmp_path / "run")
    assert summary["counts"] == {"questions": 6, "answered": 6, "failed": 0, "skipped": 0, "gold_not_found": 0}
    unit = 100 if dataset == "2wiki" else 1
    for ours, theirs in zip(("answer_em", "answer_f1", "fact_f1", "joint_f1"), official, strict=True):
        if theirs:
            assert summary["official"][theirs] == pytest.approx(unit * summary["metrics"][ours], abs=unit * 6e-4)
    assert all(line["gold"] for line in read_lines(tmp_path / "run"))


def test_lines() -> None:
    assert list(run_lines("q 1", ["b", "a%\tx", "b"])) == [
        "q%201 Q0 b 1 2 polyhop\n",
        "q%201 Q0 a%25%09x 2 1 polyhop\n",
    ]
    assert list(run_lines("q", ["\ud800"])) == ["q Q0 %ED%A0%80 1 1 polyhop\n"]
    with pytest.raises(PolyhopError, match="empty id"):
        list(run_lines("q", ["a", ""]))
