// What several specs do with a page.
import { expect } from "@playwright/test";

/** Loads a page anew, and waits until its code has taken it over: only then its buttons can be pressed. */
export async function load(page, address) {
  const response = await page.goto(address);
  await takenOver(page);
  return response;
}

export async function takenOver(page) {
  await expect(page.getByRole("combobox", { name: "Theme" })).toBeEnabled();
}

/** The page's words now, and as the server wrote them: taking a page over changes none. */
export async function words(page, response) {
  return page.evaluate((html) => {
    const read = (document) => {
      const main = document.querySelector("main").cloneNode(true);
      // Without code the latter is elements, with code it is text.
      main.querySelectorAll("script, noscript").forEach((element) => element.remove());
      return main.textContent;
    };
    return { now: read(document), written: read(new DOMParser().parseFromString(html, "text/html")) };
  }, await response.text());
}

export async function signIn(page, key) {
  await page.getByLabel("Gateway key").fill(key);
  await page.getByLabel("Gateway key").press("Enter");
}

/** The figure of a tile on the overview or on a request's page. */
export function tile(page, label) {
  return page.locator("dl.tiles > div").filter({ has: page.getByRole("term").getByText(label, { exact: true }) });
}

/** A panel, by the heading on it. */
export function panel(page, title) {
  return page.locator("section").filter({ has: page.getByRole("heading", { name: title, exact: true }) });
}
