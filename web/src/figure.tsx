// A figure of lines: drawn on a canvas, with a crosshair, zoom and pan by pointer and keys.

import { useSignal, type Signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { frameAt, otherSeries, pointAt, step, type At } from './cursor.ts';
import { saveText } from './download.ts';
import { comparable } from './difference.ts';
import { Legend } from './legend.tsx';
import type { Figure, Line, Page } from './model.ts';
import { Picture, Save, useWidth } from './parts.tsx';
import { CanvasPen, SvgPen } from './pen.ts';
import { across, colourOf, down, isHere, layout, otherScale, paint, wholeSpan, xAt, type Layout, type Shown } from './plot.ts';
import { part, position } from './scale.ts';
import { brush, figureState, type Range } from './state.ts';
import { Rows } from './table.tsx';
import { compared, overTime, pointRows, pointTable, pointTexts, shownOf, switchedOn } from './view.ts';
import { whole } from './whole.ts';

export const KEYS = 'Left, right: previous or next point. Up, down: other series. Shift+left, Shift+right: move. Plus, minus, 0: zoom. L: logarithmic y. Shift+L: logarithmic x. D: difference of two series. F: show this time range in all figures. T: table. Escape: hide the crosshair.';
/** Rows of the table beside a figure. */
const MOST_ROWS = 2000;

interface Props {
  figure: Figure;
  page: Page;
}

/** What was drawn last, for the crosshair. */
interface Drawn {
  shown: Shown;
  indexes: number[];
  layout: Layout;
}

function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

export function LineFigure({ figure, page }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const drawn = useSignal<Drawn | null>(null);
  const drag = useSignal<Range | null>(null);
  const state = figureState(figure.id);
  const { shown, indexes } = shownOf(figure, page);
  const pair = compared(figure);
  // In the layout phase, so that paper shows it too. No dependencies: this component renders anew only if something that is drawn has changed.
  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    const start = performance.now();
    const measure = new CanvasPen(canvas.current.getContext('2d')!);
    const at = layout(measure, shown, width);
    const context = sized(canvas.current, at.width, at.height);
    if (context) paint(new CanvasPen(context), shown, at);
    drawn.value = { shown, indexes, layout: at };
    performance.measure('draw', { start, end: performance.now(), detail: figure.id });
  });
  const actions = actionsOf(figure, drawn);
  const svg = () => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    const measure = new CanvasPen(context);
    const file = whole(measure, { ...shown, theme: page.light }, Math.max(640, width));
    const pen = new SvgPen(measure);
    file.draw(pen);
    saveText(`${page.stem}-${figure.id}.svg`, 'image/svg+xml', pen.finish(file.width, file.height, `${figure.title}: ${figure.subtitle}`));
  };
  const picture = () => {
    const context = canvas.current?.getContext('2d');
    const target = document.createElement('canvas');
    const into = target.getContext('2d');
    if (!context || !into) return null;
    const file = whole(new CanvasPen(context), shown, Math.max(640, width));
    [target.width, target.height] = [2 * file.width, 2 * file.height];
    into.scale(2, 2);
    file.draw(new CanvasPen(into));
    return target;
  };
  const name = `${page.stem}-${figure.id}`;
  return (
    <Picture figure={figure}>
      <div class="bar">
        <Buttons figure={figure} actions={actions} />
        <Save name={name} title={figure.title} svg={svg} canvas={picture} rows={() => pointRows(shown)} />
      </div>
      {pair && <Sides figure={figure} />}
      <Readout figure={figure} drawn={drawn} />
      <div
        ref={box} class="plot" tabIndex={0} role="application" aria-roledescription="figure"
        aria-label={`${figure.title}. ${figure.subtitle}. ${KEYS}`} onKeyDown={actions.key}
      >
        <canvas ref={canvas} />
        <Crosshair figure={figure} drawn={drawn} drag={drag} actions={actions} />
      </div>
      <Legend figure={figure} page={page} />
      <details class="fold" open={state.table.value} onToggle={(event) => { state.table.value = event.currentTarget.open; }}>
        <summary>Table of {figure.title}</summary>
        {state.table.value && <Rows table={pointTable(shown, MOST_ROWS)} name={name} />}
      </details>
    </Picture>
  );
}

