import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { gzipSync } from 'node:zlib';

test('script and style have at most 60 kB (gzip)', (context) => {
  const sizes = ['page.js', 'page.css'].map((name) => gzipSync(readFileSync(new URL(`../dist/${name}`, import.meta.url)), { level: 9 }).length);
  context.diagnostic(`${sizes.join(' + ')} bytes`);
  assert.ok(sizes[0] + sizes[1] <= 60_000, `${sizes}`);
});

test('the drawing of figures has at most 200 kB (gzip)', (context) => {
  const size = gzipSync(readFileSync(new URL('../dist/drawing.wasm', import.meta.url)), { level: 9 }).length;
  context.diagnostic(`${size} bytes`);
  assert.ok(size <= 200_000, `${size}`);
});

test('nothing in the bundle can end its element', () => {
  const script = readFileSync(new URL('../dist/page.js', import.meta.url), 'utf8');
  assert.ok(!/<\/script|<!--/i.test(script));
});

test('the list of packages names no registry', () => {
  assert.ok(!/"resolved"/.test(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')));
});
