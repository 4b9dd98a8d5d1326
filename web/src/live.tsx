// Runs while they are conducted.

import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { LineFigure } from './figure.tsx';
import type { Figure, Line, Page } from './model.ts';
import { Link, path, runsPath } from './route.tsx';
import { events, post, type Look } from './server.ts';
import { inBoth, spread, WAYS, wayOf, type Point } from './spread.ts';
import { inBytes } from './state.ts';
import { quantity, seconds } from './units.ts';

export interface LiveRun {
  id: string;
  name: string | null;
  kind: string;
  target: string | null;
  command: string;
  cells: number;
  activity: string;
  cells_done: number;
  remaining_s: number | null;
  /** How much of it is done, 0 to 1. */
  share: number | null;
  /** Of the near and the far host the shares of the busiest core, and of softirqs on one core. */
  cores: [[number, number] | null, [number, number] | null];
  /** Rises with each part that the store has. */
  stored: number;
  kept: boolean;
  ended: string | null;
  error: string | null;
  points: Point[];
}

/** Those that are conducted now, and those that have ended lately. */
export const live = signal<LiveRun[]>([]);

export function follow(): void {
  const points = new Map<string, Point[]>();
  events('live', () => points.clear(), (data) => {
    const told = JSON.parse(data) as (LiveRun & { from: number })[];
    for (const id of [...points.keys()]) if (!told.some((run) => run.id === id)) points.delete(id);
    live.value = told.map((run) => {
      const all = [...(points.get(run.id) ?? []).slice(0, run.from), ...run.points];
      points.set(run.id, all);
      return { ...run, points: all };
    });
  });
}

export const running = (id: string): LiveRun | undefined => live.value.find((run) => run.id === id);

/** Waits until a run is among them, or a second. */
export async function known(id: string): Promise<void> {
  for (let tries = 0; tries < 20 && !running(id); tries++) await new Promise((resolve) => { setTimeout(resolve, 50); });
}

/** A line for each run that is conducted, but for the one that is shown. */
export function Strip() {
  const now = live.value.filter((run) => run.ended === null && path.value !== runsPath([run.id]));
  if (now.length === 0) return null;
  return (
    <section class="strip" aria-label="Running now">
      <ul>{now.map((run) => <li key={run.id}><Link to={runsPath([run.id])}>{run.name ?? run.kind}{run.target && ` to ${run.target}`}</Link> <Progress run={run} /> <Stop run={run} /></li>)}</ul>
    </section>
  );
}

const timeLeft = (s: number): string => (s < 120 ? `about ${s} s left` : `about ${Math.ceil(s / 60)} min left`);

/** What a run does, and the time left. */
export function Progress({ run }: { run: LiveRun }) {
  const last = run.points.filter((point) => point.flow === null).at(-1);
  const left = run.remaining_s === null ? null : timeLeft(Math.ceil(run.remaining_s));
  const cells = run.cells > 1 ? `${run.cells_done} of ${run.cells} cells done` : null;
  return (
    <>
      <progress max={1} {...(run.share === null ? {} : { value: run.share })} aria-label="Progress" />{' '}
      <span class="muted">{[run.activity, cells, left].filter(Boolean).join(', ')}{last && !left && `, ${seconds(last.time_s * 1e9)} measured`}</span>
    </>
  );
}

/** How busy the hosts were in the last second. */
export function Cores({ run }: { run: LiveRun }) {
  const percent = (share: number) => `${Math.round(100 * share)} %`;
  const ends = ['near', 'far'].map((end, at) => ({ end, of: run.cores[at] }));
  const texts = ends.filter(({ of }) => of).map(({ end, of }) => `${end}: busiest ${percent(of![0])}, softirq ${percent(of![1])}`);
  return texts.length > 0 ? <p class="muted">Cores in the last second, {texts.join('; ')}</p> : null;
}

export function Stop({ run }: { run: LiveRun }) {
  const [error, setError] = useState('');
  const stop = () => { post(`live/${encodeURIComponent(run.id)}/stop`, {}).catch((fault: Error) => setError(fault.message)); };
  return <><button type="button" onClick={stop} aria-label={`Stop ${run.name ?? run.kind}`}>Stop</button>{error && <strong role="alert">{error}</strong>}</>;
}

/** The line of all flows together. */
const ALL = 'all flows';

