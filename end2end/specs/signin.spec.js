import { signIn } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

test.use({ as: null });

test("a wrong key is told in a sentence, the right one leads to where one wanted to go", async ({ page, gateway }) => {
  const addresses = [];
  page.on("request", (request) => addresses.push(request.url()));
  await page.goto("/requests?outcome=failed");
  await expect(page).toHaveURL(/\/signin\?next=/);
  await expect(page.getByLabel("Gateway key")).toBeFocused();

  const wrong = `sy_${"A".repeat(43)}`;
  await signIn(page, wrong);
  await expect(page.getByRole("alert")).toHaveText(/^That key is not valid here\./);
  await expect(page.getByLabel("Gateway key")).toHaveValue("");

  await signIn(page, gateway.firstKey);
  await expect(page).toHaveURL("/requests?outcome=failed");
  await expect(page.getByRole("heading", { name: "Requests", level: 1 })).toBeVisible();
  for (const key of [wrong, gateway.firstKey]) expect(addresses.filter((url) => url.includes(key))).toEqual([]);
});

test("a key that may only call models does not open the dashboard", async ({ page, gateway }) => {
  const { key } = await gateway.createKey("caller");
  await page.goto("/signin");
  await signIn(page, key);
  await expect(page.getByRole("alert")).toHaveText(/^That key may call models but not see the dashboard\./);
});

test("who guesses keys is told to wait", async ({ page, gateway }) => {
  // From an address of its own: the others still have to sign in.
  const headers = { "x-forwarded-for": "203.0.113.7" };
  const guess = () =>
    fetch(`${gateway.url}/admin/session`, { method: "POST", headers, body: new URLSearchParams({ key: "sy_guess" }) });
  await Promise.all(Array.from({ length: 20 }, guess));
  await page.setExtraHTTPHeaders(headers);
  await page.goto("/signin");
  await signIn(page, gateway.firstKey);
  await expect(page.getByRole("alert")).toHaveText(/^Too many attempts failed from this address\./);
});

test("next does not lead to another site", async ({ page, gateway }) => {
  await page.goto("/signin?next=//elsewhere.example/");
  await signIn(page, gateway.firstKey);
  await expect(page).toHaveURL("/");
});

test("no script can read the session, and signing out ends it", async ({ page, context, gateway }) => {
  await page.goto("/signin?next=/keys");
  await signIn(page, gateway.firstKey);
  await expect(page.getByRole("heading", { name: "Keys", level: 1 })).toBeVisible();
  expect(await page.evaluate(() => document.cookie)).toBe("");
  const [{ name, value, sameSite }] = await context.cookies();
  expect(sameSite).toBe("Strict");
  const withCookie = () => fetch(`${gateway.url}/admin/session`, { headers: { cookie: `${name}=${value}` } });
  expect((await withCookie()).status).toBe(200);

  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page).toHaveURL(/\/signin/);
  expect(await context.cookies()).toEqual([]);
  expect((await withCookie()).status).toBe(401);
  await page.goto("/keys");
  await expect(page).toHaveURL("/signin?next=/keys");
});
