// A figure as the reader wants to see it: scales, difference, what is hidden.

import { comparable, difference } from './difference.ts';
import type { View } from './drawing.ts';
import type { Axis, Figure, Line, Scale, Table } from './model.ts';
import { brush, figureState, hiddenRuns, inBytes } from './state.ts';
import { quantity, TAIL, when } from './units.ts';

/** A figure as it is to be drawn now. */
export interface Shown {
  figure: Figure;
  view: Omit<View, 'width'>;
  /** The lines that are switched on, and the index of each in the reader's figure. */
  lines: Line[];
  indexes: number[];
}

/** The vertical axis of a line. */
export const yOf = (figure: Figure, line: Line): Axis => (line.panel === null ? undefined : figure.panels[line.panel]?.y) ?? figure.y;

/** Whether a line is drawn in a panel, and not only behind its lines. */
export const isHere = (line: Line, panel: number): boolean => line.panel === null || line.panel === panel;

/** The scale that an axis can have beside its own. */
export const otherScale = (scale: Scale): Scale | null => (scale === 'log' ? 'linear' : scale === 'linear' ? 'log' : null);

/** Whether a range of x is one of time, which figures share. */
export const overTime = (axis: Axis): boolean => axis.elapsed === true && axis.scale === 'linear';

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

/** The ratio of two series as a figure, made once for each pair. */
const ratios = new WeakMap<Line, Map<Line, Figure>>();

function ratioOf(figure: Figure, [a, b]: [Line, Line]): Figure {
  const made = ratios.get(a) ?? new Map<Line, Figure>();
  ratios.set(a, made);
  let of = made.get(b);
  if (!of) {
    const line = difference(a, b, figure.x.scale);
    const ends = [1, ...line.y].filter(Number.isFinite);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const room = Math.max(high - low, 1e-6) * 0.08;
    const y: Axis = { label: 'B/A', unit: 'ratio', scale: 'linear', low: low - room, high: high + room };
    of = { ...figure, id: `${figure.id}:ratio`, y, panels: [], context: false, lines: [line], marks: [] };
    made.set(b, of);
  }
  return of;
}

/** What is drawn now. */
export function shownOf(figure: Figure): Shown {
  const state = figureState(figure.id);
  const range = state.range.value ?? (brush.value && overTime(figure.x) ? brush.value : null);
  const common = { range, other_x: state.otherX.value, in_bytes: inBytes.value };
  const pair = compared(figure);
  if (pair) {
    const ratio = ratioOf(figure, pair);
    return { figure: ratio, view: { ...common, other_y: false, hidden: [] }, lines: ratio.lines, indexes: [0] };
  }
  const on = switchedOn(figure);
  const indexes = on.map(([index]) => index);
  const hidden = figure.lines.map((_, index) => index).filter((index) => !indexes.includes(index));
  return { figure, view: { ...common, other_y: state.otherY.value, hidden }, lines: on.map(([, line]) => line), indexes };
}

/** The horizontal value as text: a level as its tick names it, a time as a date. */
export function xText(axis: Axis, value: number): string {
  // Points of a category may be spread around its place.
  const place = axis.scale === 'names' ? Math.round(value) : value;
  const tick = axis.ticks?.find(([at]) => at === place);
  if (tick) return tick[1];
  if (axis.scale === 'date') return when(value);
  const text = quantity(value, axis.unit);
  return axis.unit === 'B' && value >= 1024 && !text.endsWith(' B') ? `${text} (${Math.round(value)} B)` : text;
}

/** Horizontal value, value and interval of a point. */
export function pointTexts({ figure, view }: Pick<Shown, 'figure' | 'view'>, line: Line, index: number): [string, string, string] {
  const { unit } = yOf(figure, line);
  const value = (of: number) => quantity(of, unit, view.in_bytes);
  const [low, high] = [line.low ? line.low[index]! : NaN, line.high ? line.high[index]! : NaN];
  const interval = Number.isFinite(low) && Number.isFinite(high) ? `${value(low)} to ${value(high)}` : Number.isFinite(low) && high === Infinity ? `${value(low)} or more` : '';
  const [x, y] = [line.x[index]!, line.y[index]!];
  // Rate times time is the block, which is on neither axis of a signature. A rate over elapsed time or at a date is that of its moment.
  const isSignature = figure.x.unit === 'ns' && unit === 'bit/s' && !figure.x.elapsed && figure.x.scale !== 'date';
  const block = isSignature ? `${quantity((x * y) / 8e9, 'B')} in ` : '';
  return [`${block}${xText(figure.x, x)}`, value(y), interval];
}

const isWithin = ({ view: { range } }: Shown, x: number): boolean => !range || (x >= range[0] && x <= range[1]);

/** A line with the title of its panel, unless that is its name. */
export function fullName(figure: Figure, line: Line): string {
  const title = line.panel === null ? undefined : figure.panels[line.panel]?.title;
  return title && title !== line.name ? `${title}, ${line.name}` : line.name;
}

/** The points within the range as a table; of a long one the first `most`. */
export function pointTable(shown: Shown, most: number): Table {
  const { figure } = shown;
  const rows: string[][] = [];
  let all = 0;
  for (const line of shown.lines) {
    for (let i = 0; i < line.x.length; i++) {
      if (isWithin(shown, line.x[i]!) && all++ < most) rows.push([fullName(figure, line), ...pointTexts(shown, line, i)]);
    }
  }
  const note = all > most ? `The first ${most} of ${all} points; the CSV has all.` : '';
  const value = figure.panels.some((panel) => panel.y) ? 'value' : figure.y.label;
  return { title: `${figure.title}: values`, head: ['series', figure.x.label, value, 'interval'], numeric: [false, true, true, true], rows, note };
}

/** The points within the range as numbers in the axes' units. */
export function* pointRows(shown: Shown): Generator<string[]> {
  const { figure } = shown;
  const named = (axis: Axis) => (axis.unit && axis.unit !== TAIL ? `${axis.label} [${axis.unit}]` : axis.label);
  const own = figure.panels.some((panel) => panel.y);
  yield ['series', named(figure.x), own ? 'value' : named(figure.y), 'low', 'high', ...(own ? ['unit'] : [])];
  const number = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? '' : String(value));
  for (const line of shown.lines) {
    const unit = own ? [yOf(figure, line).unit] : [];
    for (let i = 0; i < line.x.length; i++) {
      if (!isWithin(shown, line.x[i]!)) continue;
      yield [fullName(figure, line), figure.x.scale === 'names' ? xText(figure.x, line.x[i]!) : number(line.x[i]), number(line.y[i]), number(line.low?.[i]), number(line.high?.[i]), ...unit];
    }
  }
}

export interface Summary {
  last: number;
  /** Of a counter there is none: its value holds until the next one. */
  mean: number;
  low: number;
  high: number;
}

/** Last, mean, lowest and highest value within the range; null without a point. */
export function summary(line: Line, range: readonly [number, number] | null): Summary | null {
  let [sum, low, high, count, last] = [0, Infinity, -Infinity, 0, NaN];
  for (let i = 0; i < line.x.length; i++) {
    const [x, y] = [line.x[i]!, line.y[i]!];
    if ((range && (x < range[0] || x > range[1])) || !Number.isFinite(y)) continue;
    sum += y;
    count++;
    last = y;
    if (y < low) low = y;
    if (y > high) high = y;
  }
  return count ? { last, mean: line.steps ? NaN : sum / count, low, high } : null;
}
