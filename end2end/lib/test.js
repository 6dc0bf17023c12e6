// `test` as the specs use it: a gateway, a browser that is signed in, and eyes on what the browser complains about.
import { test as base, expect } from "@playwright/test";
import { axe } from "./axe.js";
import { Complaints } from "./complaints.js";
import { Gateway } from "./gateway.js";

export { expect };

export const test = base.extend({
  /** One gateway for all tests of a worker: each makes what it needs, and looks at nothing else. */
  gateway: [
    async ({}, use) => {
      const gateway = await Gateway.start();
      await use(gateway);
      await gateway.stop();
    },
    { scope: "worker" },
  ],

  /** Who looks: a scope, or `null` for nobody yet. */
  as: ["admin", { option: true }],

  baseURL: ({ gateway }, use) => use(gateway.url),

  storageState: async ({ gateway, as }, use) => use(as ? await gateway.session(as) : undefined),

  /** Whatever the browser complains about fails the test, unless it was expected: `complaints.expect(/429/)`. */
  complaints: [
    async ({ context }, use) => {
      const complaints = new Complaints(context);
      await use(complaints);
      expect(complaints.unexpected(), "what the browser complained about").toEqual([]);
    },
    { auto: true },
  ],

  /** `await axe()`: the page has no fault that axe finds. */
  axe: ({ page }, use) => use((options) => axe(page, options)),
});
