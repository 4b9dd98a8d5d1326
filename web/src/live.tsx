// Runs while they are conducted.

import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { LineFigure } from './figure.tsx';
import type { Figure, Line, Page } from './model.ts';
import { Link, path, runsPath } from './route.tsx';
import { events, post, type Look } from './server.ts';
import { unbroken } from './parts.tsx';
import { inBoth, spread, WAYS, wayOf, worst, type Point } from './spread.ts';
import { inBytes } from './state.ts';
import { fixed, plusMinus, quantity, rounded, seconds } from './units.ts';

/** What was found so far. */
interface SoFar {
  direction: Point['direction'] | null;
  trials: number;
  unit: string;
  value: number;
  low?: number;
  high?: number;
  confidence: number;
}

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
  so_far: SoFar[];
  /** The width of the interval at which the run ends, relative to the value. */
  ends_at: number | null;
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
  const cells = run.cells > 1 && run.cells_done > 0 ? `${run.cells_done} of ${run.cells} cells done` : null;
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

interface Quantity {
  id: string;
  title: string;
  unit: string;
  of: (point: Point) => number | null;
  /** Whether the lowest flows are the worst. */
  lowest?: boolean;
}

const QUANTITIES: Quantity[] = [
  { id: 'live-rate', title: 'Goodput', unit: 'bit/s', of: (point) => point.bits_per_s, lowest: true },
  { id: 'live-trips', title: 'Round trips', unit: '1/s', of: (point) => point.transactions_per_s, lowest: true },
  { id: 'live-rtt', title: 'RTT (TCP)', unit: 'ns', of: (point) => point.rtt_ns },
  { id: 'live-cwnd', title: 'Congestion windows', unit: 'B', of: (point) => point.cwnd_bytes, lowest: true },
  { id: 'live-retransmits', title: 'Retransmits', unit: '', of: (point) => point.retransmits },
  { id: 'live-lost', title: 'Datagrams lost', unit: '%', of: (point) => (point.lost === null ? null : 100 * point.lost) },
  { id: 'live-jitter', title: 'Jitter', unit: 'ns', of: (point) => point.jitter_ns },
];

/** What was found so far, with its interval, and when the run ends by it. */
export function Estimates({ run }: { run: LiveRun }) {
  if (run.so_far.length === 0) return null;
  return <section class="so-far" aria-label="Estimate so far"><h2>Estimate so far</h2>{run.so_far.map((one) => <Estimate key={one.direction ?? ''} one={one} target={run.ends_at} />)}</section>;
}

function Estimate({ one, target }: { one: SoFar; target: number | null }) {
  const { low, high, value, unit } = one;
  const text = (of: number) => (unit === 'ratio' ? change(of) : quantity(of, unit, inBytes.value));
  const known = low !== undefined && high !== undefined;
  // A difference is an interval of percents itself.
  const width = known && unit !== 'ratio' && value !== 0 ? ` ${plusMinus(Math.max(value - low, high - value) / value)}` : '';
  const trials = one.trials === 0 ? 'within the first trial' : `after ${one.trials} trial${one.trials === 1 ? '' : 's'}`;
  const interval = known ? `${text(low)} to ${text(high)} at ${Math.round(100 * one.confidence)} %` : 'no interval yet';
  const end = target === null || unit === 'ratio' ? '' : `; it ends at ${plusMinus(target)}, or when its time is over`;
  return (
    <p>
      <b class="result">{unbroken(`${unit === 'ratio' ? 'B to A ' : ''}${text(value)}${width}`)}{one.direction && `, ${wayOf({ direction: one.direction })}`}</b>{' '}
      <span class="muted">{interval}, {trials}{end}</span>
    </p>
  );
}

/** A ratio as a change: `+1.2 %`. */
function change(ratio: number): string {
  const percent = 100 * (ratio - 1);
  return `${percent < 0 ? '−' : '+'}${fixed(Math.abs(percent), Math.abs(percent) < 9.95 ? 1 : 0)} %`;
}

