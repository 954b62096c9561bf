"""The commands, as models: the docstring of each is its help, and each field is an option or an argument.

A command's function has its name, in the file of that name or of a like command, and takes the model.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

from ..app.options import ModelOptions, ProgramOptions
from ..data.languages import AUTO, LANGUAGES
from ..optimizers.settings import Limits, OptimizationSettings, Options, Resources, option

_argument = partial(option, flag="")  # a field that is given without a flag; ``...`` for one that must be given


class IndexOptions(Options):
    """What is searched."""

    index: Path | None = option(
        None,
        "Index made by 'polyhop index', Anserini or Pyserini, a prebuilt one of Pyserini, or a folder that has one; "
        "sample for the sample corpus.  [default: $POLYHOP_INDEX, or that of this folder or one above]",
        "DIR|pyserini:NAME",
    )


class QuestionOptions(Options):
    """The questions of a benchmark or of one's own."""

    dataset: str | None = option(
        None,
        "hotpotqa, 2wiki, musique, multihoprag, nq, squad, triviaqa, hover, frames, bamboogle, popqa, browsecomp-plus; "
        "own, for your own questions; or sample.  [default: recognized from --questions; sample without them]",
        "NAME",
    )
    questions: str | None = option(
        None, "FILE.py:NAME for a list of dspy.Example.  [default: the benchmark on the hub]", "FILE|hub:NAME"
    )
    split: str | None = option(None, "Split of a dataset on the hub or of the sample.  [default for the sample: dev]")


class RunOptions(Resources, Limits):
    """How a program runs over questions."""

    timeout: float | None = option(None, "Seconds per question; a question that takes longer fails.", ge=0.001)
    retry_failed: bool = option(False, "When resuming: execute failed questions again.")

    @property
    def how(self) -> dict[str, Any]:
        """Arguments of `polyhop.eval.run.evaluate`."""
        how: dict[str, Any] = {"threads": self.threads, "executor": self.executor}
        return how | {"timeout": self.timeout, "retry_failed": self.retry_failed}


class JsonOptions(Options):
    """How a result is printed."""

    as_json: bool = option(False, "Print JSON and nothing else, one object on each line.", flag="--json")


class Ask(IndexOptions, ProgramOptions, RunOptions, JsonOptions):
    """Answer a question, with its chain of evidence; or those of a --file.

    With --out, the run is kept in ANSWERS.jsonl.run, as by 'polyhop evaluate --out', and the same command resumes it. A
    failed question has an error and no answer. --threads, --workers, --timeout and --retry-failed are for such runs.
    """

    question: str | None = _argument(None, "The question.", "QUESTION")
    file: str | None = option(
        None, 'Questions, one a line, as text or as {"question": ..., "id": ...}; - is stdin.', "FILE|-"
    )
    out: Path | None = option(None, "With --file: one JSON object per question; resumes.", "ANSWERS.jsonl")
    program: str = option(
        "polyhop",
        "A program, the folder of an artifact, or any DSPy program as FILE.py:NAME; with =STATE.json what DSPy saved "
        "of it; FILE.py:NAME=DIR with the state of an artifact.",
        "NAME|DIR",
    )
    trace: bool = option(False, "Show every step, and the costs by agent.")


class Search(IndexOptions, JsonOptions):
    """Show what a retriever finds, and why; or with --to the chain of links and names between two documents."""

    query: str = _argument(..., "Words to search for, or a question; with --to a document.", "QUERY")
    to: str | None = option(None, "A document by title, id or file: how QUERY, another one, leads to it.", "NAME")
    k: int = option(10, "Hits.", flag="-k", ge=1, le=1000)
    retriever: str = option("chain", "The retriever, as for 'ask'.", "NAME|FILE.py:NAME")
    by: Literal["passage", "document"] = option("passage", "A hit is a passage, or a document.", "passage|document")


