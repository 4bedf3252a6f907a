"""Anybody spends the operator's summarizer key with requests that upstream refuses.

A request without a credential, with a wrong one, or from a web page of another
origin is worth no summary, however large its history is.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from world import conversation, send

KEY = "sk-of-the-operator"


class FakeApi:
    """An upstream that knows one key and notes what it is asked."""

    def __init__(self, key):
        self.asked = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                given = self.headers.get("x-api-key")
                fake.asked.append((given, len(body)))
                accepted = key is not None and given == key
                usage = {"input_tokens": len(body) // 4, "output_tokens": 1}
                answer = {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-sonnet-4-5",
                    "content": [{"type": "text", "text": "ok"}],
                    "stop_reason": "end_turn",
                    "usage": usage,
                }
                if not accepted:
                    error = {"type": "authentication_error", "message": "invalid x-api-key"}
                    answer = {"type": "error", "error": error}
                text = json.dumps(answer).encode()
                self.send_response(200 if accepted else 401)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"


def talk(name):
    """A long talk: nothing in it can be cleared, so a summary is wanted."""
    said = "We looked at it and decided that the other plan is better than this one. "
    texts = [f"{name}: do step {at} now." if at % 2 == 0 else said * 60 for at in range(61)]
    return conversation(*texts)


def attack(world):
    upstream, summarizer = FakeApi("sk-good"), FakeApi(KEY)
    config = f"""
[window]
budget = 20000
[summarizer]
mode = "model"
model = "claude-haiku-4-5"
upstream = "{summarizer.url}"
api_key_env = "OPERATOR"
deadline = "5s"
"""
    _, proxy = world.proxy(upstream.url, config, {"OPERATOR": KEY})
    for key in (None, "", "sk-wrong"):
        answer = send(proxy, talk(f"key {key}"), key=key)
        assert answer.status == 401, answer
        assert not summarizer.asked, f"paid for by the operator: {summarizer.asked}"
    before = len(upstream.asked)
    # What a web page can send without asking anybody first.
    plain = {"content-type": "text/plain"}
    for origin in ("https://evil.example", "null"):
        page = {"origin": origin, **plain}
        answer = send(proxy, json.dumps(talk(origin)).encode(), key=None, headers=page)
        assert answer.status == 403, f"a page of {origin} got {answer}"
        assert b"origin" in answer.body, answer
    assert len(upstream.asked) == before, "a page's request went upstream"
    assert not summarizer.asked, f"paid for by the operator: {summarizer.asked}"
    # Whoever has a key is served, in a web view too, and gets a summary.
    view = {"origin": "vscode-webview://1x9"}
    assert send(proxy, conversation("hello"), key="sk-good", headers=view).status == 200
    assert send(proxy, talk("good"), key="sk-good").status == 200
    assert summarizer.asked, "an accepted key gets no summary"
    # After that a wrong one still gets none.
    asked = len(summarizer.asked)
    assert send(proxy, talk("later"), key="sk-wrong").status == 401
    assert len(summarizer.asked) == asked, "paid for by the operator after all"
