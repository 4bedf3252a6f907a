// What users of the TypeScript SDK do, with an assertion after each step.
//
// Run without arguments for the whole session, or with the names of some checks.
// The SDK takes its address and key from the environment as it does for anybody;
// SIM_URL is where the simulated upstream is told what to answer, so that the
// calls themselves carry nothing that a user's would not.
//
// Each check prints `ok NAME`, with what it saw behind it where that must not
// depend on what stands between the SDK and the API.

import assert from 'node:assert/strict';

import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';

const MODEL = 'claude-sonnet-5-5';
const BINDING = 'claude-opus-5-5';
const SMALL = 'claude-haiku-4-5';

const client = new Anthropic();
const once = client.withOptions({ maxRetries: 0 });

/** Tells the simulator something. */
async function sim(path, body) {
  const response = await fetch(`${process.env.SIM_URL}/_sim/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200, await response.text());
}

const user = (content) => ({ role: 'user', content });

/** The parameters of a call with one user message. */
const asking = (text, more = {}) => ({ model: MODEL, max_tokens: 2000, messages: [user(text)], ...more });

const textOf = (message) =>
  message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');

const call = (name, input) => ({ type: 'tool_use', name, input });

/** The error that `action` ends with. */
async function raises(kind, action) {
  let error;
  try {
    await action();
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error instanceof kind, `no ${kind.name} but ${error}`);
  return error;
}

const tool = (name, field) => ({
  name,
  description: `Takes a ${field}.`,
  input_schema: { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] },
});

const TOOLS = [tool('read', 'path'), tool('run', 'command')];

const session = {
  // Plain calls

  async plain_call() {
    await sim('replies', { text: 'Grüße, 世界 🌍' });
    const message = await client.messages.create(asking('say hello', { system: 'Be brief.' }));
    assert.equal(textOf(message), 'Grüße, 世界 🌍');
    assert.equal(message.stop_reason, 'end_turn');
    assert.equal(message.model, MODEL);
    assert.match(message._request_id, /^req_/);
    return [message.usage.input_tokens, message.usage.output_tokens];
  },

  async raw_response() {
    const { data, response, request_id } = await client.messages
      .create(asking('what comes in the headers'))
      .withResponse();
    assert.equal(request_id, data._request_id);
    assert.equal(response.headers.get('request-id'), request_id);
    assert.match(response.headers.get('anthropic-organization-id'), /^org/);
    return response.status;
  },

  async large_body() {
    const text = 'A line of a long file, as agents send it.\n'.repeat(5000);
    const message = await client.messages.create(asking(text));
    assert.ok(message.usage.input_tokens > 30_000);
    return message.usage.input_tokens;
  },

  async count_tokens() {
    const short = await client.messages.countTokens({ model: MODEL, messages: [user('one')] });
    const long = await client.messages.countTokens({
      model: MODEL,
      messages: [user('one '.repeat(500))],
      tools: TOOLS,
    });
    assert.ok(0 < short.input_tokens && short.input_tokens < long.input_tokens);
    return [short.input_tokens, long.input_tokens];
  },

  async models() {
    const found = [];
    for await (const model of client.models.list({ limit: 1000 })) found.push(model.id);
    assert.ok(found.includes(BINDING) && found.includes(MODEL));
    const model = await client.models.retrieve(BINDING);
    assert.equal(model.max_input_tokens, 1_000_000);
    const error = await raises(Anthropic.NotFoundError, () => client.models.retrieve('claude-foo'));
    assert.equal(error.error.error.message, 'model: claude-foo');
    return found.length;
  },

  // Streams

  async stream_helper() {
    await sim('replies', { text: 'word '.repeat(400) });
    const [pieces, events] = [[], []];
    const stream = client.messages.stream(asking('stream it')).on('text', (text) => pieces.push(text));
    for await (const event of stream) events.push(event.type);
    const message = await stream.finalMessage();
    assert.equal(pieces.join(''), 'word '.repeat(400));
    assert.equal(textOf(message), 'word '.repeat(400));
    assert.ok(pieces.length > 10);
    assert.equal(events[0], 'message_start');
    assert.equal(events.at(-1), 'message_stop');
    assert.equal(message.stop_reason, 'end_turn');
    assert.ok(message.usage.output_tokens > 400);
    return [events.length, message.usage.input_tokens, message.usage.output_tokens];
  },

  async raw_stream() {
    await sim('replies', { content: [call('read', { path: '/project/ä.txt' })] });
    const kinds = [];
    let [input, usage, reason] = [''];
    for await (const event of await client.messages.create({
      ...asking('stream a call', { tools: TOOLS }),
      stream: true,
    })) {
      kinds.push(event.type);
      if (event.delta?.type === 'input_json_delta') input += event.delta.partial_json;
      if (event.type === 'message_delta') [usage, reason] = [event.usage, event.delta.stop_reason];
    }
    assert.deepEqual(JSON.parse(input), { path: '/project/ä.txt' });
    assert.equal(kinds[0], 'message_start');
    assert.equal(kinds.at(-1), 'message_stop');
    assert.equal(reason, 'tool_use');
    assert.ok(usage.output_tokens > 1);
    return [kinds, usage.output_tokens];
  },

  async stream_equals_plain() {
    const reply = { content: [{ type: 'text', text: 'first' }, call('run', { command: 'make' })] };
    await sim('replies', [reply, reply]);
    const plain = await client.messages.create(asking('twice the same', { tools: TOOLS }));
    const streamed = await client.messages.stream(asking('twice the same', { tools: TOOLS })).finalMessage();
    const seen = ({ content }) => content.map(({ type, text, input }) => ({ type, text, input }));
    assert.deepEqual(seen(plain), seen(streamed));
    assert.equal(plain.usage.output_tokens, streamed.usage.output_tokens);
    return plain.stop_reason;
  },

  async abandoned_stream() {
    await sim('replies', { text: 'word '.repeat(400) });
    const stream = await client.messages.create({ ...asking('nobody reads this to its end'), stream: true });
    for await (const event of stream) if (event.type === 'content_block_delta') break;
    const message = await client.messages.create(asking('still there?'));
    assert.equal(message.stop_reason, 'end_turn');
  },

  // Tools

  async tool_loop() {
    await loopScript();
    const turns = await handWrittenLoop(MODEL, false, 'do the work');
    assert.deepEqual(turns.map((turn) => results(turn).length), [2, 1, 3, 0]);
    assert.equal(textOf(turns.at(-1)), 'Done.');
    return turns.map((turn) => turn.usage.input_tokens);
  },

  async tool_loop_streamed() {
    await loopScript();
    const turns = await handWrittenLoop(MODEL, true, 'do the work while I watch');
    assert.deepEqual(turns.map((turn) => results(turn).length), [2, 1, 3, 0]);
    return turns.map((turn) => turn.usage.input_tokens);
  },

  thinking_round_trip: () => thinkingLoop(false, 'think about it'),

  thinking_round_trip_streamed: () => thinkingLoop(true, 'think about it aloud'),

  async tool_runner() {
    const calls = [];
    await runnerScript();
    const runner = client.beta.messages.toolRunner(
      asking('look three words up', { model: BINDING, tools: runnerTools(calls) }),
    );
    const turns = [];
    for await (const message of runner) turns.push(message);
    await sim('rule', { type: 'text' });
    assert.equal(turns.length, 4);
    assert.equal(calls.length, 6);
    assert.equal(textOf(turns.at(-1)), 'All found.');
    const sizes = turns.map((turn) => turn.usage.input_tokens);
    assert.ok(
      sizes.every((size, turn) => turn === 0 || size > sizes[turn - 1]),
      'the whole history is read, held upstream or sent',
    );
    return [calls.sort(), sizes];
  },

  async tool_runner_streamed() {
    const [calls, pieces] = [[], []];
    await runnerScript();
    const runner = client.beta.messages.toolRunner({
      ...asking('look up, and tell me as you go', { tools: runnerTools(calls) }),
      stream: true,
    });
    let turns = 0;
    for await (const stream of runner) {
      turns += 1;
      for await (const event of stream) if (event.delta?.type === 'text_delta') pieces.push(event.delta.text);
    }
    await sim('rule', { type: 'text' });
    assert.equal(turns, 4);
    assert.equal(calls.length, 6);
    assert.ok(pieces.join('').endsWith('All found.'));
    return calls.sort();
  },

  compaction: () => compactingRunner(false, 'look up until it is too much'),

  compaction_streamed: () => compactingRunner(true, 'look up until it is too much to tell'),

  // The prompt cache

  async prompt_cache() {
    const cache_control = { type: 'ephemeral' };
    const system = [{ type: 'text', text: 'Rule: be careful with files.\n'.repeat(400), cache_control }];
    const [messages, reads, writes] = [[], [], []];
    for (let turn = 0; turn < 4; turn += 1) {
      messages.push(user(`question ${turn}: ${'details '.repeat(300)}`));
      const message = await client.messages.create({
        model: BINDING, max_tokens: 2000, system, messages, cache_control,
      });
      messages.push({ role: 'assistant', content: message.content });
      reads.push(message.usage.cache_read_input_tokens);
      writes.push(message.usage.cache_creation_input_tokens);
    }
    let written = 0;
    for (const [turn, read] of reads.entries()) {
      assert.equal(read, written);
      assert.ok(writes[turn] > 0);
      written += writes[turn];
    }
    assert.ok(writes[0] > 2000);
    return [reads, writes];
  },

  // Errors

  async bad_request() {
    const unanswered = { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'x' } };
    const messages = [user('x'), { role: 'assistant', content: [unanswered] }, user('and now?')];
    const error = await raises(Anthropic.BadRequestError, () =>
      client.messages.create({ model: MODEL, max_tokens: 100, messages, tools: TOOLS }),
    );
    assert.equal(error.status, 400);
    assert.equal(error.type, 'invalid_request_error');
    assert.match(error.message, /`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1/);
    assert.match(error.requestID, /^req_/);
    return error.error.error.message;
  },

  async prompt_too_long() {
    const error = await raises(Anthropic.BadRequestError, () =>
      client.messages.create(asking('much too long '.repeat(4000), { model: SMALL })),
    );
    const { message } = error.error.error;
    assert.match(message, /^prompt is too long: \d+ tokens > \d+ maximum$/);
    return message;
  },

  async wrong_key() {
    const stranger = client.withOptions({ apiKey: 'sk-wrong' });
    const error = await raises(Anthropic.AuthenticationError, () =>
      stranger.messages.create(asking('let me in')),
    );
    assert.equal(error.error.error.type, 'authentication_error');
    return error.error.error.message;
  },

  async other_statuses() {
    const kinds = [
      [403, Anthropic.PermissionDeniedError],
      [404, Anthropic.NotFoundError],
      [413, Anthropic.APIError],
      [429, Anthropic.RateLimitError],
      [500, Anthropic.InternalServerError],
      [529, Anthropic.InternalServerError],
    ];
    const seen = [];
    for (const [status, kind] of kinds) {
      await sim('faults', { type: 'status', status, retry_after: 7 });
      const error = await raises(kind, () => once.messages.create(asking(`fail with ${status}`)));
      assert.equal(error.status, status);
      assert.equal(error.headers.get('retry-after'), '7');
      seen.push([status, error.error.error]);
    }
    return seen;
  },

  async rate_limit_is_waited_for() {
    await sim('faults', '429:1');
    const start = performance.now();
    const message = await client.messages.create(asking('not too fast'));
    const waited = performance.now() - start;
    assert.ok(900 < waited && waited < 10_000, `waited ${waited} ms`);
    return message.stop_reason;
  },

  async overload_is_retried() {
    await sim('faults', [{ type: 'status', status: 529, retry_after: 0 }, '529:0']);
    return (await client.messages.create(asking('try again'))).stop_reason;
  },

  async no_retry_when_told_so() {
    await sim('faults', { type: 'status', status: 529, should_retry: false });
    const error = await raises(Anthropic.InternalServerError, () =>
      client.messages.create(asking('do not try again')),
    );
    return error.headers.get('x-should-retry');
  },

  async reset_before_the_answer_is_retried() {
    await sim('faults', 'reset');
    return (await client.messages.create(asking('cut off before a word'))).stop_reason;
  },

  async timeout() {
    await sim('faults', 'hang');
    const impatient = once.withOptions({ timeout: 500 });
    await raises(Anthropic.APIConnectionTimeoutError, () =>
      impatient.messages.create(asking('take your time')),
    );
  },

  async error_event() {
    await sim('faults', 'error-after:4');
    const { events, error } = await readToTheEnd('an error in the middle');
    assert.ok(error instanceof Anthropic.APIError, `${error}`);
    assert.deepEqual(error.error.error, { type: 'overloaded_error', message: 'Overloaded' });
    assert.equal(events[0], 'message_start');
    return events;
  },

  async cut_stream() {
    await sim('faults', ['cut-after:5', 'reset-after:5']);
    for (const way of ['cut', 'reset']) {
      const { error } = await readToTheEnd(`a stream that is ${way}`);
      assert.match(`${error}`, /terminated/, way);
    }
    await sim('faults', 'cut-after:5');
    const helper = once.messages.stream(asking('a helper that is cut'));
    await raises(Anthropic.AnthropicError, () => helper.finalMessage());
  },

  async cut_answer() {
    await sim('faults', 'cut-after:3');
    let error;
    await once.messages.create(asking('half an answer')).catch((thrown) => (error = thrown));
    assert.ok(error, 'half an answer was taken for a whole one');
    return error.constructor.name;
  },

  /** A proper end too early stays what it is; nothing is added to it. */
  async stream_without_its_last_events() {
    await sim('faults', 'end-after:5');
    const { events, error } = await readToTheEnd('no last words');
    assert.equal(error, undefined);
    assert.ok(!events.includes('message_stop'));
    return events;
  },

  // Many at once

  async many_at_once() {
    const numbers = Array.from({ length: 40 }, (_, number) => number);
    const messages = await Promise.all(
      numbers.map((number) => client.messages.stream(asking(`number ${number}`)).finalMessage()),
    );
    assert.ok(messages.every((message) => message.stop_reason === 'end_turn'));
  },
};

