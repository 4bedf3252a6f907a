"""One caller's refusal must not shrink the window of anybody else.

A small upstream tells one credential that the window has 8192 tokens. Another
credential, which was answered with a large history a moment before, must not be
cut, neither in that session nor in a new one, nor after a restart.
"""

import http.server
import json
import threading

from world import conversation, send

MODEL = "claude-opus-4-8"
VICTIM, ATTACKER = "sk-victim", "sk-attacker"


class Upstream(http.server.BaseHTTPRequestHandler):
    """Refuses the attacker's large requests with a window that is made up."""

    protocol_version = "HTTP/1.1"
    seen = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        key = self.headers["x-api-key"]
        self.seen.append((key, body))
        tokens = len(body) // 4
        if key == ATTACKER and tokens > 7000:
            words = f"prompt is too long: {tokens} tokens > 8192 maximum"
            self.answer(400, {"type": "error", "error": {"type": "invalid_request_error", "message": words}})
            return
        self.answer(200, {
            "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL,
            "content": [{"type": "text", "text": "Fine."}], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": tokens, "output_tokens": 5},
        })

    def do_GET(self):
        self.answer(200, {"data": [], "has_more": False})

    def answer(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def history(name, turns):
    words = [f"{name} {at}: " + "these are some words of mine. " * 40 for at in range(turns)]
    return [*words, "And now?"]


def uncut(url, texts, what):
    """The victim's request must arrive as it was sent."""
    request = conversation(*texts, model=MODEL)
    answer = send(url, request, VICTIM)
    assert answer.status == 200, (what, answer)
    key, body = Upstream.seen[-1]
    sent = json.loads(body)
    assert key == VICTIM and len(sent["messages"]) == len(request["messages"]), (
        f"{what}: cut to {len(sent['messages'])} of {len(request['messages'])} messages, "
        f"{answer.headers.get('x-longhaul-view')}"
    )


def attack(world):
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    Upstream.seen.clear()
    address = f"http://127.0.0.1:{upstream.server_address[1]}"
    for by in ("auto", "credential"):
        config = f'tenant.by = "{by}"\nsummarizer.mode = "off"\n'
        data = f"data-{by}"
        proxy, url = world.proxy(address, config, data=data)
        uncut(url, history("victim", 200), "before")
        for number in range(3):
            request = conversation(*history(f"attacker {number}", 120), model=MODEL)
            send(url, request, ATTACKER)
        uncut(url, history("victim", 202), "the session")
        uncut(url, history("another of the victim's", 200), "a new session")
        proxy.terminate()
        proxy.wait()
        _, url = world.proxy(address, config, data=data)
        uncut(url, history("victim", 204), "the session after a restart")
        uncut(url, history("a third of the victim's", 200), "a new session after a restart")
    upstream.shutdown()
