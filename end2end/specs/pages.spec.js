// What holds on every page, whatever it shows: it loads without a complaint, everyone can read it, it fits a phone.
import { COLOURS } from "../lib/axe.js";
import { load, takenOver, words } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

const PAGES = {
  overview: () => "/",
  "overview of a week": () => "/?range=7d",
  requests: () => "/requests",
  "requests, none": () => "/requests?model=never-asked-for",
  "request, answered": ({ answered }) => `/requests/${answered}`,
  "request, failed": ({ failed }) => `/requests/${failed}`,
  "request, cut": ({ cut }) => `/requests/${cut}`,
  "request, translated": ({ translated }) => `/requests/${translated}`,
  "request, missing": () => "/requests/0123456789abcdef0123456789abcdef",
  routing: () => "/routing",
  "routing, a dry run": () => "/routing?model=demo&prompt=%3CWhich%3E%20%26%20why%3F&stream=on",
  "routing, refused": () => "/routing?model=never-asked-for",
  playground: () => "/playground",
  "playground, in another dialect": () => "/playground?model=demo&dialect=generate_content",
  keys: () => "/keys",
  "not found": () => "/nowhere",
  "sign in": () => "/signin?error=invalid",
};
const MISSING = ["not found", "request, missing"];
const WITHOUT_FRAME = ["not found", "sign in"];

for (const [name, address] of Object.entries(PAGES)) {
  test.describe(name, () => {
    test.use({ as: name === "sign in" ? null : "admin" });

    test("loads without a complaint, can be read by everyone, and fits a phone", async ({
      page,
      gateway,
      complaints,
      axe,
    }) => {
      const missing = MISSING.includes(name);
      if (missing) complaints.expect(/console: .*status of 404/);
      const code = page.waitForResponse(/\.wasm$/);
      const target = address(await gateway.traffic());
      const response = WITHOUT_FRAME.includes(name) ? await page.goto(target) : await load(page, target);
      await code;
      expect(response.status()).toBe(missing ? 404 : 200);
      await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
      await expect(page).toHaveTitle(/Switchyard$/);
      const { now, written } = await words(page, response);
      expect(now).toBe(written);
      await axe({ colorScheme: "light" });
      await axe({ colorScheme: "dark", only: COLOURS });

      await page.setViewportSize({ width: 320, height: 640 });
      const root = page.locator("html");
      await expect.poll(() => root.evaluate(({ scrollWidth }) => scrollWidth), "width of the page").toBe(320);
      await axe({ without: COLOURS });
    });
  });
}

test("from page to page without a load, and back", async ({ page }) => {
  await load(page, "/");
  const loads = [];
  page.on("request", (request) => request.isNavigationRequest() && loads.push(request.url()));
  for (const name of ["Requests", "Routing", "Playground", "Keys", "Overview"]) {
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click();
    await expect(page.getByRole("heading", { name, level: 1 })).toBeVisible();
    await expect(page.getByRole("main")).toBeFocused();
    await expect(page).toHaveTitle(new RegExp(`^${name}`));
  }
  await page.goBack();
  await expect(page.getByRole("heading", { name: "Keys", level: 1 })).toBeVisible();
  expect(loads).toEqual([]);
});

test("the dialogs, too, can be read by everyone", async ({ page, axe }) => {
  await load(page, "/keys");
  await page.getByRole("button", { name: "Create key" }).click();
  const create = page.getByRole("dialog", { name: "Create a key" });
  await axe();
  await create.getByLabel("Name").fill("for-axe");
  await page.keyboard.press("Enter");
  const reveal = page.getByRole("dialog", { name: "for-axe is ready" });
  await expect(reveal).toBeVisible();
  await axe();
  await reveal.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Revoke for-axe" }).click();
  await expect(page.getByRole("dialog", { name: "Revoke for-axe?" })).toBeVisible();
  await axe();
});

test("a session that has ended leads to sign in, and back to here", async ({ page, context, complaints }) => {
  complaints.expect(/status of 401/);
  await load(page, "/");
  await context.clearCookies();
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get("next")).toBe("/keys");
});

test("what cannot be loaded says so, and the rest stays", async ({ page, complaints }) => {
  complaints.expect(/ERR_FAILED/);
  await load(page, "/");
  await page.route("**/admin/keys", (route) => route.abort());
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  const alert = page.getByRole("alert");
  await expect(alert).toHaveText(/^The list of keys did not load\. The gateway could not be reached\./);
  await expect(page.getByRole("banner")).toContainText("first key · admin");
});

for (const { where, label } of [
  { where: "/requests", label: "Model" },
  { where: "/routing", label: "Prompt" },
  { where: "/playground", label: /^Message$/ },
]) {
  test(`what was typed on ${where} before the code came is still there`, async ({ page }) => {
    let send;
    const typed = new Promise((resolve) => (send = resolve));
    await page.route(/\.wasm$/, (route) => typed.then(() => route.continue()));
    await page.goto(where, { waitUntil: "commit" });
    await page.getByRole("main").getByLabel(label).fill("typed early");
    send();
    await takenOver(page);
    await expect(page.getByRole("main").getByLabel(label)).toHaveValue("typed early");
  });
}
