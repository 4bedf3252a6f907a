"""What an agent does with the recall tools, through the official SDK.

MCP_URL is where they are; MCP_SPAN, MCP_BLOCK and MCP_WORDS are a reference of
messages, one of a tool's result, and words that stand in it. Each check is made
in every way in which the SDK connects, and prints `ok NAME`.
"""

import asyncio
import os

from mcp import Client

URL = os.environ["MCP_URL"]
SPAN = os.environ["MCP_SPAN"]
BLOCK = os.environ["MCP_BLOCK"]
WORDS = os.environ["MCP_WORDS"]


async def answer(client, tool, fails=False, **arguments):
    """What a tool says."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert content.type == "text"
    assert bool(result.is_error) == fails, content.text
    return content.text


async def lists_the_tools(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"recall", "expand", "session_status", "compact_now"}, tools
    for tool in tools.values():
        assert "ref" in tool.input_schema["required"]
        assert tool.description
    assert tools["recall"].annotations.read_only_hint is True


async def finds_what_was_left_out(client):
    found = await answer(client, "recall", ref=SPAN, query=WORDS, limit=3)
    assert WORDS in found and BLOCK in found, found


async def shows_it_in_pages(client):
    first = await answer(client, "expand", ref=BLOCK)
    assert WORDS in first and "page 1 of" in first, first
    second = await answer(client, "expand", ref=BLOCK, page=2)
    assert "page 2 of" in second, second


async def tells_where_the_session_stands(client):
    status = await answer(client, "session_status", ref=SPAN)
    assert "messages" in status, status


async def notes_a_wish(client):
    noted = await answer(client, "compact_now", ref=SPAN, instructions="keep names")
    assert "make smaller" in noted, noted


async def says_what_is_wrong(client):
    wrong = await answer(client, "recall", fails=True, ref=SPAN)
    assert '"query" is missing' in wrong, wrong
    unknown = await answer(client, "expand", ref="lh-" + "0" * 20)
    assert "nothing is known under this reference" in unknown, unknown


CHECKS = [
    lists_the_tools,
    finds_what_was_left_out,
    shows_it_in_pages,
    tells_where_the_session_stands,
    notes_a_wish,
    says_what_is_wrong,
]


async def main():
    for mode in ["auto", "legacy"]:
        async with Client(URL, mode=mode) as client:
            for check in CHECKS:
                await check(client)
                print(f"ok {mode} {check.__name__}")


asyncio.run(main())
