"""What users of the Python SDK do, with an assertion after each step.

Run without arguments for the whole session, or with the names of some checks.
The SDK takes its address and key from the environment as it does for anybody;
SIM_URL is where the simulated upstream is told what to answer, so that the
calls themselves carry nothing that a user's would not.

Each check prints `ok NAME`, with what it saw behind it where that must not
depend on what stands between the SDK and the API.
"""

import asyncio
import json
import os
import sys
import time
import urllib.request

import anthropic
import httpx2
from anthropic import beta_tool

MODEL = "claude-sonnet-5-5"
BINDING = "claude-opus-5-5"
SMALL = "claude-haiku-4-5"

client = anthropic.Anthropic()
once = client.with_options(max_retries=0)


def sim(path, body):
    """Tells the simulator something."""
    request = urllib.request.Request(
        f"{os.environ['SIM_URL']}/_sim/{path}",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 200


def user(content):
    return {"role": "user", "content": content}


def asking(text, **more):
    """The arguments of a call with one user message."""
    return {"model": MODEL, "max_tokens": 2000, "messages": [user(text)], **more}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def call(name, **arguments):
    return {"type": "tool_use", "name": name, "input": arguments}


def raises(kind, action):
    """The error that `action` ends with."""
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"no {kind} was raised")


def tool(name, field):
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return {"name": name, "description": f"Takes a {field}.", "input_schema": schema}


TOOLS = [tool("read", "path"), tool("run", "command")]


# Plain calls


def plain_call():
    sim("replies", {"text": "Grüße, 世界 🌍"})
    message = client.messages.create(**asking("say hello", system="Be brief."))
    assert text_of(message) == "Grüße, 世界 🌍"
    assert message.stop_reason == "end_turn"
    assert message.model == MODEL and message.role == "assistant"
    assert message._request_id.startswith("req_")
    return [message.usage.input_tokens, message.usage.output_tokens]


def raw_response():
    raw = client.messages.with_raw_response.create(**asking("what comes in the headers"))
    assert raw.retries_taken == 0
    assert raw.headers["request-id"] == raw.parse()._request_id
    assert raw.headers["anthropic-organization-id"].startswith("org")
    return raw.http_response.status_code


def large_body():
    text = "A line of a long file, as agents send it.\n" * 5_000
    message = client.messages.create(**asking(text))
    assert message.usage.input_tokens > 30_000
    return message.usage.input_tokens


def count_tokens():
    short = client.messages.count_tokens(model=MODEL, messages=[user("one")])
    long = client.messages.count_tokens(model=MODEL, messages=[user("one " * 500)], tools=TOOLS)
    assert 0 < short.input_tokens < long.input_tokens
    return [short.input_tokens, long.input_tokens]


def models():
    found = [model.id for model in client.models.list(limit=1000)]
    assert BINDING in found and MODEL in found
    model = client.models.retrieve(BINDING)
    assert model.max_input_tokens == 1_000_000
    error = raises(anthropic.NotFoundError, lambda: client.models.retrieve("claude-foo"))
    assert error.body["error"]["message"] == "model: claude-foo"
    return len(found)


# Streams


def stream_helper():
    sim("replies", {"text": "word " * 400})
    pieces, events = [], []
    with client.messages.stream(**asking("stream it")) as stream:
        for event in stream:
            events.append(event.type)
            if event.type == "text":
                pieces.append(event.text)
        message = stream.get_final_message()
    assert "".join(pieces) == text_of(message) == "word " * 400
    assert len(pieces) > 10
    assert events[0] == "message_start" and events[-1] == "message_stop"
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens > 400
    return [len(events), message.usage.input_tokens, message.usage.output_tokens]


def raw_stream():
    sim("replies", {"content": [call("read", path="/project/ä.txt")]})
    kinds, arguments, usage, reason = [], "", None, None
    for event in client.messages.create(**asking("stream a call", tools=TOOLS), stream=True):
        kinds.append(event.type)
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            arguments += event.delta.partial_json
        if event.type == "message_delta":
            usage, reason = event.usage, event.delta.stop_reason
    assert json.loads(arguments) == {"path": "/project/ä.txt"}
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    assert reason == "tool_use" and usage.output_tokens > 1
    return [kinds, usage.output_tokens]


