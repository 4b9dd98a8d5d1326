import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { load } from './load.mjs';

const units = await load('units.ts');

// crates/drawing/src/quantity.rs reads the same cases.
test('quantities read as those of the program', () => {
  const cases = JSON.parse(readFileSync(new URL('units.json', import.meta.url), 'utf8'));
  for (const [value, unit, text] of cases) assert.equal(units.quantity(value, unit), text, `${value} ${unit}`);
});

test('a rate in bytes is an eighth', () => {
  assert.equal(units.quantity(8e9, 'bit/s', true), '1.00 GB/s');
  assert.equal(units.quantity(8e9, 'ns', true), '8.00 s');
});

test('percentiles have all their nines', () => {
  assert.deepEqual([1, 2, 10, 100, 1000, 20_000].map(units.percentile), ['0 %', '50 %', '90 %', '99 %', '99.9 %', '99.995 %']);
});

test('what is no number says so', () => {
  assert.equal(units.quantity(NaN, 'bit/s'), 'no value');
});

test('means have three digits', () => {
  assert.equal(units.rounded(1_563_053, 'B', false), '1.49 MiB');
  assert.equal(units.rounded(4e6, 'bit/s', true), '500 kB/s');
});
