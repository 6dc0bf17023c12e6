import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "specs",
  // One gateway and one browser at a time: what is slow here is the machine, not the waiting.
  workers: 1,
  retries: process.env.CI ? 1 : 0,
  timeout: 30_000,
  expect: { timeout: 10_000 },
  reporter: [["list"]],
  forbidOnly: Boolean(process.env.CI),
  use: {
    // Recording costs more than the tests themselves. To see what happened: `playwright test --trace on`.
    trace: "on-first-retry",
    // What is measured must not be half-way between two colours.
    contextOptions: { reducedMotion: "reduce" },
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
