// The drawing of figures, as the script asks for it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { load } from './load.mjs';

const { across, begin, draw, file, shareAt, valueAt } = await load('drawing.ts');
const { pointAt } = await load('cursor.ts');
await begin(readFileSync(new URL('../dist/drawing.wasm', import.meta.url)));

const line = (name, y, more = {}) => ({
  name, run: 0, colour: 0, dash: 0, reference: false, stacked: false, steps: false, panel: null, sorted: true,
  x: Float64Array.from(y, (_, n) => n * 1e9), y: Float64Array.from(y), low: null, high: null, ...more,
});
const figure = (lines, more = {}) => ({
  id: 'rate', title: 'Rate', subtitle: '', place: 'main', panels: [], context: false, marks: [], matrix: null, map: null, owner: 0, table: null, lines,
  x: { label: 'time', unit: 'ns', scale: 'linear', elapsed: true }, y: { label: 'rate', unit: 'bit/s', scale: 'linear' }, ...more,
});
const view = { width: 800, range: null, hidden: [], other_x: false, other_y: false, in_bytes: false };

test('a figure is laid out for its place, with the units that were chosen', () => {
  const of = figure([line('one', [4e9, 5e9, 6e9])]);
  const drawn = draw(of, view);
  assert.equal(drawn.width, 800);
  assert.ok(drawn.svg.includes('rate (Gbit/s)') && drawn.svg.includes('time (s)'), drawn.svg);
  assert.ok(draw(of, { ...view, in_bytes: true }).svg.includes('rate (MB/s)'));
  assert.ok(draw(of, { ...view, width: 1800 }).width === 1800);
  assert.ok(!drawn.svg.includes('<style') && file(of, view).includes('<style'));
});

test('the script finds values where they are drawn', () => {
  const of = figure([line('one', [4e9, 5e9, 6e9]), line('two', [1e9, 1e9, 1e9], { low: Float64Array.of(0, NaN, 0), high: Float64Array.of(2e9, NaN, 2e9), colour: 1 })]);
  const drawn = draw(of, { ...view, range: [1e9, 2e9] });
  const [plot] = drawn.plots;
  assert.deepEqual([plot.x.low, plot.x.high], [1e9, 2e9]);
  assert.ok(drawn.whole.high >= 2e9 && drawn.whole.low <= 0);
  assert.equal(Math.round(valueAt(plot.x, shareAt(plot, across(plot, 1.25e9)))), 1.25e9);
  const shown = { figure: of, view, lines: of.lines, indexes: [0, 1] };
  assert.deepEqual(pointAt(shown, drawn, plot.frame.right - 3, plot.frame.bottom - 20), [1, 2]);
});

test('a series that is switched off is in the legend only', () => {
  const of = figure([line('seen', [1, 2]), line('off', [3, 4], { colour: 1 })]);
  const { svg, keys, shifts } = draw(of, { ...view, hidden: [1] });
  assert.ok(!svg.includes('s1') && keys.map((key) => key.name).join() === 'seen,off', svg);
  assert.deepEqual(shifts, [0, null]);
});

test('what a figure is named stays text', () => {
  const drawn = draw(figure([line('</svg><script>', [1, 2]), line('b', [1, 3])], { title: '"><b>' }), view);
  assert.ok(!drawn.svg.includes('<script') && !drawn.svg.includes('<b>'));
});

test('the cells of a matrix come with their places', () => {
  const names = ['a', 'b'];
  const ticks = names.map((name, at) => [at, name]);
  const axis = (label) => ({ label, unit: '', scale: 'names', ticks });
  const cells = [{ panel: 0, row: 0, column: 1, value: 9e8, standing: 0 }, { panel: 0, row: 1, column: 0, value: 5e8, standing: 0 }];
  const { svg } = draw(figure([], { id: 'pairs', x: axis('to'), y: axis('from'), matrix: { label: 'goodput', unit: 'bit/s', usual: [], cells } }), view);
  assert.ok(svg.includes('>900<') && svg.includes('>500<') && svg.includes('>from<'), svg);
});