/** Against an upstream that compresses what it sends. */
async function compressed() {
  const message = await client.messages.create(asking('compressed'));
  assert.equal(textOf(message), 'unpacked');
  const stream = client.messages.stream(asking('compressed'));
  const { response } = await stream.withResponse();
  assert.equal(response.headers.get('content-encoding'), 'gzip');
  assert.equal((await stream.finalMessage()).usage.output_tokens, 9);
}

/** What an agent answers to the calls of a message, one of them failed. */
function results(message) {
  const calls = message.content.filter((block) => block.type === 'tool_use');
  return calls.map(({ id, input }) => {
    const words = JSON.stringify(input);
    const is_error = words.includes('missing');
    const content = is_error ? 'no such file' : [{ type: 'text', text: `did ${words}` }];
    return { type: 'tool_result', tool_use_id: id, content, is_error };
  });
}

/** The loop as the documentation shows it; the messages of all turns. */
async function handWrittenLoop(model, stream, question, more = {}) {
  const [messages, turns] = [[user(question)], []];
  for (;;) {
    const params = { model, max_tokens: 4000, messages, tools: TOOLS, ...more };
    const message = stream
      ? await client.messages.stream(params).finalMessage()
      : await client.messages.create(params);
    turns.push(message);
    messages.push({ role: 'assistant', content: message.content });
    if (message.stop_reason !== 'tool_use') return turns;
    messages.push(user(results(message)));
  }
}

