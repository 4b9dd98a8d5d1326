// What a page shows, as crates/report/src/formats/page makes it, with the columns read.

export type Scale = 'linear' | 'log' | 'names' | 'date';

export interface Axis {
  label: string;
  unit: string;
  scale: Scale;
  ticks?: [number, string][];
  low?: number | null;
  high?: number | null;
  /** Neighbouring categories that belong together: the name and the size of each group. */
  groups?: [string, number][];
  /** Whether it is the time since a start, over which something went on. */
  elapsed?: boolean;
  /** Whether it need not begin at zero. */
  fitted?: boolean;
}

/** One of several plots of a figure; with its own vertical axis, or with that of the figure. */
export interface Panel {
  title: string;
  y?: Axis;
}

/** The place of a column of numbers in the block behind the JSON. */
export interface ColumnRef {
  at: number;
  count: number;
  code: 'doubles' | 'steps';
  first: number;
}

export interface SeriesPart {
  name: string;
  run: number;
  colour: number;
  dash: number;
  reference: boolean;
  stacked: boolean;
  /** Whether a value holds until the next one. */
  steps: boolean;
  /** null: in every panel. */
  panel: number | null;
  x: ColumnRef | null;
  y: ColumnRef | null;
  low: ColumnRef | null;
  high: ColumnRef | null;
}

/** A series with its numbers; NaN in `low` or `high` is an end that is not there. */
export interface Line {
  name: string;
  run: number;
  colour: number;
  dash: number;
  reference: boolean;
  /** Whether its points are segments of bars, from `low` to `high`. */
  stacked: boolean;
  /** Whether a value holds until the next one. */
  steps: boolean;
  /** null: in every panel. */
  panel: number | null;
  x: Float64Array;
  y: Float64Array;
  low: Float64Array | null;
  high: Float64Array | null;
  /** Whether x never falls. */
  sorted: boolean;
}

export interface Mark {
  x: number;
  y: number;
  label: string;
}

export interface Cell {
  panel: number;
  row: number;
  column: number;
  value: number;
  /** From -1, far worse than the others, to 1, far better; 0 is usual. */
  standing: number;
}

export interface Matrix {
  label: string;
  unit: string;
  /** The usual values of each panel; without any, colours show values and not standings. */
  usual: [number, number][];
  cells: Cell[];
}

export interface MatrixPart {
  label: string;
  unit: string;
  usual: [number, number][];
  /** Panel, row, column, value and standing of each cell. */
  cells: (ColumnRef | null)[];
}

/** A trial of a pair: its round, its value (null without one), the bytes sent and received (null if unknown), and its verdicts. */
export type PairTrial = [number, number | null, number | null, number | null, string];

/** One measure of a pair of hosts in one direction. */
export interface PairTest {
  measure: string;
  unit: string;
  /** The levels of the other factors. */
  levels: string;
  value: number;
  low: number | null;
  high: number | null;
  limit: string;
  trust: string;
  trials: PairTrial[];
}

/** What was measured from one host to another. */
export interface HostPair {
  from: string;
  to: string;
  tests: PairTest[];
  /** Indexes of the run's findings that rest on it. */
  findings: number[];
}

export interface FigurePart {
  id: string;
  title: string;
  subtitle: string;
  place: 'main' | 'hosts' | 'path';
  x: Axis;
  y: Axis;
  panels: Panel[];
  context: boolean;
  series: SeriesPart[];
  marks: Mark[];
  matrix: MatrixPart | null;
  /** Hosts, routers and switches, and the links between them: drawn as it is. */
  map: unknown;
  /** Index of the run of a matrix. */
  owner: number;
  /** What a map says; null of other figures. */
  table: Table | null;
}

export interface Figure extends Omit<FigurePart, 'series' | 'matrix'> {
  lines: Line[];
  matrix: Matrix | null;
}

export interface Table {
  title: string;
  head: string[];
  numeric: boolean[];
  rows: string[][];
  note: string;
}

export interface Fact {
  group: string;
  name: string;
  near: string;
  far: string;
  differs: boolean;
}

export type Pair = [string, string];

export interface Run {
  id: string;
  title: string;
  kind: string;
  begun: string;
  hosts: string;
  measured: string;
  ending: string | null;
  result: string;
  /** How far to rely on it, and what that says. */
  trust: [string, string] | null;
  plan: string[];
  answer: Pair[];
  findings: { kind: string; statement: string }[];
  keep: string[];
  tables: Table[];
  outcomes: Table;
  notes: string[];
  verdicts: Pair[];
  activity: string[];
  counters: Table | null;
  facts: Fact[];
  command: string;
  method: Pair[];
  trials: Table;
  pairs: HostPair[];
}

export interface Theme {
  background: string;
  ink: string;
  muted: string;
  grid: string;
  minor: string;
  series: string[];
  names: string[];
}

/** A run or a cell of a comparison. */
export interface ComparedRow {
  cells: string[];
  /** What each cell is sorted by, if not by its text. */
  keys: (number | null)[];
  /** The low end, the value and the high end that are drawn. */
  span: [number, number, number] | null;
}

/** How the other runs of a page differ from the first. */
export interface Compared {
  answers: string[];
  head: string[];
  numeric: boolean[];
  rows: ComparedRow[];
  /** What is drawn of each row, and the value at which there is no difference. */
  drawn: string;
  reference: number | null;
  /** Whether equal factors are equally far apart. */
  log: boolean;
  note: string;
  caveats: string[];
}

interface Common {
  version: number;
  /** What its tab and a printed file are called. */
  document: string;
  title: string;
  stem: string;
  light: Theme;
  dark: Theme;
  runs: Run[];
  /** null of one run. */
  compared: Compared | null;
  differing: Table | null;
}

export interface PagePart extends Common {
  figures: FigurePart[];
}

export interface Page extends Common {
  figures: Figure[];
}
