// The legend of a figure as a table: switches its series, and shows their values at the crosshair and over the range.

import { useSignal } from '@preact/signals';
import type { Drawn, Key } from './drawing.ts';
import type { Figure, Line } from './model.ts';
import { nearest } from './search.ts';
import { figureState, hiddenRuns } from './state.ts';
import { rounded } from './units.ts';
import { compared, overTime, shownOf, summary, xText, yOf, type Summary } from './view.ts';

interface Props {
  figure: Figure;
  drawn: Drawn;
  /** Where the crosshair is. */
  x: number | null;
  /** The panel that it is in. */
  panel: number | null;
}

const COLUMNS: [keyof Summary, string][] = [['last', 'last'], ['mean', 'mean'], ['low', 'min'], ['high', 'max']];

interface Row {
  key: Key;
  line: Line;
  isOff: boolean;
  isOn: boolean;
  now: number | null;
  over: Summary | null;
}

export function Legend({ figure, drawn, x, panel }: Props) {
  const state = figureState(figure.id);
  /** The column by which it is sorted, and whether the highest value comes first. */
  const order = useSignal<{ by: keyof Summary | 'name' | 'now'; falling: boolean } | null>(null);
  const pair = compared(figure);
  if (pair) {
    return (
      <p class="muted">
        B/A: {pair[1].name} over {pair[0].name}. Intervals: those of both, added in quadrature as logarithms, as if independent; none where one has none.
      </p>
    );
  }
  const { view } = shownOf(figure);
  const isSummed = overTime(figure.x);
  // The figure of a running test may have changed since it was drawn.
  const keys = drawn.keys.filter((key) => key.series.every((index) => index < figure.lines.length));
  const rows = keys.map((key): Row => {
    // Of a series that several panels have, the values are those of the crosshair's panel.
    const line = figure.lines[key.series.find((index) => figure.lines[index]!.panel === panel) ?? key.series[0]!]!;
    const isOff = hiddenRuns.value.has(line.run);
    const isOn = !isOff && !key.series.every((index) => state.hidden.value.has(index));
    const at = x === null ? -1 : nearest(line, x);
    const isSingle = key.series.length === 1 || panel !== null;
    return { key, line, isOff, isOn, now: isOn && at >= 0 ? line.y[at]! : null, over: isOn && isSingle && isSummed ? summary(line, view.range) : null };
  });
  const toggle = ({ key, isOn }: Row) => {
    const hidden = new Set(state.hidden.value);
    key.series.forEach((index) => (isOn ? hidden.add(index) : hidden.delete(index)));
    state.hidden.value = hidden;
  };
  const { by, falling } = order.value ?? { by: 'name', falling: false };
  if (order.value) {
    const value = (row: Row) => (by === 'name' ? 0 : by === 'now' ? row.now : row.over?.[by]) ?? -Infinity;
    rows.sort((a, b) => (falling ? -1 : 1) * (by === 'name' ? a.key.name.localeCompare(b.key.name, 'en', { numeric: true }) : value(a) - value(b)));
  }
  const head = (name: typeof by, title: string) => (
    <th scope="col" class={name === 'name' ? undefined : 'number'} aria-sort={order.value && by === name ? (falling ? 'descending' : 'ascending') : undefined}>
      <button type="button" onClick={() => { order.value = order.value && by === name && !falling === (name === 'name') ? { by, falling: !falling } : { by: name, falling: name !== 'name' }; }}>{title}</button>
    </th>
  );
  const text = (row: Row, value: number | null | undefined) => (value === null || value === undefined || Number.isNaN(value) ? '' : rounded(value, yOf(figure, row.line).unit, view.in_bytes));
  const columns = rows.some((row) => row.over) ? COLUMNS : [];
  return (
    <div class="legend" tabIndex={rows.length > 6 ? 0 : undefined} role="region" aria-label={`Series of ${figure.title}`}>
      <table>
        <thead><tr>{head('name', 'series')}{x !== null && head('now', `at ${xText(figure.x, x)}`)}{columns.map(([name, title]) => head(name, title))}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key.series[0]}>
              <th scope="row">
                <button type="button" aria-pressed={row.isOn} disabled={row.isOff} onClick={() => toggle(row)}>
                  <svg class="drawing" width="30" height="14" aria-hidden="true" dangerouslySetInnerHTML={{ __html: row.key.sample }} />
                  {row.key.name}
                </button>
              </th>
              {x !== null && <td class="number now">{text(row, row.now)}</td>}
              {columns.map(([name]) => <td class="number">{text(row, row.over?.[name])}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
