// The page of `thru web` in Chromium: stored runs, running ones, new tests, agents.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { accessible, fits, named, readable } from './checks.mjs';
import { needed, opened } from './program.mjs';

let host;
let web;
let address;

const at = opened(async ({ program }) => {
  [, host] = await program.agent();
  [web, address] = await program.serve(/http:\S+/, 'web', '--listen', '127.0.0.1:0');
  for (const name of ['first', 'second']) program.run('rr', host, '--time', '200ms', '--trials', '3', '--name', name, '--quiet');
  program.run('stream', host, '--time', '300ms', '--trials', '3', '--name', 'bulk', '--quiet');
});

const origin = () => new URL(address).origin;

/** Opens a view in a tab; requests to elsewhere and errors in the console fail the test, but for those expected. */
async function open(path = '/', { width = 1280, scheme = 'light', token = true, expected = /^$/ } = {}) {
  const context = await at.browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
  const tab = async (to) => {
    const page = await context.newPage();
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type()) && !expected.test(message.text())) faults.push(message.text()); });
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('request', (request) => { if (!request.url().startsWith(`${origin()}/`)) faults.push(`loads ${request.url()}`); });
    await page.goto(`${origin()}${to}`);
    await page.waitForSelector('html[data-ready]');
    return page;
  };
  const faults = [];
  const page = await tab(token ? `${path}${new URL(address).hash}` : path);
  return { page, tab, done: async () => { assert.deepEqual(faults, []); await context.close(); } };
}

const row = (page, name) => page.locator('table.runs tbody tr', { hasText: name });
const result = (page) => page.locator('.answer .result');

test('a test goes from the form to its result, growing while it runs', needed, async () => {
  const { page, done } = await open('/new');
  await page.getByLabel('Goodput', { exact: true }).check();
  await page.getByLabel('Host', { exact: true }).fill(host);
  await page.getByLabel('Length of a trial', { exact: true }).fill('8s');
  await page.getByLabel('Both directions at once', { exact: true }).check();
  await page.locator('summary', { hasText: 'More options' }).click();
  await page.getByLabel('Trials', { exact: true }).fill('1');
  const start = await page.getByRole('button', { name: 'Start' }).boundingBox();
  assert.ok(start.y + start.height <= 900, 'the button is in view');
  await page.reload();
  await page.locator('#subject').waitFor();
  assert.equal(await page.getByLabel('Command line').innerText(), `thru stream ${host} --time=8s --both --trials=1`);
  await page.getByRole('button', { name: 'Start' }).click();
  await page.locator('.now progress').waitFor();
  assert.match(page.url(), /\/runs\/\d{8}-\d{6}-[0-9a-f]{4}$/);
  const figure = page.locator('#figure-live-rate');
  await figure.locator('summary').click();
  const points = () => figure.locator('tbody tr').count();
  await page.waitForFunction(() => document.querySelectorAll('#figure-live-rate tbody tr').length >= 2);
  const early = await points();
  const left = async () => Number(/about (\d+) s left/.exec(await page.locator('.now').innerText())?.[1]);
  const first = await left();
  assert.ok(first > 0 && first <= 8, `${first} s left of a trial of 8 s`);
  await page.waitForFunction((early) => document.querySelectorAll('#figure-live-rate tbody tr').length > early, early);
  // The figure has ten points a second, the time left whole seconds.
  for (let tries = 0; !(await left() < first); tries++) {
    assert.ok(tries < 40, 'the time left falls');
    await page.waitForTimeout(100);
  }
  await page.getByRole('region', { name: 'Estimate so far' }).getByText('within the first trial').first().waitFor();
  await page.locator('.now').getByText(/Cores in the last second, near: busiest \d+ %, softirq \d+ %; far: busiest \d+ %/).waitFor();
  assert.match(await page.locator('.newest').innerText(), /Goodput now\n[\d.]+ [kMGT]?bit\/s, outbound\n[\d.]+ [kMGT]?bit\/s, return\n/);
  assert.deepEqual(await figure.locator('.legend tbody button').allInnerTexts(), ['all flows, outbound', 'all flows, return']);
  await page.getByText('Finished.').waitFor();
  assert.match(await result(page).innerText(), /goodput .*bit\/s/);
  const document = JSON.parse(at.program.run('export', 'last', '--format', 'json'));
  assert.deepEqual(document.header.command, ['thru', 'stream', host, '--time=8s', '--both', '--trials=1']);
  await done();
});