def stream_equals_plain():
    reply = {"content": [{"type": "text", "text": "first"}, call("run", command="make")]}
    sim("replies", [reply, reply])
    plain = client.messages.create(**asking("twice the same", tools=TOOLS))
    with client.messages.stream(**asking("twice the same", tools=TOOLS)) as stream:
        streamed = stream.get_final_message()
    seen = [[(block.type, getattr(block, "text", None), getattr(block, "input", None))
             for block in message.content] for message in (plain, streamed)]
    assert seen[0] == seen[1]
    assert plain.usage.output_tokens == streamed.usage.output_tokens
    return plain.stop_reason


def abandoned_stream():
    sim("replies", {"text": "word " * 400})
    with client.messages.stream(**asking("nobody reads this to its end")) as stream:
        for _ in stream.text_stream:
            break
    assert client.messages.create(**asking("still there?")).stop_reason == "end_turn"


# Tools


def results(message):
    """What an agent answers to the calls of a message, one of them failed."""
    answers = []
    for block in message.content:
        if block.type == "tool_use":
            failed = "missing" in json.dumps(block.input)
            content = "no such file" if failed else [{"type": "text", "text": f"did {block.input}"}]
            answers.append({"type": "tool_result", "tool_use_id": block.id,
                            "content": content, "is_error": failed})
    return answers


def hand_written_loop(model, stream, question, **more):
    """The loop as the documentation shows it; the messages of all turns."""
    messages, turns = [user(question)], []
    while True:
        arguments = {"model": model, "max_tokens": 4000, "messages": messages, "tools": TOOLS, **more}
        if stream:
            with client.messages.stream(**arguments) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**arguments)
        turns.append(message)
        messages.append({"role": "assistant", "content": message.content})
        if message.stop_reason != "tool_use":
            return turns
        messages.append(user(results(message)))


def loop_script():
    sim("replies", [
        {"with_thinking": True,
         "content": [{"type": "text", "text": "Let me look."},
                     call("read", path="/project/a"), call("read", path="/project/missing")]},
        {"with_thinking": True, "content": [call("run", command="make \"all\"\n")]},
        {"with_thinking": True,
         "content": [call("run", command="a"), call("run", command="b"), call("read", path="c")]},
        {"with_thinking": True, "text": "Done."},
    ])


def tool_loop():
    loop_script()
    turns = hand_written_loop(MODEL, False, "do the work")
    assert [len(results(turn)) for turn in turns] == [2, 1, 3, 0]
    assert text_of(turns[-1]) == "Done."
    return [turn.usage.input_tokens for turn in turns]


def tool_loop_streamed():
    loop_script()
    turns = hand_written_loop(MODEL, True, "do the work while I watch")
    assert [len(results(turn)) for turn in turns] == [2, 1, 3, 0]
    return [turn.usage.input_tokens for turn in turns]


def thinking_loop(stream, question):
    """Signed thinking comes back with every request, and the upstream checks it."""
    sim("rule", {"type": "call_tool", "name": "read", "times": 5, "parallel": 2, "words": 8})
    thinking = {"type": "adaptive", "display": "summarized"}
    turns = hand_written_loop(BINDING, stream, question, thinking=thinking)
    sim("rule", {"type": "text"})
    assert len(turns) == 6
    signed = [block for turn in turns for block in turn.content if block.type == "thinking"]
    assert len(signed) >= 6 and all(block.signature for block in signed)
    assert any(block.thinking for block in signed)
    return [len(signed), [turn.usage.input_tokens for turn in turns]]


def thinking_round_trip():
    return thinking_loop(False, "think about it")


def thinking_round_trip_streamed():
    return thinking_loop(True, "think about it aloud")


def with_changed_thinking():
    sim("replies", {"with_thinking": True, "content": [call("read", path="x")]})
    first = client.messages.create(**asking("as it was", model=BINDING, tools=TOOLS))
    messages = [user("as it never was"), {"role": "assistant", "content": first.content},
                user(results(first))]
    return client.messages.create(
        model=BINDING, max_tokens=2000, messages=messages, tools=TOOLS)


def changed_thinking():
    """Thinking behind an edited message is refused: the upstream does check."""
    error = raises(anthropic.BadRequestError, with_changed_thinking)
    assert "bound to a different conversation" in error.message
    return error.body["error"]["message"]


def healed_thinking():
    """The same, where somebody asks the upstream to drop it."""
    return with_changed_thinking().stop_reason


def runner_tools(calls):
    @beta_tool
    def look_up(word: str) -> str:
        """Looks a word up.

        Args:
            word: the word
        """
        calls.append(word)
        return f"{word} means {word[::-1]}"

    return [look_up]