class Index(Options):
    """Build a BM25 index of a corpus, or --add, --delete or --update documents of one; --adopt one of Pyserini, add
    --dense vectors to one, or --check one.

    An existing index in DIR is replaced when the new one is complete; an interrupted build leaves it unchanged. An
    interrupted `polyhop index --dense DIR` resumes. Readers see a change at their next search.
    """

    names: tuple[str, ...] = _argument(
        (),
        "Documents (HTML, Markdown, reStructuredText, text, PDF, Word, epub, notebooks, CSV), records (JSON Lines, "
        "plain or gzip; each a 'title' and a 'text' or 'sentences'), folders of these, or a benchmark's questions with "
        "their contexts.  [default: the current folder]",
        "CORPUS...",
    )
    out: Path | None = option(None, "The folder of the index.  [default: .polyhop]", "DIR")
    max_words: int | None = option(None, "Split longer texts at sentences, 0: none.  [default: documents at 120]", ge=0)
    language: str = option(AUTO, f"Of all documents: {' '.join(LANGUAGES)}; auto: told from their text.", "CODE")
    strict: bool = option(False, "Stop at the first bad or duplicate record.")
    dense: bool = option(False, "Add vectors for dense retrieval: to the new index, or to an existing one.")
    encoder: str = option(
        "sentence-transformers/all-MiniLM-L6-v2",
        "With --dense: a model of sentence-transformers, or a folder.",
        "NAME",
    )
    adopt: bool = option(False, "Add what the chain retriever needs to an index of Anserini or Pyserini.")
    add: bool = option(False, "Add files or folders to the index in --out.")
    delete: bool = option(False, "Delete documents, by id or file name, from the index in --out.")
    update: bool = option(False, "Read again what has changed in folders of the index in --out.")
    check: bool = option(False, "Verify the checksums of an existing index.")


class Evaluate(QuestionOptions, ProgramOptions, RunOptions, JsonOptions):
    """Run a program over a benchmark's questions and score it.

    With --out the run is saved: manifest, one record per question, summary, official prediction files. Run the same
    command again to resume an interrupted run. 'polyhop table' runs several programs.
    """

    index: Path | None = option(
        None,
        "Search this index (setting open); sample for the sample corpus.  [default for questions without contexts: "
        "$POLYHOP_INDEX, or that of this folder or one above]",
        "DIR",
    )
    setting: Literal["distractor", "open"] | None = option(
        None, "The questions' own contexts, or an index.  [default: open with --index]", "distractor|open"
    )
    program: str = option("polyhop", "As for 'ask'.", "NAME|DIR")
    metric: tuple[str, ...] = option((), "A metric of your own, or any of DSPy; may be repeated.", "FILE.py:NAME")
    limit: int | None = option(None, "Only the first N questions.", ge=1)
    seed: int | None = option(None, "With --limit: N random questions instead.")
    aliases: Path | None = option(None, "2wiki: the official id_aliases.json, with more names of answers.", "FILE")
    max_failures: int | None = option(None, "Stop after N failed questions; the run can be resumed.", ge=1)
    out: Path | None = option(None, "The folder of the run. An existing run with these settings is resumed.", "RUN")


class Score(QuestionOptions, JsonOptions):
    """Score predictions as those of a program are scored: metrics, intervals, the official evaluators.

    A question without a prediction counts as failed.
    """

    predictions: Path = _argument(
        ...,
        'JSON lines with an id or a question, an answer, and perhaps evidence and a ranking of titles: {"id": "q1", '
        '"answer": "Tarn", "evidence": ["Kestrel Mill", ["berg.md", 0]]}. Also what \'polyhop ask --out\' writes.',
        "FILE",
    )
    index: Path | None = option(None, "The index that has the passages of evidence and gold.", "DIR")
    metric: tuple[str, ...] = option((), "A metric of your own; may be repeated.", "FILE.py:NAME")
    out: Path | None = option(None, "Keep the run, for 'polyhop compare' and 'polyhop report'.", "RUN")


class Compare(Options):
    """Compare runs with the first of them, on the questions that they share.

    p-values are two-sided, of a paired permutation test; Holm's are corrected for all metrics shown. Wins are questions
    on which a run has the higher value; for costs, higher is worse. "shows from" is the smallest true difference that
    so many questions, which vary so, show at p < 0.05 in 80% of cases.
    """

    runs: tuple[Path, ...] = _argument(..., "Folders of runs, or JSON lines with an id and scores.", "RUN RUN...")
    metric: tuple[str, ...] = option((), "A metric or cost; may be repeated.  [default: the main]", "NAME")
    flips: bool = option(False, "Show all questions that became right or wrong, not just a few.")


class Report(Options):
    """Write an HTML page about runs; it needs no network.

    Runs of `polyhop evaluate` get scores with intervals, by number of hops and type, costs, outcomes, and every
    question with its trace; runs over the same questions are compared with the first. Runs of `polyhop optimize` get
    their own sections. Unfinished runs are included as far as they are.
    """

    runs: tuple[Path, ...] = _argument(..., "Run folders; the others are compared with the first.", "RUN...")
    out: Path = option(Path("report.html"), "The page; an existing report is replaced.", "FILE")


