// What the reader chose, as signals, and as the part of the address behind #, so that a link shows the same.

import { effect, signal, type Signal } from '@preact/signals';

export type Range = readonly [number, number];

/** What was chosen in one figure. */
export interface FigureState {
  range: Signal<Range | null>;
  /** Whether x or y have the other scale. */
  otherX: Signal<boolean>;
  otherY: Signal<boolean>;
  hidden: Signal<ReadonlySet<number>>;
  /** Series A and B of the difference view. */
  pair: Signal<readonly [number, number] | null>;
  table: Signal<boolean>;
  /** Series and point of the crosshair. */
  cursor: Signal<readonly [number, number] | null>;
  /** Row and column of the cell of a matrix whose pair is shown. */
  chosen: Signal<readonly [number, number] | null>;
}

export type Sorting = readonly [column: number, falling: boolean];

export type Choice = 'system' | 'light' | 'dark';

export const inBytes = signal(false);
export const choice = signal<Choice>('system');
export const hiddenRuns = signal<ReadonlySet<number>>(new Set());
/** While the page is printed, figures are laid out for paper. */
export const printing = signal(false);
/** The column that a comparison is sorted by, and whether the highest is first; null as it came. */
export const sorting = signal<Sorting | null>(null);
/** A range of time that all figures over time show. */
export const brush = signal<Range | null>(null);

/** The moment at which the crosshair is that all figures over time share, and the figure in which it was set. */
export const moment = signal<{ of: string; x: number } | null>(null);

const figures = new Map<string, FigureState>();

export function figureState(id: string): FigureState {
  let state = figures.get(id);
  if (!state) {
    state = {
      range: signal(null), otherX: signal(false), otherY: signal(false), hidden: signal(new Set()), pair: signal(null),
      table: signal(false), cursor: signal(null), chosen: signal(null),
    };
    figures.set(id, state);
  }
  return state;
}

const numbers = (text: string | undefined, separator: string): number[] =>
  (text ?? '').split(separator).filter((part) => part !== '').map(Number).filter((value) => Number.isFinite(value));

const pairOf = (text: string | undefined, separator: string): Range | null => {
  const [a, b, ...more] = numbers(text, separator);
  return a !== undefined && b !== undefined && more.length === 0 ? [a, b] : null;
};

const ordered = (range: Range | null): Range | null => (range && range[0] < range[1] ? range : null);

/** The state of the page and of these figures as the part of an address; empty if nothing was chosen. */
export function written(ids: string[]): string {
  const parts = new URLSearchParams();
  if (inBytes.value) parts.set('units', 'bytes');
  if (choice.value !== 'system') parts.set('look', choice.value);
  if (hiddenRuns.value.size) parts.set('without', [...hiddenRuns.value].join('.'));
  if (sorting.value) parts.set('sort', `${sorting.value[0]}${sorting.value[1] ? '.falling' : ''}`);
  if (brush.value) parts.set('time', brush.value.join('~'));
  for (const id of ids) {
    const state = figureState(id);
    const own: string[] = [];
    if (state.range.value) own.push(`x:${state.range.value.join('~')}`);
    if (state.otherX.value) own.push('lx:1');
    if (state.otherY.value) own.push('ly:1');
    if (state.hidden.value.size) own.push(`h:${[...state.hidden.value].join('.')}`);
    if (state.pair.value) own.push(`d:${state.pair.value.join('.')}`);
    if (state.table.value) own.push('t:1');
    if (state.chosen.value) own.push(`p:${state.chosen.value.join('.')}`);
    if (state.cursor.value) own.push(`c:${state.cursor.value.join('.')}`);
    if (own.length) parts.set(`f-${id}`, own.join(','));
  }
  return parts.toString().replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%7E', '~');
}

/** Takes over the state of an address; what it does not name is as at first, but for the look. */
export function read(text: string, ids: string[]): void {
  const parts = new URLSearchParams(text.replace(/^#/, ''));
  inBytes.value = parts.get('units') === 'bytes';
  const look = parts.get('look');
  if (look === 'light' || look === 'dark' || look === 'system') choice.value = look;
  hiddenRuns.value = new Set(numbers(parts.get('without') ?? '', '.'));
  const sort = /^(\d+)(\.falling)?$/.exec(parts.get('sort') ?? '');
  sorting.value = sort ? [Number(sort[1]), sort[2] !== undefined] : null;
  brush.value = ordered(pairOf(parts.get('time') ?? '', '~'));
  for (const id of ids) {
    const own = new Map((parts.get(`f-${id}`) ?? '').split(',').map((part) => part.split(':') as [string, string]));
    const state = figureState(id);
    state.range.value = ordered(pairOf(own.get('x'), '~'));
    state.otherX.value = own.has('lx');
    state.otherY.value = own.has('ly');
    state.hidden.value = new Set(numbers(own.get('h'), '.'));
    state.pair.value = pairOf(own.get('d'), '.');
    state.table.value = own.has('t');
    state.chosen.value = pairOf(own.get('p'), '.');
    state.cursor.value = pairOf(own.get('c'), '.');
  }
}

/** Keeps the address and the state of these figures the same, until the returned function is called. */
export function linked(ids: string[]): () => void {
  read(location.hash, ids);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let own = location.hash;
  const changed = () => {
    if (location.hash !== own) read(location.hash, ids);
  };
  addEventListener('hashchange', changed);
  const dispose = effect(() => {
    const text = written(ids);
    clearTimeout(timer);
    // Browsers bound how often an address may change.
    timer = setTimeout(() => {
      if (location.hash.replace(/^#/, '') === text) return;
      history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search);
      own = location.hash;
    }, 150);
  });
  return () => {
    dispose();
    clearTimeout(timer);
    removeEventListener('hashchange', changed);
  };
}

const dark = signal(false);

/** Follows the system's look or the chosen one. */
export function themed(): void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const printing = matchMedia('print');
  const systemDark = signal(system.matches);
  const onPaper = signal(printing.matches);
  system.addEventListener('change', () => { systemDark.value = system.matches; });
  printing.addEventListener('change', () => { onPaper.value = printing.matches; });
  effect(() => {
    dark.value = !onPaper.value && (choice.value === 'dark' || (choice.value === 'system' && systemDark.value));
    document.documentElement.classList.toggle('dark', dark.value);
  });
}

export const isDark = dark;
