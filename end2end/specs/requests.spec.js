import { load, panel } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

const rows = (page) => page.getByRole("region", { name: "Requests" }).getByRole("row");
const filters = (page) => page.getByRole("search", { name: "Requests" });

test("filters stand in the address and survive a reload", async ({ page, gateway }) => {
  await gateway.chat("demo");
  const failed = await gateway.chat("demo-429");
  await load(page, "/requests");
  await filters(page).getByLabel("Model").fill("demo-429");
  await filters(page).getByLabel("Outcome").selectOption("not answered");
  await filters(page).getByRole("button", { name: "Filter" }).click();
  await expect(page).toHaveURL("/requests?model=demo-429&outcome=failed");

  const onlyThese = async () => {
    await expect(rows(page).nth(1)).toContainText("demo-429");
    await expect(rows(page).getByText("demo", { exact: true })).toHaveCount(0);
    await expect(filters(page).getByLabel("Model")).toHaveValue("demo-429");
    await expect(filters(page).getByLabel("Outcome")).toHaveValue("failed");
  };
  await onlyThese();
  await page.reload();
  await onlyThese();

  await filters(page).getByLabel("Search").fill(failed);
  await filters(page).getByLabel("Search").press("Enter");
  await expect(page).toHaveURL(`/requests?q=${failed}&model=demo-429&outcome=failed`);
  await expect(rows(page)).toHaveCount(2);
  await page.goBack();
  await onlyThese();
  await filters(page).getByRole("link", { name: "Clear" }).click();
  await expect(page).toHaveURL("/requests");
  await expect(filters(page).getByLabel("Model")).toHaveValue("");
  await expect(rows(page).getByText("demo", { exact: true }).first()).toBeVisible();
});

test("nothing that matches is said to be nothing", async ({ page }) => {
  await load(page, "/requests?model=never-asked-for");
  await expect(page.getByText("No request matches these filters.")).toBeVisible();
});

test("a key's name leads to its requests", async ({ page, gateway }) => {
  const { id, key } = await gateway.createKey("has-requests");
  await gateway.chat("demo", { key });
  await load(page, "/keys");
  await page.getByRole("link", { name: "has-requests", exact: true }).click();
  await expect(page).toHaveURL(`/requests?api_key_id=${id}`);
  await expect(filters(page).getByLabel("Key")).toHaveValue(id);
  await expect(rows(page)).toHaveCount(2);
});

test("older requests are a page away", async ({ page, gateway }) => {
  const { id, key } = await gateway.createKey("many-requests");
  await Promise.all(Array.from({ length: 51 }, () => gateway.chat("demo-429", { key })));
  await load(page, `/requests?api_key_id=${id}`);
  await expect(rows(page)).toHaveCount(51);
  await page.getByRole("link", { name: "Older" }).click();
  await expect(page).toHaveURL(/api_key_id=.*&before=\d+/);
  await expect(rows(page)).toHaveCount(2);
  await page.getByRole("link", { name: "Newest" }).click();
  await expect(rows(page)).toHaveCount(51);
});

test("following shows what arrives", async ({ page, gateway }) => {
  const { id, key } = await gateway.createKey("followed");
  await load(page, `/requests?api_key_id=${id}`);
  await expect(page.getByText("No request matches these filters.")).toBeVisible();
  await gateway.chat("demo", { key });
  await page.getByRole("button", { name: "Follow" }).click();
  await expect(page.getByRole("button", { name: "Following" })).toBeVisible();
  await expect(rows(page)).toHaveCount(2);
});

test("a request that failed says why", async ({ page, gateway }) => {
  const id = await gateway.chat("demo-429");
  await load(page, `/requests/${id}`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("demo-429, failed after 1 attempt");
  await expect(page.getByText(/Rate limit reached for demo-429/).first()).toBeVisible();
  await expect(page.getByRole("row", { name: /^1 ?demo failed:/ })).toBeVisible();
  await page.getByRole("link", { name: "Open in playground" }).click();
  await expect(page.getByLabel("Model")).toHaveValue("demo-429");
});

test("a request that was translated tells of each field what became of it", async ({ page, gateway }) => {
  const messages = [{ role: "user", content: "Hello" }];
  const body = { model: "demo", messages, max_tokens: 4, top_k: 40, metadata: { user_id: "u" } };
  const id = await gateway.call("/v1/messages", { body });
  const { notes, outcome } = await gateway.log(id);
  expect([outcome, notes.some(({ fate }) => fate === "dropped")]).toEqual(["success", true]);
  await load(page, `/requests/${id}`);
  const translation = panel(page, "Translation");
  for (const fate of ["dropped", "approximated", "mapped", "kept"]) {
    const count = notes.filter((note) => note.fate === fate).length;
    await expect(translation).toContainText(`${count} ${fate}`);
  }
  const told = await translation.getByRole("row").filter({ has: page.getByRole("rowheader") }).allTextContents();
  expect(told.length).toBe(notes.length);
  expect(told[0]).toContain("dropped");
  await expect(translation.getByRole("row", { name: /^top_k/ })).toContainText("dropped");
  await expect(panel(page, "Facts")).toContainText("Messages (Anthropic)");
  await page.getByRole("link", { name: "Open in playground" }).click();
  await expect(page.getByRole("radio", { name: "Messages", exact: true })).toBeChecked();
});

test("a request of which nothing had to be changed says so", async ({ page, gateway }) => {
  await load(page, `/requests/${await gateway.chat("demo")}`);
  await expect(panel(page, "Translation")).toContainText("Nothing was dropped or changed: relayed as it came");
  await load(page, `/requests/${await gateway.chat("no-such-model")}`);
  await expect(panel(page, "Translation")).toContainText("No upstream was called");
});

test("the list names the surface a request came in by", async ({ page, gateway }) => {
  const { id, key } = await gateway.createKey("many-surfaces");
  const contents = [{ role: "user", parts: [{ text: "Hello" }] }];
  await gateway.call("/v1beta/models/demo:generateContent", { key, body: { contents } });
  await gateway.call("/v1beta/models/demo:countTokens", { key, body: { contents } });
  await load(page, `/requests?api_key_id=${id}`);
  await expect(rows(page).getByRole("cell", { name: /generateContent/ })).toHaveCount(1);
  await expect(rows(page).getByRole("cell", { name: /countTokens \(Gemini\)/ })).toHaveCount(1);
});