test('a refused test says why, and the form stays', needed, async () => {
  const { page, done } = await open('/new?test=stream', { expected: /400 \(Bad Request\)/ });
  await page.getByLabel('Host', { exact: true }).fill('127.0.0.1:9');
  await page.getByRole('button', { name: 'Start' }).click();
  const message = page.getByRole('alert');
  await message.waitFor();
  assert.match(await message.innerText(), /127\.0\.0\.1:9: Connection refused.*--invite/s);
  await page.getByLabel('Host', { exact: true }).fill(host);
  await page.getByLabel('Length of a trial', { exact: true }).fill('soon');
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByText(/soon/).and(page.getByRole('alert')).or(page.locator('[role=alert]', { hasText: 'soon' })).first().waitFor();
  await done();
});

test('a curve of the command line appears in two tabs, grows, and either stops it', needed, async () => {
  const { page, tab, done } = await open('/');
  await page.locator('table.runs').waitFor();
  const other = await tab('/');
  const curve = at.program.start('curve', host, '--to', '4096', '--name', 'from-a-shell', '--trials', '40', '--budget', '40s');
  const link = (of) => of.getByRole('region', { name: 'Running now' }).getByRole('link', { name: /from-a-shell/ });
  await Promise.all([link(page).waitFor(), link(other).waitFor()]);
  await link(other).click();
  await other.locator('#figure-throughput .plot').waitFor();
  await other.locator('#figure-throughput summary').click();
  const rows = () => other.locator('#figure-throughput tbody tr').allInnerTexts();
  const early = (await rows()).join();
  for (let tries = 0; (await rows()).join() === early; tries++) {
    assert.ok(tries < 60, 'the curve grows');
    await other.waitForTimeout(200);
  }
  await page.getByRole('region', { name: 'Running now' }).getByRole('button', { name: 'Stop from-a-shell' }).click();
  await other.getByText('The run ended: interrupted.').waitFor();
  if (curve.exitCode === null) await new Promise((resolve) => { curve.on('exit', resolve); });
  assert.match(await result(other).innerText(), /RTT/);
  await row(page, 'from-a-shell').getByText('interrupted').waitFor();
  await done();
});

test('the table of a plan fills', needed, async () => {
  writeFileSync(join(at.folder, 'plan.toml'), `
name = "sizes"
title = "Block sizes"
question = "Which block is the fastest?"
to = ["${host}"]
[base]
pattern = "stream"
time = "250ms"
[[factor]]
field = "block"
levels = ["1KiB", "16KiB", "128KiB"]
[repeat]
min = 3
max = 3
`);
  const { page, done } = await open('/');
  const plan = at.program.start('run', 'plan.toml');
  let said = '';
  plan.stderr.on('data', (part) => { said += part; });
  await page.getByRole('region', { name: 'Running now' }).getByRole('link').click().catch((error) => { throw new Error(`${error.message}\n${said}`); });
  await page.locator('#tables tbody tr, #outcomes tbody tr').first().waitFor();
  await page.getByText('Finished.').waitFor();
  assert.equal(await page.locator('#tables .fold').first().locator('tbody tr').count(), 3);
  await done();
});

