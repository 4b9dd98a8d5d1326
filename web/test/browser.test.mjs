// The page in Chromium, on reports of real runs over loopback, which the program at WEB_THRU measures first.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { accessible, fits, named, readable } from './checks.mjs';
import { million } from './million.mjs';
import { CHROMIUM, needed, opened } from './program.mjs';

const at = opened(async ({ folder, program }) => {
  const [server, host] = await program.agent();
  for (const name of ['first', 'second']) program.run('curve', host, '--to', '512', '--trials', '4', '--name', name, '--quiet');
  program.run('stream', host, '--time', '600ms', '--trials', '3', '--name', 'bulk', '--quiet');
  program.run('rr', host, '--time', '300ms', '--trials', '3', '--anatomy', '--name', 'small', '--quiet');
  server.kill();
  writeFileSync(join(folder, 'pairs.csv'), '"from \\ to, Mbit/s",alpha,beta,gamma\nalpha,,940,512\nbeta,930,,488\ngamma,610,505,\n');
  program.run('import', 'pairs.csv', '--name', 'pairs');
  for (const name of ['first', 'bulk', 'small', 'pairs']) program.run('report', name, '-o', `${name}.html`);
  program.run('report', 'first', 'second', '-o', 'both.html');
});
const thru = (...args) => at.program.run(...args);

