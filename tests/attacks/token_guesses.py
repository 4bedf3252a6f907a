"""Tries admin tokens at full speed, and makes the proxy send the token upstream.

Guesses must get slower, be logged and be counted. A path that is almost one of ours must not carry
the token to upstream, and a `connection` header must not take away what the body needs.
"""

import gzip
import http.server
import json
import socket
import threading
import time
import urllib.parse

from world import ask

TOKEN = "3f9c1d7ab2e84c5fa6d0"


class Upstream:
    """Answers everything and remembers what it was sent."""

    def __init__(self):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                length = int(self.headers.get("content-length") or 0)
                seen.append((self.path, dict(self.headers.items()), self.rfile.read(length)))
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def near_misses(url, upstream):
    bearer = {"authorization": f"Bearer {TOKEN}"}
    for path in [
        "/mcp/",
        "/metrics/",
        "//longhaul/sessions",
        "/Longhaul/sessions",
        "/longhaul%2fsessions",
        "/longhaul%252fsessions",
        "/%6conghaul/sessions",
        "/v1/../longhaul/sessions",
        "/longhaul;a=b/sessions",
        "/METRICS",
    ]:
        answer = raw(url, f"GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
                          "connection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 404 "), f"{path}: {answer[:200]!r}"
    told = [path for path, headers, _ in upstream.seen if TOKEN in json.dumps(headers)]
    assert not told, f"the token went upstream with {told}"
    assert ask(url, "/longhaul/sessions", headers=bearer).status == 200


def raw(url, request):
    """Sends bytes as they are and returns what comes back."""
    address = urllib.parse.urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


def stripped_headers(url, upstream):
    body = gzip.compress(b"{}")
    headers = {"content-encoding": "gzip", "connection": "content-encoding, content-type"}
    answer = ask(url, "/v1/messages", "POST", headers, body)
    assert answer.status == 200, answer
    _, headers, sent = upstream.seen[-1]
    headers = {name.lower(): value for name, value in headers.items()}
    assert sent == body and headers.get("content-encoding") == "gzip", headers
    assert headers.get("content-type") == "application/json", headers


def guesses(world, url):
    begun = time.monotonic()
    for guess in range(8):
        headers = {"host": "localhost", "authorization": f"Bearer {guess}{TOKEN}"}
        assert ask(url, "/longhaul/sessions", headers=headers).status == 401
    took = time.monotonic() - begun
    assert took >= 3, f"eight guesses took {took:.1f} s"
    assert "wrong admin token" in world.log(), "guesses are not logged"
    metrics = ask(url, "/metrics").body.decode()
    assert 'longhaul_admin_refused_total{reason="wrong_token"} 8' in metrics, "not counted"
    assert TOKEN not in world.log(), "the token is in the log"


def forged_seals(url):
    """Seals of cookies and links follow from the token: a wrong one is a guess too."""
    seal = f"99999999999999.{'5a' * 32}"
    cookie = {"host": "localhost", "cookie": f"longhaul_page={seal}"}
    assert ask(url, "/longhaul/", headers=cookie).status == 401
    assert ask(url, f"/longhaul/enter?link={seal}", headers={"host": "localhost"}).status == 401
    metrics = ask(url, "/metrics").body.decode()
    assert 'longhaul_admin_refused_total{reason="wrong_token"} 10' in metrics, "not counted"


def attack(world):
    upstream = Upstream()
    _, url = world.proxy(upstream.url, env={"LONGHAUL_ADMIN_TOKEN": TOKEN})
    near_misses(url, upstream)
    stripped_headers(url, upstream)
    guesses(world, url)
    forged_seals(url)
