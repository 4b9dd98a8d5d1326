// A matrix as colours and numbers on a canvas, with a cursor for pointer and keys.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Rows } from './table.tsx';
import { saveText } from './download.ts';
import type { Cell, Figure, Page, Table, Theme } from './model.ts';
import { CanvasPen, SvgPen, type Pen } from './pen.ts';
import { PairView } from './pair.tsx';
import { figureState, inBytes, isDark } from './state.ts';
import { Picture, Save, useWidth } from './parts.tsx';
import { axisUnit, quantity, threeDigits } from './units.ts';

interface Shown {
  figure: Figure;
  ramp: string[];
  theme: Theme;
  bytes: boolean;
}

interface Grid {
  width: number;
  height: number;
  left: number;
  top: number;
  cellWidth: number;
  cellHeight: number;
  panelHeight: number;
}

const name = (figure: Figure, axis: 'x' | 'y', at: number) => figure[axis].ticks?.[at]?.[1] ?? '';
const pairName = (figure: Figure, cell: Cell) => `${name(figure, 'y', cell.row)} to ${name(figure, 'x', cell.column)}`;

function range(cells: Cell[]): [number, number] {
  const values = cells.map((cell) => cell.value).filter(Number.isFinite);
  return [Math.min(...values), Math.max(...values)];
}

const cut = (pen: Pen, text: string, room: number): string => {
  if (pen.width(text) <= room) return text;
  let kept = text;
  while (kept.length > 1 && pen.width(`${kept}…`) > room) kept = kept.slice(0, -1);
  return `${kept}…`;
};

function grid(pen: Pen, { figure }: Shown, width: number): Grid {
  const rows = figure.y.ticks?.length ?? 1;
  const columns = figure.x.ticks?.length ?? 1;
  const left = Math.min(width * 0.3, 20 + Math.max(0, ...(figure.y.ticks ?? []).map(([, text]) => pen.width(text))));
  const top = 44;
  const cellWidth = (width - left - 8) / columns;
  const cellHeight = Math.max(20, Math.min(44, cellWidth * 0.62));
  const panelHeight = top + rows * cellHeight + 20;
  return { width, height: panelHeight * Math.max(1, figure.panels.length) + 44, left, top, cellWidth, cellHeight, panelHeight };
}

const place = (grid: Grid, cell: Cell): [number, number] =>
  [grid.left + cell.column * grid.cellWidth, cell.panel * grid.panelHeight + grid.top + cell.row * grid.cellHeight];

/** Draws it, with a frame around these cells. */
function paint(pen: Pen, shown: Shown, at: Grid, framed: Cell[]): void {
  const { figure, ramp, theme, bytes } = shown;
  const { cells, label, unit } = figure.matrix!;
  const [low, high] = range(cells);
  const { factor, name: unitName } = axisUnit(high, unit, bytes);
  const share = (value: number) => (high > low ? (value - low) / (high - low) : 0.3);
  const mixed = (value: number) => mix(ramp, share(value));
  pen.rect(0, 0, at.width, at.height, theme.background);
  for (let panel = 0; panel < Math.max(1, figure.panels.length); panel++) {
    const top = panel * at.panelHeight;
    if (figure.panels[panel]) pen.text(at.left, top + 14, figure.panels[panel].title, { colour: theme.ink, bold: true });
    figure.x.ticks?.forEach(([, text], column) => pen.text(at.left + (column + 0.5) * at.cellWidth, top + at.top - 8, cut(pen, text, at.cellWidth - 4), { colour: theme.muted, anchor: 'middle' }));
    figure.y.ticks?.forEach(([, text], row) => pen.text(at.left - 8, top + at.top + (row + 0.5) * at.cellHeight + 4, cut(pen, text, at.left - 12), { colour: theme.muted, anchor: 'end' }));
  }
  for (const cell of cells) {
    const [x, y] = place(at, cell);
    pen.rect(x + 1, y + 1, at.cellWidth - 2, at.cellHeight - 2, mixed(cell.value));
    const text = threeDigits(cell.value / factor);
    if (pen.width(text) + 4 <= at.cellWidth) pen.text(x + at.cellWidth / 2, y + at.cellHeight / 2 + 4.5, text, { colour: share(cell.value) > 0.55 ? '#ffffff' : '#1b1f24', anchor: 'middle' });
  }
  for (const cell of framed) {
    const [x, y] = place(at, cell);
    pen.rect(x + 1, y + 1, at.cellWidth - 2, at.cellHeight - 2, null, { colour: theme.ink, width: 2.5 });
  }
  const [y, wide] = [at.height - 34, Math.min(240, at.width * 0.4)];
  for (let step = 0; step < 40; step++) pen.rect(at.left + (wide * step) / 40, y, wide / 40 + 0.5, 12, mix(ramp, step / 39));
  pen.text(at.left - 6, y + 10, threeDigits(low / factor), { colour: theme.muted, anchor: 'end' });
  pen.text(at.left + wide + 6, y + 10, threeDigits(high / factor), { colour: theme.muted });
  pen.text(at.left, y + 28, unitName ? `${label} (${unitName})` : label, { colour: theme.ink });
}

function mix(ramp: string[], share: number): string {
  const at = Math.min(1, Math.max(0, share)) * (ramp.length - 1);
  const index = Math.min(Math.floor(at), ramp.length - 2);
  const part = (colour: string, n: number) => parseInt(colour.slice(1 + 2 * n, 3 + 2 * n), 16);
  const [from, to] = [ramp[index]!, ramp[index + 1]!];
  return `rgb(${[0, 1, 2].map((n) => Math.round(part(from, n) + (at - index) * (part(to, n) - part(from, n)))).join(',')})`;
}

