import { load, panel } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

const message = (page) => page.getByLabel("Message");
const send = (page) => page.getByRole("button", { name: "Send" });
const stop = (page) => page.getByRole("button", { name: "Stop" });
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
  await expect(page.getByText(/Rate limit reached for demo-429/)).toBeVisible();
  await expect(message(page)).toHaveValue("Hello");
  await expect(send(page)).toBeEnabled();
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
