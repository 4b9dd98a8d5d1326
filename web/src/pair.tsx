// A pair of hosts: its values in both directions, what they rest on, and what the run found of it.

import { useEffect, useRef } from 'preact/hooks';
import type { HostPair, PairTest, Run, Table } from './model.ts';
import { inBytes } from './state.ts';
import { Rows } from './table.tsx';
import { plusMinus, quantity } from './units.ts';

interface Props {
  run: Run;
  /** The hosts of the cell. */
  from: string;
  to: string;
  name: string;
  close: () => void;
}

const arrow = (pair: HostPair): string => `${pair.from} → ${pair.to}`;

/** The longer arm of an interval relative to the value. */
function width({ value, low, high }: PairTest): string {
  return low === null || high === null ? '-' : plusMinus(Math.max(value - low, high - value) / value);
}

function interval({ low, high, unit }: PairTest): string {
  if (low === null || high === null) return 'none: fewer than 3 trials';
  return `${low > 0 ? quantity(low, unit, inBytes.value) : '0'} to ${quantity(high, unit, inBytes.value)}`;
}

function values(pairs: HostPair[]): Table {
  const rows = pairs.flatMap((pair) => pair.tests.map((test) => [
    arrow(pair), test.levels ? `${test.measure}, ${test.levels}` : test.measure, quantity(test.value, test.unit, inBytes.value), interval(test), width(test), test.limit || '-', test.trust,
  ]));
  return { title: 'Values', head: ['direction', 'measure', 'mean of the trials', '95 % interval', '±', 'limited by', 'trust'], numeric: [false, false, true, true, true, false, false], rows, note: '' };
}

function trials(pairs: HostPair[]): Table {
  const known = (bytes: number | null) => (bytes === null ? '-' : String(bytes));
  const rows = pairs.flatMap((pair) => pair.tests.flatMap((test) => test.trials.map(([round, value, sent, received, verdicts]) => [
    arrow(pair), test.levels ? `${test.measure}, ${test.levels}` : test.measure, String(round), value === null ? '-' : quantity(value, test.unit, inBytes.value), known(sent), known(received), verdicts,
  ])));
  return { title: 'Trials', head: ['direction', 'measure', 'round', 'value', 'bytes sent', 'bytes received', 'verdicts'], numeric: [false, false, true, true, true, true, false], rows, note: '' };
}

export function PairView({ run, from, to, name, close }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  // Who opens it by a key or a click reads on here; who comes by a link finds it open.
  useEffect(() => heading.current?.focus(), [from, to]);
  const one = (a: string, b: string) => run.pairs.filter((pair) => pair.from === a && pair.to === b);
  const pairs = [...one(from, to), ...one(to, from)];
  const found = [...new Set(pairs.flatMap((pair) => pair.findings))].map((index) => run.findings[index]!.statement);
  const tables = [values(pairs), trials(pairs)];
  return (
    <section class="pair" aria-label={`${from} and ${to}`} onKeyDown={(event) => { if (event.key === 'Escape') close(); }}>
      <div class="bar">
        <h4 ref={heading} tabIndex={-1}>{from} → {to}{one(to, from).length > 0 && ` and ${to} → ${from}`}</h4>
        <button type="button" onClick={close} aria-label={`Close ${from} and ${to}`}>Close</button>
      </div>
      {found.length > 0 && <ul class="notes">{found.map((statement) => <li>{statement}</li>)}</ul>}
      {tables.map((table) => (
        <>
          <h5>{table.title}</h5>
          <Rows table={table} name={`${name}-${from}-${to}-${table.title.toLowerCase()}`} />
        </>
      ))}
    </section>
  );
}
