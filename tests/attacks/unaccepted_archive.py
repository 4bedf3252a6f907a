"""Fills the disk: with requests that upstream refuses, and past the limit.

Of a request by a credential that upstream does not accept nothing is kept; of
the others no more than `journal.max_bytes`, at any time.
"""

import base64
import os
import random

from unaccepted_summaries import FakeApi
from world import conversation, send

MIB = 1 << 20
SIZE = MIB // 8


def work(seed):
    """A history with large results of tools, nothing of which can be packed much."""
    content = random.Random(seed)
    messages = [{"role": "user", "content": f"go {seed}"}]
    for at in range(4):
        name = f"toolu_{seed}_{at}"
        call = {"type": "tool_use", "id": name, "name": "Bash", "input": {}}
        words = (base64.b32encode(content.randbytes(5)).decode() for _ in range(SIZE // 36))
        text = " ".join(words)
        result = {"type": "tool_result", "tool_use_id": name, "content": text}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    tool = {"name": "Bash", "input_schema": {"type": "object"}}
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 64,
        "tools": [tool],
        "messages": messages,
    }


def taken(folder):
    """Bytes of all files there."""
    files = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    return sum(os.path.getsize(file) for file in files if os.path.exists(file))


def attack(world):
    upstream = FakeApi("sk-good")
    config = '[window]\nbudget = 20000\n[summarizer]\nmode = "off"\n[journal]\nmax_bytes = "1MiB"\n'
    _, proxy = world.proxy(upstream.url, config)
    folder = os.path.join(world.folder, "data")
    assert send(proxy, conversation("hello"), key="sk-good").status == 200
    before = taken(folder)
    for at in range(3):
        key = (None, "sk-wrong", f"sk-{at}")[at % 3]
        answer = send(proxy, work(f"refused {at}"), key=key)
        assert answer.status == 401, answer
    grown = taken(folder) - before
    assert grown < MIB // 4, f"{grown} bytes are kept of requests that were refused"
    most = 0
    for at in range(12):
        assert send(proxy, work(f"taken {at}"), key="sk-good").status == 200
        most = max(most, taken(folder))
    # The log of the database and its indexes have their own room.
    assert most < 4 * MIB, f"{most} bytes with a limit of {MIB}"
