"""Clients of others: OpenAI's, MCP's, DSPy's, and polyhop itself over the index of another machine."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import httpx
import pytest
from mcp import StdioServerParameters
from mcp.client import Client

from polyhop.data.chain import ChainRetriever
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.data.sample import load_sample
from polyhop.engines.models import language_model
from polyhop.programs import PolyHop, new_program
from polyhop.serve.service import Service
from polyhop.serve.tools import tool_server

from .conftest import QUESTION, ask, sample

QUESTIONS = [example.question for example in load_sample("test")[:1]]


@pytest.fixture(scope="module")
def known() -> dict[str, dspy.Prediction]:
    """What the program answers without a server."""
    program = PolyHop(ChainRetriever(sample()))
    with dspy.context(lm=language_model("lexical")):
        return {question: program(question=question) for question in [QUESTION, *QUESTIONS]}


def test_a_withheld_answer_is_told_as_a_guess(start: Callable[..., str]) -> None:
    address = start(settings=("abstain_below=1.0",))
    messages = [{"role": "user", "content": QUESTION}]
    chat = httpx.post(f"{address}/v1/chat/completions", json={"messages": messages}, timeout=60).json()
    asked = ask(address).json()
    assert asked["answer"] == "unknown"
    assert asked["guess"]
    assert asked["evidence"]
    told = f"unknown (perhaps: {asked['guess']})"
    assert chat["choices"][0]["message"]["content"].startswith(f"{told} [1]")

    async def call() -> str:
        async with Client(f"{address}/mcp") as client:
            return str((await client.call_tool("answer", {"question": QUESTION})).content[0].text)  # type: ignore[union-attr]

    assert asyncio.run(call()).startswith(f"{told} (confidence ")


def test_openai_s_client(address: str, known: dict[str, dspy.Prediction]) -> None:
    import openai  # two seconds

    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["polyhop", "naive"]
    for question, prediction in known.items():
        messages: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
        reply = client.chat.completions.create(model="polyhop", messages=messages, temperature=0.2)
        content = reply.choices[0].message.content or ""
        assert content.startswith(prediction.answer)
        checked = {name: prediction[name] for name in ("status", "confidence", "answer", "guess")}
        assert reply.polyhop == checked  # type: ignore[attr-defined]
        assert reply.usage
        assert reply.usage.total_tokens > 0
        places = [each.url_citation for each in reply.choices[0].message.annotations or []]
        assert [place.title for place in places] == [item.passage.title for item in prediction.evidence]
        for n, place in enumerate(places, 1):
            assert content[place.start_index : place.end_index] == f"[{n}]"
            assert httpx.get(place.url).json()["title"] == place.title
        options: Any = {"include_usage": True}
        stream = client.chat.completions.create(model="polyhop", messages=messages, stream=True, stream_options=options)
        chunks = list(stream)
        spoken = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert "".join(delta.content or "" for delta in spoken) == content
        assert any("asking the" in getattr(delta, "reasoning_content", "") for delta in spoken)
        assert chunks[-1].usage == reply.usage
        assert chunks[-2].polyhop == checked  # type: ignore[attr-defined]


async def used(client: Client, known: dict[str, dspy.Prediction]) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert sorted(tools) == ["answer", "find_chain", "read", "search"]
    assert all(tool.description for tool in tools.values())
    assert tools["answer"].input_schema["required"] == ["question"]
    fields = [field for tool in tools.values() for field in tool.input_schema["properties"].values()]
    assert all(field["description"] for field in fields)

    async def call(name: str, **arguments: Any) -> str:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result
        return str(result.content[0].text)  # type: ignore[union-attr]

    for question, prediction in known.items():
        assert (await call("answer", question=question)).startswith(f"{prediction.told} (confidence ")
    chain = await call("find_chain", question=QUESTION, k=3)
    assert chain.startswith("id: stalker-1979-film\ntitle: Stalker (1979 film)\nreason: the question names it: stalker")
    assert chain.count("\nreason: ") == 3
    found = (await call("search", query="Stalker film", k=4)).split("\n\n")
    assert "reason: " not in "".join(found)
    assert (await call("search", query="Stalker film", k=2, offset=2)).split("\n\n") == found[2:]
    assert await call("search", query="Stalker film", offset=1_000) == "nothing more found"
    assert (await call("read", id="stalker-1979-film")).startswith("Stalker (1979 film)\n\n")
    wrong = await client.call_tool("read", {"id": "../etc/passwd"})
    assert wrong.is_error
    assert "no passage" in str(wrong.content)
    assert (await client.call_tool("answer", {"question": "?!"})).is_error
    assert (await client.call_tool("search", {"query": "Stalker", "k": True})).is_error


def test_passages_are_read_by_the_ids_of_a_search(tmp_path: Path) -> None:
    names = ["report[1].md", "price  list.md", "price list.md", "100%25.md", "a&amp;b.md"]
    (tmp_path / "notes").mkdir()
    for name in names:
        (tmp_path / "notes" / name).write_text(f"The wumpus of page {names.index(name)} is grey.")
    build_index([tmp_path / "notes"], tmp_path / "ix")

    async def run() -> None:
        with BM25Index(tmp_path / "ix") as index:
            async with Client(tool_server(Service(lambda name: dspy.Module(), [], index))) as client:
                found: Any = (await client.call_tool("search", {"query": "grey wumpus", "k": 9})).content[0]
                hits = re.findall(r"id: (.*)\ntitle: .*\ntext: (.*)", found.text)
                assert len(hits) == len(names)
                for id, text in hits:
                    read: Any = (await client.call_tool("read", {"id": id})).content[0]
                    assert read.text.endswith(text)

    asyncio.run(run())


def test_mcp_over_stdio(known: dict[str, dspy.Prediction]) -> None:
    command = ["-m", "polyhop.scripts.main", "serve", "--mcp", "--index", "sample"]

    async def run() -> None:
        async with Client(StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))) as client:
            await used(client, known)

    asyncio.run(run())


def test_a_program_over_the_remote_index_of_the_docs_answers_as_over_a_local_one(address: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text("utf-8")
    names: dict[str, Any] = {}
    [example] = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Remote" in block]
    exec(example, names)
    with dspy.context(lm=language_model("lexical")):
        over_remote = new_program("prism", names["Remote"](address))(question=QUESTION)
        over_local = new_program("prism", ChainRetriever(sample()))(question=QUESTION)
    assert over_remote.answer == over_local.answer
    assert over_remote.evidence == over_local.evidence