/** Opens a report; what it logs as an error or loads beside itself fails the test. */
async function open(name, { width = 1280, height = 900, hash = '', scheme = 'light' } = {}) {
  const page = await at.browser.newPage({ viewport: { width, height }, colorScheme: scheme, acceptDownloads: true });
  const address = `file://${join(at.folder, name)}${hash}`;
  const faults = [];
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) faults.push(message.text()); });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => { if (request.url().split('#')[0] !== address.split('#')[0] && !request.url().startsWith('blob:')) faults.push(`loads ${request.url()}`); });
  await page.goto(address);
  await page.waitForSelector('html[data-ready]');
  await page.waitForFunction(() => document.querySelectorAll('.plot').length === 0 || [...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.picture svg')));
  return { page, done: async () => { assert.deepEqual(faults, []); await page.close(); } };
}

const plot = (page, id) => page.locator(`#figure-${id} .plot`);
const readout = (page, id) => page.locator(`#figure-${id} output`);
/** The number of rows of an opened table, which is drawn only after it was opened. */
const rowsOf = async (part) => {
  await part.locator('tbody tr').first().waitFor();
  return part.locator('tbody tr').count();
};
const hash = async (page, wanted) => {
  await page.waitForFunction((text) => decodeURIComponent(location.hash).includes(text), wanted);
  return page.evaluate(() => location.hash);
};

test('the result comes first, and every part is there', needed, async () => {
  const { page, done } = await open('bulk.html');
  const run = JSON.parse(thru('export', 'bulk', '--format', 'json'));
  assert.match(await page.locator('.result').innerText(), /goodput .*bit\/s/);
  assert.ok((await page.locator('dt').allInnerTexts()).includes('Limited by'));
  for (const title of ['Findings', 'Figures', 'Outcomes', 'Hosts', 'How it was measured']) await page.getByRole('heading', { name: title, exact: true }).waitFor();
  assert.ok((await page.locator('#method pre').innerText()).includes('stream'));
  await page.locator('summary', { hasText: /^Trials/ }).click();
  assert.equal(await rowsOf(page.locator('.fold', { hasText: /^Trials/ })), run.outcomes[0].trials.length);
  await done();
});

test('the crosshair moves by keys and shows a value of the document', needed, async () => {
  const { page, done } = await open('first.html');
  await plot(page, 'throughput').focus();
  await page.keyboard.press('Home');
  for (let n = 0; n < 3; n++) await page.keyboard.press('ArrowRight');
  const text = await readout(page, 'throughput').innerText();
  const run = JSON.parse(thru('export', 'first', '--format', 'json'));
  const { quantity } = await (await import('./load.mjs')).load('units.ts');
  const values = run.outcomes.filter((outcome) => outcome.spec.transport === 'tcp').map((outcome) => quantity(outcome.summary.netpipe_bps, 'bit/s'));
  const shown = /: ([\d.]+ \w+\/s)/.exec(text)?.[1];
  assert.ok(values.includes(shown), `${text} is one of ${values}`);
  await page.keyboard.press('ArrowDown');
  assert.notEqual(await readout(page, 'throughput').innerText(), text, 'the other series');
  await done();
});

test('zoom by keys is in the address, and a link restores it', needed, async () => {
  const { page, done } = await open('bulk.html');
  await plot(page, 'goodput').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('+');
  await page.keyboard.press('l');
  const link = await hash(page, 'ly:1');
  assert.match(decodeURIComponent(link), /f-goodput=x:[\d.e+~]+,ly:1,c:0\.\d+/);
  const before = await readout(page, 'goodput').innerText();
  await done();
  const again = await open('bulk.html', { hash: link });
  assert.equal(await readout(again.page, 'goodput').innerText(), before);
  assert.equal(await again.page.getByRole('button', { name: 'log y: Logarithmic y axis, Goodput over time' }).getAttribute('aria-pressed'), 'true');
  await plot(again.page, 'goodput').focus();
  await again.page.keyboard.press('0');
  await again.page.waitForFunction(() => !location.hash.includes('x:'));
  await again.done();
});

test('a drag zooms, shift and a drag move, a double click shows all', needed, async () => {
  const { page, done } = await open('bulk.html');
  // Where the figure is when nothing moves any more.
  const place = async () => {
    await plot(page, 'goodput').scrollIntoViewIfNeeded();
    return plot(page, 'goodput').boundingBox();
  };
  const drag = async (from, to) => {
    const box = await place();
    await page.mouse.move(box.x + box.width * from, box.y + 100);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, box.y + 100, { steps: 4 });
    await page.mouse.up();
  };
  const range = async () => /x:([\d.e+]+)~([\d.e+]+)/.exec(decodeURIComponent(await hash(page, 'x:'))).slice(1).map(Number);
  await drag(0.4, 0.7);
  const [low, high] = await range();
  assert.ok(low > 1e8 && high < 6e8 && low < high, `${low} ${high}`);
  await page.keyboard.down('Shift');
  await drag(0.5, 0.6);
  await page.keyboard.up('Shift');
  await page.waitForTimeout(250);
  assert.ok((await range())[0] < low, 'to the right shows earlier times');
  const box = await place();
  await page.mouse.dblclick(box.x + box.width / 2, box.y + 100);
  await page.waitForFunction(() => !location.hash.includes('x:'));
  await done();
});

test('a range of time filters every figure over time', needed, async () => {
  const { page, done } = await open('bulk.html', { hash: '#f-goodput=x:1e8~3e8' });
  await plot(page, 'goodput').focus();
  const legend = page.locator('#figure-tcp-rtt .legend tbody tr').first();
  const whole = await legend.innerText();
  await page.keyboard.press('f');
  await hash(page, 'time=');
  await page.getByRole('button', { name: /^Time 100 ms to 300 ms/ }).waitFor();
  assert.notEqual(await legend.innerText(), whole);
  await page.getByRole('button', { name: /^Time 100 ms/ }).click();
  assert.equal(await legend.innerText(), whole);
  await done();
});

test('two runs are compared point by point', needed, async () => {
  const { page, done } = await open('both.html');
  await plot(page, 'throughput').focus();
  await page.keyboard.press('d');
  await hash(page, 'd:0.');
  await page.keyboard.press('ArrowRight');
  assert.match(await readout(page, 'throughput').innerText(), /B\/A \d+\.\d{4}( \(B\/A [\d.]+ to B\/A [\d.]+\))?/);
  await page.keyboard.press('d');
  await page.getByRole('group', { name: 'Runs in the figures' }).getByRole('button', { name: 'second' }).click();
  await hash(page, 'without=1');
  const off = await page.locator('#figure-throughput .legend tbody tr:has(button:disabled)').count();
  assert.ok(off > 0 && off < await page.locator('#figure-throughput .legend tbody tr').count(), `${off} series of the second run are off`);
  await page.locator('#hosts summary', { hasText: 'What differs between the runs' }).or(page.getByText('No recorded value of the hosts differs between the runs')).first().waitFor();
  await done();
});