class Diagnose(Limits, JsonOptions):
    """Show which agent costs the points, by repeating a run with better replies of its agents.

    An agent costs the points that the program gains if the agent gives the best reply to what it saw. Agents are
    replaced in the order of their first calls and stay replaced, so that an agent is not to blame for what those before
    it spoiled; other references than gold replace one agent at a time. "retrieval" costs what is lost because searches
    do not find the gold passages first. Replies that a change does not reach are not asked for again.
    `polyhop report RUN` shows what was found.
    """

    run: Path = _argument(..., "The folder of a run of `polyhop evaluate`.", "RUN")
    metric: tuple[str, ...] = option((), "May be repeated.  [default: answer_f1, evidence_f1, joint_f1]", "NAME")
    against: str = option(
        "gold", "What replaces replies: the one that the gold asks for, or another model's.", "gold|SPEC"
    )
    lm: tuple[str, ...] = option((), "Other models than those of the run, as for 'ask'.", "[ROLE=]SPEC")
    agent: tuple[str, ...] = option((), "Only this agent, or group of agents. May be repeated.", "NAME")
    program: str | None = option(None, "The program, if the run has one of your own.", "FILE.py:NAME[=DIR]")
    questions: str | None = option(None, "The questions, if those of the run are Python code.", "FILE.py:NAME")
    limit: int | None = option(None, "Only N random questions of the run.", ge=1)
    threads: int = option(1, "Questions executed in parallel; for remote models.", ge=1)
    rollouts: Path | None = option(
        None, "Write replies that gain points, beside those that lose them, as training data for OpenAI and TRL.", "DIR"
    )


class Tuning(ProgramOptions, OptimizationSettings):
    """What `polyhop optimize` reads from a file of settings, and keeps in a run's manifest."""

    program: str = option("polyhop", "A program, or the folder of a saved one.", "NAME|DIR")
    dataset: str | None = option(
        None,
        "As for 'evaluate'; own, for your own questions; or sample.  [default: recognized "
        "from --train; without it sample]",
        "NAME",
    )
    train: str | None = option(None, "Training questions; FILE.py:NAME for a list of dspy.Example.", "FILE")
    val: str | None = option(None, "Validation questions.  [default: a part of --train]", "FILE")
    test: str | None = option(None, "Test questions, used once.  [default: a part of --val or --train]", "FILE")
    index: Path | None = option(None, "Search this index, made by 'polyhop index' (open setting).", "DIR")
    setting: Literal["distractor", "open"] | None = option(None, "Search each question's own passages, or an index.")
    limit: int | None = option(None, "Take N random questions of each file.", "N", ge=1)
    prompt_lm: str | None = option(None, "The model that writes instructions, or a profile with one.", "SPEC")


class Optimize(Tuning, JsonOptions):
    """Tune a program: its exemplars, prompts and tunables, for quality and cost, under a budget.

    Each stage tunes on the training split; its candidate replaces the incumbent only if it is better on the validation
    split, by a paired test. The result is measured on the test split. RUN/best is the tuned program, for --program
    RUN/best and polyhop.load. An interrupted run resumes with the same command.
    """

    out: Path = option(..., "The folder of the run. An interrupted run resumes.", "RUN")
    config: Path | None = option(None, "Settings: a TOML file or a run's manifest.json; options override.", "FILE")


class Table(ProgramOptions, RunOptions):
    """Evaluate programs on several benchmarks, and print one table for each; of a paper, also the published figures.

    Every row is a run of `polyhop evaluate` in DIR, for `polyhop compare`.
    """

    out: Path = option(..., "The folder of the runs; an interrupted table resumes.", "DIR")
    paper: Path | None = _argument(None, "The experiments of a paper (docs/papers).", "PAPER.toml")
    on: tuple[str, ...] = option((), "May be repeated.", "DATASET:FILE[:INDEX]|DATASET:hub:NAME")
    program: tuple[str, ...] = option((), "[default: the rows of the paper; without one all programs]", "NAME|DIR")
    limit: int | None = option(None, "Only the first N questions of each; N random ones with a paper.", ge=1)
    seed: int | None = option(None, "With --limit: N random questions instead.")
    markdown: bool = option(False, "Print Markdown.")


