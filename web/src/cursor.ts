// Finds points: under a pointer, and from point to point by keys.

import { across, down, shareAt, valueAt, type Drawn, type Plot } from './drawing.ts';
import type { Line } from './model.ts';
import { lowerBound, nearest } from './search.ts';
import { isHere, type Shown } from './view.ts';

/** Index of the line (of those shown) and of its point. */
export type At = readonly [number, number];

export const plotAt = ({ plots }: Drawn, x: number, y: number): number =>
  plots.findIndex(({ frame }) => x >= frame.left - 6 && x <= frame.right + 6 && y >= frame.top - 10 && y <= frame.bottom + 20);

/** The height of a point; of a part of a bar its middle. */
export const heightOf = (line: Line, point: number): number => (line.stacked ? (line.low![point]! + line.high![point]!) / 2 : line.y[point]!);

/** The point that is nearest to a place; null where none is. */
export function pointAt(shown: Shown, drawn: Drawn, px: number, py: number): At | null {
  const panel = plotAt(drawn, px, py);
  const plot = drawn.plots[panel];
  if (!plot) return null;
  let best: At | null = null;
  let least = Infinity;
  shown.lines.forEach((line, index) => {
    if (!isHere(line, panel)) return;
    const shift = drawn.shifts[shown.indexes[index]!] ?? 0;
    const point = line.sorted && !line.stacked ? nearest(line, valueAt(plot.x, shareAt(plot, px)) - shift) : nearestOnScreen(line, plot, shift, px, py);
    if (point < 0) return;
    const distance = Math.hypot(across(plot, line.x[point]! + shift) - px, down(plot, heightOf(line, point)) - py);
    if (distance < least) [best, least] = [[index, point], distance];
  });
  return best;
}

function nearestOnScreen(line: Line, plot: Plot, shift: number, px: number, py: number): number {
  let [best, least] = [-1, Infinity];
  for (let i = 0; i < line.x.length; i++) {
    const distance = Math.hypot(across(plot, line.x[i]! + shift) - px, down(plot, heightOf(line, i)) - py);
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
}

/** The points of a line that a range shows: from the first index to before the second. */
export function within(line: Line, range: readonly [number, number] | null): [number, number] {
  if (!range || !line.sorted) return [0, line.x.length];
  let to = lowerBound(line.x, range[1]);
  while (to < line.x.length && line.x[to] === range[1]) to++;
  return [lowerBound(line.x, range[0]), to];
}

/** The point before or after; the first visible one without a cursor. */
export function step(shown: Shown, at: At | null, by: number): At | null {
  const { range } = shown.view;
  if (!at || !shown.lines[at[0]]) {
    const first = shown.lines.findIndex((line) => !line.reference && line.x.length > 0);
    return first < 0 ? null : [first, within(shown.lines[first]!, range)[by < 0 ? 1 : 0] - (by < 0 ? 1 : 0)];
  }
  const [from, to] = within(shown.lines[at[0]]!, range);
  return to > from ? [at[0], Math.min(to - 1, Math.max(from, at[1] + by))] : at;
}

/** The same place of the next series. */
export function otherSeries(shown: Shown, at: At | null, by: number): At | null {
  if (!at || !shown.lines[at[0]]) return step(shown, null, 1);
  const count = shown.lines.length;
  const x = shown.lines[at[0]]!.x[at[1]]!;
  for (let n = 1; n <= count; n++) {
    const index = (at[0] + by * n + n * count) % count;
    const point = nearest(shown.lines[index]!, x);
    if (point >= 0) return [index, point];
  }
  return at;
}
