// Fewer points that draw the same picture: of each column of pixels the first, the lowest, the highest and the last.

import type { Line } from './model.ts';
import { valueAt, type Span } from './scale.ts';

/** Index of the first number that is not below `value`. */
export function lowerBound(numbers: Float64Array, value: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface Visible {
  /** Indexes of the points to draw, ascending. */
  points: number[];
  /** Lowest `low` and highest `high` of the column of each of them; NaN without. */
  low: number[];
  high: number[];
  /** How many points are within the span. */
  inside: number;
}

/** The points of `line` within `span` (and one on either side), for `width` pixels. */
export function visible(line: Line, span: Span, width: number): Visible {
  const { x, y, low, high } = line;
  const all: Visible = { points: [], low: [], high: [], inside: 0 };
  const add = (index: number, lowest: number, highest: number) => {
    all.points.push(index);
    all.low.push(lowest);
    all.high.push(highest);
  };
  const own = (index: number) => add(index, low ? low[index]! : NaN, high ? high[index]! : NaN);
  if (!line.sorted) {
    for (let i = 0; i < x.length; i++) own(i);
    all.inside = x.length;
    return all;
  }
  const from = lowerBound(x, span.low);
  const to = lowerBound(x, span.high * (span.high > 0 ? 1 + 1e-15 : 1 - 1e-15));
  all.inside = to - from;
  const [first, last] = [Math.max(0, from - 1), Math.min(x.length, to + 1)];
  if (last - first <= 4 * width) {
    for (let i = first; i < last; i++) own(i);
    return all;
  }
  if (first < from) own(first);
  let start = from;
  for (let pixel = 1; pixel <= width && start < to; pixel++) {
    const end = pixel === width ? to : lowerBoundFrom(x, valueAt(span, pixel / width), start, to);
    if (end > start) {
      let [least, most, lowest, highest] = [start, start, Infinity, -Infinity];
      for (let i = start; i < end; i++) {
        if (y[i]! < y[least]!) least = i;
        else if (y[i]! > y[most]!) most = i;
      }
      if (low && high) {
        for (let i = start; i < end; i++) {
          if (low[i]! < lowest) lowest = low[i]!;
          if (high[i]! > highest) highest = high[i]!;
        }
      }
      const ends = lowest <= highest ? [lowest, highest] as const : [NaN, NaN] as const;
      let before = -1;
      for (const index of [start, Math.min(least, most), Math.max(least, most), end - 1]) {
        if (index > before) add(index, ...ends);
        before = Math.max(before, index);
      }
      start = end;
    }
  }
  if (last > to) own(last - 1);
  return all;
}

function lowerBoundFrom(numbers: Float64Array, value: number, from: number, to: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Index of the point whose x is nearest; -1 without a point. */
export function nearest(line: Line, x: number): number {
  if (line.x.length === 0) return -1;
  if (!line.sorted) {
    let best = 0;
    for (let i = 1; i < line.x.length; i++) if (Math.abs(line.x[i]! - x) < Math.abs(line.x[best]! - x)) best = i;
    return best;
  }
  const at = lowerBound(line.x, x);
  if (at === 0) return 0;
  if (at === line.x.length) return at - 1;
  return x - line.x[at - 1]! <= line.x[at]! - x ? at - 1 : at;
}
