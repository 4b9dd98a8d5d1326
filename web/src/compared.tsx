// Runs beside each other: a row for each run or cell, sorted by any column, with its interval drawn.

import { useState } from 'preact/hooks';
import { csv, saveText } from './download.ts';
import type { Compared, ComparedRow } from './model.ts';
import { SortButton } from './parts.tsx';
import { sorting } from './state.ts';

/** More rows are shown on request. */
const FIRST = 200;

export function Comparison({ compared, name }: { compared: Compared; name: string }) {
  const [all, setAll] = useState(false);
  const { head, numeric, rows, note, caveats, drawn } = compared;
  const sorted = inOrder(rows);
  const shown = all ? sorted : sorted.slice(0, FIRST);
  const place = scaleOf(compared);
  const look = (column: number) => (numeric[column] ? 'number' : undefined);
  const file = () => saveText(`${name}-compared.csv`, 'text/csv', csv([head, ...sorted.map(({ cells }) => cells)]));
  return (
    <section id="compared" aria-label="Comparison">
      <div class="wide" tabIndex={0} role="group" aria-label="Table of the comparison">
        <table class="compared">
          <caption class="unseen">Comparison</caption>
          <thead><tr>
            {head.map((title, column) => (
              <th scope="col" class={look(column)} aria-sort={ordered(column)}><SortButton title={title} order={ordered(column)} sort={() => sortBy(column)} /></th>
            ))}
            {place && <th scope="col" class="span">{drawn}</th>}
          </tr></thead>
          <tbody>
            {shown.map((row) => (
              <tr>
                {row.cells.map((text, column) => (column === 0
                  ? <th scope="row">{text}</th>
                  : <td class={look(column)} data-title={head[column]}>{text}</td>))}
                {place && <td class="span">{row.span && <Span span={row.span} place={place} reference={compared.reference} text={drawn} />}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="muted">{note} Intervals are of 95 %. Click a column's head to sort by it.</p>
      <p class="tools">
        {shown.length < rows.length && <button type="button" onClick={() => setAll(true)}>Show all {rows.length} rows</button>}
        <button type="button" onClick={file} aria-label="CSV of the comparison">CSV</button>
      </p>
      {caveats.length > 0 && <details class="fold"><summary>Caveats <span class="muted">({caveats.length})</span></summary><ul class="notes">{caveats.map((text) => <li>{text}</li>)}</ul></details>}
    </section>
  );
}

/** Sorts by a column: rising, falling, then as it came. */
function sortBy(column: number): void {
  const now = sorting.value;
  sorting.value = now?.[0] !== column ? [column, false] : now[1] ? null : [column, true];
}

function ordered(column: number): 'ascending' | 'descending' | undefined {
  if (sorting.value?.[0] !== column) return undefined;
  return sorting.value[1] ? 'descending' : 'ascending';
}

/** What has no value comes last either way. */
function inOrder(rows: ComparedRow[]): ComparedRow[] {
  const now = sorting.value;
  if (!now) return rows;
  const [column, falling] = now;
  const order = (a: ComparedRow, b: ComparedRow): number => {
    const [x, y] = [a.keys[column] ?? null, b.keys[column] ?? null];
    if (x !== null || y !== null) return x === null ? 1 : y === null ? -1 : falling ? y - x : x - y;
    const texts = (a.cells[column] ?? '').localeCompare(b.cells[column] ?? '', 'en', { numeric: true });
    return falling ? -texts : texts;
  };
  return [...rows].sort(order);
}

type Place = (value: number) => number;

/** Where a value is, from 0 to 1; null where nothing is drawn. */
function scaleOf({ rows, reference, log }: Compared): Place | null {
  const values = [...rows.flatMap(({ span }) => span ?? []), ...(reference === null ? [] : [reference])];
  const at = (value: number) => (log ? Math.log(value) : value);
  const all = values.map(at).filter(Number.isFinite);
  if (all.length < 2) return null;
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return (value) => (high > low ? (at(value) - low) / (high - low) : 0.5);
}

const [WIDTH, HEIGHT, EDGE] = [160, 18, 6];

/** A dot with its interval; a line where there is no difference. */
function Span({ span, place, reference, text }: { span: [number, number, number]; place: Place; reference: number | null; text: string }) {
  const x = (value: number) => EDGE + (WIDTH - 2 * EDGE) * place(value);
  const [low, value, high] = span;
  const middle = HEIGHT / 2;
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} role="img" aria-label={text}>
      {reference !== null && <path d={`M${x(reference)} 0V${HEIGHT}`} class="none" />}
      <path d={`M${x(low)} ${middle}H${x(high)}M${x(low)} ${middle - 4}v8M${x(high)} ${middle - 4}v8`} class="interval" />
      <circle cx={x(value)} cy={middle} r="4" />
    </svg>
  );
}