test('the cells of a matrix are read by keys', needed, async () => {
  const { page, done } = await open('pairs.html');
  const figure = page.locator('.figure:has([aria-roledescription=matrix])').first();
  await figure.locator('.plot').focus();
  const cell = async (key) => {
    await page.keyboard.press(key);
    return figure.locator('output').innerText();
  };
  assert.equal(await cell('ArrowRight'), 'alpha to beta: 940 Mbit/s; beta to alpha: 930 Mbit/s');
  assert.equal(await cell('ArrowRight'), 'alpha to gamma: 512 Mbit/s; gamma to alpha: 610 Mbit/s');
  assert.equal(await cell('ArrowDown'), 'beta to gamma: 488 Mbit/s; gamma to beta: 505 Mbit/s');
  assert.equal(await cell('ArrowLeft'), 'beta to alpha: 930 Mbit/s; alpha to beta: 940 Mbit/s');
  await hash(page, 'c:0.');
  await figure.locator('.plot').press('t');
  assert.equal(await rowsOf(figure), 6);
  await done();
});

test('a cell of a matrix leads to its pair, by key, click and link', needed, async () => {
  const { page, done } = await open('pairs.html');
  const figure = page.locator('.figure:has([aria-roledescription=matrix])').first();
  const pair = page.locator('.pair');
  await figure.locator('.plot').focus();
  for (const key of ['ArrowRight', 'ArrowRight', 'Enter']) await page.keyboard.press(key);
  await pair.waitFor();
  assert.equal(await pair.locator('h4').innerText(), 'alpha → gamma and gamma → alpha');
  assert.ok(await pair.locator('h4').evaluate((heading) => heading === document.activeElement), 'the focus is on the pair');
  const values = pair.locator('table').first().locator('tbody tr');
  assert.deepEqual(await values.evaluateAll((rows) => rows.map((row) => [row.cells[0].innerText, row.cells[2].innerText])), [['alpha → gamma', '512 Mbit/s'], ['gamma → alpha', '610 Mbit/s']]);
  assert.equal(await pair.locator('table').nth(1).locator('tbody tr').count(), 2, 'a trial of each direction');
  const link = await hash(page, 'p:0.2');
  await page.keyboard.press('Escape');
  await pair.waitFor({ state: 'detached' });
  assert.ok(await figure.locator('.plot').evaluate((plot) => plot === document.activeElement), 'the focus is back');
  await page.waitForFunction(() => !location.hash.includes('p:'));
  const box = await figure.locator('.over').boundingBox();
  for (let y = 60; y < box.height && !(await pair.isVisible()); y += 10) await page.mouse.click(box.x + box.width - 30, box.y + y);
  assert.match(await pair.locator('h4').innerText(), /^(alpha|beta) → gamma/);
  await done();
  const again = await open('pairs.html', { hash: link });
  assert.equal(await again.page.locator('.pair h4').innerText(), 'alpha → gamma and gamma → alpha');
  await again.done();
  const wrong = await open('pairs.html', { hash: link.replace('p:0.2', 'p:7.9') });
  assert.equal(await wrong.page.locator('.pair').count(), 0);
  await wrong.done();
});

test('the result of a matrix names its values', needed, async () => {
  const { page, done } = await open('pairs.html');
  assert.equal((await page.locator('.result').innerText()).replaceAll('\u00a0', ' '), 'median goodput 561 Mbit/s, 488 Mbit/s to 940 Mbit/s');
  assert.match(await page.locator('.answer dd').first().innerText(), /over 6 pairs, 488 Mbit\/s \(beta → gamma\) to 940 Mbit\/s \(alpha → beta\)$/);
  await done();
});

