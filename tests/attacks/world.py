"""A proxy and a simulated upstream to attack, each a process of its own.

An attack is a file beside this one with a function `attack(world)`. It uses
nothing but Python's standard library, talks only to loopback, and raises
`AssertionError` if the attack succeeded.
"""

import http.client
import json
import os
import shutil
import subprocess
import tempfile
import urllib.parse


class Answer:
    """What came back for a request."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:200]!r}"


class World:
    """Starts what an attack needs and stops all of it at the end."""

    def __init__(self, binary):
        self.binary = binary
        self.folder = tempfile.mkdtemp(prefix="longhaul-attack-")
        self.processes = []

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, arguments, env=None):
        """Starts a command of Longhaul's; returns the process and the address in its first line."""
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().startswith(("ANTHROPIC_", "LONGHAUL_", "XDG_"))
            and not name.upper().endswith("_PROXY")
        }
        clean["HOME"] = self.folder
        clean.update(env or {})
        process = subprocess.Popen(
            [self.binary, *arguments],
            env=clean,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=open(os.path.join(self.folder, "stderr"), "ab"),
            text=True,
        )
        self.processes.append(process)
        line = process.stdout.readline()
        words = [word for word in line.split() if word.startswith("http://")]
        assert words, f"{arguments} did not start: {line!r}\n{self.log()}"
        return process, words[0]

    def sim(self, *arguments):
        """Starts a simulator; returns its address."""
        return self.start(["sim", "--listen", "127.0.0.1:0", *arguments])[1]

    def proxy(self, upstream, config="", env=None, data="data"):
        """Starts a proxy with its data in a folder of its own; returns process and address."""
        file = os.path.join(self.folder, f"longhaul-{len(self.processes)}.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(config)
        arguments = ["serve", "--listen", "127.0.0.1:0", "--upstream", upstream]
        arguments += ["--config", file, "--data-dir", os.path.join(self.folder, data)]
        return self.start(arguments, env)

    def log(self):
        """What the processes have written to standard error."""
        with open(os.path.join(self.folder, "stderr"), encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]


def ask(url, path, method="GET", headers=None, body=None, timeout=60):
    """One request on a connection of its own. The path is sent as it is given."""
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
    try:
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        sent = {"content-type": "application/json"} if body is not None else {}
        sent.update(headers or {})
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        received = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, received, answer.read())
    finally:
        connection.close()


def conversation(*texts, model="claude-sonnet-4-5", **fields):
    """A request whose messages alternate between user and assistant."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": model, "max_tokens": 64, "messages": messages, **fields}


def send(url, request, key="sk-test", headers=None, **more):
    """Sends a conversation as an agent would; without a key if it is None."""
    own = {"anthropic-version": "2023-06-01"}
    if key is not None:
        own["x-api-key"] = key
    own.update(headers or {})
    return ask(url, "/v1/messages", "POST", own, request, **more)
