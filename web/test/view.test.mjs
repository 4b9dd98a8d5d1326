import assert from 'node:assert/strict';
import test from 'node:test';
import { load } from './load.mjs';

const { overTime, pointTexts, summary } = await load('view.ts');
const { spread } = await load('spread.ts');

const line = { x: Float64Array.of(11e9), y: Float64Array.of(36.6e6), low: null, high: null, panel: null };
const rate = { label: 'goodput', unit: 'bit/s', scale: 'linear' };
const x = (change) => ({ label: 'any label', unit: 'ns', scale: 'linear', ...change });
const texts = (axis) => pointTexts({ figure: { x: axis, y: rate, panels: [] }, view: { in_bytes: false } }, line, 0)[0];

test('a rate over elapsed time has no bytes, whatever the axis is called and however it is scaled', () => {
  assert.equal(texts(x({ elapsed: true })), '11.0 s');
  assert.equal(texts(x({ elapsed: true, scale: 'log' })), '11.0 s');
  assert.equal(texts(x({ label: 'time of a block' })), '50325000 B in 11.0 s', 'a signature');
  assert.deepEqual([x({ elapsed: true }), x({ label: 'time' }), x({ elapsed: true, scale: 'log' })].map(overTime), [true, false, false]);
});

test('a value has the unit of its panel', () => {
  const figure = { x: x({ elapsed: true }), y: rate, panels: [{ title: 'rate' }, { title: 'latency', y: { label: 'RTT', unit: 'ns', scale: 'linear' } }] };
  const value = (panel) => pointTexts({ figure, view: { in_bytes: true } }, { ...line, panel }, 0)[1];
  assert.deepEqual([0, 1].map(value), ['4.58 MB/s', '36.6 ms']);
});

test('a counter has no mean', () => {
  const of = { ...line, x: Float64Array.of(1, 2, 3), y: Float64Array.of(0, 4, 5), steps: true };
  assert.deepEqual(summary(of, [1, 2]), { last: 4, mean: NaN, low: 0, high: 4 });
  assert.equal(summary({ ...of, steps: false }, null).mean, 3);
  assert.equal(summary(of, [7, 9]), null);
});

test('many flows are a median with their range at each moment, in each direction', () => {
  const point = (time_s, flow, value, direction = 'send') => ({ time_s, flow, direction, bits_per_s: value });
  const points = [point(1, null, 99), point(1, 0, 4), point(1, 1, 1), point(1, 2, 2), point(2, 0, 8), point(2, 1, 6), point(2, 1, 5, 'reverse')];
  const [out, back] = spread(points, (of) => of.bits_per_s, true);
  assert.equal(out.name, 'median and range of 3 flows, outbound');
  assert.deepEqual([out.x, out.y, out.low, out.high].map((column) => [...column]), [[1e9, 2e9], [2, 7], [1, 6], [4, 8]]);
  assert.deepEqual([back.name, ...back.y], ['median and range of 1 flows, return', 5]);
  assert.deepEqual(spread(points.slice(0, 1), (of) => of.bits_per_s, false), []);
});