def runner_script():
    sim("rule", {"type": "call_tool", "name": "look_up", "times": 3, "parallel": 2, "finish": "All found."})


def tool_runner():
    calls = []
    runner_script()
    runner = client.beta.messages.tool_runner(
        tools=runner_tools(calls), **asking("look three words up", model=BINDING))
    turns = list(runner)
    sim("rule", {"type": "text"})
    assert len(turns) == 4 and len(calls) == 6
    assert text_of(turns[-1]) == "All found."
    sizes = [turn.usage.input_tokens for turn in turns]
    assert sizes == sorted(set(sizes)), "the whole history is read, held upstream or sent"
    return [calls, sizes]


def tool_runner_streamed():
    calls, pieces = [], []
    runner_script()
    runner = client.beta.messages.tool_runner(
        tools=runner_tools(calls), stream=True, **asking("look up, and tell me as you go"))
    turns = 0
    for stream in runner:
        turns += 1
        pieces += [event.text for event in stream if event.type == "text"]
    sim("rule", {"type": "text"})
    assert turns == 4 and len(calls) == 6
    assert "".join(pieces).endswith("All found.")
    return calls


def compacting_runner(stream, question):
    """The runner has the API compact the conversation and goes on from the summary."""
    calls, turns = [], []
    runner_script()
    runner = client.beta.messages.tool_runner(
        tools=runner_tools(calls), betas=["compact-2026-09-04"], stream=stream,
        **asking(question, model=BINDING))
    for turn in runner:
        turns.append(turn.get_final_message() if stream else turn)
        if len(turns) == 2:
            runner.compact_before_next_turn()
    sim("rule", {"type": "text"})
    assert [turn.stop_reason for turn in turns[:3]] == ["tool_use", "tool_use", "compaction"]
    assert turns[2].content[0].signature
    assert text_of(turns[-1]) == "All found."
    return [turn.usage.input_tokens for turn in turns]


def compaction():
    return compacting_runner(False, "look up until it is too much")


def compaction_streamed():
    return compacting_runner(True, "look up until it is too much to tell")


# The prompt cache


def prompt_cache():
    system = [{"type": "text", "text": "Rule: be careful with files.\n" * 400,
               "cache_control": {"type": "ephemeral"}}]
    messages, reads, writes = [], [], []
    for turn in range(4):
        messages.append(user(f"question {turn}: " + "details " * 300))
        message = client.messages.create(
            model=BINDING, max_tokens=2000, system=system, messages=messages,
            cache_control={"type": "ephemeral"})
        messages.append({"role": "assistant", "content": message.content})
        reads.append(message.usage.cache_read_input_tokens)
        writes.append(message.usage.cache_creation_input_tokens)
    assert reads[0] == 0 and writes[0] > 2000
    assert all(earlier < later for earlier, later in zip(reads, reads[1:]))
    assert all(read == sum(writes[:turn]) for turn, read in enumerate(reads))
    return [reads, writes]


# Errors


