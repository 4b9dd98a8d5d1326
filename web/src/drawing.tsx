// A figure that comes as a picture, with its numbers as a table: stacked bars, maps.

import { csv, saveText } from './download.ts';
import type { Figure, Page } from './model.ts';
import { figureState } from './state.ts';
import { Rows } from './table.tsx';
import { pointRows, pointTable, shownOf } from './view.ts';

/** Rows of the table. */
const MOST_ROWS = 2000;

/** The SVG is our own: it has no script, and its texts are escaped. */
export function Drawing({ figure, page }: { figure: Figure; page: Page }) {
  const state = figureState(figure.id);
  const { shown } = shownOf(figure, page);
  const name = `${page.stem}-${figure.id}`;
  return (
    <section class="figure" id={`figure-${figure.id}`} aria-label={figure.title}>
      <h3 class="unseen">{figure.title}</h3>
      {figure.pictures.map((svg, index) => (
        <div class={`picture ${index === 0 ? 'broad' : 'narrow'}`} dangerouslySetInnerHTML={{ __html: svg }} />
      ))}
      {(figure.table || shown.lines.length > 0) && (
        <details class="fold" open={state.table.value} onToggle={(event) => { state.table.value = event.currentTarget.open; }}>
          <summary>Table of {figure.title}</summary>
          {state.table.value && <Rows table={figure.table ?? pointTable(shown, MOST_ROWS)} name={name} />}
        </details>
      )}
      {shown.lines.length > 0 && (
        <p class="tools"><button type="button" aria-label={`Save ${figure.title} as CSV`} onClick={() => saveText(`${name}.csv`, 'text/csv', csv(pointRows(shown)))}>CSV</button></p>
      )}
    </section>
  );
}
