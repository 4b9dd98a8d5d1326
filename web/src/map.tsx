// A map of hosts and links, with what it says as a table.

import { useRef } from 'preact/hooks';
import { draw } from './drawing.ts';
import type { Figure, Page } from './model.ts';
import { Drawing, Picture, Save, useWidth } from './parts.tsx';
import { figureState } from './state.ts';
import { Rows } from './table.tsx';

export function MapFigure({ figure, page }: { figure: Figure; page: Page }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const state = figureState(figure.id);
  const name = `${page.stem}-${figure.id}`;
  const view = { width, range: null, hidden: [], other_x: false, other_y: false, in_bytes: false };
  const { table } = figure;
  return (
    <Picture figure={figure}>
      <div class="bar"><Save name={name} figure={figure} view={view} rows={() => (table ? [table.head, ...table.rows] : [])} /></div>
      <div ref={box}>{width > 0 && <Drawing drawn={draw(figure, view)} />}</div>
      {table && (
        <details class="fold" open={state.table.value} onToggle={(event) => { state.table.value = event.currentTarget.open; }}>
          <summary>Table of {figure.title}</summary>
          {state.table.value && <Rows table={table} name={name} />}
        </details>
      )}
    </Picture>
  );
}
