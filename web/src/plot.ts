// Lays a figure out and draws it: axes, lines, intervals, marks. Pure: what it needs comes in a `Shown`.

import { visible, type Visible } from './decimate.ts';
import type { Axis, Line, Mark, Panel, Scale, Theme } from './model.ts';
import type { Pen } from './pen.ts';
import { drawable, fit, position, requested, valueAt, type Span } from './scale.ts';
import { ticks, type Ticks } from './ticks.ts';

/** A figure as it is to be drawn now. */
export interface Shown {
  title: string;
  subtitle: string;
  x: Axis;
  y: Axis;
  panels: Panel[];
  context: boolean;
  joined: boolean;
  /** The lines that are switched on. */
  lines: Line[];
  marks: Mark[];
  /** The horizontal range; null for all. */
  range: readonly [number, number] | null;
  inBytes: boolean;
  theme: Theme;
  /** A horizontal line, such as at a ratio of 1. */
  level: number | null;
}

export interface Frame {
  panel: number;
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Layout {
  width: number;
  height: number;
  x: Span;
  y: Span;
  frames: Frame[];
  xTicks: Ticks;
  yTicks: Ticks;
  /** What to draw of each line. */
  parts: Visible[];
  /** Points within the range. */
  inside: number;
}

/** A measured line, not a reference beside others. */
const measured = (lines: Line[]): Line[] => {
  const own = lines.filter((line) => !line.reference && line.x.length > 0);
  return own.length > 0 ? own : lines;
};

/** The whole horizontal range of these lines. */
export function wholeSpan(axis: Axis, lines: Line[]): Span {
  if (axis.scale === 'names') return fit('names', 0, Math.max(0, (axis.ticks?.length ?? 1) - 1), 0);
  let [low, high] = [Infinity, -Infinity];
  const take = (value: number) => {
    if (!drawable(axis.scale, value)) return;
    if (value < low) low = value;
    if (value > high) high = value;
  };
  for (const { x, sorted } of measured(lines)) {
    // Of a sorted line the ends are enough, unless the scale cannot show the first ones.
    if (sorted && axis.scale !== 'log' && x.length > 0) [x[0]!, x[x.length - 1]!].forEach(take);
    else x.forEach(take);
  }
  return requested(fit(axis.scale, low, high, 0.02), axis);
}

function verticalSpan(shown: Shown, x: Span, parts: Visible[]): Span {
  const { y: axis, lines } = shown;
  if (axis.scale === 'names') return fit('names', 0, Math.max(0, (axis.ticks?.length ?? 1) - 1), 0);
  const own = new Set(measured(lines));
  const range = { low: Infinity, high: -Infinity };
  const take = (value: number) => {
    if (!drawable(axis.scale, value)) return;
    if (value < range.low) range.low = value;
    if (value > range.high) range.high = value;
  };
  const each = (wanted: (line: Line) => boolean, of: (line: Line, part: Visible, at: number) => void) =>
    lines.forEach((line, index) => {
      const part = parts[index]!;
      if (wanted(line)) part.points.forEach((point, at) => {
        const value = line.x[point]!;
        if (value >= x.low && value <= x.high) of(line, part, at);
      });
    });
  each((line) => own.has(line), (line, part, at) => take(line.y[part.points[at]!]!));
  const { low, high } = { ...range };
  // Intervals far wider than the values, and ceilings far above them, would flatten the lines.
  each((line) => own.has(line), (_, part, at) => {
    for (const end of [part.low[at]!, part.high[at]!]) if (end >= low / 3 && end <= high * 1.5) take(end);
  });
  each((line) => !own.has(line), (line, part, at) => {
    const value = line.y[part.points[at]!]!;
    if (value <= high * 1.25) take(value);
  });
  if (shown.level !== null) {
    take(shown.level);
    const room = Math.max(range.high - range.low, 1e-6) * 0.08;
    return { scale: axis.scale, low: range.low - (axis.scale === 'log' ? 0 : room), high: range.high + room };
  }
  return requested(fit(axis.scale, range.low, range.high, 0.06), axis);
}

const NARROW = 560;

export function layout(pen: Pen, shown: Shown, width: number): Layout {
  const count = Math.max(1, shown.panels.length);
  const columns = Math.min(count, width < NARROW ? 1 : width < 1000 ? 2 : width < 1800 ? 3 : 4);
  const rows = Math.ceil(count / columns);
  const each = width / columns;
  const tall = count > 1 ? 230 : Math.min(440, Math.max(270, width * 0.5));
  let x = wholeSpan(shown.x, shown.lines);
  if (shown.range) x = { ...x, low: shown.range[0], high: shown.range[1] };
  const parts = shown.lines.map((line) => visible(line, x, Math.max(50, Math.round(each - 80))));
  const y = verticalSpan(shown, x, parts);
  const top = count > 1 ? 24 : 10;
  const bottom = 46;
  const yTicks = ticks(shown.y, y, (tall - top - bottom) / 42, shown.inBytes);
  const left = Math.min(each * 0.35, 26 + Math.max(...yTicks.major.map(([, text]) => pen.width(text)), 12));
  // The texts of the ticks decide how many fit.
  let room = (each - left - 16) / 74;
  let xTicks = ticks(shown.x, x, room, shown.inBytes);
  const widest = Math.max(...xTicks.major.map(([, text]) => pen.width(text)), 10) + 14;
  if (xTicks.major.length * widest > each - left) {
    room = (each - left) / widest;
    xTicks = ticks(shown.x, x, shown.x.scale === 'names' ? room / 3 : room, shown.inBytes);
  }
  const frames = Array.from({ length: count }, (_, panel): Frame => {
    const [column, row] = [panel % columns, Math.floor(panel / columns)];
    return { panel, left: column * each + left, top: row * tall + top, right: (column + 1) * each - 14, bottom: (row + 1) * tall - bottom };
  });
  return { width, height: rows * tall, x, y, frames, xTicks, yTicks, parts, inside: parts.reduce((sum, part) => sum + part.inside, 0) };
}

export const across = (frame: Frame, span: Span, value: number): number => frame.left + position(span, value) * (frame.right - frame.left);
export const down = (frame: Frame, span: Span, value: number): number => frame.bottom - position(span, value) * (frame.bottom - frame.top);
export const xAt = (frame: Frame, span: Span, px: number): number => valueAt(span, (px - frame.left) / (frame.right - frame.left));

/** Whether a line is drawn in a panel, and not only behind its lines. */
export const isHere = (line: Line, panel: number): boolean => line.panel === null || line.panel === panel;

export const DASHES = [[], [7, 4], [2, 4], [9, 3, 2, 3]];

export const colourOf = (theme: Theme, line: Line): string => theme.series[line.colour % theme.series.length]!;

export function paint(pen: Pen, shown: Shown, at: Layout): void {
  pen.rect(0, 0, at.width, at.height, shown.theme.background);
  for (const frame of at.frames) {
    axes(pen, shown, at, frame);
    pen.clipped(frame.left - 1, frame.top - 1, frame.right - frame.left + 2, frame.bottom - frame.top + 2, () => {
      if (shown.context) shown.lines.forEach((line, index) => {
        if (!isHere(line, frame.panel)) trace(pen, shown, at, frame, line, at.parts[index]!, { colour: shown.theme.grid, width: 1.2 });
      });
      shown.lines.forEach((line, index) => {
        if (isHere(line, frame.panel)) drawLine(pen, shown, at, frame, line, at.parts[index]!);
      });
    });
    // A marker at the edge is whole.
    shown.lines.forEach((line, index) => {
      if (isHere(line, frame.panel)) markers(pen, shown, at, frame, line, at.parts[index]!);
    });
    if (frame.panel === 0) marks(pen, shown, at, frame);
  }
  if (shown.lines.every((line) => line.x.length === 0)) {
    pen.text(at.width / 2, at.height / 2, 'no series is shown', { colour: shown.theme.muted, anchor: 'middle' });
  }
}

function axes(pen: Pen, shown: Shown, at: Layout, frame: Frame): void {
  const { theme } = shown;
  const { left, right, top, bottom } = frame;
  const grid = (colour: string) => ({ colour, width: 1 });
  const vertical = (value: number, colour: string) => {
    const x = Math.round(across(frame, at.x, value)) + 0.5;
    if (x >= left - 1 && x <= right + 1) pen.line([x, top, x, bottom], grid(colour));
  };
  const horizontal = (value: number, colour: string) => {
    const y = Math.round(down(frame, at.y, value)) + 0.5;
    if (y >= top - 1 && y <= bottom + 1) pen.line([left, y, right, y], grid(colour));
  };
  at.xTicks.minor.forEach((value) => vertical(value, theme.minor));
  at.yTicks.minor.forEach((value) => horizontal(value, theme.minor));
  if (shown.x.scale !== 'names') at.xTicks.major.forEach(([value]) => vertical(value, theme.grid));
  at.yTicks.major.forEach(([value]) => horizontal(value, theme.grid));
  pen.line([left, bottom, right, bottom], { colour: theme.muted, width: 1.2 });
  let end = -Infinity;
  for (const [value, text] of at.xTicks.major) {
    const half = pen.width(text) / 2;
    const x = Math.min(Math.max(across(frame, at.x, value), half + 2), at.width - half - 2);
    if (x - half < end + 5) continue;
    end = x + half;
    pen.text(x, bottom + 17, text, { colour: theme.muted, anchor: 'middle' });
  }
  for (const [value, text] of at.yTicks.major) pen.text(left - 6, down(frame, at.y, value) + 4, text, { colour: theme.muted, anchor: 'end' });
  pen.text((left + right) / 2, bottom + 36, at.xTicks.title, { colour: theme.ink, anchor: 'middle' });
  pen.text(left - Math.max(...at.yTicks.major.map(([, text]) => pen.width(text)), 12) - 12, (top + bottom) / 2, at.yTicks.title, { colour: theme.ink, anchor: 'middle', upright: true });
  const title = shown.panels[frame.panel]?.title;
  if (title !== undefined) pen.text(left, top - 8, title, { colour: theme.ink, bold: true });
  if (shown.level !== null) {
    const y = down(frame, at.y, shown.level);
    pen.line([left, y, right, y], { colour: theme.ink, width: 1.2, dash: [5, 4] });
  }
}

/** Lines of fewer points have markers, bars as intervals and not a band. */
const FEW = 90;
const hasMarkers = (shown: Shown, part: Visible): boolean => part.points.length <= FEW || !shown.joined;

type Look = { colour: string; width: number; dash?: number[] };

function trace(pen: Pen, shown: Shown, at: Layout, frame: Frame, line: Line, part: Visible, look: Look): void {
  if (!shown.joined) return;
  const points = new Float64Array(2 * part.points.length);
  part.points.forEach((index, n) => {
    points[2 * n] = across(frame, at.x, line.x[index]! + line.shift);
    points[2 * n + 1] = down(frame, at.y, line.y[index]!);
  });
  pen.line(points, look);
}

function drawLine(pen: Pen, shown: Shown, at: Layout, frame: Frame, line: Line, part: Visible): void {
  const colour = colourOf(shown.theme, line);
  const few = hasMarkers(shown, part);
  const x = (index: number) => across(frame, at.x, line.x[index]! + line.shift);
  const within = (y: number) => Math.min(frame.bottom, Math.max(frame.top, y));
  const edge = (value: number) => (Number.isNaN(value) ? NaN : within(Number.isFinite(value) ? down(frame, at.y, value) || frame.bottom : value > 0 ? frame.top : frame.bottom));
  if (line.reference) return trace(pen, shown, at, frame, line, part, { colour, width: 1.1, dash: [6, 4] });
  if (few) {
    part.points.forEach((index, n) => {
      const [low, high] = [edge(part.low[n]!), edge(part.high[n]!)];
      const px = x(index);
      if (low > high) pen.line([px - 3, low, px + 3, low, NaN, NaN, px, low, px, high, NaN, NaN, px - 3, high, px + 3, high], { colour, width: 1.3 });
    });
  } else {
    band(pen, part, colour, (n) => x(part.points[n]!), edge);
  }
  trace(pen, shown, at, frame, line, part, { colour, width: part.inside > 4 * (frame.right - frame.left) ? 1 : 1.8, dash: DASHES[line.dash % DASHES.length]! });
}

function markers(pen: Pen, shown: Shown, at: Layout, frame: Frame, line: Line, part: Visible): void {
  if (line.reference || !hasMarkers(shown, part)) return;
  const size = part.points.length > 45 ? 2.6 : 3.6;
  for (const index of part.points) {
    const [x, y] = [across(frame, at.x, line.x[index]! + line.shift), down(frame, at.y, line.y[index]!)];
    if (x < frame.left - 1 || x > frame.right + 1 || y < frame.top - 1 || y > frame.bottom + 1) continue;
    pen.marker(line.colour + 2 * line.dash, x, y, size, colourOf(shown.theme, line), shown.theme.background);
  }
}

function band(pen: Pen, part: Visible, colour: string, x: (n: number) => number, edge: (value: number) => number): void {
  let upper: number[] = [];
  let lower: number[] = [];
  const close = () => {
    if (upper.length > 2) pen.area([...upper, ...lower.reverse().flat()], colour, 0.22);
    upper = [];
    lower = [];
  };
  for (let n = 0; n < part.points.length; n++) {
    const [low, high] = [edge(part.low[n]!), edge(part.high[n]!)];
    if (Number.isNaN(low) || Number.isNaN(high)) {
      close();
      continue;
    }
    upper.push(x(n), high);
    // Reversed as pairs below.
    lower.push(low, x(n));
  }
  close();
}

function marks(pen: Pen, shown: Shown, at: Layout, frame: Frame): void {
  const placed: [number, number, number, number][] = [];
  for (const mark of shown.marks) {
    const [x, y] = [across(frame, at.x, mark.x), down(frame, at.y, mark.y)];
    if (!(x >= frame.left - 1 && x <= frame.right + 1 && y >= frame.top - 1 && y <= frame.bottom + 1)) continue;
    pen.marker(0, x, y, 4.5, shown.theme.background, shown.theme.ink);
    const [width, height] = [pen.width(mark.label) + 10, 20];
    const clamp = (value: number, low: number, high: number) => Math.max(low, Math.min(high, value));
    const spots = [[12, -32], [-width - 12, -32], [12, 14], [-width - 12, 14], [12, -60], [-width - 12, 40], [12, 40], [-width - 12, -60]];
    for (const [dx, dy] of spots) {
      const left = clamp(x + dx!, frame.left + 2, frame.right - width - 2);
      const top = clamp(y + dy!, frame.top + 2, frame.bottom - height - 2);
      if (placed.some(([l, t, w, h]) => left < l + w && l < left + width && top < t + h && t < top + height)) continue;
      placed.push([left, top, width, height]);
      pen.line([x, y, clamp(x, left, left + width), clamp(y, top, top + height)], { colour: shown.theme.ink, width: 1 });
      pen.rect(left, top, width, height, shown.theme.background, { colour: shown.theme.grid, width: 1 });
      pen.text(left + width / 2, top + 14, mark.label, { colour: shown.theme.ink, anchor: 'middle' });
      break;
    }
  }
}

/** The scales that an axis can have beside its own. */
export const otherScale = (scale: Scale): Scale | null => (scale === 'log' ? 'linear' : scale === 'linear' ? 'log' : null);