type Actions = ReturnType<typeof actionsOf>;

/** What buttons, keys and the pointer do. */
function actionsOf(figure: Figure, drawn: Signal<Drawn | null>) {
  const state = figureState(figure.id);
  const set = (range: Range | null) => { state.range.value = range; };
  /** Shows a part of what is shown, by shares of the width; all if that is more than there is. */
  const zoom = (from: number, to: number) => {
    const now = drawn.peek();
    if (!now || !(to > from) || now.shown.x.scale === 'names') return;
    const all = wholeSpan(now.shown.x, now.shown.lines);
    let span = part(now.layout.x, from, to);
    const [a, b] = [position(all, span.low), position(all, span.high)];
    if (b - a >= 0.999) return set(null);
    // What goes beyond an end is moved back.
    if (a < 0) span = part(all, 0, b - a);
    else if (b > 1) span = part(all, 1 - (b - a), 1);
    if (position(all, span.high) - position(all, span.low) > 1e-9) set([span.low, span.high]);
  };
  const around = (factor: number, centre = 0.5) => zoom(centre - centre * factor, centre + (1 - centre) * factor);
  const own = () => {
    const now = drawn.peek();
    const at = state.cursor.peek();
    if (!now || !at) return null;
    const line = compared(figure) ? 0 : now.indexes.indexOf(at[0]);
    return line < 0 ? null : ([line, at[1]] as At);
  };
  const select = (at: At | null) => {
    const now = drawn.peek();
    if (now) state.cursor.value = at ? [compared(figure) ? 0 : now.indexes[at[0]]!, at[1]] : null;
  };
  const centre = () => {
    const [now, at] = [drawn.peek(), own()];
    const x = now && at ? now.shown.lines[at[0]]?.x[at[1]] : undefined;
    const share = now && x !== undefined ? position(now.layout.x, x) : 0.5;
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
      brush.value = [now.layout.x.low, now.layout.x.high];
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
    <button type="button" onClick={action} aria-label={`${label}: ${figure.title}`} title={label} aria-pressed={pressed}>{text}</button>
  );
  const [x, y] = [otherScale(figure.x.scale), otherScale(figure.y.scale)];
  const log = (own: string, other: boolean) => (own === 'log') !== other;
  return (
    <span class="tools">
      {figure.x.scale !== 'names' && button('+', 'Zoom in', actions.near)}
      {figure.x.scale !== 'names' && button('−', 'Zoom out', actions.far)}
      {figure.x.scale !== 'names' && button('Whole', 'Show the whole range', actions.whole)}
      {x && button('log x', 'Logarithmic x axis', actions.logX, log(figure.x.scale, state.otherX.value))}
      {y && button('log y', 'Logarithmic y axis', actions.logY, log(figure.y.scale, state.otherY.value))}
      {figure.lines.length > 1 && button('B/A', 'Difference of two series', actions.difference, state.pair.value !== null)}
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
function Readout({ figure, drawn }: { figure: Figure; drawn: Signal<Drawn | null> }) {
  const at = figureState(figure.id).cursor.value;
  const now = drawn.value;
  const line = at && now ? now.shown.lines[compared(figure) ? 0 : now.indexes.indexOf(at[0])] : undefined;
  if (!at || !now || !line || line.x[at[1]] === undefined) {
    return <output class="readout muted hint" aria-live="polite">Point at a line, or press an arrow key. Drag to zoom.</output>;
  }
  const [x, value, interval] = pointTexts(now.shown, line, at[1]);
  return (
    <output class="readout" aria-live="polite">
      <span class="name">{panelName(now.shown, line)}{line.name}</span> <span>{x}</span>: <b>{value}</b> {interval && <span class="muted">({interval})</span>}
    </output>
  );
}

/** The title of the panel of a line, unless it is the line's name. */
function panelName(shown: Shown, line: Line): string {
  const title = line.panel === null ? undefined : shown.panels[line.panel]?.title;
  return title && title !== line.name ? `${title}, ` : '';
}

interface CrosshairProps {
  figure: Figure;
  drawn: Signal<Drawn | null>;
  drag: Signal<Range | null>;
  actions: Actions;
}

/** The layer above the figure: crosshair, the range being dragged, and the pointer. */
function Crosshair({ figure, drawn, drag, actions }: CrosshairProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const press = useRef<{ x: number; pan: boolean; last: number } | null>(null);
  const at = figureState(figure.id).cursor.value;
  const now = drawn.value;
  const selected = drag.value;
  const line = at && now ? now.shown.lines[compared(figure) ? 0 : now.indexes.indexOf(at[0])] : undefined;
  useLayoutEffect(() => {
    if (!canvas.current || !now) return;
    const context = sized(canvas.current, now.layout.width, now.layout.height);
    if (!context) return;
    context.clearRect(0, 0, now.layout.width, now.layout.height);
    const pen = new CanvasPen(context);
    const { theme } = now.shown;
    const [x, y] = line && at ? [line.x[at[1]], line.y[at[1]]] : [undefined, undefined];
    for (const frame of now.layout.frames) {
      if (selected) pen.area([selected[0], frame.top, selected[1], frame.top, selected[1], frame.bottom, selected[0], frame.bottom], theme.ink, 0.12);
      if (!line || x === undefined || y === undefined) continue;
      const px = across(frame, now.layout.x, x + line.shift);
      if (px < frame.left - 1 || px > frame.right + 1) continue;
      pen.line([px, frame.top, px, frame.bottom], { colour: theme.muted, width: 1, dash: [3, 3] });
      if (!isHere(line, frame.panel)) continue;
      const py = down(frame, now.layout.y, y);
      pen.marker(0, px, py, 6.5, theme.background, theme.ink);
      pen.marker(0, px, py, 4, colourOf(theme, line), theme.background);
    }
  });
  const place = (event: MouseEvent): [number, number] => {
    const frame = canvas.current!.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  const move = (event: PointerEvent) => {
    if (!now) return;
    const [x, y] = place(event);
    const held = press.current;
    if (!held) return actions.select(pointAt(now.shown, now.layout, x, y));
    const frame = now.layout.frames[0]!;
    if (held.pan) {
      actions.pan((held.last - x) / (frame.right - frame.left));
      held.last = x;
    } else drag.value = Math.abs(x - held.x) > 4 ? [Math.min(held.x, x), Math.max(held.x, x)] : null;
  };
  const begin = (event: PointerEvent) => {
    if (event.button !== 0 || !now || now.shown.x.scale === 'names') return;
    const [x] = place(event);
    press.current = { x, pan: event.shiftKey, last: x };
    if (event.pointerType === 'mouse') canvas.current!.setPointerCapture(event.pointerId);
  };
  const up = () => {
    const range = drag.peek();
    const held = press.current;
    press.current = null;
    drag.value = null;
    if (!held || !range || !now) return;
    const frame = frameAt(now.layout, held.x, (now.layout.frames[0]!.top + now.layout.frames[0]!.bottom) / 2) ?? now.layout.frames[0]!;
    const share = (px: number) => Math.min(1, Math.max(0, position(now.layout.x, xAt(frame, now.layout.x, px))));
    actions.zoom(share(range[0]), share(range[1]));
  };
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey || !now) return;
    event.preventDefault();
    const [x, y] = place(event);
    const frame = frameAt(now.layout, x, y);
    if (frame) actions.wheel(event.deltaY < 0 ? 0.8 : 1.25, (x - frame.left) / (frame.right - frame.left));
  };
  return (
    <canvas
      ref={canvas} class="over" onPointerMove={move} onPointerDown={begin} onPointerUp={up}
      onPointerCancel={() => { press.current = null; drag.value = null; }} onDblClick={actions.whole} onWheel={wheel}
    />
  );
}
