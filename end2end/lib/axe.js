import { AxeBuilder } from "@axe-core/playwright";
import { expect } from "@playwright/test";

/** The rules that look at colours, and are the slowest. The others say the same in light and in dark. */
export const COLOURS = ["color-contrast", "link-in-text-block"];

/** The page has no fault that axe finds. Who looks several times may name rules to look at again, or to leave out. */
export async function axe(page, { colorScheme, only, without } = {}) {
  if (colorScheme) await page.emulateMedia({ colorScheme });
  // There are no frames, so the way without a second page for the results is enough.
  const builder = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ["violations"] });
  if (only) builder.withRules(only);
  if (without) builder.disableRules(without);
  const { violations } = await builder.analyze();
  expect.soft(violations.flatMap(lines), `axe, ${colorScheme ?? `${page.viewportSize().width} pixels`}`).toEqual([]);
}

/** A line for each place, with what is wrong there. */
function lines({ id, nodes }) {
  return nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.failureSummary.replace(/\s+/g, " ")}`);
}
