// Reads the block of a page: the length of the JSON (32 bits, little endian), the JSON, and columns of numbers in planes of bytes.

import type { Cell, ColumnRef, Figure, FigurePart, Line, Matrix, MatrixPart, Page, PagePart, SeriesPart } from './model.ts';

/** The layout that this script reads. */
export const VERSION = 1;

export function column(bytes: Uint8Array, ref: ColumnRef): Float64Array {
  const { at, count, code } = ref;
  const numbers = new Float64Array(count);
  if (code === 'steps') {
    let sum = ref.first;
    for (let i = 0; i < count; i++) {
      const p = at + i;
      sum += bytes[p]! | (bytes[p + count]! << 8) | (bytes[p + 2 * count]! << 16) | (bytes[p + 3 * count]! << 24);
      numbers[i] = sum;
    }
    return numbers;
  }
  const words = new Uint32Array(numbers.buffer);
  for (let i = 0; i < count; i++) {
    for (const half of [0, 1]) {
      const p = at + 4 * half * count + i;
      words[2 * i + half] = bytes[p]! | (bytes[p + count]! << 8) | (bytes[p + 2 * count]! << 16) | (bytes[p + 3 * count]! << 24);
    }
  }
  return numbers;
}

function line(bytes: Uint8Array, part: SeriesPart): Line {
  const of = (ref: ColumnRef | null) => (ref ? column(bytes, ref) : null);
  const x = of(part.x) ?? new Float64Array();
  let sorted = true;
  for (let i = 1; i < x.length && sorted; i++) sorted = x[i]! >= x[i - 1]!;
  const { name, run, colour, dash, reference, stacked, steps, panel } = part;
  return { name, run, colour, dash, reference, stacked, steps, panel, x, y: of(part.y) ?? new Float64Array(x.length).fill(NaN), low: of(part.low), high: of(part.high), sorted };
}

function matrix(bytes: Uint8Array, part: MatrixPart | null): Matrix | null {
  if (!part) return null;
  const [panel, row, columns, value, standing] = part.cells.map((ref) => (ref ? column(bytes, ref) : new Float64Array()));
  const cells = Array.from(value!, (of, at): Cell => ({ panel: panel![at]!, row: row![at]!, column: columns![at]!, value: of, standing: standing![at]! }));
  return { label: part.label, unit: part.unit, usual: part.usual, cells };
}

export function page(block: Uint8Array): Page {
  const length = new DataView(block.buffer, block.byteOffset).getUint32(0, true);
  const part = JSON.parse(new TextDecoder().decode(block.subarray(4, 4 + length))) as PagePart;
  if (part.version !== VERSION) throw new Error(`the data has layout ${part.version}, but this page reads ${VERSION}`);
  const bytes = block.subarray(4 + length);
  const figure = (of: FigurePart): Figure => ({ ...of, lines: of.series.map((series) => line(bytes, series)), matrix: matrix(bytes, of.matrix) });
  return { ...part, figures: part.figures.map(figure) };
}