test('runs are found, starred, tagged, compared and deleted', needed, async () => {
  const { page, done } = await open('/');
  await row(page, 'bulk').getByRole('button', { name: /^Star/ }).click();
  await row(page, 'bulk').getByRole('button', { name: /^Star/, pressed: true }).waitFor();
  await row(page, 'second').getByRole('button', { name: /^Tag / }).click();
  await page.getByLabel('Tags, separated by commas').fill('site-2, <b>kernel</b>');
  await page.keyboard.press('Enter');
  await row(page, 'second').getByRole('button', { name: '<b>kernel</b>' }).waitFor();
  await page.getByLabel('starred only').check();
  await page.waitForFunction(() => document.querySelectorAll('table.runs tbody tr').length === 1);
  assert.match(await page.locator('table.runs tbody').innerText(), /bulk/);
  await page.getByLabel('starred only').uncheck();
  await row(page, 'second').waitFor();
  await page.getByLabel('Search').fill('SITE-2 rr');
  await row(page, 'bulk').waitFor({ state: 'detached' });
  assert.equal(await page.locator('table.runs tbody tr').count(), 1);
  await row(page, 'second').waitFor();
  await page.getByLabel('Search').fill('');
  for (const name of ['first', 'second']) await row(page, name).getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Compare 2 runs' }).click();
  await page.getByRole('region', { name: 'Comparison', exact: true }).getByRole('button', { name: 'B to A' }).waitFor();
  assert.deepEqual(await page.locator('table.compared tbody th').allInnerTexts(), ['first', 'second']);
  assert.match(await page.title(), /^thru compare: first and second, .*\d{4}-\d\d-\d\d$/);
  assert.equal(await result(page).count(), 2);
  await page.goBack();
  assert.ok(await row(page, 'first').getByRole('checkbox').isChecked(), 'the ticks are in the address');
  await row(page, 'first').getByRole('button', { name: /^Delete/ }).click();
  await row(page, 'first').getByRole('button', { name: /^Delete for good/ }).click();
  await row(page, 'first').waitFor({ state: 'detached' });
  const listed = at.program.run('runs', '--json').trim().split('\n').map((line) => JSON.parse(line));
  assert.ok(listed.every((run) => run.name !== 'first'));
  assert.deepEqual(listed.find((run) => run.name === 'second').tags, ['<b>kernel</b>', 'site-2']);
  await done();
});

test('the list is sorted, and the address keeps it', needed, async () => {
  const { page, done } = await open('/');
  const names = () => page.locator('table.runs tbody th a').allInnerTexts();
  await row(page, 'bulk').waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForFunction(() => new URLSearchParams(location.search).get('sort') === 'run-rising');
  await page.waitForFunction(() => {
    const names = [...document.querySelectorAll('table.runs tbody th a')].map((link) => link.innerText.toLowerCase());
    return names.join() === [...names].sort().join();
  });
  await row(page, 'bulk').getByRole('checkbox').check();
  const sorted = await names();
  await page.reload();
  await row(page, 'bulk').waitFor();
  assert.deepEqual(await names(), sorted);
  await page.getByLabel('Search').fill('bulk');
  await page.waitForFunction(() => document.querySelectorAll('table.runs tbody tr').length === 1);
  await page.reload();
  await row(page, 'bulk').waitFor();
  assert.deepEqual(await names(), ['bulk']);
  assert.equal(await page.getByLabel('Search').inputValue(), 'bulk');
  assert.ok(await row(page, 'bulk').getByRole('checkbox').isChecked());
  assert.equal(await page.title(), 'thru: runs');
  await done();
});

test('an agent is checked and compared', needed, async () => {
  const { page, done } = await open('/agents', { expected: /400 \(Bad Request\)/ });
  const agent = (of) => page.locator('table.agents tbody tr', { has: page.getByRole('rowheader', { name: of, exact: true }) });
  await agent(host).getByRole('button', { name: /^Check/ }).click();
  await agent(host).getByText(/answers: .* \d+ ms/).waitFor();
  await agent(host).getByRole('button', { name: / from / }).click();
  await page.locator('summary', { hasText: 'Everything recorded' }).click();
  assert.ok((await page.locator('.facts').innerText()).includes('kernel'));
  await page.getByLabel('Host', { exact: true }).fill('127.0.0.1:9');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Check all' }).click();
  await agent('127.0.0.1:9').getByText('Connection refused').waitFor();
  await agent(host).getByText(/answers: .* \d+ ms/).waitFor();
  await done();
});

