// Pages of recorded data look as they did: pictures at three widths beside those in shots/. SHOTS=update replaces them: look at each.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { needed, opened } from './program.mjs';

const SHOTS = new URL('shots', import.meta.url).pathname;
const DATA = new URL('../../crates/import/tests/data/', import.meta.url).pathname;
/** The share of pixels that may differ, and by how much of 255: fonts are drawn a little differently elsewhere. */
const [MOST, DEPTH] = [0.03, 64];
/** The greatest height of a picture. */
const HEIGHT = 1400;

const at = opened(async ({ program }) => {
  for (const [name, file] of [['curve', 'netpipe372_np.out'], ['systems', '2002-systems.csv']]) {
    program.run('import', join(DATA, file), '--name', name);
    program.run('report', name, '-o', `${name}.html`);
  }
});

/** The picture of a page without what differs from run to run: times and ids, and what follows the figures. */
async function shot(name, width, scheme) {
  const page = await at.browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
  await page.goto(`file://${join(at.folder, `${name}.html`)}`);
  await page.waitForSelector('html[data-ready]');
  await page.evaluate(() => {
    document.querySelectorAll('.answer > .muted, .id, .figure > .muted, #outcomes, #activity, #hosts, #method').forEach((part) => part.remove());
  });
  await page.waitForTimeout(200);
  const height = await page.evaluate(() => document.querySelector('#page').scrollHeight);
  const picture = await page.screenshot({ clip: { x: 0, y: 0, width, height: Math.min(height, HEIGHT) }, fullPage: true });
  await page.close();
  return picture;
}

/** The share of pixels that differ; 1 for other sizes. */
async function difference(a, b) {
  const page = await at.browser.newPage();
  const share = await page.evaluate(async ([a, b, depth]) => {
    const pixels = async (text) => {
      const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${text}`)).blob());
      const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
      context.drawImage(image, 0, 0);
      return context.getImageData(0, 0, image.width, image.height);
    };
    const [one, other] = [await pixels(a), await pixels(b)];
    // A line that wraps elsewhere makes a page a little longer.
    if (one.width !== other.width || Math.abs(one.height - other.height) > 60) return 1;
    const count = 4 * one.width * Math.min(one.height, other.height);
    let differ = 0;
    for (let byte = 0; byte < count; byte += 4) if ([0, 1, 2].some((part) => Math.abs(one.data[byte + part] - other.data[byte + part]) > depth)) differ++;
    return differ / (count / 4);
  }, [a.toString('base64'), b.toString('base64'), DEPTH]);
  await page.close();
  return share;
}

for (const [name, width, scheme] of [['curve', 360, 'light'], ['curve', 1280, 'dark'], ['curve', 3840, 'light'], ['systems', 360, 'dark'], ['systems', 1280, 'light']]) {
  test(`${name} at ${width} pixels, ${scheme}, looks as it did`, needed, async () => {
    const file = join(SHOTS, `${name}-${width}-${scheme}.png`);
    const now = await shot(name, width, scheme);
    if (process.env.SHOTS === 'update') {
      mkdirSync(SHOTS, { recursive: true });
      writeFileSync(file, now);
      return;
    }
    assert.ok(existsSync(file), `${file} is there; SHOTS=update makes it`);
    const share = await difference(readFileSync(file), now);
    if (share > MOST) writeFileSync(join(tmpdir(), `${name}-${width}-${scheme}.png`), now);
    assert.ok(share <= MOST, `${(100 * share).toFixed(1)} % of the pixels differ: see ${join(tmpdir(), `${name}-${width}-${scheme}.png`)}`);
  });
}

test('a picture that differs is noticed', needed, async () => {
  const [light, dark] = [await shot('curve', 1280, 'light'), await shot('curve', 1280, 'dark')];
  assert.ok((await difference(light, dark)) > 0.5);
  assert.equal(await difference(light, await shot('systems', 1280, 'light')) <= MOST, false);
  assert.ok((await difference(light, light)) === 0);
});
