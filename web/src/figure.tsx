// A figure of lines: drawn on a canvas, with a crosshair, zoom and pan by pointer and keys.

import { useSignal, type Signal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { heightOf, otherSeries, plotAt, pointAt, step, type At } from './cursor.ts';
import { comparable } from './difference.ts';
import { across, down, draw, position, shareAt, valueAt, type Drawn, type Plot, type Span } from './drawing.ts';
import { Legend } from './legend.tsx';
import type { Figure, Page } from './model.ts';
import { Drawing, Picture, Save, useWidth } from './parts.tsx';
import { brush, figureState, moment, type Range } from './state.ts';
import { Rows } from './table.tsx';
import { compared, fullName, isHere, otherScale, overTime, pointRows, pointTable, pointTexts, shownOf, switchedOn, type Shown } from './view.ts';

export const KEYS = 'Left, right: previous or next point. Up, down: other series. Shift+left, Shift+right: move. Plus, minus, 0: zoom. L: logarithmic y. Shift+L: logarithmic x. D: difference of two series. F: show this time range in all figures. T: table. Escape: hide the crosshair.';
/** Number of the colours of series. */
const COLOURS = 7;
/** Rows of the table beside a figure. */
const MOST_ROWS = 2000;

interface Props {
  figure: Figure;
  page: Page;
}

/** What is drawn now, for the crosshair. */
interface Now {
  shown: Shown;
  drawn: Drawn;
}

export function LineFigure({ figure, page }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const now = useSignal<Now | null>(null);
  const state = figureState(figure.id);
  const shown = shownOf(figure);
  const view = { ...shown.view, width };
  const drawn = useMemo(() => {
    if (width === 0) return null;
    const start = performance.now();
    const made = draw(shown.figure, view);
    performance.measure('draw', { start, end: performance.now(), detail: figure.id });
    return made;
  }, [shown.figure, JSON.stringify(view)]);
  useLayoutEffect(() => { now.value = drawn && { shown, drawn }; }, [drawn]);
  const actions = actionsOf(figure, now);
  const pair = compared(figure);
  const name = `${page.stem}-${figure.id}`;
  return (
    <Picture figure={figure}>
      <div class="bar">
        <Buttons figure={figure} actions={actions} />
        <Save name={name} figure={shown.figure} view={view} rows={() => pointRows(shown)} />
      </div>
      {pair && <Sides figure={figure} />}
      <Readout figure={figure} now={now} />
      <div
        ref={box} class="plot" tabIndex={0} role="application" aria-roledescription="figure"
        aria-label={`${figure.title}. ${figure.subtitle}. ${KEYS}`} onKeyDown={actions.key}
      >
        {drawn && <Drawing drawn={drawn} />}
        <Crosshair figure={figure} now={now} actions={actions} />
      </div>
      <Keys figure={figure} now={now} />
      <details class="fold" open={state.table.value} onToggle={(event) => { state.table.value = event.currentTarget.open; }}>
        <summary>Table of {figure.title}</summary>
        {state.table.value && <Rows table={pointTable(shown, MOST_ROWS)} name={name} />}
      </details>
    </Picture>
  );
}

/** The line (of those shown) and the point of the figure's crosshair; null while that of another figure is shown. */
function pointed(figure: Figure, now: Now | null): At | null {
  const at = figureState(figure.id).cursor.value;
  if (!at || !now || (moment.value && moment.value.of !== figure.id && overTime(figure.x))) return null;
  const line = compared(figure) ? 0 : now.shown.indexes.indexOf(at[0]);
  return now.shown.lines[line]?.x[at[1]] === undefined ? null : [line, at[1]];
}

/** The legend, with the values at the crosshair. */
function Keys({ figure, now }: { figure: Figure; now: Signal<Now | null> }) {
  if (!now.value) return null;
  const at = pointed(figure, now.value);
  const line = at && now.value.shown.lines[at[0]]!;
  const elsewhere = moment.value && moment.value.of !== figure.id && overTime(figure.x) ? moment.value.x : null;
  return <Legend figure={figure} drawn={now.value.drawn} x={at && line ? line.x[at[1]]! : elsewhere} panel={line?.panel ?? null} />;
}

const part = (span: Span, from: number, to: number): Span => ({ ...span, low: valueAt(span, from), high: valueAt(span, to) });

type Actions = ReturnType<typeof actionsOf>;

/** What buttons, keys and the pointer do. */
function actionsOf(figure: Figure, drawn: Signal<Now | null>) {
  const state = figureState(figure.id);
  const x = (now: Now) => now.drawn.plots[0]!.x;
  // Eight digits are finer than a pixel of any zoom that shows something.
  const set = (range: Range | null) => { state.range.value = range && [Number(range[0].toPrecision(8)), Number(range[1].toPrecision(8))]; };
  /** Shows a part of what is shown, by shares of the width; all if that is more than there is. */
  const zoom = (from: number, to: number) => {
    const now = drawn.peek();
    if (!now || !(to > from) || figure.x.scale === 'names') return;
    const all = now.drawn.whole;
    let span = part(x(now), from, to);
    const [a, b] = [position(all, span.low), position(all, span.high)];
    if (b - a >= 0.999) return set(null);
    // What goes beyond an end is moved back.
    if (a < 0) span = part(all, 0, b - a);
    else if (b > 1) span = part(all, 1 - (b - a), 1);
    if (position(all, span.high) - position(all, span.low) > 1e-6) set([span.low, span.high]);
  };
  const around = (factor: number, centre = 0.5) => zoom(centre - centre * factor, centre + (1 - centre) * factor);
  const own = () => pointed(figure, drawn.peek());
  const select = (at: At | null) => {
    const now = drawn.peek();
    if (!now) return;
    state.cursor.value = at ? [compared(figure) ? 0 : now.shown.indexes[at[0]]!, at[1]] : null;
    if (overTime(figure.x)) moment.value = at ? { of: figure.id, x: now.shown.lines[at[0]]!.x[at[1]]! } : null;
  };
  const centre = () => {
    const [now, at] = [drawn.peek(), own()];
    const value = now && at ? now.shown.lines[at[0]]?.x[at[1]] : undefined;
    const share = now && value !== undefined ? position(x(now), value) : 0.5;
    return share >= 0 && share <= 1 ? share : 0.5;
  };
  const difference = () => {
    state.cursor.value = null;
    if (state.pair.value) {
      state.pair.value = null;
      return;
    }
    const lines = switchedOn(figure).filter(([, line]) => line.x.length > 0 && comparable(line, line));
    const first = [...lines.filter(([, line]) => !line.reference), ...lines.filter(([, line]) => line.reference)];
    if (first.length > 1) state.pair.value = [first[0]![0], first[1]![0]];
  };
  const toggle = (signal: Signal<boolean>) => { signal.value = !signal.value; };
  const filter = () => {
    const now = drawn.peek();
    if (brush.value) brush.value = null;
    else if (now && overTime(figure.x)) {
      brush.value = [x(now).low, x(now).high];
      state.range.value = null;
    }
  };
  const all = {
    zoom, select, difference, filter,
    near: () => around(0.5, centre()),
    far: () => around(2, centre()),
    wheel: (factor: number, share: number) => around(factor, share),
    pan: (share: number) => zoom(share, 1 + share),
    whole: () => set(null),
    logX: () => toggle(state.otherX),
    logY: () => toggle(state.otherY),
    table: () => toggle(state.table),
  };
  const keys: Record<string, () => void> = {
    '+': all.near, '=': all.near, '-': all.far, 0: all.whole, l: all.logY, L: all.logX, d: difference, t: all.table, f: filter,
    Escape: () => select(null),
    ArrowUp: () => select(otherSeries(drawn.peek()!.shown, own(), -1)),
    ArrowDown: () => select(otherSeries(drawn.peek()!.shown, own(), 1)),
    Home: () => select(step(drawn.peek()!.shown, own(), -Infinity)),
    End: () => select(step(drawn.peek()!.shown, own(), Infinity)),
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !drawn.peek()) return;
    const side = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
    const action = side === 0 ? keys[event.key] : () => (event.shiftKey ? all.pan(0.2 * side) : select(step(drawn.peek()!.shown, own(), side)));
    if (!action) return;
    event.preventDefault();
    action();
  };
  return { ...all, key };
}

