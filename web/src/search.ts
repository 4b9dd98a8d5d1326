// Finds points of a line by their x.

import type { Line } from './model.ts';

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