def bad_request():
    error = raises(anthropic.BadRequestError, lambda: client.messages.create(
        model=MODEL, max_tokens=100, messages=[user("x"), {"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "x"}}]},
            user("and now?")], tools=TOOLS))
    assert error.status_code == 400 and error.type == "invalid_request_error"
    assert "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1" in error.message
    assert error.request_id.startswith("req_")
    return error.body["error"]["message"]


def prompt_too_long():
    error = raises(anthropic.BadRequestError, lambda: client.messages.create(
        **asking("much too long " * 4000, model=SMALL)))
    message = error.body["error"]["message"]
    assert message.startswith("prompt is too long: ") and message.endswith(" maximum")
    return message


def wrong_key():
    stranger = client.with_options(api_key="sk-wrong")
    error = raises(anthropic.AuthenticationError, lambda: stranger.messages.create(**asking("let me in")))
    assert error.body["error"]["type"] == "authentication_error"
    return error.body["error"]["message"]


def other_statuses():
    seen = []
    for status, kind in [(403, anthropic.PermissionDeniedError), (404, anthropic.NotFoundError),
                         (413, anthropic.APIStatusError), (429, anthropic.RateLimitError),
                         (500, anthropic.InternalServerError), (529, anthropic.OverloadedError)]:
        sim("faults", {"type": "status", "status": status, "retry_after": 7})
        error = raises(kind, lambda: once.messages.create(**asking(f"fail with {status}")))
        assert error.status_code == status
        assert error.response.headers["retry-after"] == "7"
        seen.append([status, error.body["error"]])
    return seen


def rate_limit_is_waited_for():
    sim("faults", "429:1")
    start = time.monotonic()
    raw = client.messages.with_raw_response.create(**asking("not too fast"))
    assert raw.retries_taken == 1
    assert 0.9 < time.monotonic() - start < 10
    return raw.parse().stop_reason


def overload_is_retried():
    sim("faults", [{"type": "status", "status": 529, "retry_after": 0}, "529:0"])
    raw = client.messages.with_raw_response.create(**asking("try again"))
    assert raw.retries_taken == 2
    return raw.parse().stop_reason


def no_retry_when_told_so():
    sim("faults", {"type": "status", "status": 529, "should_retry": False})
    error = raises(anthropic.OverloadedError, lambda: client.messages.create(**asking("do not try again")))
    return error.response.headers["x-should-retry"]


def reset_before_the_answer_is_retried():
    """By the SDK, or by what stands in between if the connection had been idle."""
    sim("faults", "reset")
    raw = client.messages.with_raw_response.create(**asking("cut off before a word"))
    assert raw.retries_taken <= 1
    return raw.parse().stop_reason


def timeout():
    sim("faults", "hang")
    impatient = once.with_options(timeout=0.5)
    raises(anthropic.APITimeoutError, lambda: impatient.messages.create(**asking("take your time")))


def read_to_the_end(question):
    """The events that came before an error, and the error."""
    events = []
    try:
        with once.messages.stream(**asking(question)) as stream:
            for event in stream:
                events.append(event.type)
    except (anthropic.APIError, httpx2.TransportError) as error:
        assert "message_stop" not in events
        return events, error
    return events, None


def error_event():
    sim("faults", "error-after:4")
    events, error = read_to_the_end("an error in the middle")
    assert isinstance(error, anthropic.APIStatusError) and error.status_code == 200
    assert error.body["error"] == {"type": "overloaded_error", "message": "Overloaded"}
    assert events[0] == "message_start"
    return events


def cut_stream():
    sim("faults", ["cut-after:5", "reset-after:5"])
    for way in ("cut", "reset"):
        _, error = read_to_the_end(f"a stream that is {way}")
        assert isinstance(error, httpx2.TransportError), f"{way}: {error!r}"


def cut_answer():
    sim("faults", "cut-after:3")
    error = raises(anthropic.APIConnectionError, lambda: once.messages.create(**asking("half an answer")))
    return type(error).__name__


def stream_without_its_last_events():
    """A proper end too early stays what it is; nothing is added to it."""
    sim("faults", "end-after:5")
    events, error = read_to_the_end("no last words")
    assert error is None and "message_stop" not in events
    return events


# Many at once


def many_at_once():
    async def one(many, number):
        async with many.messages.stream(**asking(f"number {number}")) as stream:
            return (await stream.get_final_message()).stop_reason

    async def all_of_them():
        async with anthropic.AsyncAnthropic() as many:
            return await asyncio.gather(*(one(many, number) for number in range(40)))

    assert asyncio.run(all_of_them()) == ["end_turn"] * 40


# Against an upstream that compresses what it sends


def compressed():
    message = client.messages.create(**asking("compressed"))
    assert text_of(message) == "unpacked"
    with client.messages.stream(**asking("compressed")) as stream:
        assert stream.get_final_message().usage.output_tokens == 9
        assert stream.response.headers["content-encoding"] == "gzip"


SESSION = [
    plain_call, raw_response, large_body, count_tokens, models,
    stream_helper, raw_stream, stream_equals_plain, abandoned_stream,
    tool_loop, tool_loop_streamed, thinking_round_trip, thinking_round_trip_streamed,
    tool_runner, tool_runner_streamed, compaction,
    compaction_streamed, prompt_cache,
    bad_request, prompt_too_long, wrong_key, other_statuses, rate_limit_is_waited_for,
    overload_is_retried, no_retry_when_told_so, reset_before_the_answer_is_retried, timeout,
    error_event, cut_stream, cut_answer, stream_without_its_last_events, many_at_once,
]

for check in [globals()[name] for name in sys.argv[1:]] or SESSION:
    seen = check()
    print("ok", check.__name__, json.dumps(seen), flush=True)