test('figures are saved as CSV, SVG and PNG', needed, async () => {
  const { page, done } = await open('first.html');
  const save = async (form) => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: `Save Throughput by block size as ${form}` }).click()]);
    return readFileSync(await download.path());
  };
  const rows = (await save('CSV')).toString('utf8').trim().split('\r\n');
  assert.equal(rows[0], 'series,block size [B],NetPIPE rate [bit/s],low,high');
  const run = JSON.parse(thru('export', 'first', '--format', 'json'));
  const first = run.outcomes.find((outcome) => outcome.spec.transport === 'tcp' && outcome.spec.block === 1);
  assert.ok(Math.abs(Number(rows[1].split(',')[2]) / first.summary.netpipe_bps - 1) < 0.5, rows[1]);
  const svg = (await save('SVG')).toString('utf8');
  assert.ok(svg.startsWith('<svg ') && svg.includes(' xmlns=') && svg.includes('Throughput by block size') && !svg.includes('NaN'));
  assert.deepEqual([...(await save('PNG')).subarray(1, 4)], [...Buffer.from('PNG')]);
  await done();
});

test('stacked bars have their numbers as a table', needed, async () => {
  const { page, done } = await open('small.html');
  const figure = page.locator('#figure-anatomy, [id^=figure-anatomy]').first();
  await figure.locator('summary').click();
  assert.ok((await rowsOf(figure)) > 2);
  assert.match(await figure.locator('tbody').last().innerText(), /ns|µs/);
  await done();
});

test('every control has a name, and each figure a table', needed, async () => {
  for (const name of ['both.html', 'small.html', 'pairs.html']) {
    const { page, done } = await open(name);
    await named(page);
    const figures = page.locator('.figure:has(.plot)');
    for (let at = 0; at < await figures.count(); at++) {
      const figure = figures.nth(at);
      await figure.locator('.plot').focus();
      await page.keyboard.press('t');
      await figure.locator('table tbody tr').first().waitFor();
      assert.ok((await figure.locator('thead th').allInnerTexts()).length >= 3);
    }
    await done();
  }
});

test('the whole page is reached with the tab key', needed, async () => {
  const { page, done } = await open('first.html');
  const reached = new Set();
  for (let n = 0; n < 120; n++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      const seen = element === document.body || getComputedStyle(element).outlineStyle !== 'none';
      return { seen, what: element.getAttribute('aria-label') ?? element.textContent.trim().slice(0, 40) };
    });
    assert.ok(at.seen, `the focus is seen: ${at.what}`);
    reached.add(at.what);
  }
  for (const wanted of ['Figures', 'Save Throughput by block size as CSV']) assert.ok(reached.has(wanted), `${wanted} in ${[...reached].join(' | ')}`);
  await done();
});

test('nothing is wider than the window', needed, async () => {
  const all = ['both.html', 'bulk.html', 'small.html', 'pairs.html'];
  for (const [width, scheme, names] of [[360, 'light', all], [1280, 'dark', ['both.html']], [3840, 'light', ['both.html', 'pairs.html']]]) {
    for (const name of names) {
      const { page, done } = await open(name, { width, scheme });
      await page.evaluate(() => document.querySelectorAll('details').forEach((part) => { part.open = true; }));
      await page.waitForTimeout(100);
      await fits(page, `${name} at ${width}`);
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(background === 'rgb(13, 17, 23)', scheme === 'dark');
      await done();
    }
  }
});

