import assert from "node:assert/strict";
import test from "node:test";
import OpenAI from "openai";
import { clientOf, modelOf, seen } from "./support.js";

const client = clientOf();

test("models are listed, and found by their ids", async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.deepEqual(ids, ["mock-small", "vendor/mock-large"]);
  assert.equal((await client.models.retrieve("vendor/mock-large")).owned_by, "openai");
});

test("a model that is not there", async () => {
  await assert.rejects(client.models.retrieve("nobody-has-this"), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, "model_not_found");
    return true;
  });
});

test("embeddings", async (t) => {
  const model = modelOf(t);
  const input = ["a", "b"];
  const { data } = await client.embeddings.create({ model, input, dimensions: 4, encoding_format: "float" });
  assert.deepEqual(data.map((entry) => entry.embedding), [[1, 0, 0, 0], [0, 1, 0, 0]]);
  const [request] = await seen(model);
  assert.equal(request.json.dimensions, 4);
});