function Buttons({ figure, actions }: { figure: Figure; actions: Actions }) {
  const state = figureState(figure.id);
  const button = (text: string, label: string, action: () => void, pressed?: boolean) => (
    <button type="button" onClick={action} aria-label={`${text}: ${label}, ${figure.title}`} title={label} aria-pressed={pressed}>{text}</button>
  );
  // A stack begins at 0.
  const isStacked = figure.lines.some((line) => line.stacked);
  const [x, y] = [otherScale(figure.x.scale), isStacked ? null : otherScale(figure.y.scale)];
  const log = (own: string, other: boolean) => (own === 'log') !== other;
  return (
    <span class="tools">
      {figure.x.scale !== 'names' && button('+', 'Zoom in', actions.near)}
      {figure.x.scale !== 'names' && button('−', 'Zoom out', actions.far)}
      {figure.x.scale !== 'names' && button('Whole', 'Show the whole range', actions.whole)}
      {x && button('log x', 'Logarithmic x axis', actions.logX, log(figure.x.scale, state.otherX.value))}
      {y && button('log y', 'Logarithmic y axis', actions.logY, log(figure.y.scale, state.otherY.value))}
      {figure.lines.length > 1 && !isStacked && button('B/A', 'Difference of two series', actions.difference, state.pair.value !== null)}
      {overTime(figure.x) && button('Filter', 'Show this time range in all figures', actions.filter, brush.value !== null)}
    </span>
  );
}

