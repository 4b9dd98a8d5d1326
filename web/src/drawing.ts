// Asks the drawing of figures (crates/page-drawing as WebAssembly) for them: it lays a figure out for a width and writes it as SVG.

import type { Figure, Line, Scale } from './model.ts';

export interface Span {
  scale: Scale;
  low: number;
  high: number;
}

/** One plot: its area, and what its axes show. */
export interface Plot {
  frame: { left: number; top: number; right: number; bottom: number };
  x: Span;
  y: Span;
}

/** An entry of the legend: the series that look so, and a piece of their line. */
export interface Key {
  name: string;
  series: number[];
  sample: string;
}

export interface Drawn {
  svg: string;
  width: number;
  height: number;
  plots: Plot[];
  /** The whole horizontal range of the series that are switched on. */
  whole: Span;
  /** How far each series is moved among categories; null of one that is switched off. */
  shifts: (number | null)[];
  keys: Key[];
}

/** What a reader chose; `other_x` and `other_y`: the other of a linear and a logarithmic scale. */
export interface View {
  width: number;
  range: readonly [number, number] | null;
  hidden: number[];
  other_x: boolean;
  other_y: boolean;
  in_bytes: boolean;
}

interface Exports {
  memory: WebAssembly.Memory;
  request(length: number): number;
  answer(): number;
  answer_length(): number;
}

let drawing: Exports | undefined;
/** The figures that it has. */
const kept = new Map<string, Figure>();

/** At once: a browser that prints a file waits for nothing. */
export function begin(program: Uint8Array<ArrayBuffer>): void {
  drawing = new WebAssembly.Instance(new WebAssembly.Module(program)).exports as unknown as Exports;
}

function ask(request: unknown, columns: Float64Array[] = []): Uint8Array {
  if (!drawing) throw new Error('the drawing of figures was not begun');
  const json = new TextEncoder().encode(JSON.stringify(request));
  const first = Math.ceil((4 + json.length) / 8) * 8;
  const length = columns.reduce((sum, column) => sum + column.byteLength, first);
  const at = drawing.request(length);
  const bytes = new Uint8Array(drawing.memory.buffer, at, length);
  new DataView(drawing.memory.buffer, at).setUint32(0, json.length, true);
  bytes.set(json, 4);
  let next = first;
  for (const column of columns) {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), next);
    next += column.byteLength;
  }
  const answer = drawing.answer();
  return new Uint8Array(drawing.memory.buffer, answer, drawing.answer_length());
}

function asked<T>(request: unknown, columns?: Float64Array[]): T {
  const answer = JSON.parse(new TextDecoder().decode(ask(request, columns))) as T & { error?: string };
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer;
}

const columnsOf = ({ x, y, low, high }: Line): Float64Array[] => [x, y, ...(low ? [low] : []), ...(high ? [high] : [])];

function keep(figure: Figure): void {
  if (kept.get(figure.id) === figure) return;
  const { id, title, subtitle, x, y, panels, context, marks, map, matrix } = figure;
  const series = figure.lines.map(({ name, reference, stacked, steps, colour, dash, panel }) => ({ name, reference, stacked, steps, look: { colour, dash }, panel }));
  const columns = figure.lines.map(({ x, low, high }) => ({ count: x.length, low: low !== null, high: high !== null }));
  const cells = matrix?.cells ?? [];
  const part = (of: 'panel' | 'row' | 'column' | 'value' | 'standing') => Float64Array.from(cells, (cell) => cell[of]);
  asked({
    keep: {
      key: id, columns, cells: cells.length,
      figure: { id, title, subtitle, x, y, panels, context, marks, series, map, matrix: matrix && { label: matrix.label, unit: matrix.unit, usual: matrix.usual, cells: [] } },
    },
  }, [...figure.lines.flatMap(columnsOf), ...(matrix ? [part('panel'), part('row'), part('column'), part('value'), part('standing')] : [])]);
  kept.set(id, figure);
}

export function draw(figure: Figure, view: View): Drawn {
  keep(figure);
  return asked<Drawn>({ show: { key: figure.id, view } });
}

/** The figure as an SVG file. */
export function file(figure: Figure, view: View): string {
  keep(figure);
  return asked<{ svg: string }>({ file: { key: figure.id, view } }).svg;
}

/** The share of an axis at a value; NaN for one that it cannot show. */
export function position({ scale, low, high }: Span, value: number): number {
  if (scale === 'log') return value > 0 ? Math.log(value / low) / Math.log(high / low) : NaN;
  return (value - low) / (high - low);
}

export function valueAt({ scale, low, high }: Span, share: number): number {
  return scale === 'log' ? low * (high / low) ** share : low + share * (high - low);
}

export const across = ({ frame, x }: Plot, value: number): number => frame.left + position(x, value) * (frame.right - frame.left);
export const down = ({ frame, y }: Plot, value: number): number => frame.bottom - position(y, value) * (frame.bottom - frame.top);
/** The share of a plot's width at a place. */
export const shareAt = ({ frame }: Plot, px: number): number => (px - frame.left) / (frame.right - frame.left);
