import { load, panel } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

const message = (page) => page.getByLabel("Message", { exact: true });
const send = (page) => page.getByRole("button", { name: "Send" });
const stop = (page) => page.getByRole("button", { name: "Stop" });
const conversation = (page) => panel(page, "Conversation");
const raw = (page) => page.getByRole("region", { name: "Raw stream" });
const dialect = (page, name) => page.getByRole("radio", { name, exact: true });
/** Where an answer of the simulated provider stands. */
const answer = (page) => page.getByText(/^\(simulated\)/);

async function ask(page, text, model) {
  if (model) await page.getByLabel("Model").fill(model);
  await message(page).fill(text);
  await send(page).click();
}

test("an answer comes in word by word, with what it took", async ({ page, gateway }) => {
  await load(page, "/playground");
  await ask(page, "Why do ships float?");
  await expect(answer(page)).toBeVisible();
  const early = (await answer(page).textContent()).length;
  await expect.poll(async () => (await answer(page).textContent()).length).toBeGreaterThan(early);
  await expect(send(page)).toBeEnabled();
  await expect(stop(page)).toBeDisabled();
  await expect(message(page)).toHaveValue("");

  const conversation = panel(page, "Conversation");
  await expect(conversation).toContainText("Why do ships float?");
  await expect(conversation).toContainText(/first token [\d.]+ m?s/);
  await expect(conversation).toContainText(/\d+ in, \d+ out/);
  const link = conversation.getByRole("link", { name: "request" });
  const { prompt_tokens, stream, surface } = await gateway.log((await link.getAttribute("href")).split("/").at(-1));
  expect([stream, surface]).toEqual([true, "chat"]);
  await expect(conversation).toContainText(`${prompt_tokens} in`);
  await link.click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("demo, answered by demo");
});

test("Stop ends the answer here and at the upstream, and keeps what came", async ({ page, gateway }) => {
  await load(page, "/playground");
  await message(page).fill("Tell me a long story");
  await message(page).press("Control+Enter");
  await expect(answer(page)).toBeVisible();
  await stop(page).click();
  await expect(page.getByText("Stopped.")).toBeVisible();
  await expect(answer(page)).toBeVisible();
  await expect(send(page)).toBeEnabled();
  const link = panel(page, "Conversation").getByRole("link", { name: "request" });
  const { outcome, attempts } = await gateway.log((await link.getAttribute("href")).split("/").at(-1));
  expect([outcome, attempts.length]).toEqual(["client_cancelled", 1]);
});

test("Stop before the first word gives the message back", async ({ page }) => {
  await load(page, "/playground");
  await ask(page, "Are you there?", "demo-slow");
  await expect(page.getByText("Waiting for the first token…")).toBeVisible();
  await stop(page).click();
  await expect(page.getByText("Stopped.")).toBeVisible();
  await expect(message(page)).toHaveValue("Are you there?");
});

test("a refusal is shown, and the message stays", async ({ page, complaints }) => {
  complaints.expect(/status of 429/);
  await load(page, "/playground");
  await ask(page, "Hello", "demo-429");
  await expect(conversation(page)).toContainText(/Rate limit reached for demo-429.*\(429, rate_limit_exceeded\)/);
  await expect(message(page)).toHaveValue("Hello");
  await expect(send(page)).toBeEnabled();
  // The conversation has no trace of it; what came over the line stays to be looked at.
  await expect(raw(page)).toContainText('"code":"rate_limit_exceeded"');
  await panel(page, "The answer's headers").getByRole("link").click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("demo-429, failed after 1 attempt");
});

test("an answer that is cut off says so", async ({ page, gateway }) => {
  await load(page, "/playground?model=demo-cut");
  await expect(page.getByLabel("Model")).toHaveValue("demo-cut");
  await ask(page, "Hello");
  await expect(answer(page)).toBeVisible();
  const link = panel(page, "Conversation").getByRole("link", { name: "request" });
  const { outcome, error_message } = await gateway.log((await link.getAttribute("href")).split("/").at(-1));
  expect(outcome).toBe("partial");
  await expect(panel(page, "Conversation")).toContainText(error_message);
});