test('paper is white, and has neither controls nor what is folded', needed, async () => {
  const { page, done } = await open('bulk.html', { scheme: 'dark' });
  const card = () => page.evaluate(() => getComputedStyle(document.querySelector('.figure')).backgroundColor);
  const ink = () => page.evaluate(() => getComputedStyle(document.querySelector('.picture text.axis')).fill);
  assert.deepEqual([await card(), await ink()], ['rgb(22, 27, 34)', 'rgb(230, 237, 243)']);
  await page.emulateMedia({ media: 'print' });
  await page.waitForFunction(() => !document.documentElement.classList.contains('dark'));
  assert.deepEqual([await card(), await ink()], ['rgb(255, 255, 255)', 'rgb(27, 31, 36)']);
  for (const hidden of ['Keys of a figure', 'Everything recorded', 'Table of']) assert.equal(await page.getByText(hidden).locator('visible=true').count(), 0, hidden);
  assert.equal(await page.locator('nav, .controls, .tools, .readout').locator('visible=true').count(), 0);
  await page.locator('#outcomes table').waitFor();
  await done();
});

test('figures are printed as vectors, none of them cut between pages', needed, async () => {
  const { page, done } = await open('bulk.html');
  const pdf = await page.pdf({ format: 'A4', margin: { top: '10mm', bottom: '10mm', left: '10mm', right: '10mm' } });
  assert.ok(!pdf.includes('/Subtype /Image') && !pdf.includes('/Subtype/Image'), 'there is no bitmap');
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await page.emulateMedia({ media: 'print' });
  await page.setViewportSize({ width: 718, height: 1046 });
  await page.waitForTimeout(200);
  const heights = await page.evaluate(() => [...document.querySelectorAll('.figure .plot')].map((plot) => plot.getBoundingClientRect().height));
  assert.ok(heights.length > 2 && heights.every((height) => height > 100 && height < 1046), `${heights}`);
  await done();
});

test('figures over time share their crosshair', needed, async () => {
  const { page, done } = await open('bulk.html');
  await plot(page, 'goodput').focus();
  for (let n = 0; n < 3; n++) await page.keyboard.press('ArrowRight');
  const other = page.locator('#figure-tcp-rtt');
  await other.locator('.over .cross').waitFor({ state: 'attached' });
  assert.match(await other.locator('.legend thead').innerText(), /at \d/);
  assert.notEqual(await other.locator('.legend tbody .now').first().innerText(), '');
  await page.keyboard.press('Escape');
  await other.locator('.over .cross').waitFor({ state: 'detached' });
  await done();
});

test('a legend is sorted by a column', needed, async () => {
  const { page, done } = await open('bulk.html');
  const legend = page.locator('#figure-tcp-rtt .legend');
  const names = () => legend.locator('tbody th').allInnerTexts();
  await legend.getByRole('button', { name: 'max' }).click();
  const falling = await names();
  assert.ok(falling.length > 1);
  await legend.getByRole('button', { name: 'max' }).click();
  assert.deepEqual(await names(), [...falling].reverse());
  assert.equal(await legend.locator('[aria-sort=ascending]').innerText(), 'max');
  await done();
});

test('a browser that prints a file does not wait, and a stream has at most six pages', needed, async () => {
  for (const name of ['bulk', 'both']) {
    const pdf = join(at.folder, `${name}.pdf`);
    const at_once = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${join(at.folder, 'profile')}`, `--print-to-pdf=${pdf}`];
    execFileSync(CHROMIUM, [...at_once, `file://${join(at.folder, `${name}.html`)}`], { stdio: 'ignore', timeout: 60_000 });
    const text = readFileSync(pdf, 'latin1');
    const pages = text.match(/\/Type\s*\/Page\b(?!s)/g).length;
    assert.ok(pages > 1, `${name}: ${pages} page, without figures`);
    if (name === 'bulk') assert.ok(pages <= 6, `${pages} pages`);
  }
});