const loopScript = () =>
  sim('replies', [
    {
      with_thinking: true,
      content: [
        { type: 'text', text: 'Let me look.' },
        call('read', { path: '/project/a' }),
        call('read', { path: '/project/missing' }),
      ],
    },
    { with_thinking: true, content: [call('run', { command: 'make "all"\n' })] },
    {
      with_thinking: true,
      content: [call('run', { command: 'a' }), call('run', { command: 'b' }), call('read', { path: 'c' })],
    },
    { with_thinking: true, text: 'Done.' },
  ]);

/** Signed thinking comes back with every request, and the upstream checks it. */
async function withChangedThinking() {
  await sim('replies', { with_thinking: true, content: [call('read', { path: 'x' })] });
  const first = await client.messages.create(asking('as it was', { model: BINDING, tools: TOOLS }));
  const messages = [
    user('as it never was'),
    { role: 'assistant', content: first.content },
    user(results(first)),
  ];
  return client.messages.create({ model: BINDING, max_tokens: 2000, messages, tools: TOOLS });
}

/** Thinking behind an edited message is refused: the upstream does check. */
async function changed_thinking() {
  const error = await raises(Anthropic.BadRequestError, withChangedThinking);
  assert.match(error.message, /bound to a different conversation/);
  return error.error.error.message;
}

