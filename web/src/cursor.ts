// Finds points: under a pointer, and from point to point by keys.

import { lowerBound, nearest } from './decimate.ts';
import type { Line } from './model.ts';
import { across, down, isHere, xAt, type Frame, type Layout, type Shown } from './plot.ts';

/** Index of the line (of those shown) and of its point. */
export type At = readonly [number, number];

export const frameAt = (layout: Layout, x: number, y: number): Frame | undefined =>
  layout.frames.find((frame) => x >= frame.left - 6 && x <= frame.right + 6 && y >= frame.top - 10 && y <= frame.bottom + 20);

/** The point that is nearest to a place; null where none is. */
export function pointAt(shown: Shown, layout: Layout, px: number, py: number): At | null {
  const frame = frameAt(layout, px, py);
  if (!frame) return null;
  let best: At | null = null;
  let least = Infinity;
  shown.lines.forEach((line, index) => {
    if (!isHere(line, frame.panel)) return;
    const point = line.sorted ? nearest(line, xAt(frame, layout.x, px) - line.shift) : nearestOnScreen(line, frame, layout, px, py);
    if (point < 0) return;
    const distance = Math.hypot(across(frame, layout.x, line.x[point]! + line.shift) - px, down(frame, layout.y, line.y[point]!) - py);
    if (distance < least) [best, least] = [[index, point], distance];
  });
  return best;
}

function nearestOnScreen(line: Line, frame: Frame, layout: Layout, px: number, py: number): number {
  let [best, least] = [-1, Infinity];
  for (let i = 0; i < line.x.length; i++) {
    const distance = Math.hypot(across(frame, layout.x, line.x[i]!) - px, down(frame, layout.y, line.y[i]!) - py);
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
  if (!at || !shown.lines[at[0]]) {
    const first = shown.lines.findIndex((line) => !line.reference && line.x.length > 0);
    return first < 0 ? null : [first, within(shown.lines[first]!, shown.range)[by < 0 ? 1 : 0] - (by < 0 ? 1 : 0)];
  }
  const [from, to] = within(shown.lines[at[0]]!, shown.range);
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
