import assert from 'node:assert/strict';
import test from 'node:test';
import { load } from './load.mjs';

const { column, page } = await load('columns.ts');
const { nearest } = await load('search.ts');
const { difference, ratio } = await load('difference.ts');

const planes = (numbers, width, put) => {
  const bytes = new Uint8Array(numbers.length * width);
  numbers.forEach((number, index) => {
    const view = new DataView(new ArrayBuffer(8));
    put(view, number);
    for (let plane = 0; plane < width; plane++) bytes[plane * numbers.length + index] = view.getUint8(plane);
  });
  return bytes;
};

test('doubles are read to the bit', () => {
  const numbers = [0, -0, 1.1, -1e300, Infinity, NaN, 5e-324, 2 ** 53];
  const bytes = planes(numbers, 8, (view, number) => view.setFloat64(0, number, true));
  assert.deepEqual([...column(bytes, { at: 0, count: numbers.length, code: 'doubles', first: 0 })], numbers);
});

test('steps add up', () => {
  const bytes = planes([0, 5, -300, 2_000_000_000], 4, (view, number) => view.setInt32(0, number, true));
  assert.deepEqual([...column(bytes, { at: 0, count: 4, code: 'steps', first: 1e15 })], [1e15, 1e15 + 5, 1e15 - 295, 1e15 + 1_999_999_705]);
});

test('another layout is refused', () => {
  const json = new TextEncoder().encode('{"version":99,"figures":[]}');
  const block = new Uint8Array(4 + json.length);
  new DataView(block.buffer).setUint32(0, json.length, true);
  block.set(json, 4);
  assert.throws(() => page(block), /layout 99/);
});

const line = (x, y, low = null, high = null) => ({
  name: 'a', run: 0, colour: 0, dash: 0, reference: false, stacked: false, steps: false, panel: 0, sorted: true,
  x: Float64Array.from(x), y: Float64Array.from(y), low: low && Float64Array.from(low), high: high && Float64Array.from(high),
});

test('the nearest point is found', () => {
  const of = line([1, 2, 4, 8], [0, 0, 0, 0]);
  assert.deepEqual([-5, 1.4, 3.1, 6.5, 99].map((x) => nearest(of, x)), [0, 0, 2, 3, 3]);
  assert.equal(nearest(line([], []), 1), -1);
});

test('the interval of a ratio has those of both in quadrature', () => {
  const of = ratio({ value: 100, low: 100 / 1.03, high: 103 }, { value: 200, low: 200 / 1.04, high: 208 });
  const distance = Math.hypot(Math.log(1.03), Math.log(1.04));
  assert.equal(of.value, 2);
  assert.ok(Math.abs(Math.log(of.high / 2) - distance) < 1e-12 && Math.abs(Math.log(2 / of.low) - distance) < 1e-12);
  assert.ok(Number.isNaN(ratio({ value: 1, low: NaN, high: NaN }, { value: 2, low: 1, high: 3 }).low), 'no interval is invented');
});

test('lines are compared where both are', () => {
  const a = line([1, 2, 4, 16], [10, 10, 10, 10]);
  const b = line([2, 8], [20, 40]);
  const of = difference(a, b, 'log');
  assert.deepEqual([...of.x], [2, 4]);
  assert.deepEqual([...of.y].map((value) => Math.round(value * 1e9) / 1e9), [2, 3], 'halfway in the logarithm');
  assert.deepEqual([...difference(a, b, 'names').x], [2], 'nothing is between categories');
});
