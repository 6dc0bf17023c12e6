import { load, panel, tile } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

test("figures and chart show what happened", async ({ page, gateway }) => {
  await gateway.chat("demo", { stream: true });
  await gateway.chat("demo-429");
  const { traffic } = await gateway.json("/admin/dashboard?range=1h");
  await load(page, "/");
  await expect(tile(page, "Requests").getByRole("definition").first()).toHaveText(
    new RegExp(`^${traffic.now.requests} `),
  );
  await expect(tile(page, "Answered")).toContainText(`${traffic.now.failed} failed`);
  await expect(tile(page, "First token, median")).toContainText(/\d m?s/);
  await expect(tile(page, "Providers available")).toContainText("1 of 1");
  await expect(page.getByRole("img", { name: /^Requests over 1 hour: \d+ answered, \d+ failed\./ })).toBeVisible();
  const rows = panel(page, "Newest requests").getByRole("row");
  await expect(rows.nth(1)).toContainText("demo-429");
  await expect(rows.nth(2)).toContainText("stream");
});

test("the range is in the address", async ({ page }) => {
  await load(page, "/");
  const ranges = page.getByRole("navigation", { name: "Time range" });
  await ranges.getByRole("link", { name: "24 hours" }).click();
  await expect(page).toHaveURL("/?range=24h");
  await expect(ranges.getByRole("link", { name: "24 hours" })).toHaveAttribute("aria-current", "true");
  await expect(page.getByRole("img", { name: /^Requests over 24 hours/ })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("img", { name: /^Requests over 24 hours/ })).toBeVisible();
  await page.goBack();
  await expect(page.getByRole("img", { name: /^Requests over 1 hour/ })).toBeVisible();
});