test("the conversation goes along, and outlives a look at another page", async ({ page }) => {
  await load(page, "/playground");
  await page.getByLabel("Most tokens").fill("4");
  await ask(page, "The first question");
  await expect(send(page)).toBeEnabled();
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();
  await page.getByRole("link", { name: "Playground", exact: true }).first().click();
  await expect(panel(page, "Conversation")).toContainText("The first question");

  const sent = page.waitForRequest("**/v1/chat/completions");
  await ask(page, "The second question");
  const { messages, max_tokens } = (await sent).postDataJSON();
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
  expect(max_tokens).toBe(4);
  await expect(send(page)).toBeEnabled();
  await page.getByRole("button", { name: "Clear" }).click();
  await expect(page.getByText("Nothing has been said yet.")).toBeVisible();
});

test("a setting that cannot be meant is refused before it is sent", async ({ page }) => {
  await load(page, "/playground");
  await page.getByLabel("Temperature").fill("hot");
  await ask(page, "Hello");
  await expect(page.getByText("Temperature is a number from 0 to 2, or empty.")).toBeVisible();
  await expect(message(page)).toHaveValue("Hello");
});

const DIALECTS = [
  {
    name: "Chat",
    surface: "chat",
    path: "/v1/chat/completions",
    sent: { messages: [{ role: "user", content: "Why do ships float?" }], stream_options: { include_usage: true } },
    frame: '"object":"chat.completion.chunk"',
    refusal: "rate_limit_exceeded",
  },
  {
    name: "Responses",
    surface: "responses",
    path: "/v1/responses",
    sent: { input: [{ role: "user", content: "Why do ships float?" }], store: false },
    frame: "event: response.output_text.delta",
    refusal: "rate_limit_exceeded",
  },
  {
    name: "Messages",
    surface: "messages",
    path: "/v1/messages",
    sent: { messages: [{ role: "user", content: "Why do ships float?" }], max_tokens: 4096 },
    frame: "event: content_block_delta",
    refusal: "rate_limit_exceeded",
  },
  {
    name: "Gemini",
    surface: "generate_content",
    path: "/v1beta/models/demo:streamGenerateContent?alt=sse",
    sent: { contents: [{ role: "user", parts: [{ text: "Why do ships float?" }] }] },
    frame: '"candidates"',
    refusal: "RESOURCE_EXHAUSTED",
  },
];

for (const { name, surface, path, sent, frame, refusal } of DIALECTS) {
  test(`a conversation in the dialect ${name}`, async ({ page, gateway }) => {
    await load(page, "/playground");
    await dialect(page, name).check();
    await expect(panel(page, "Request")).toContainText(`POST ${path}`);
    const asked = page.waitForRequest((request) => request.url() === gateway.url + path);
    await ask(page, "Why do ships float?");
    expect((await asked).postDataJSON()).toMatchObject(sent);
    await expect(answer(page)).toBeVisible();
    await expect(send(page)).toBeEnabled({ timeout: 20_000 });
    await expect(conversation(page)).toContainText(`in ${name}`);
    await expect(conversation(page)).toContainText(/\d+ in, \d+ out/);
    await expect(conversation(page)).not.toContainText("ended by");
    await expect(raw(page)).toContainText(frame);

    const headers = panel(page, "The answer's headers");
    await expect(headers).toContainText("x-gateway-target");
    const id = await headers.getByRole("link").textContent();
    const { surface: recorded, stream, outcome, notes } = await gateway.log(id);
    expect([recorded, stream, outcome]).toEqual([surface, true, "success"]);
    // The simulated provider speaks chat. What is told of a translation stands in the answer's head too.
    const told = notes.length > 0 && surface !== "chat";
    await expect(headers.getByText("x-gateway-translation")).toHaveCount(told ? 1 : 0);

    // What was said goes along, in the same words.
    const again = page.waitForRequest((request) => request.url() === gateway.url + path);
    await ask(page, "And iron?");
    const { messages, input, contents } = (await again).postDataJSON();
    const role = name === "Gemini" ? "model" : "assistant";
    expect((messages ?? input ?? contents).map(({ role }) => role)).toEqual(["user", role, "user"]);
    await stop(page).click();
  });

  test(`a refusal in the dialect ${name}`, async ({ page, complaints }) => {
    complaints.expect(/status of 429/);
    await load(page, `/playground?model=demo-429&dialect=${surface}`);
    await expect(dialect(page, name)).toBeChecked();
    await ask(page, "Hello");
    await expect(conversation(page)).toContainText(`(429, ${refusal})`);
    await expect(conversation(page)).toContainText("Rate limit reached for demo-429");
    await expect(raw(page)).toContainText('"error"');
  });
}

