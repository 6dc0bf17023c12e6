import assert from "node:assert/strict";
import test from "node:test";
import { HELLO, clientOf, modelOf, script, seen } from "./support.js";

const client = clientOf();

const calls = ["Hamburg", "Oslo"].map((city, nth) => ({
  id: `call_${nth}`,
  name: "weather",
  arguments: JSON.stringify({ city }),
}));

for (const stream of [false, true]) {
  test(`runTools ${stream ? "in streams" : "in one piece"}`, async (t) => {
    const model = modelOf(t);
    await script(model, { kind: "tools", calls }, { kind: "chat", text: "Rain, and snow." });
    const asked = [];
    const weather = ({ city }) => {
      asked.push(city);
      return `weather of ${city}`;
    };
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const tool = { type: "function", function: { name: "weather", parameters, parse: JSON.parse, function: weather } };
    const runner = client.chat.completions.runTools({ model, messages: HELLO, tools: [tool], stream });

    assert.equal(await runner.finalContent(), "Rain, and snow.");
    assert.deepEqual(asked, ["Hamburg", "Oslo"]);
    const [, second] = await seen(model);
    const results = second.json.messages.filter((message) => message.role === "tool");
    assert.deepEqual(
      results.map((result) => [result.tool_call_id, result.content]),
      [
        ["call_0", "weather of Hamburg"],
        ["call_1", "weather of Oslo"],
      ],
    );
  });
}