class Diff(JsonOptions):
    """Show what changed from A to B: instructions, demos, exemplars, tunables; of two artifacts also scores, settings
    and versions.

    Lines that only A has begin with -, those that only B has with +. --json has them in full.
    """

    before: str = _argument(..., "A program, or the folder of an artifact.", "A")
    after: str = _argument(..., "The same.", "B")


class Export(Options):
    """Export each agent's prompt.

    Filled with the inputs of a call, the messages are byte for byte what DSPy sends.
    """

    program: str = _argument(..., "As for 'ask --program'.", "NAME|DIR")
    agent: str | None = option(None, "Only this agent.  [default: all]", "NAME")
    format: Literal["markdown", "messages", "dspy"] = option(
        "markdown",
        "markdown: to read. messages: role and content, with {{input}} placeholders. dspy: the state that DSPy's own "
        "load() reads, without polyhop.",
        "markdown|messages|dspy",
    )
    adapter: Literal["chat", "json"] = option("chat", "DSPy's ChatAdapter (its default) or JSONAdapter.", "chat|json")
    out: Path | None = option(None, "Where to write.  [default: print]", "DIR|FILE")
    overwrite: bool = option(False, "Replace existing files.")


class Serve(IndexOptions, ProgramOptions, Limits):
    """Serve a page, an HTTP API, OpenAI's chat API and MCP tools."""

    program: str = option("polyhop", "The default program; the others can be chosen for each question.", "NAME|DIR")
    host: str = option("127.0.0.1", "Address to listen on. Other than loopback needs a token.")
    allowed_host: tuple[str, ...] = option((), "Also answer for this host, as a proxy passes it; repeatable.", "NAME")
    port: int = option(8080, "0 for any free port.", ge=0, le=65535)
    token: str | None = option(None, "What clients must send: Authorization: Bearer TOKEN.  [default: $POLYHOP_TOKEN]")
    concurrency: int | None = option(None, "Questions at a time.  [default: 64; 4 if embedded]", ge=1, le=1000)
    timeout: float = option(300.0, "Seconds per question.", ge=1)
    uploads: Path | None = option(None, "Let clients add documents; kept in DIR and added to the index.", "DIR")
    mcp: bool = option(False, "Speak MCP on stdin and stdout instead of HTTP.")


class Draft(IndexOptions, ModelOptions, RunOptions):
    """Draft test questions over one's own documents, from pairs of passages that are tied by a link or a rare name.

    With --lm the model writes a question that needs both passages, and answers it from both, from each alone and from
    neither; what one passage answers is left out. The run is kept in FILE.jsonl.run, and the same command resumes it.
    Without a model each line is a pair for you to write a question from. --review opens the questions in a browser, to
    accept, edit or reject them; the accepted ones go to FILE.train.jsonl and FILE.test.jsonl, no document in both.
    """

    out: Path | None = option(None, "Where to write them; a new file.", "FILE.jsonl")
    count: int = option(50, "Pairs to draft from; a document is in at most two.", ge=1)
    seed: int = option(0, "Other pairs for another one.", ge=0)
    review: Path | None = option(None, "Read what was drafted, in a browser.", "FILE.jsonl")
    port: int = option(8081, "With --review: 0 for any free port.", ge=0, le=65535)


class Demo(ProgramOptions):
    """Show the chain of evidence for five questions of the sample, without a language model; then what a real model
    answered, by its recorded replies, or what yours answers with --lm. The gold answers stand beside both.
    """


class Doctor(JsonOptions):
    """Check the installation, an index and language models, with a fix for each problem.

    Uses the network only for the models that are named, and prints no keys. Exits with status 1 if a check fails;
    warnings do not count.
    """

    index: Path | None = option(
        None, "Verify this index.  [default: $POLYHOP_INDEX, or that of this folder or one above]", "DIR"
    )
    questions: str | None = option(
        None, "Questions of your own with gold documents: what each retriever finds, and which to use.", "FILE"
    )
    lm: tuple[str, ...] = option(
        (), "Ask this model, or those of a profile, one question.  [default: $POLYHOP_LM or lexical]", "[ROLE=]SPEC"
    )


COMMANDS: tuple[type[Options], ...] = (
    Ask, Search, Index, Evaluate, Score, Compare, Report, Diagnose, Optimize, Table, Diff, Export, Serve, Draft, Demo,
    Doctor,
)  # fmt: skip
