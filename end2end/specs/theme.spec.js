import { load } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

const background = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);

test.use({ colorScheme: "light" });

test("a theme is chosen, kept, and taken back", async ({ page, browser, context }) => {
  await load(page, "/");
  const light = await background(page);
  const theme = page.getByRole("combobox", { name: "Theme" });
  await theme.selectOption("Dark");
  await expect.poll(() => background(page)).not.toBe(light);
  const dark = await background(page);

  // The server writes it into the page: no flash of the other colours before code runs, nor without any.
  const withoutCode = await browser.newContext({
    javaScriptEnabled: false,
    colorScheme: "light",
    storageState: await context.storageState(),
  });
  const page2 = await withoutCode.newPage();
  await page2.goto(page.url());
  await expect(page2.locator("html")).toHaveAttribute("data-theme", "dark");
  await withoutCode.close();

  await load(page, "/keys");
  await expect(theme).toHaveValue("dark");
  expect(await background(page)).toBe(dark);
  await theme.selectOption("System theme");
  await expect.poll(() => background(page)).toBe(light);
  await load(page, "/");
  expect(await background(page)).toBe(light);
});