test('the keyboard alone starts a test and stops it', needed, async () => {
  const { page, done } = await open('/');
  await page.locator('table.runs').waitFor();
  const focused = () => page.evaluate(() => document.activeElement.innerText || document.activeElement.id || document.activeElement.name || '');
  const to = async (wanted) => {
    for (let n = 0; (await focused()) !== wanted; n++) {
      assert.ok(n < 80, `${wanted} is reached`);
      await page.keyboard.press('Tab');
      const seen = await page.evaluate(() => document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none');
      assert.ok(seen, `the focus is seen: ${await focused()}`);
    }
  };
  await to('New test');
  await page.keyboard.press('Enter');
  await page.locator('#subject').waitFor();
  await page.getByLabel('Goodput', { exact: true }).check();
  await to('subject');
  await page.keyboard.type(host);
  await to('option-time');
  await page.keyboard.type('20s');
  await page.keyboard.press('Enter');
  await page.locator('.now progress').waitFor();
  await to('Stop');
  await page.keyboard.press('Enter');
  await page.getByText('The run ended: interrupted.').waitFor();
  await done();
});

test('each view has names, contrast and no sideways scroll', needed, async () => {
  const id = JSON.parse(at.program.run('runs', '--json', '-n', '1')).id;
  for (const [width, scheme] of [[360, 'light'], [1280, 'dark'], [3840, 'light']]) {
    const { page, done } = await open('/', { width, scheme, expected: /40[04] \(/ });
    for (const [path, ready] of [['/', 'table.runs'], ['/new', '#subject'], ['/agents', '.agents tbody tr'], [`/runs/${id}`, '.answer'], ['/nothing', 'h1'], ['/runs/20200101-000000-ffff', '[role=alert]']]) {
      await page.goto(`${origin()}${path}`);
      await page.locator(ready).first().waitFor();
      await page.evaluate(() => document.querySelectorAll('details').forEach((part) => { part.open = true; }));
      await fits(page, `${path} at ${width}`);
      await named(page);
      await readable(page);
      // It takes seconds for each page, and finds the same at every width.
      if (width === 1280) await accessible(page, `${path}, ${scheme}`);
    }
    await done();
  }
});

test('an agent that dies ends the run, and the page goes on', needed, async () => {
  const { page, done } = await open('/');
  const [mortal, there] = await at.program.agent();
  at.program.start('stream', there, '--time', '20s', '--name', 'cut');
  await page.getByRole('region', { name: 'Running now' }).getByRole('link', { name: /cut/ }).click();
  await page.locator('#figure-live-rate').waitFor();
  mortal.kill('SIGKILL');
  await page.getByText(/The run ended: failed/).waitFor();
  await page.getByRole('link', { name: 'Runs', exact: true }).click();
  await row(page, 'bulk').waitFor();
  await done();
});

test('without the token nothing is shown, and a new server is found by its address', needed, async () => {
  const stranger = await open('/', { token: false, expected: /401 \(Unauthorized\)/ });
  await stranger.page.getByText('This page needs the token').waitFor();
  assert.ok(!(await stranger.page.content()).includes('bulk'));
  await stranger.done();
  const { page, done } = await open('/', { expected: /401|ERR_|Failed to load/ });
  await row(page, 'bulk').waitFor();
  const listen = new URL(address).host;
  web.kill();
  await page.getByText('No connection to thru web').waitFor();
  [web, address] = await at.program.serve(/http:\S+/, 'web', '--listen', listen);
  await page.getByText('thru web was restarted').waitFor();
  await page.goto(address);
  await row(page, 'bulk').waitFor();
  await done();
});
