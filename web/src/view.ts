// A figure as the reader wants to see it: scales, difference, what is hidden.

import { comparable, difference } from './difference.ts';
import type { Axis, Figure, Line, Page, Table } from './model.ts';
import { otherScale, type Shown } from './plot.ts';
import { brush, figureState, hiddenRuns, inBytes, isDark } from './state.ts';
import { quantity, TAIL, when } from './units.ts';

/** Whether a range of x is one of time, which figures share. */
export const overTime = (axis: Axis): boolean => axis.elapsed === true && axis.scale === 'linear';

const scaled = (axis: Axis, other: boolean): Axis => {
  const scale = other ? otherScale(axis.scale) : null;
  return scale ? { ...axis, scale } : axis;
};

/** The lines that are switched on, with their indexes in the figure. */
export function switchedOn(figure: Figure): [number, Line][] {
  const hidden = figureState(figure.id).hidden.value;
  const all = figure.lines.map((line, index): [number, Line] => [index, line]);
  return all.filter(([index, line]) => !hidden.has(index) && !hiddenRuns.value.has(line.run));
}

/** The two series of the difference view; null where it is off or they cannot be compared. */
export function compared(figure: Figure): [Line, Line] | null {
  const pair = figureState(figure.id).pair.value;
  const [a, b] = [figure.lines[pair?.[0] ?? -1], figure.lines[pair?.[1] ?? -1]];
  return a && b && a !== b && comparable(a, b) ? [a, b] : null;
}

/** What is drawn now, and the index of each of its lines in the figure. */
export function shownOf(figure: Figure, page: Page): { shown: Shown; indexes: number[] } {
  const state = figureState(figure.id);
  const x = scaled(figure.x, state.otherX.value);
  const common = {
    title: figure.title, subtitle: figure.subtitle, x, joined: figure.joined, inBytes: inBytes.value,
    theme: isDark.value ? page.dark : page.light,
    range: state.range.value ?? (brush.value && overTime(figure.x) ? brush.value : null),
  };
  const pair = compared(figure);
  if (pair) {
    const line = difference(...pair, figure.x.scale);
    const y: Axis = { label: 'B/A', unit: 'ratio', scale: 'linear' };
    return { shown: { ...common, y, panels: [], context: false, lines: [line], marks: [], level: 1 }, indexes: [0] };
  }
  const on = switchedOn(figure);
  const shown = { ...common, y: scaled(figure.y, state.otherY.value), panels: figure.panels, context: figure.context, marks: figure.marks, level: null };
  return { shown: { ...shown, lines: on.map(([, line]) => line) }, indexes: on.map(([index]) => index) };
}

/** The horizontal value as text: a level as its tick names it, a time as a date. */
export function xText(axis: Axis, value: number): string {
  const tick = axis.ticks?.find(([at]) => at === value);
  if (tick) return tick[1];
  if (axis.scale === 'date') return when(value);
  const text = quantity(value, axis.unit);
  return axis.unit === 'B' && value >= 1024 && !text.endsWith(' B') ? `${text} (${Math.round(value)} B)` : text;
}

/** Horizontal value, value and interval of a point. */
export function pointTexts(shown: Shown, line: Line, index: number): [string, string, string] {
  const value = (of: number) => quantity(of, shown.y.unit, shown.inBytes);
  const [low, high] = [line.low ? line.low[index]! : NaN, line.high ? line.high[index]! : NaN];
  const interval = Number.isFinite(low) && Number.isFinite(high) ? `${value(low)} to ${value(high)}` : Number.isFinite(low) && high === Infinity ? `${value(low)} or more` : '';
  const [x, y] = [line.x[index]!, line.y[index]!];
  // Rate times time is the block, which is on neither axis of a signature. A rate over elapsed time is that of its moment.
  const block = shown.x.unit === 'ns' && shown.y.unit === 'bit/s' && !shown.x.elapsed ? `${quantity((x * y) / 8e9, 'B')} in ` : '';
  return [`${block}${xText(shown.x, x)}`, value(y), interval];
}

/** The points within the range as a table; of a long one the first `most`. */
export function pointTable(shown: Shown, most: number): Table {
  const rows: string[][] = [];
  let all = 0;
  for (const line of shown.lines) {
    for (let i = 0; i < line.x.length; i++) {
      if (shown.range && (line.x[i]! < shown.range[0] || line.x[i]! > shown.range[1])) continue;
      if (all++ < most) rows.push([line.name, ...pointTexts(shown, line, i)]);
    }
  }
  const note = all > most ? `The first ${most} of ${all} points; the CSV has all.` : '';
  return { title: `${shown.title}: values`, head: ['series', shown.x.label, shown.y.label, 'interval'], numeric: [false, true, true, true], rows, note };
}

/** The points within the range as numbers in the axes' units. */
export function* pointRows(shown: Shown): Generator<string[]> {
  const unit = (axis: Axis) => (axis.unit && axis.unit !== TAIL ? `${axis.label} [${axis.unit}]` : axis.label);
  yield ['series', unit(shown.x), unit(shown.y), 'low', 'high'];
  const number = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? '' : String(value));
  for (const line of shown.lines) {
    for (let i = 0; i < line.x.length; i++) {
      if (shown.range && (line.x[i]! < shown.range[0] || line.x[i]! > shown.range[1])) continue;
      yield [line.name, shown.x.scale === 'names' ? xText(shown.x, line.x[i]!) : number(line.x[i]), number(line.y[i]), number(line.low?.[i]), number(line.high?.[i])];
    }
  }
}

/** Mean, lowest and highest value within the range; null without a point. */
export function summary(line: Line, range: readonly [number, number] | null): { mean: number; low: number; high: number; count: number } | null {
  let [sum, low, high, count] = [0, Infinity, -Infinity, 0];
  for (let i = 0; i < line.x.length; i++) {
    const [x, y] = [line.x[i]!, line.y[i]!];
    if ((range && (x < range[0] || x > range[1])) || !Number.isFinite(y)) continue;
    sum += y;
    count++;
    if (y < low) low = y;
    if (y > high) high = y;
  }
  return count ? { mean: sum / count, low, high, count } : null;
}