function tableOf(figure: Figure, bytes: boolean): Table {
  const { cells, label, unit } = figure.matrix!;
  const several = figure.panels.length > 1;
  const rows = cells.map((cell) => [...(several ? [figure.panels[cell.panel]?.title ?? ''] : []), name(figure, 'y', cell.row), name(figure, 'x', cell.column), quantity(cell.value, unit, bytes)]);
  const head = [...(several ? ['panel'] : []), figure.y.label || 'row', figure.x.label || 'column', label];
  return { title: `${figure.title}: values`, head, numeric: head.map((_, at) => at === head.length - 1), rows, note: '' };
}

export function HeatMap({ figure, page }: { figure: Figure; page: Page }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const state = figureState(figure.id);
  const [at, setAt] = useState<Grid | null>(null);
  const cells = figure.matrix!.cells;
  const cursor = state.cursor.value ? cells[state.cursor.value[1]] : undefined;
  const chosen = state.chosen.value;
  const isChosen = (cell: Cell) => chosen !== null && cell.row === chosen[0] && cell.column === chosen[1];
  const run = page.runs[figure.owner];
  const [from, to] = chosen ? [name(figure, 'y', chosen[0]), name(figure, 'x', chosen[1])] : ['', ''];
  const hasPairs = (run?.pairs.length ?? 0) > 0;
  const shown: Shown = { figure, ramp: page.ramp, theme: isDark.value ? page.dark : page.light, bytes: inBytes.value };
  const bytes = inBytes.value;
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || width === 0) return;
    const pen = new CanvasPen(context);
    const layout = grid(pen, shown, width);
    const ratio = devicePixelRatio || 1;
    canvas.current!.width = Math.round(width * ratio);
    canvas.current!.height = Math.round(layout.height * ratio);
    canvas.current!.style.height = `${layout.height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(pen, shown, layout, cells.filter((cell) => cell === cursor || isChosen(cell)));
    setAt(layout);
  }, [width, isDark.value, bytes, cursor, chosen, figure]);
  const select = (cell: Cell | undefined) => { if (cell) state.cursor.value = [0, cells.indexOf(cell)]; };
  const under = (event: MouseEvent): Cell | undefined => {
    if (!at) return undefined;
    const frame = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    return cells.find((cell) => {
      const [left, top] = place(at, cell);
      return x >= left && x < left + at.cellWidth && y >= top && y < top + at.cellHeight;
    });
  };
  const move = (event: PointerEvent) => {
    const cell = under(event);
    canvas.current!.style.cursor = cell && hasPairs ? 'pointer' : '';
    select(cell);
  };
  /** Shows the pair of a cell, or hides it if it is shown. */
  const choose = (cell: Cell | undefined) => {
    if (cell && hasPairs) state.chosen.value = isChosen(cell) ? null : [cell.row, cell.column];
  };
  const close = () => {
    state.chosen.value = null;
    box.current?.focus();
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 't') state.table.value = !state.table.value;
    if (event.key === 'Enter') choose(cursor);
    if (event.key === 'Escape') state.chosen.value = null;
    const steps: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    if (!cursor) return select(cells[0]);
    // The next cell that has a value in this direction, in the next panel too.
    const order = (cell: Cell) => [cell.panel * 1e6 + cell.row, cell.column] as const;
    const [row, column] = order(cursor);
    const along = step[0] === 0 ? cells.filter((cell) => order(cell)[0] === row) : cells.filter((cell) => cell.column === column);
    const of = (cell: Cell) => (step[0] === 0 ? cell.column : order(cell)[0]);
    const sign = step[0] + step[1];
    select(along.filter((cell) => sign * (of(cell) - of(cursor)) > 0).sort((a, b) => sign * (of(a) - of(b)))[0]);
  };
  const svg = () => {
    const context = canvas.current?.getContext('2d');
    if (!context || !at) return;
    const pen = new SvgPen(new CanvasPen(context));
    const light = { ...shown, theme: page.light };
    paint(pen, light, at, []);
    saveText(`${page.stem}-${figure.id}.svg`, 'image/svg+xml', pen.finish(at.width, at.height, figure.title));
  };
  const text = cursor ? `${figure.panels.length > 1 ? `${figure.panels[cursor.panel]?.title}: ` : ''}${pairName(figure, cursor)}: ${quantity(cursor.value, figure.matrix!.unit, bytes)}` : '';
  return (
    <>
      <Picture figure={figure}>
        <div class="bar"><Save name={`${page.stem}-${figure.id}`} title={figure.title} svg={svg} canvas={() => canvas.current} rows={() => { const { head, rows } = tableOf(figure, bytes); return [head, ...rows]; }} /></div>
        <output class={text ? 'readout' : 'readout muted'} aria-live="polite">{text || `Point at a cell, or press an arrow key.${hasPairs ? ' A click or Enter shows the pair.' : ''}`}</output>
        <div ref={box} class="plot" tabIndex={0} role="application" aria-roledescription="matrix" aria-label={`${figure.title}. ${figure.subtitle}. Arrow keys move over the cells. ${hasPairs ? 'Enter shows the pair. ' : ''}T: table.`} onKeyDown={key}>
          <canvas ref={canvas} onPointerMove={move} onClick={(event) => choose(under(event))} />
        </div>
        <details class="fold" open={state.table.value} onToggle={(event) => { state.table.value = event.currentTarget.open; }}>
          <summary>Table of {figure.title} <span class="muted">({cells.length})</span></summary>
          {state.table.value && <Rows table={tableOf(figure, bytes)} name={`${page.stem}-${figure.id}`} />}
        </details>
      </Picture>
      {run && hasPairs && from && to && <PairView run={run} from={from} to={to} name={`${page.stem}-${figure.id}`} close={close} />}
    </>
  );
}
