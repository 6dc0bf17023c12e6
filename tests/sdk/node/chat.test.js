import assert from "node:assert/strict";
import test from "node:test";
import { HELLO, clientOf, eventually, modelOf, release, rows, script, seen } from "./support.js";

const client = clientOf();

const words = (chunk) => chunk.choices[0]?.delta?.content ?? "";

test("an answer in one piece", async (t) => {
  const model = modelOf(t);
  await script(model, { kind: "chat", text: "one two three" });
  const { data, response } = await client.chat.completions.create({ model, messages: HELLO }).withResponse();
  assert.equal(data.choices[0].message.content, "one two three");
  assert.equal(data.model, model);
  assert.equal(response.headers.get("x-gateway-target"), "openai");
  assert.equal(data._request_id, response.headers.get("x-request-id"));
});

test("a field that nobody knows goes both ways", async (t) => {
  const model = modelOf(t);
  const message = { role: "assistant", content: "Hi", vendor_trace: "kept" };
  const answer = { id: "x", object: "chat.completion", model, choices: [{ index: 0, message }], vendor: [1.5] };
  await script(model, { kind: "raw", status: 200, chunks: [JSON.stringify(answer)] });
  const got = await client.chat.completions.create({ model, messages: HELLO, vendor: { a: [1, "ü"] } });
  assert.deepEqual([got.vendor, got.choices[0].message.vendor_trace], [[1.5], "kept"]);
  const [request] = await seen(model);
  assert.equal(request.body, JSON.stringify({ model, messages: HELLO, vendor: { a: [1, "ü"] } }));
});

test("a stream with its usage", async (t) => {
  const model = modelOf(t);
  await script(model, { kind: "chat", text: "one two three" });
  const stream_options = { include_usage: true };
  const stream = await client.chat.completions.create({ model, messages: HELLO, stream: true, stream_options });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  assert.deepEqual(chunks.map(words).filter(Boolean), ["one ", "two ", "three"]);
  const last = chunks.at(-1);
  assert.deepEqual([last.choices, last.usage.completion_tokens], [[], 3]);
});

test("the SDK's own accumulator", async (t) => {
  const model = modelOf(t);
  await script(model, { kind: "chat", text: "one two three" });
  const stream = client.chat.completions.stream({ model, messages: HELLO });
  assert.equal(await stream.finalContent(), "one two three");
});

test("a stream that is aborted ends the upstream's work", async (t) => {
  const model = modelOf(t);
  await script(model, { kind: "chat", text: "one two three", gate: model });
  await release(model);
  const stream = await client.chat.completions.create({ model, messages: HELLO, stream: true });
  for await (const chunk of stream) {
    // Leaving the loop aborts the request.
    if (words(chunk)) break;
  }
  await eventually(async () => (await seen(model)).some((request) => request.cancelled));
  const [row] = await eventually(async () => {
    const found = await rows(model);
    return found.length > 0 && found;
  });
  assert.deepEqual([row.outcome, row.attempts_count], ["client_cancelled", 1]);
});