/** The same, where somebody asks the upstream to drop it. */
async function healed_thinking() {
  return (await withChangedThinking()).stop_reason;
}

async function thinkingLoop(stream, question) {
  await sim('rule', { type: 'call_tool', name: 'read', times: 5, parallel: 2, words: 8 });
  const thinking = { type: 'adaptive', display: 'summarized' };
  const turns = await handWrittenLoop(BINDING, stream, question, { thinking });
  await sim('rule', { type: 'text' });
  assert.equal(turns.length, 6);
  const signed = turns.flatMap((turn) => turn.content).filter((block) => block.type === 'thinking');
  assert.ok(signed.length >= 6 && signed.every((block) => block.signature));
  assert.ok(signed.some((block) => block.thinking));
  return [signed.length, turns.map((turn) => turn.usage.input_tokens)];
}

const runnerScript = () =>
  sim('rule', { type: 'call_tool', name: 'look_up', times: 3, parallel: 2, finish: 'All found.' });

const runnerTools = (calls) => [
  betaTool({
    name: 'look_up',
    description: 'Looks a word up.',
    inputSchema: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] },
    run({ word }) {
      calls.push(word);
      return `${word} is a word`;
    },
  }),
];

/** The runner has the API compact the conversation and goes on from the summary. */
async function compactingRunner(stream, question) {
  const turns = [];
  await runnerScript();
  const runner = client.beta.messages.toolRunner({
    ...asking(question, { model: BINDING, tools: runnerTools([]), betas: ['compact-2026-09-04'] }),
    stream,
  });
  for await (const turn of runner) {
    turns.push(stream ? await turn.finalMessage() : turn);
    if (turns.length === 2) runner.compactBeforeNextTurn();
  }
  await sim('rule', { type: 'text' });
  const reasons = turns.map((turn) => turn.stop_reason);
  assert.deepEqual(reasons.slice(0, 3), ['tool_use', 'tool_use', 'compaction']);
  assert.ok(turns[2].content[0].signature);
  assert.equal(textOf(turns.at(-1)), 'All found.');
  return turns.map((turn) => turn.usage.input_tokens);
}

/** The events that came before an error, and the error. */
async function readToTheEnd(question) {
  const events = [];
  try {
    const stream = await once.messages.create({ ...asking(question), stream: true });
    for await (const event of stream) events.push(event.type);
  } catch (error) {
    assert.ok(!events.includes('message_stop'));
    return { events, error };
  }
  return { events };
}

const wanted = process.argv.slice(2);
for (const name of wanted.length ? wanted : Object.keys(session)) {
  const seen = await { ...session, compressed, changed_thinking, healed_thinking }[name]();
  console.log('ok', name, JSON.stringify(seen ?? null));
}
