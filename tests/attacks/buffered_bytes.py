"""Makes the proxy hold far more memory than `limits.buffered_bytes` allows.

A few bytes of Brotli that ask for the largest window and unfold into megabytes, and bodies of tool
calls that never end, each on many connections at once. And the other way round: compressed bodies
that do not all fit must come one after another instead of being refused.
"""

import gzip
import socket
import threading
import urllib.parse

from world import ask

MIB = 1 << 20
# 8 MiB of spaces, with a window of 16 MiB.
BROTLI = bytes.fromhex("9fffff7ff82540e2b14020f7fe0f")
# What a debug build, its threads and its allocator may take beside the bodies.
ROOM, SLACK = 64 * MIB, 160 * MIB


def memory(process, name):
    """A value of the process's memory, in bytes."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        lines = dict(line.split(":", 1) for line in status)
    return int(lines[name].split()[0]) * 1024


def at_once(count, one):
    """Runs something on many threads and returns what each gave."""
    results = [None] * count

    def run(at):
        results[at] = one()

    threads = [threading.Thread(target=run, args=(at,)) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def assert_bounded(process, before, what):
    for name in ("VmHWM", "VmRSS"):
        grown = memory(process, name) - before
        assert grown <= ROOM + SLACK, f"{what}: {name} grew by {grown // MIB} MiB"


def few_bytes(process, url, before):
    headers = {"content-encoding": "br"}
    at_once(200, lambda: ask(url, "/v1/messages", "POST", headers, BROTLI).status)
    assert_bounded(process, before, "200 Brotli bodies of 14 bytes")


def endless_calls(process, url, before):
    address = urllib.parse.urlsplit(url)
    head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += b"content-length: 2000000\r\n\r\n"
    held = []

    def one():
        connection = socket.create_connection((address.hostname, address.port), timeout=10)
        held.append(connection)
        try:
            connection.sendall(head + b" " * 1_900_000)
            return connection.recv(12).endswith(b" 529")
        except OSError:
            return False  # It is held, or was torn down.

    refused = at_once(200, one).count(True)
    assert_bounded(process, before, "200 tool calls of 2 MB that do not end")
    assert refused > 0, "nothing was refused"
    for connection in held:
        connection.close()


def fair(url):
    body = gzip.compress(b" " * (8 * MIB))
    headers = {"content-encoding": "gzip"}
    send = lambda: ask(url, "/v1/messages", "POST", headers, body, timeout=120).status
    refused = at_once(20, send).count(529)
    assert refused == 0, f"{refused} of 20 compressed bodies found no room"


def attack(world):
    upstream = world.sim()
    config = f"[limits]\nbuffered_bytes = {ROOM}\nbuffer_wait = '2s'\n"
    for part in (few_bytes, endless_calls):
        process, url = world.proxy(upstream, config, data=part.__name__)
        assert ask(url, "/healthz").status == 200
        part(process, url, memory(process, "VmRSS"))
    config = f"[limits]\nbody_bytes = {10 * MIB}\nbuffered_bytes = {34 * MIB}\nbuffer_wait = '60s'\n"
    fair(world.proxy(upstream, config, data="fair")[1])
