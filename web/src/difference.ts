// The ratio B/A of two series, with its interval.

import { lowerBound } from './search.ts';
import type { Line, Scale } from './model.ts';

export interface Ends {
  value: number;
  low: number;
  high: number;
}

/**
 * B/A with an interval from those of both, as if their errors were independent: the distances of the ends, as logarithms, are added
 * in quadrature. NaN where one of the intervals is not there.
 */
export function ratio(a: Ends, b: Ends): Ends {
  const value = b.value / a.value;
  const distance = (of: number, from: number) => Math.log(of / from);
  const down = Math.hypot(distance(b.value, b.low), distance(a.high, a.value));
  const up = Math.hypot(distance(b.high, b.value), distance(a.value, a.low));
  return { value, low: value * Math.exp(-down), high: value * Math.exp(up) };
}

const at = (line: Line, index: number): Ends => ({
  value: line.y[index]!,
  low: line.low ? line.low[index]! : NaN,
  high: line.high ? line.high[index]! : NaN,
});

/** The value at x: of a point, or between two neighbours; null outside of the line and among categories between them. */
function between(line: Line, x: number, scale: Scale): Ends | null {
  const index = lowerBound(line.x, x);
  if (line.x[index] === x) return at(line, index);
  if (scale === 'names' || index === 0 || index >= line.x.length) return null;
  const [left, right] = [at(line, index - 1), at(line, index)];
  const map = (value: number) => (scale === 'log' ? Math.log(value) : value);
  const share = (map(x) - map(line.x[index - 1]!)) / (map(line.x[index]!) - map(line.x[index - 1]!));
  const mix = (of: keyof Ends) => left[of] + share * (right[of] - left[of]);
  return { value: mix('value'), low: mix('low'), high: mix('high') };
}

/** B/A at each x of A that both have. */
export function difference(a: Line, b: Line, scale: Scale): Line {
  const rows: [number, Ends][] = [];
  for (let i = 0; i < a.x.length; i++) {
    const other = between(b, a.x[i]!, scale);
    if (other) rows.push([a.x[i]!, ratio(at(a, i), other)]);
  }
  const kept = rows.filter(([, ends]) => Number.isFinite(ends.value));
  const pick = (of: keyof Ends) => Float64Array.from(kept, ([, ends]) => ends[of]);
  return {
    name: `${b.name} / ${a.name}`, run: b.run, colour: b.colour, dash: 0, reference: false, stacked: false, steps: false, panel: null,
    x: Float64Array.from(kept, ([x]) => x), y: pick('value'), low: pick('low'), high: pick('high'), sorted: a.sorted,
  };
}

/** Whether two lines can be compared. */
export const comparable = (a: Line, b: Line): boolean => a.sorted && b.sorted && a.x.length > 0 && b.x.length > 0;
