// A figure for a file: with its title above and its legend below.

import type { Line, Theme } from './model.ts';
import type { Pen } from './pen.ts';
import { colourOf, DASHES, layout, paint, type Layout, type Shown } from './plot.ts';

const HEAD = 52;
const ROW = 20;

interface Key {
  line: Line;
  x: number;
  row: number;
}

function keys(pen: Pen, lines: Line[], width: number): Key[] {
  let [x, row] = [12, 0];
  return lines.map((line) => {
    const wide = 34 + pen.width(line.name) + 18;
    if (x + wide > width && x > 12) [x, row] = [12, row + 1];
    const key = { line, x, row };
    x += wide;
    return key;
  });
}

export interface Whole {
  width: number;
  height: number;
  draw: (pen: Pen) => void;
}

export function whole(measure: Pen, shown: Shown, width: number): Whole {
  const inner: Layout = layout(measure, shown, width);
  const legend = keys(measure, shown.lines, width);
  const below = ((legend.at(-1)?.row ?? 0) + 1) * ROW + 10;
  const bottom = inner.height + HEAD;
  for (const frame of inner.frames) {
    frame.top += HEAD;
    frame.bottom += HEAD;
  }
  const at = { ...inner, height: bottom + below };
  const draw = (pen: Pen) => {
    paint(pen, shown, at);
    pen.text(12, 22, shown.title, { colour: shown.theme.ink, size: 16, bold: true });
    pen.text(12, 42, shown.subtitle, { colour: shown.theme.muted });
    for (const { line, x, row } of legend) sample(pen, shown.theme, line, x, bottom + row * ROW + 10);
  };
  return { width, height: at.height, draw };
}

function sample(pen: Pen, theme: Theme, line: Line, x: number, y: number): void {
  const colour = colourOf(theme, line);
  const dash = line.reference ? [6, 4] : DASHES[line.dash % DASHES.length]!;
  pen.line([x, y, x + 26, y], { colour, width: line.reference ? 1.1 : 1.8, dash });
  if (!line.reference) pen.marker(line.colour + 2 * line.dash, x + 13, y, 3.6, colour, theme.background);
  pen.text(x + 32, y + 4, line.name, { colour: theme.ink });
}
