import { signIn, tile } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

/** Locators by text leave it out, whether it shows or not. */
const noscript = (page) => page.locator("noscript > p").filter({ visible: true });

test.use({ as: null, javaScriptEnabled: false });

test("without JavaScript one can sign in, look at everything, and sign out", async ({ page, gateway, complaints }) => {
  // The page asks for its code early, and a browser that runs none does not fetch it.
  complaints.expect(/^request: csp \S+\/app\.js$/);
  const { id: key, key: secret } = await gateway.createKey("without-js");
  const id = await gateway.chat("demo", { key: secret });
  await page.goto("/");
  await signIn(page, gateway.firstKey);
  await expect(page.getByRole("heading", { name: "Overview", level: 1 })).toBeVisible();
  await expect(tile(page, "Requests").getByRole("definition").first()).toHaveText(/^\d+/);
  await expect(page.getByRole("img", { name: /^Requests over 1 hour/ })).toBeVisible();

  await page.getByRole("link", { name: "Requests", exact: true }).click();
  const filters = page.getByRole("search", { name: "Requests" });
  await filters.getByLabel("Key").selectOption("without-js");
  await filters.getByRole("button", { name: "Filter" }).click();
  await expect(page).toHaveURL(new RegExp(`api_key_id=${key}`));
  await expect(filters.getByLabel("Key")).toHaveValue(key);
  const rows = page.getByRole("region", { name: "Requests" }).getByRole("row");
  await expect(rows).toHaveCount(2);
  await rows.getByRole("link").click();
  await expect(page).toHaveURL(`/requests/${id}`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("demo, answered by demo");
  await expect(page.getByRole("table", { name: /^Candidates in order/ })).toContainText("demo");

  await page.getByRole("link", { name: "Dry run" }).click();
  await expect(page).toHaveURL("/routing?model=demo");
  const dryRun = page.getByRole("form", { name: "Dry run" });
  await dryRun.getByLabel("Prompt").fill("A <b> & a </textarea>");
  await dryRun.getByLabel("As a stream").check();
  await dryRun.getByRole("button", { name: "Explain" }).click();
  await expect(page).toHaveURL(/\/routing\?model=demo&prompt=A\+%3Cb%3E.*&stream=on/);
  await expect(dryRun.getByLabel("Prompt")).toHaveValue("A <b> & a </textarea>");
  await expect(dryRun.getByLabel("As a stream")).toBeChecked();
  await expect(page.getByRole("table", { name: "Candidates in order, and why" })).toContainText("demo");

  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await expect(page.getByRole("link", { name: "without-js", exact: true })).toBeVisible();
  await expect(noscript(page)).toHaveText(/needs JavaScript/);
  await expect(page.getByRole("button", { name: "Create key" })).toBeDisabled();
  await page.getByRole("link", { name: "Playground", exact: true }).click();
  await expect(noscript(page)).toHaveText(/^The playground needs JavaScript/);

  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Gateway key")).toBeVisible();
});