/** Which series the difference view compares. */
function Sides({ figure }: { figure: Figure }) {
  const state = figureState(figure.id);
  const pair = state.pair.value!;
  const select = (side: 0 | 1) => (
    <label>
      {side === 0 ? 'A' : 'B'}{' '}
      <select
        value={pair[side]}
        onChange={(event) => {
          const chosen = Number(event.currentTarget.value);
          state.pair.value = side === 0 ? [chosen, pair[1]] : [pair[0], chosen];
        }}
      >
        {figure.lines.map((line, index) => line.sorted && line.x.length > 0 && <option value={index} disabled={index === pair[1 - side]}>{line.name}</option>)}
      </select>
    </label>
  );
  return <p class="sides">{select(0)} {select(1)}</p>;
}

/** The point of the crosshair in words. */
function Readout({ figure, now }: { figure: Figure; now: Signal<Now | null> }) {
  const at = pointed(figure, now.value);
  if (!at || !now.value) {
    return <output class="readout muted hint" aria-live="polite">Point at a line, or press an arrow key. Drag to zoom.</output>;
  }
  const { shown } = now.value;
  const line = shown.lines[at[0]]!;
  const [x, value, interval] = pointTexts(shown, line, at[1]);
  return (
    <output class="readout" aria-live="polite">
      <span class="name">{fullName(shown.figure, line)}</span> <span>{x}</span>: <b>{value}</b> {interval && <span class="muted">({interval})</span>}
    </output>
  );
}

interface CrosshairProps {
  figure: Figure;
  now: Signal<Now | null>;
  actions: Actions;
}

/** The layer above the figure: crosshair, the range being dragged, and the pointer. */
function Crosshair({ figure, now, actions }: CrosshairProps) {
  const layer = useRef<SVGSVGElement>(null);
  const drag = useSignal<Range | null>(null);
  const press = useRef<{ x: number; pan: boolean; last: number } | null>(null);
  const at = pointed(figure, now.value);
  if (!now.value) return null;
  const { shown, drawn } = now.value;
  const line = at ? shown.lines[at[0]]! : undefined;
  const shift = at ? drawn.shifts[shown.indexes[at[0]]!] ?? 0 : 0;
  const elsewhere = moment.value && moment.value.of !== figure.id && overTime(figure.x) ? moment.value.x : null;
  const x = line && at ? line.x[at[1]]! + shift : elsewhere;
  /** A place in the drawing, which is shrunk where there is too little room for it. */
  const place = (event: MouseEvent): [number, number] => {
    const frame = layer.current!.getBoundingClientRect();
    const scale = drawn.width / frame.width;
    return [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
  };
  const first = drawn.plots[0]!;
  const move = (event: PointerEvent) => {
    const [x, y] = place(event);
    const held = press.current;
    if (!held) return actions.select(pointAt(shown, drawn, x, y));
    if (held.pan) {
      actions.pan((held.last - x) / (first.frame.right - first.frame.left));
      held.last = x;
    } else drag.value = Math.abs(x - held.x) > 4 ? [Math.min(held.x, x), Math.max(held.x, x)] : null;
  };
  const begin = (event: PointerEvent) => {
    if (event.button !== 0 || figure.x.scale === 'names') return;
    const [x] = place(event);
    press.current = { x, pan: event.shiftKey, last: x };
    if (event.pointerType === 'mouse') layer.current!.setPointerCapture(event.pointerId);
  };
  const up = () => {
    const range = drag.peek();
    const held = press.current;
    press.current = null;
    drag.value = null;
    if (!held || !range) return;
    const plot = drawn.plots[plotAt(drawn, held.x, (first.frame.top + first.frame.bottom) / 2)] ?? first;
    const share = (px: number) => Math.min(1, Math.max(0, shareAt(plot, px)));
    actions.zoom(share(range[0]), share(range[1]));
  };
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const [x, y] = place(event);
    const plot = drawn.plots[plotAt(drawn, x, y)];
    if (plot) actions.wheel(event.deltaY < 0 ? 0.8 : 1.25, shareAt(plot, x));
  };
  const cross = (plot: Plot, panel: number) => {
    const { frame } = plot;
    const px = x === null ? NaN : across(plot, x);
    const isInside = px >= frame.left - 1 && px <= frame.right + 1;
    const own = at && line && isHere(line, panel) ? down(plot, heightOf(line, at[1])) : NaN;
    return (
      <>
        {drag.value && <rect class="chosen" x={drag.value[0]} y={frame.top} width={drag.value[1] - drag.value[0]} height={frame.bottom - frame.top} />}
        {isInside && <path class="cross" d={`M${px} ${frame.top}V${frame.bottom}`} />}
        {isInside && own >= frame.top - 1 && own <= frame.bottom + 1 && <circle class="ring" cx={px} cy={own} r="6" />}
        {isInside && own >= frame.top - 1 && own <= frame.bottom + 1 && <circle class={`dot s${line!.colour % COLOURS}`} cx={px} cy={own} r="3.6" />}
      </>
    );
  };
  return (
    <svg
      ref={layer} class="over drawing" viewBox={`0 0 ${drawn.width} ${drawn.height}`} aria-hidden="true"
      onPointerMove={move} onPointerDown={begin} onPointerUp={up}
      onPointerCancel={() => { press.current = null; drag.value = null; }} onDblClick={actions.whole} onWheel={wheel}
    >
      {drawn.plots.map(cross)}
    </svg>
  );
}