type Quantity = [id: string, title: string, unit: string, of: (point: Point) => number | null];

const QUANTITIES: Quantity[] = [
  ['live-rate', 'Goodput now', 'bit/s', (point) => point.bits_per_s],
  ['live-trips', 'Round trips now', '1/s', (point) => point.transactions_per_s],
  ['live-rtt', 'RTT now (TCP)', 'ns', (point) => point.rtt_ns],
  ['live-cwnd', 'Congestion windows now', 'B', (point) => point.cwnd_bytes],
  ['live-retransmits', 'Retransmits now', '', (point) => point.retransmits],
  ['live-lost', 'Datagrams lost now', '%', (point) => (point.lost === null ? null : 100 * point.lost)],
  ['live-jitter', 'Jitter now', 'ns', (point) => point.jitter_ns],
];

/** Figures over the measured time, from one reading a second. */
export function LiveFigures({ run, look }: { run: LiveRun; look: Look }) {
  const page = { ...look, version: 0, title: run.kind, stem: run.id, runs: [], differing: null, figures: [] } satisfies Page;
  const figures = QUANTITIES.map((quantity) => figureOf(quantity, run.points)).filter((figure) => figure.lines.length > 0);
  if (figures.length === 0) return null;
  return <><Newest figures={figures} points={run.points} /><div class="figures">{figures.map((figure) => <LineFigure key={figure.id} figure={figure} page={page} />)}</div></>;
}

/** The last readings, of all flows together. A window tells nothing without its course. */
function Newest({ figures, points }: { figures: Figure[]; points: Point[] }) {
  const readings = figures.filter((figure) => figure.y.unit !== 'B').map(({ title, y, lines }) => {
    const all = lines.filter((line) => line.name.startsWith(ALL) && line.y.length > 0);
    // Counts of one second are whole.
    const text = (value: number) => (y.unit === '' ? String(value) : quantity(value, y.unit, inBytes.value));
    return { title, texts: all.map((line) => text(line.y.at(-1)!) + line.name.slice(ALL.length)) };
  });
  const both = inBoth(points);
  const moved = WAYS.map((way) => points.filter((point) => point.flow === null && point.direction === way).at(-1)).filter((point) => point?.bytes != null);
  readings.push({ title: 'Transferred so far', texts: moved.map((point) => quantity(point!.bytes!, 'B') + (both ? `, ${wayOf(point!)}` : '')) });
  return (
    <dl class="newest">
      {readings.filter(({ texts }) => texts.length > 0).map(({ title, texts }) => <div key={title}><dt>{title}</dt>{texts.map((text) => <dd key={text}>{text}</dd>)}</div>)}
    </dl>
  );
}

/** More flows than this are drawn as their median and their range. */
const MOST_FLOWS = 3;

function figureOf([id, title, unit, of]: Quantity, points: Point[]): Figure {
  const groups = new Map<string, { first: Point; x: number[]; y: number[] }>();
  const both = inBoth(points);
  const many = new Set(points.map((point) => point.flow)).size > MOST_FLOWS + 1;
  for (const point of points) {
    const value = of(point);
    if (value === null || (many && point.flow !== null)) continue;
    const key = `${point.direction}${point.flow ?? ''}`;
    const group = groups.get(key) ?? { first: point, x: [], y: [] };
    groups.set(key, group);
    group.x.push(point.time_s * 1e9);
    group.y.push(value);
  }
  const single = [...groups.values()].map(({ first, x, y }, index): Line => ({
    name: `${first.flow === null ? ALL : `flow ${first.flow}`}${both ? `, ${wayOf(first)}` : ''}`,
    run: 0, colour: index, dash: 0, reference: false, stacked: false, steps: false, panel: null,
    x: Float64Array.from(x), y: Float64Array.from(y), low: null, high: null, sorted: true,
  }));
  const ranges = (many ? spread(points, of, both) : []).map((line, index): Line => ({ ...line, colour: single.length + index }));
  const lines = [...single, ...ranges];
  return {
    id, title, subtitle: 'as the hosts report it, without an interval', place: 'main', x: { label: 'measured time', unit: 'ns', scale: 'linear', elapsed: true },
    y: { label: title, unit, scale: 'linear' }, panels: [], context: false, lines, marks: [], matrix: null, map: null, owner: 0, table: null,
  };
}
