// What holds for every view.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const AXE = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** No violation of the rules of axe-core: WCAG 2.2 A and AA, and its own best practices. */
export async function accessible(page, what) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { violations } = await axe.run({ resultTypes: ['violations'], rules: { 'label-content-name-mismatch': { enabled: true } } });
    return violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].html.slice(0, 160)]);
  });
  assert.deepEqual(found, [], what);
}

/** Every control has a name. */
export async function named(page) {
  for (const role of ['button', 'link', 'combobox', 'textbox', 'searchbox', 'checkbox', 'radio', 'application', 'region', 'progressbar']) {
    for (const one of await page.getByRole(role).all()) {
      const label = (await one.getAttribute('aria-label')) ?? (await one.evaluate((element) => element.labels?.[0]?.innerText ?? element.innerText));
      assert.ok(label.trim(), await one.evaluate((element) => element.outerHTML.slice(0, 120)));
    }
  }
}

/** Nothing is wider than the window. */
export async function fits(page, what) {
  const [wide, inside] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= inside, `${what}: ${wide} of ${inside}`);
}

/** Texts have a contrast of at least 4.5 (WCAG 2, AA). */
export async function readable(page) {
  const poor = await page.evaluate(() => {
    const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
    const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = parts(getComputedStyle(at).backgroundColor);
        if (colour.length < 4 || colour[3] > 0) return colour;
      }
      return [255, 255, 255];
    };
    return [...document.querySelectorAll('#page *')].filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) && element.checkVisibility() && !element.closest('svg, :disabled, select')).map((element) => {
      const [a, b] = [luminance(parts(getComputedStyle(element).color)), luminance(behind(element))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.outerHTML.slice(0, 80)];
    }).filter(([contrast]) => contrast < 4.5);
  });
  assert.deepEqual(poor, []);
}
