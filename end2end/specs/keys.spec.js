import { load, panel } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

const create = (page) => page.getByRole("dialog", { name: "Create a key" });

test("a key's life: made, shown once, used, seen, revoked, refused", async ({ page, gateway }) => {
  await load(page, "/keys");
  await page.getByRole("button", { name: "Create key" }).click();
  await create(page).getByLabel("Name").fill("web-app");
  await create(page).getByRole("button", { name: "Create key" }).click();

  const reveal = page.getByRole("dialog", { name: "web-app is ready" });
  const key = await reveal.getByText(/^sy_[\w-]{43}$/).textContent();
  await expect(reveal).toContainText(`Authorization: Bearer ${key}`);
  await expect(reveal).toContainText(gateway.url);
  // A stray key must not lose it.
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await expect(reveal).toBeVisible();
  await reveal.getByRole("button", { name: "Done" }).click();
  await expect(reveal).toBeHidden();
  expect(await page.content()).not.toContain(key);
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "web-app", exact: true }) });
  await expect(row).toContainText("Live");

  const id = await gateway.chat("demo", { key });
  await page.getByRole("link", { name: "Requests", exact: true }).click();
  const request = page.getByRole("row").filter({ hasText: "web-app" });
  await expect(request).toContainText("simulated");
  await request.getByRole("link").click();
  await expect(page).toHaveURL(`/requests/${id}`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("demo, answered by demo");
  const candidates = page.getByRole("table", { name: /^Candidates in order/ });
  await expect(candidates.getByRole("row", { name: /^1 ?demo answered:/ })).toBeVisible();
  const attempts = panel(page, "Attempts").getByRole("row");
  await expect(attempts).toHaveCount(2);
  await expect(attempts.last()).toContainText("success (200)");
  await expect(panel(page, "Facts")).toContainText("web-app");

  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("button", { name: "Revoke web-app" }).click();
  const revoke = page.getByRole("dialog", { name: "Revoke web-app?" });
  await expect(revoke).toContainText("for 1 request in all");
  await revoke.getByRole("button", { name: "Revoke key" }).click();
  await expect
    .poll(async () => (await gateway.fetch("/v1/models", { key })).status, { timeout: 1_000, intervals: [20] })
    .toBe(401);
  await expect(revoke).toBeHidden();
  await expect(row).toContainText("Revoked");
  await expect(row.getByRole("button")).toHaveCount(0);
});

test("a key may have a project, which stands below its name", async ({ page, gateway }) => {
  await load(page, "/keys");
  await page.getByRole("button", { name: "Create key" }).click();
  await create(page).getByLabel("Name").fill("routed");
  await create(page).getByText("Routing").click();
  await create(page).getByLabel("Project").fill("storefront");
  await create(page).getByRole("button", { name: "Create key" }).click();
  await page.getByRole("dialog", { name: "routed is ready" }).getByRole("button", { name: "Done" }).click();
  await expect(page.getByRole("row", { name: /^routed/ })).toContainText("project storefront");
  const keys = await gateway.json("/admin/keys");
  expect(keys.find(({ name }) => name === "routed")).toMatchObject({ project: "storefront", route: null });
});

test("what is copied is the key", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await load(page, "/keys");
  await page.getByRole("button", { name: "Create key" }).click();
  await create(page).getByLabel("Name").fill("copied");
  await page.keyboard.press("Enter");
  const reveal = page.getByRole("dialog", { name: "copied is ready" });
  await reveal.getByRole("button", { name: "Copy the key" }).click();
  await expect(reveal.getByRole("status").first()).toHaveText("Copied");
  const key = await reveal.getByText(/^sy_[\w-]{43}$/).textContent();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(key);
});

test("a key needs something that it may do, and Escape takes the question back", async ({ page }) => {
  await load(page, "/keys");
  const open = page.getByRole("button", { name: "Create key" });
  await open.click();
  await create(page).getByLabel("Name").fill("nothing");
  await create(page).getByRole("checkbox", { name: /^invoke/ }).uncheck();
  await create(page).getByRole("button", { name: "Create key" }).click();
  await expect(create(page).getByRole("alert")).toHaveText("Choose what the key may do.");
  await page.keyboard.press("Escape");
  await expect(create(page)).toBeHidden();
  await expect(open).toBeFocused();
  await expect(page.getByRole("link", { name: "nothing", exact: true })).toHaveCount(0);
});

test("the key that one is signed in with stays, and the page says why", async ({ page, complaints }) => {
  complaints.expect(/409/);
  await load(page, "/keys");
  await page.getByRole("button", { name: "Revoke first key" }).click();
  const revoke = page.getByRole("dialog", { name: "Revoke first key?" });
  await revoke.getByRole("button", { name: "Revoke key" }).click();
  await expect(revoke.getByRole("alert")).toContainText("this is the key you are using");
  await revoke.getByRole("button", { name: "Keep it" }).click();
  await expect(revoke).toBeHidden();
});