test('the answer is in the file without its script', needed, async () => {
  const context = await at.browser.newContext({ javaScriptEnabled: false });
  for (const [name, answer] of [['bulk', /goodput .*bit\/s/], ['first', /RTT .*µs|RTT .*ns/], ['both', /second is|cannot tell whether second/]]) {
    const page = await context.newPage();
    await page.goto(`file://${join(at.folder, `${name}.html`)}`);
    assert.match(await page.locator('main .result').first().innerText(), answer);
    assert.match(await page.title(), /^thru (stream|curve|compare): .*\d{4}-\d\d-\d\d$/);
    await page.close();
  }
  await context.close();
});

test('runs beside each other have a row for each cell, which a click sorts', needed, async () => {
  const { page, done } = await open('both.html', { width: 400 });
  const table = page.locator('table.compared');
  assert.deepEqual(await page.locator('h1').allInnerTexts(), ['first and second']);
  assert.match(await page.locator('.result').first().innerText(), /second is|cannot tell whether second/);
  const sizes = () => table.locator('tbody th').allInnerTexts();
  const written = await sizes();
  const run = JSON.parse(thru('export', 'first', '--format', 'json'));
  assert.equal(written.length, run.outcomes.filter((outcome) => outcome.spec.transport === 'tcp').length);
  await page.getByRole('button', { name: 'B to A' }).click();
  const link = await hash(page, 'sort=3');
  const changes = (await table.locator('td[data-title="B to A"]').allInnerTexts()).map((text) => (text.startsWith('×') ? 100 * Number(text.slice(1)) : Number.parseFloat(text)));
  assert.deepEqual(changes, [...changes].sort((a, b) => a - b));
  assert.ok(changes.length > 5);
  assert.ok((await table.locator('td[data-title="B to A"]').allInnerTexts()).every((text) => !/\d{4}|\.\d\d/.test(text)), 'two to three digits');
  const sorted = await sizes();
  await done();
  const again = await open('both.html', { hash: link });
  assert.deepEqual(await again.page.locator('table.compared tbody th').allInnerTexts(), sorted);
  await again.page.getByRole('button', { name: 'cell' }).click();
  assert.deepEqual(await again.page.locator('table.compared tbody th').allInnerTexts(), written);
  await again.done();
});

test('axe finds nothing', needed, async () => {
  for (const [name, scheme] of [['both', 'light'], ['bulk', 'dark'], ['small', 'light'], ['pairs', 'light']]) {
    const { page, done } = await open(`${name}.html`, { scheme });
    await page.evaluate(() => document.querySelectorAll('details').forEach((part) => { part.open = true; }));
    await accessible(page, `${name}, ${scheme}`);
    await done();
  }
});

test('texts have the contrast that reading needs', needed, async () => {
  for (const scheme of ['light', 'dark']) {
    const { page, done } = await open('both.html', { scheme });
    await readable(page);
    await done();
  }
});

test('a million samples are drawn and moved', needed, async (context) => {
  const file = join(at.folder, 'million.html');
  const bytes = million(join(at.folder, 'bulk.html'), file);
  assert.ok(bytes <= 15_000_000, `${bytes} bytes`);
  const { page, done } = await open('million.html');
  await plot(page, 'goodput').focus();
  const times = await page.evaluate(async () => {
    performance.clearMeasures();
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    const key = (of) => document.querySelector('#figure-goodput .plot').dispatchEvent(new KeyboardEvent('keydown', { bubbles: true, ...of }));
    for (let n = 0; n < 20; n++) {
      key(n % 2 ? { key: 'ArrowRight', shiftKey: true } : { key: n % 8 === 6 ? '0' : '+' });
      await frame();
      await frame();
    }
    return performance.getEntriesByName('draw').filter((entry) => entry.detail === 'goodput').map((entry) => entry.duration).sort((a, b) => a - b);
  });
  assert.ok(times.length >= 10, `${times.length} draws`);
  console.log(`a million samples: ${(bytes / 1e6).toFixed(1)} MB, ${times.length} draws and pans, median ${times[times.length >> 1].toFixed(1)} ms, longest ${times.at(-1).toFixed(1)} ms`);
  await done();
  context.diagnostic('drawn');
});
