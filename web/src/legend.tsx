// The legend of a figure: switches its series, and shows their values at the crosshair or over the range.

import { nearest } from './decimate.ts';
import type { Figure, Line, Page, Theme } from './model.ts';
import { shapeOf } from './pen.ts';
import { colourOf, type Shown } from './plot.ts';
import { figureState, hiddenRuns, inBytes, isDark } from './state.ts';
import { quantity } from './units.ts';
import { compared, overTime, shownOf, summary } from './view.ts';

interface Props {
  figure: Figure;
  page: Page;
}

export function Legend({ figure, page }: Props) {
  const { shown, indexes } = shownOf(figure, page);
  const state = figureState(figure.id);
  const theme = isDark.value ? page.dark : page.light;
  const pair = compared(figure);
  const at = state.cursor.value;
  const lineAt = at ? shown.lines[pair ? 0 : indexes.indexOf(at[0])] : undefined;
  const x = at && lineAt ? lineAt.x[at[1]] : undefined;
  if (pair) {
    return (
      <p class="legend muted">
        B/A: {pair[1].name} over {pair[0].name}. Intervals: those of both, added in quadrature as logarithms, as if independent; none where one has none.
      </p>
    );
  }
  const toggle = (indexes: number[], on: boolean) => {
    const hidden = new Set(state.hidden.value);
    indexes.forEach((index) => (on ? hidden.add(index) : hidden.delete(index)));
    state.hidden.value = hidden;
  };
  return (
    <ul class="legend">
      {groups(figure.lines).map((indexes) => {
        // Of a series that several panels have, the value is that of the crosshair's panel.
        const line = figure.lines[indexes.find((index) => figure.lines[index]!.panel === lineAt?.panel) ?? indexes[0]!]!;
        const off = hiddenRuns.value.has(line.run);
        const on = !off && !indexes.every((index) => state.hidden.value.has(index));
        const single = indexes.length === 1 || x !== undefined;
        return (
          <li>
            <button type="button" aria-pressed={on} disabled={off} onClick={() => toggle(indexes, on)}>
              <Swatch line={line} theme={theme} />
              {line.name}
            </button>
            {on && single && <span class="value">{x === undefined ? rangeText(shown, line) : valueAt(shown, line, x)}</span>}
          </li>
        );
      })}
    </ul>
  );
}

/** Indexes of the series that have one entry: those with the same name and look, in several panels. */
function groups(lines: Line[]): number[][] {
  const all = new Map<string, number[]>();
  lines.forEach((line, index) => {
    const key = JSON.stringify([line.name, line.run, line.colour, line.dash]);
    all.set(key, [...(all.get(key) ?? []), index]);
  });
  return [...all.values()];
}

function Swatch({ line, theme }: { line: Line; theme: Theme }) {
  const colour = colourOf(theme, line);
  const dash = line.reference ? '5 3' : ['', '6 3', '2 3', '8 2 2 2'][line.dash % 4];
  return (
    <svg width="26" height="12" aria-hidden="true">
      <path d="M1 6H25" stroke={colour} stroke-width={line.reference ? 1.3 : 2.4} stroke-dasharray={dash} />
      {!line.reference && <Marker line={line} colour={colour} />}
    </svg>
  );
}

function Marker({ line, colour }: { line: Line; colour: string }) {
  const corners = shapeOf(line.colour + 2 * line.dash);
  if (!corners) return <circle cx="13" cy="6" r="3.6" fill={colour} />;
  return <polygon points={corners.map((at, index) => (index % 2 ? 6 : 13) + 3.6 * at).join(' ')} fill={colour} />;
}

function valueAt(shown: Shown, line: Line, x: number): string {
  const index = nearest(line, x);
  return index < 0 ? '' : quantity(line.y[index]!, shown.y.unit, shown.inBytes);
}

/** Over time: mean and extremes of the points that are shown. */
function rangeText(shown: Shown, line: Line): string {
  if (!overTime(shown.x) || line.reference) return '';
  const of = summary(line, shown.range);
  const text = (value: number) => quantity(value, shown.y.unit, inBytes.value);
  return of ? `mean ${text(of.mean)}, ${text(of.low)} to ${text(of.high)}` : 'no point in this range';
}
