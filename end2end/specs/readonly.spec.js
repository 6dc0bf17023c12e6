import { load } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

test.use({ as: "read_only" });

test("who may only read sees keys and no way to change them", async ({ page, gateway }) => {
  await gateway.createKey("looked-at");
  await load(page, "/keys");
  await expect(page.getByRole("link", { name: "looked-at", exact: true })).toBeVisible();
  await expect(page.getByText("You see keys but cannot change them")).toBeVisible();
  const main = page.getByRole("main");
  await expect(main.getByRole("button")).toHaveCount(0);
});

test("who may only read can look at the playground and not send", async ({ page }) => {
  await load(page, "/playground");
  await expect(page.getByText("You can look but not send")).toBeVisible();
  await expect(page.getByRole("button", { name: "Send" })).toBeDisabled();
  let sent = false;
  page.on("request", (request) => (sent ||= request.url().includes("/v1/chat/completions")));
  await page.getByLabel("Message", { exact: true }).fill("Hello");
  await page.getByLabel("Message", { exact: true }).press("Control+Enter");
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();
  expect(sent).toBe(false);
});
