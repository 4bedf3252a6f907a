"""Reads a conversation without the admin token, as through a reverse proxy on the same machine.

Such a proxy connects from loopback and sends a host name that it, or the caller, chooses. Where a
token is configured, none of that may stand in for it.
"""

import json

from world import ask, conversation, send

TOKEN = "3f9c1d7ab2e84c5fa6d0"
SECRET = "the launch code is heliotrope"


def attack(world):
    upstream = world.sim()
    _, url = world.proxy(upstream, env={"LONGHAUL_ADMIN_TOKEN": TOKEN})
    answer = send(url, conversation(SECRET))
    assert answer.status == 200, answer
    session = answer.headers["x-longhaul-session"]
    one = f"/longhaul/sessions/{session}"
    page = f"/longhaul/page/{session}"
    paths = ["/longhaul/sessions", one, f"{one}/export", f"{one}/handoff", f"{one}/journal"]
    paths += ["/longhaul", "/longhaul/", page, f"{page}/view", f"{page}/message/1"]
    orders = [("GET", path) for path in paths]
    orders += [("POST", f"{one}/compact"), ("POST", f"{page}/compact"), ("DELETE", one)]
    for host in ["localhost", "127.0.0.1", "[::1]", url.removeprefix("http://"), "longhaul.example"]:
        for method, path in orders:
            headers = {"host": host, "origin": f"http://{host}"} if method == "POST" else {"host": host}
            answer = ask(url, path, method, headers)
            assert answer.status == 401, f"{method} {path} with host {host}: {answer}"
            assert b"heliotrope" not in answer.body and session.encode() not in answer.body, answer
    call = {"name": "recall", "arguments": {"ref": session, "query": "launch code"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"host": "localhost", "accept": "application/json, text/event-stream"}
    answer = ask(url, "/mcp", "POST", headers, call)
    assert b"heliotrope" not in answer.body, answer
    # Whoever has the token sees it all.
    answer = ask(url, "/longhaul/sessions", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status == 200, answer
    # A page signs in with a form and a cookie.
    form = {"origin": url, "content-type": "application/x-www-form-urlencoded"}
    answer = ask(url, "/longhaul/enter", "POST", form, f"token={TOKEN}".encode())
    assert answer.status == 303, answer
    cookie = answer.headers["set-cookie"].split(";")[0]
    assert ask(url, "/longhaul/", headers={"cookie": cookie}).status == 200
    assert json.loads(ask(url, "/healthz").body)["status"] == "alive"
