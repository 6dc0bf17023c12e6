// Each dialect's own client, and the `ai` package, in front of upstreams of other wires.
import assert from "node:assert/strict";
import test from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { script } from "./support.js";

const { DIALECTS_URL, DIALECTS_KEY } = process.env;
const WIRES = ["openai", "anthropic", "gemini", "bedrock", "cohere"];
const QUESTION = "What is the weather in Hamburg and in Oslo?";
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const CALLS = ["Hamburg", "Oslo"].map((city, nth) => ({ id: `call_${nth}`, name: "weather", arguments: JSON.stringify({ city }) }));

const modelOf = (t, wire) => `${wire === "gemini" ? "gemini-3-" : ""}node ${t.name}`.replaceAll(" ", "-");
const only = (wire) => ({ "x-gateway-only": wire });
const turns = (model) =>
  script(model, { kind: "says", text: "I will look.", calls: CALLS }, { kind: "says", text: "Rain, and snow." });

/** What the `ai` package may be given as a model. */
const providers = {
  chat: (headers) => createOpenAI({ baseURL: `${DIALECTS_URL}/v1`, apiKey: DIALECTS_KEY, headers }).chat,
  responses: (headers) => createOpenAI({ baseURL: `${DIALECTS_URL}/v1`, apiKey: DIALECTS_KEY, headers }).responses,
  messages: (headers) => createAnthropic({ baseURL: `${DIALECTS_URL}/v1`, apiKey: DIALECTS_KEY, headers }),
};

for (const wire of WIRES) {
  for (const [surface, provider] of Object.entries(providers)) {
    for (const stream of [false, true]) {
      test(`ai by ${surface} at ${wire} ${stream ? "in a stream" : "in one piece"}`, async (t) => {
        const model = modelOf(t, wire);
        await turns(model);
        const asked = [];
        const weather = tool({
          description: "The weather in a city",
          inputSchema: jsonSchema(SCHEMA),
          execute: ({ city }) => {
            asked.push(city);
            return `weather of ${city}`;
          },
        });
        const call = {
          model: provider(only(wire))(model),
          prompt: QUESTION,
          tools: { weather },
          stopWhen: stepCountIs(3),
          maxRetries: 0,
        };
        const result = stream ? streamText(call) : await generateText(call);
        assert.equal(await result.text, "Rain, and snow.");
        assert.deepEqual(asked.sort(), ["Hamburg", "Oslo"]);
        assert.equal(await result.finishReason, "stop");
      });
    }
  }

  test(`@anthropic-ai/sdk at ${wire}`, async (t) => {
    const model = modelOf(t, wire);
    await turns(model);
    const client = new Anthropic({ baseURL: DIALECTS_URL, apiKey: DIALECTS_KEY, maxRetries: 0, defaultHeaders: only(wire) });
    const tools = [{ name: "weather", input_schema: SCHEMA }];
    const messages = [{ role: "user", content: QUESTION }];
    const first = await client.messages.stream({ model, max_tokens: 2048, messages, tools }).finalMessage();
    const uses = first.content.filter((block) => block.type === "tool_use");
    assert.deepEqual(uses.map((use) => use.input.city), ["Hamburg", "Oslo"]);
    const content = uses.map((use) => ({ type: "tool_result", tool_use_id: use.id, content: "rain" }));
    messages.push({ role: "assistant", content: first.content }, { role: "user", content });
    const second = await client.messages.create({ model, max_tokens: 2048, messages, tools });
    assert.equal(second.content[0].text, "Rain, and snow.");
  });

  test(`openai responses at ${wire}`, async (t) => {
    const model = modelOf(t, wire);
    await turns(model);
    const client = new OpenAI({ baseURL: `${DIALECTS_URL}/v1`, apiKey: DIALECTS_KEY, maxRetries: 0, defaultHeaders: only(wire) });
    const tools = [{ type: "function", name: "weather", parameters: SCHEMA, strict: true }];
    const first = await client.responses.stream({ model, input: QUESTION, tools }).finalResponse();
    const calls = first.output.filter((item) => item.type === "function_call");
    assert.deepEqual(calls.map((call) => JSON.parse(call.arguments).city), ["Hamburg", "Oslo"]);
    const input = calls.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: "rain" }));
    const second = await client.responses.create({ model, input, tools, previous_response_id: first.id });
    assert.equal(second.output_text, "Rain, and snow.");
  });

  test(`@google/genai at ${wire}`, async (t) => {
    const model = modelOf(t, wire);
    await turns(model);
    const client = new GoogleGenAI({ apiKey: DIALECTS_KEY, httpOptions: { baseUrl: DIALECTS_URL, headers: only(wire) } });
    const config = { tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: SCHEMA }] }] };
    const contents = [{ role: "user", parts: [{ text: QUESTION }] }];
    const parts = [];
    for await (const chunk of await client.models.generateContentStream({ model, contents, config })) {
      parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []).filter((part) => part.text !== ""));
    }
    const calls = parts.filter((part) => part.functionCall).map((part) => part.functionCall);
    assert.deepEqual(calls.map((call) => call.args.city), ["Hamburg", "Oslo"]);
    const results = calls.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: "rain" } } }));
    contents.push({ role: "model", parts }, { role: "user", parts: results });
    const answer = await client.models.generateContent({ model, contents, config });
    assert.equal(answer.text, "Rain, and snow.");
  });
}
