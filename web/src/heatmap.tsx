// A matrix as colours and numbers, with a cursor for pointer and keys.

import { useMemo, useRef } from 'preact/hooks';
import { across, down, draw, shareAt, valueAt, type Plot } from './drawing.ts';
import type { Cell, Figure, Page, Table } from './model.ts';
import { PairView } from './pair.tsx';
import { Drawing, Picture, Save, useWidth } from './parts.tsx';
import { figureState, inBytes } from './state.ts';
import { Rows } from './table.tsx';
import { quantity } from './units.ts';

/** Rows of the table. */
const MOST_ROWS = 2000;

const name = (figure: Figure, axis: 'x' | 'y', at: number) => figure[axis].ticks?.[at]?.[1] ?? '';
/** The cell of the same hosts in the other direction. */
const wayBack = (figure: Figure, cell: Cell): Cell | undefined => figure.matrix!.cells.find((other) =>
  other.panel === cell.panel && name(figure, 'y', other.row) === name(figure, 'x', cell.column) && name(figure, 'x', other.column) === name(figure, 'y', cell.row));
const pairName = (figure: Figure, cell: Cell) => `${name(figure, 'y', cell.row)} to ${name(figure, 'x', cell.column)}`;

function tableOf(figure: Figure, bytes: boolean, most = Infinity): Table {
  const { cells, label, unit } = figure.matrix!;
  const several = figure.panels.length > 1;
  const rows = cells.slice(0, most).map((cell) => [...(several ? [figure.panels[cell.panel]?.title ?? ''] : []), name(figure, 'y', cell.row), name(figure, 'x', cell.column), quantity(cell.value, unit, bytes)]);
  const head = [...(several ? ['panel'] : []), figure.y.label || 'row', figure.x.label || 'column', label];
  return { title: `${figure.title}: values`, head, numeric: head.map((_, at) => at === head.length - 1), rows, note: cells.length > most ? `The first ${most} of ${cells.length} pairs; the CSV has all.` : '' };
}

export function HeatMap({ figure, page }: { figure: Figure; page: Page }) {
  const box = useRef<HTMLDivElement>(null);
  const layer = useRef<SVGSVGElement>(null);
  const width = useWidth(box);
  const state = figureState(figure.id);
  const cells = figure.matrix!.cells;
  const cursor = state.cursor.value ? cells[state.cursor.value[1]] : undefined;
  const chosen = state.chosen.value;
  const isChosen = (cell: Cell) => chosen !== null && cell.row === chosen[0] && cell.column === chosen[1];
  const run = page.runs[figure.owner];
  const [from, to] = chosen ? [name(figure, 'y', chosen[0]), name(figure, 'x', chosen[1])] : ['', ''];
  const hasPairs = (run?.pairs.length ?? 0) > 0;
  const bytes = inBytes.value;
  const view = { width, range: null, hidden: [], other_x: false, other_y: false, in_bytes: bytes };
  const drawn = useMemo(() => (width > 0 ? draw(figure, view) : null), [width, bytes, figure]);
  const select = (cell: Cell | undefined) => { if (cell) state.cursor.value = [0, cells.indexOf(cell)]; };
  const under = (event: MouseEvent): Cell | undefined => {
    if (!drawn || !layer.current) return undefined;
    const box = layer.current.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top].map((at) => (at * drawn.width) / box.width) as [number, number];
    const panel = drawn.plots.findIndex(({ frame }) => x >= frame.left && x < frame.right && y >= frame.top && y < frame.bottom);
    const plot = drawn.plots[panel];
    if (!plot) return undefined;
    const column = Math.round(valueAt(plot.x, shareAt(plot, x)));
    const row = Math.round(valueAt(plot.y, (plot.frame.bottom - y) / (plot.frame.bottom - plot.frame.top)));
    return cells.find((cell) => cell.panel === panel && cell.row === row && cell.column === column);
  };
  const move = (event: PointerEvent) => {
    const cell = under(event);
    layer.current!.style.cursor = cell && hasPairs ? 'pointer' : '';
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
  const framed = (plot: Plot, panel: number) => cells.filter((cell) => (cell === cursor || isChosen(cell)) && cell.panel === panel).map((cell) => {
    const [left, top] = [across(plot, cell.column - 0.5), down(plot, cell.row - 0.5)];
    return <rect class="framed" x={left + 1} y={top + 1} width={across(plot, cell.column + 0.5) - left - 2} height={down(plot, cell.row + 0.5) - top - 2} />;
  });
  const back = cursor && wayBack(figure, cursor);
  const inWords = (cell: Cell) => `${pairName(figure, cell)}: ${quantity(cell.value, figure.matrix!.unit, bytes)}`;
  const text = cursor ? `${figure.panels.length > 1 ? `${figure.panels[cursor.panel]?.title}: ` : ''}${inWords(cursor)}${back ? `; ${inWords(back)}` : ''}` : '';
  return (
    <>
      <Picture figure={figure}>
        <div class="bar"><Save name={`${page.stem}-${figure.id}`} figure={figure} view={view} rows={() => { const { head, rows } = tableOf(figure, bytes); return [head, ...rows]; }} /></div>
        <output class={text ? 'readout' : 'readout muted'} aria-live="polite">{text || `Point at a cell, or press an arrow key.${hasPairs ? ' A click or Enter shows the pair.' : ''}`}</output>
        <div ref={box} class="plot" tabIndex={0} role="application" aria-roledescription="matrix" aria-label={`${figure.title}. ${figure.subtitle}. Arrow keys move over the cells. ${hasPairs ? 'Enter shows the pair. ' : ''}T: table.`} onKeyDown={key}>
          {drawn && <Drawing drawn={drawn} />}
          {drawn && (
            <svg ref={layer} class="over drawing" viewBox={`0 0 ${drawn.width} ${drawn.height}`} aria-hidden="true" onPointerMove={move} onClick={(event) => choose(under(event))}>
              {drawn.plots.map(framed)}
            </svg>
          )}
        </div>
        <details class="fold" open={state.table.value} onToggle={(event) => { state.table.value = event.currentTarget.open; }}>
          <summary>Table of {figure.title} <span class="muted">({cells.length})</span></summary>
          {state.table.value && <Rows table={tableOf(figure, bytes, MOST_ROWS)} name={`${page.stem}-${figure.id}`} />}
        </details>
      </Picture>
      {run && hasPairs && from && to && <PairView run={run} from={from} to={to} name={`${page.stem}-${figure.id}`} close={close} />}
    </>
  );
}
