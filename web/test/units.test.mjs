import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { load } from './load.mjs';

const units = await load('units.ts');
const { ticks } = await load('ticks.ts');

// crates/report/src/labels.rs reads the same cases.
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

const texts = (unit, scale, low, high, room, inBytes = false) =>
  ticks({ label: 'a', unit, scale }, { scale, low, high }, room, inBytes).major.map(([, text]) => text);

test('ticks are round', () => {
  assert.deepEqual(texts('B', 'log', 1, 8_388_611, 9), ['1 B', '8 B', '64 B', '512 B', '4 KiB', '32 KiB', '256 KiB', '2 MiB']);
  assert.deepEqual(texts('ns', 'log', 9e3, 60e6, 8), ['10 µs', '100 µs', '1 ms', '10 ms']);
  assert.deepEqual(texts('bit/s', 'linear', 0, 46.4e9, 6), ['0', '10', '20', '30', '40']);
  assert.deepEqual(texts('bit/s', 'linear', 0, 40e9, 6, true), ['0', '1', '2', '3', '4', '5']);
});

test('ticks of any range are few, ascending and readable', () => {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  for (let n = 0; n < 3000; n++) {
    const [a, b] = [10 ** (random() * 21 - 6), 10 ** (random() * 21 - 6)];
    const [low, high] = [Math.min(a, b), Math.max(a, b) * 1.1];
    const unit = ['B', 'bit/s', 'ns', '1/s', units.TAIL][n % 5];
    const room = 2 + (n % 10);
    for (const scale of ['log', 'linear']) {
      const { major } = ticks({ label: 'a', unit, scale }, { scale, low, high }, room, n % 2 === 0);
      assert.ok(major.length <= room + 3, `${unit} ${scale} ${low} ${high}: ${major.length}`);
      assert.ok(major.every(([value, text], at) => text && !text.includes('NaN') && (at === 0 || value > major[at - 1][0])), JSON.stringify(major));
    }
  }
});

test('a frequency has its prefix before the stroke', () => {
  assert.deepEqual([3, 3e4, 3e7].map((largest) => units.axisUnit(largest, '1/s', false).name), ['1/s', 'k/s', 'M/s']);
});
