import { load } from "../lib/page.js";
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