/** Figures over the measured time: of all flows together from the series and one reading a second, and of single flows. */
export function LiveFigures({ run, look }: { run: LiveRun; look: Look }) {
  const page = { ...look, version: 0, document: '', title: run.kind, stem: run.id, runs: [], compared: null, differing: null, figures: [] } satisfies Page;
  const figures = QUANTITIES.flatMap((quantity) => [ofAll(quantity, run.points), ofFlows(quantity, run.points)]).filter((figure) => figure.lines.length > 0);
  if (figures.length === 0) return null;
  return <><Newest points={run.points} /><div class="figures">{figures.map((figure) => <LineFigure key={figure.id} figure={figure} page={page} />)}</div></>;
}

/** The last readings, of all flows together. A window tells nothing without its course. */
function Newest({ points }: { points: Point[] }) {
  const both = inBoth(points);
  const read = points.filter((point) => point.flow === null && !point.fine);
  const last = (of: Quantity['of']) => WAYS.flatMap((way) => read.filter((point) => point.direction === way && of(point) !== null).slice(-1));
  const named = (point: Point, text: string) => text + (both ? `, ${wayOf(point)}` : '');
  const readings = QUANTITIES.filter(({ unit }) => unit !== 'B').map(({ title, unit, of }) => {
    // Counts of one second are whole.
    const text = (value: number) => (unit === '' ? String(value) : quantity(value, unit, inBytes.value));
    return { title: `${title} now`, texts: last(of).map((point) => named(point, text(of(point)!))) };
  });
  readings.push({ title: 'Transferred so far', texts: last((point) => point.bytes).map((point) => named(point, rounded(point.bytes!, 'B', false))) });
  return (
    <dl class="newest">
      {readings.filter(({ texts }) => texts.length > 0).map(({ title, texts }) => <div key={title}><dt>{title}</dt>{texts.map((text) => <dd key={text}>{text}</dd>)}</div>)}
    </dl>
  );
}

/** More flows than this are drawn as their median and their range, with the worst of them. */
const FEW = 3;

type Drawn = Omit<Line, 'colour'>;

/** The points as a line. */
function line(name: string, points: Point[], of: Quantity['of']): Drawn {
  const some = points.filter((point) => of(point) !== null);
  return {
    name, run: 0, dash: 0, reference: false, stacked: false, steps: false, panel: null, low: null, high: null, sorted: true,
    x: Float64Array.from(some, (point) => point.time_s * 1e9), y: Float64Array.from(some, (point) => of(point)!),
  };
}

function ofAll(quantity: Quantity, points: Point[]): Figure {
  const both = inBoth(points);
  const lines = WAYS.map((way) => {
    const own = points.filter((point) => point.flow === null && point.direction === way);
    const fine = own.filter((point) => point.fine && quantity.of(point) !== null);
    const name = `${ALL}${both ? `, ${wayOf({ direction: way })}` : ''}`;
    return line(name, fine.length > 0 ? fine : own.filter((point) => !point.fine), quantity.of);
  });
  return figure(quantity.id, `${quantity.title} now`, quantity, lines);
}

function ofFlows(quantity: Quantity, points: Point[]): Figure {
  const both = inBoth(points);
  const lines = WAYS.flatMap((way) => {
    const own = points.filter((point) => point.flow !== null && point.direction === way);
    const flows = new Set(own.map((point) => point.flow)).size;
    const shown = worst(own, quantity.of, way, quantity.lowest === true, FEW);
    // The worst are found anew each second; their order on the page stays.
    const each = [...shown].sort((a, b) => a - b).map((flow) => (
      line(`flow ${flow}${both ? `, ${wayOf({ direction: way })}` : ''}`, own.filter((point) => point.flow === flow), quantity.of)));
    return flows > FEW ? [...spread(own, quantity.of, both), ...each] : each;
  });
  return figure(`${quantity.id}-flows`, `${quantity.title} of each flow now`, quantity, lines);
}

function figure(id: string, title: string, { unit }: Quantity, lines: Drawn[]): Figure {
  return {
    id, title, subtitle: 'as the hosts report it, without an interval', place: 'main', x: { label: 'measured time', unit: 'ns', scale: 'linear', elapsed: true },
    y: { label: title, unit, scale: 'linear' }, panels: [], context: false, lines: lines.filter(({ x }) => x.length > 0).map((one, colour): Line => ({ ...one, colour })),
    marks: [], matrix: null, map: null, owner: 0, table: null,
  };
}
