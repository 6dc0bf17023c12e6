import { load, panel } from "../lib/page.js";
import { expect, test } from "../lib/test.js";

const form = (page) => page.getByRole("form", { name: "Dry run" });
const result = (page) => panel(page, "What would happen");
const candidates = (page) => result(page).getByRole("table", { name: "Candidates in order, and why" });
const targetRow = (page) =>
  page.getByRole("region", { name: "Targets" }).getByRole("row").filter({
    has: page.getByRole("rowheader", { name: /^demo/ }),
  });

test("targets and routes as they stand", async ({ page, gateway }) => {
  await gateway.chat("demo", { stream: true });
  const { routes, data } = await gateway.json("/admin/targets");
  await load(page, "/routing");
  // Other tests may have parked the one target there is; then the sentence says that.
  await expect(page.getByRole("main").getByRole("paragraph").first()).toHaveText(/\bdemo\b.*\.$/);
  await expect(page.getByRole("region", { name: "Targets" }).getByRole("row")).toHaveCount(data.length + 1);
  await expect(targetRow(page)).toContainText("simulated");
  await expect(targetRow(page)).toContainText(/\d+(\.\d)? m?s \(\d+ calls?\)/);
  await expect(panel(page, "Targets")).toContainText(/calls of the last .* · as of \d\d:\d\d:\d\d UTC/);
  const route = panel(page, "Routes").getByRole("heading", { level: 3 }).first();
  await expect(route).toHaveText(`${routes[0].name} ${routes[0].strategy}`);
  await expect(panel(page, "Routes").getByRole("listitem").first()).toContainText("demo");
});

test("a dry run says where a call would go, and stands in the address", async ({ page, gateway }) => {
  await load(page, "/routing");
  await expect(result(page)).toContainText("No call has been tried");
  await form(page).getByLabel("Model").fill("demo");
  await form(page).getByLabel("Prompt").fill("Which track is free?");
  await form(page).getByLabel("As a stream").check();
  const asked = page.waitForRequest("**/v1/route/explain");
  await form(page).getByRole("button", { name: "Explain" }).click();
  expect((await asked).postDataJSON()).toEqual({
    model: "demo",
    messages: [{ role: "user", content: "Which track is free?" }],
    stream: true,
  });
  await expect(page).toHaveURL("/routing?model=demo&prompt=Which%20track%20is%20free%3F&stream=on");
  await expect(result(page).getByRole("status")).toHaveText(/\S/);
  await expect(candidates(page).getByRole("row")).toHaveCount((await gateway.json("/admin/targets")).data.length);
  await expect(candidates(page)).toContainText("demo");

  await page.reload();
  await expect(candidates(page)).toContainText("demo");
  await expect(form(page).getByLabel("Prompt")).toHaveValue("Which track is free?");
  await expect(form(page).getByLabel("As a stream")).toBeChecked();
  await page.goBack();
  await expect(page).toHaveURL("/routing");
  await expect(form(page).getByLabel("Model")).toHaveValue("");
  await expect(form(page).getByLabel("As a stream")).not.toBeChecked();
});

test("a call that nobody would answer says what its caller would be told", async ({ page }) => {
  await load(page, "/routing?model=no-such-model");
  await expect(result(page).getByText("The caller would be told:")).toBeVisible();
  await expect(result(page)).toContainText("404 model_not_found");
  await expect(result(page).getByRole("status")).toHaveText("No target would be called.");
  await expect(candidates(page)).toContainText("left out: ");
});

test("targets refresh by themselves, and nothing moves", async ({ page }) => {
  await page.clock.install();
  await load(page, "/routing?model=demo");
  await form(page).getByLabel("Only these targets").focus();
  const place = await form(page).boundingBox();
  const refreshed = page.waitForResponse("**/admin/targets");
  await page.clock.runFor(5_000);
  await refreshed;
  await expect(form(page).getByLabel("Only these targets")).toBeFocused();
  expect(await form(page).boundingBox()).toEqual(place);
});

test("a refresh that fails keeps what was there and says so", async ({ page, complaints }) => {
  complaints.expect(/ERR_FAILED/);
  await page.clock.install();
  await load(page, "/routing");
  await page.route("**/admin/targets", (route) => route.abort());
  await page.clock.runFor(5_000);
  await expect(page.getByRole("alert")).toHaveText(/^These are the last figures that came; the refresh failed\./);
  await expect(targetRow(page)).toBeVisible();
});

test("a request's page leads to its dry run", async ({ page, gateway }) => {
  const id = await gateway.chat("demo", { stream: true });
  await load(page, `/requests/${id}`);
  await expect(panel(page, "Facts").getByText("Route", { exact: true })).toBeVisible();
  await page.getByRole("link", { name: "Dry run" }).click();
  await expect(page).toHaveURL("/routing?model=demo&stream=on");
  await expect(candidates(page)).toContainText("demo");
});
