import assert from "node:assert/strict";
import test from "node:test";
import OpenAI from "openai";
import { HELLO, clientOf, modelOf, script } from "./support.js";

const client = clientOf();

async function refused(kind, call) {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
    return error;
  }
  assert.fail("it was not refused");
}

const ask = (model, by = client) => by.chat.completions.create({ model, messages: HELLO });

test("a key that is not valid", async (t) => {
  const error = await refused(OpenAI.AuthenticationError, ask(modelOf(t), clientOf(`sy_${"A".repeat(43)}`)));
  assert.deepEqual([error.status, error.code], [401, "invalid_api_key"]);
});

test("a bad request names the field", async (t) => {
  const model = modelOf(t);
  await script(model, { kind: "error", status: 400, message: "Must be at most 2", param: "temperature" });
  assert.equal((await refused(OpenAI.BadRequestError, ask(model))).param, "temperature");
});

test("a rate limit says how long to wait", async (t) => {
  const model = modelOf(t);
  await script(model, { kind: "error", status: 429, message: "Slow down", retry_after: "7" });
  assert.equal((await refused(OpenAI.RateLimitError, ask(model))).headers.get("retry-after"), "7");
});

test("a credential that the upstream refuses", async (t) => {
  const model = modelOf(t);
  await script(model, { kind: "error", status: 401, message: "No" });
  const error = await refused(OpenAI.InternalServerError, ask(model));
  assert.deepEqual([error.status, error.code], [502, "upstream_auth_error"]);
});

test("a cut stream is an error after its words", async (t) => {
  const model = modelOf(t);
  await script(model, { kind: "chat", text: "one two three", ending: { after: 2, how: "reset" } });
  const stream = await client.chat.completions.create({ model, messages: HELLO, stream: true });
  let text = "";
  const read = async () => {
    for await (const chunk of stream) text += chunk.choices[0].delta.content ?? "";
  };
  const error = await refused(OpenAI.APIError, read());
  assert.deepEqual([text, error.type], ["one two ", "upstream_error"]);
});