/** What vendors send, and a test need not wait for. */
const STREAMS = {
  chat: [
    { choices: [{ delta: { role: "assistant", reasoning_content: "Harbours first." } }] },
    { choices: [{ delta: { content: "Let me " } }] },
    { choices: [{ delta: { content: "look." } }] },
    { choices: [{ delta: { tool_calls: [{ index: 0, id: "c", function: { name: "stock", arguments: "" } }] } }] },
    { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '{"site":1}' } }] } }] },
    { choices: [{ delta: {}, finish_reason: "tool_calls" }] },
    { choices: [], usage: { prompt_tokens: 42, completion_tokens: 18 } },
  ],
  responses: [
    { type: "response.created", response: { status: "in_progress" } },
    { type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: 0, delta: "Harbours first." },
    { type: "response.output_text.delta", output_index: 1, delta: "Let me " },
    { type: "response.output_text.delta", output_index: 1, delta: "look." },
    { type: "response.output_text.done", output_index: 1, text: "Let me look." },
    { type: "response.output_item.added", output_index: 2, item: { type: "function_call", name: "stock" } },
    { type: "response.function_call_arguments.delta", output_index: 2, delta: '{"site":1}' },
    {
      type: "response.completed",
      response: { status: "completed", usage: { input_tokens: 42, output_tokens: 18 } },
    },
  ],
  messages: [
    { type: "message_start", message: { usage: { input_tokens: 40, cache_read_input_tokens: 2, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Harbours first." } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "Eq0" } },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
    { type: "ping" },
    { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Let me look." } },
    { type: "content_block_start", index: 2, content_block: { type: "tool_use", id: "t", name: "stock", input: {} } },
    { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"site":1}' } },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 18 } },
    { type: "message_stop" },
  ],
  generate_content: [
    { candidates: [{ content: { role: "model", parts: [{ text: "Harbours first.", thought: true }] } }] },
    { candidates: [{ content: { role: "model", parts: [{ text: "Let me look." }] } }] },
    {
      candidates: [
        { content: { parts: [{ functionCall: { name: "stock", args: { site: 1 } } }] }, finishReason: "STOP" },
      ],
      usageMetadata: { promptTokenCount: 42, candidatesTokenCount: 10, thoughtsTokenCount: 8 },
    },
  ],
};

for (const [surface, events] of Object.entries(STREAMS)) {
  test(`words, reasoning and calls are found in a stream of ${surface}`, async ({ page, axe }) => {
    const end = surface === "chat" ? "data: [DONE]\n\n" : "";
    const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + end;
    const answers = /\/v1(beta)?\/(chat|responses|messages|models\/.*:stream)/;
    await page.route(answers, (route) => route.fulfill({ contentType: "text/event-stream", body }));
    await load(page, `/playground?model=any&dialect=${surface}`);
    await ask(page, "Where is it?");
    await expect(send(page)).toBeEnabled();
    await expect(conversation(page).getByText("Let me look.", { exact: true })).toBeVisible();
    await expect(conversation(page).locator("code")).toHaveText('stock({"site":1})');
    await conversation(page).getByText("Reasoning", { exact: true }).click();
    await expect(conversation(page).getByText("Harbours first.", { exact: true })).toBeVisible();
    await expect(conversation(page)).toContainText("42 in, 18 out");
    // As it came, to the byte.
    await expect.poll(() => raw(page).textContent()).toBe(body);
    await axe();
  });
}

test("a stream that ends without its dialect's end is cut", async ({ page }) => {
  const cut = { messages: STREAMS.messages.slice(0, -1), generate_content: STREAMS.generate_content.slice(0, -1) };
  for (const [surface, events] of Object.entries(cut)) {
    const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    await page.route(/\/v1\/messages|:stream/, (route) => route.fulfill({ contentType: "text/event-stream", body }));
    await load(page, `/playground?model=any&dialect=${surface}`);
    await ask(page, "Where is it?");
    await expect(conversation(page)).toContainText("The line was cut before the answer's end.");
  }
});

test("of a long stream the beginning is shown, and that it is one", async ({ page }) => {
  const event = `data: ${JSON.stringify({ choices: [{ delta: { content: "é".repeat(500) } }] })}\n\n`;
  const body = event.repeat(80) + "data: [DONE]\n\n";
  await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream", body }));
  await load(page, "/playground?model=any");
  const before = await panel(page, "Raw stream").boundingBox();
  await ask(page, "Say much");
  await expect(send(page)).toBeEnabled();
  await expect(panel(page, "Raw stream")).toContainText(/first 65,53\d bytes/);
  const shown = await raw(page).textContent();
  expect(body.startsWith(shown)).toBe(true);
  expect(shown.length).toBeLessThan(body.length);
  // It scrolls in its place, for a keyboard too.
  const { scrollHeight, clientHeight } = await raw(page).evaluate(({ scrollHeight, clientHeight }) => ({
    scrollHeight,
    clientHeight,
  }));
  expect(scrollHeight).toBeGreaterThan(clientHeight);
  await raw(page).focus();
  await expect(raw(page)).toBeFocused();
  await page.keyboard.press("PageDown");
  await expect.poll(() => raw(page).evaluate(({ scrollTop }) => scrollTop)).toBeGreaterThan(0);
  const after = await panel(page, "Raw stream").boundingBox();
  expect(after.height).toBe(before.height);
});

test("the raw stream can be copied", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await load(page, "/playground");
  const copy = page.getByRole("button", { name: "Copy the raw stream" });
  await expect(copy).toBeDisabled();
  await page.getByLabel("Most tokens").fill("4");
  await ask(page, "Hello");
  await expect(send(page)).toBeEnabled();
  await copy.click();
  await expect(panel(page, "Raw stream").getByRole("status")).toHaveText("Copied");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toMatch(/^data: \{.*data: \[DONE\]\s+$/s);
  expect(copied).toBe(await raw(page).textContent());

  // Still there after a look at another page; gone with the conversation.
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();
  await page.getByRole("link", { name: "Playground", exact: true }).first().click();
  await expect.poll(() => raw(page).textContent()).toBe(copied);
  await page.getByRole("button", { name: "Clear" }).click();
  await expect(raw(page)).toHaveText("");
  await expect(copy).toBeDisabled();
});

test("arrow keys choose the dialect", async ({ page }) => {
  await load(page, "/playground");
  await expect(page.getByRole("group", { name: "Dialect" })).toBeVisible();
  await dialect(page, "Chat").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(dialect(page, "Messages")).toBeFocused();
  await expect(dialect(page, "Messages")).toBeChecked();
  await expect(panel(page, "Request")).toContainText("POST /v1/messages");
  await expect(page.getByLabel("Most tokens")).toHaveAttribute("placeholder", "4096");
});

test("a conversation in every dialect fits a phone", async ({ page }) => {
  await page.setViewportSize({ width: 320, height: 640 });
  await load(page, "/playground?model=demo&dialect=generate_content");
  await page.getByLabel("Most tokens").fill("4");
  await ask(page, "Hello");
  await expect(send(page)).toBeEnabled();
  await expect(raw(page)).not.toHaveText("");
  const root = page.locator("html");
  await expect.poll(() => root.evaluate(({ scrollWidth }) => scrollWidth), "width of the page").toBe(320);
});
