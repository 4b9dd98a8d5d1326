// The page: the answer first, then figures, tables, hosts and the method.

import { Comparison } from './compared.tsx';
import { LookChoice, unbroken } from './parts.tsx';
import { KEYS, LineFigure } from './figure.tsx';
import { HeatMap } from './heatmap.tsx';
import { MapFigure } from './map.tsx';
import type { Figure, Page } from './model.ts';
import { Activity, Answers, Findings, Hosts, Method, Outcomes, Plans } from './report.tsx';
import { brush, hiddenRuns, inBytes } from './state.ts';
import { seconds } from './units.ts';

function FigureView({ figure, page }: { figure: Figure; page: Page }) {
  if (figure.map) return <MapFigure figure={figure} page={page} />;
  return figure.matrix ? <HeatMap figure={figure} page={page} /> : <LineFigure figure={figure} page={page} />;
}

const SECTIONS: [string, string][] = [['findings', 'Findings'], ['figures', 'Figures'], ['tables', 'Tables'], ['outcomes', 'Outcomes'], ['activity', 'Host activity'], ['hosts', 'Hosts'], ['method', 'Method']];

export function App({ page }: { page: Page }) {
  const of = (place: Figure['place']) => page.figures.filter((figure) => figure.place === place);
  const views = (place: Figure['place']) => of(place).map((figure) => <FigureView key={figure.id} figure={figure} page={page} />);
  const has: Record<string, boolean> = {
    figures: of('main').length > 0,
    tables: page.runs.some((run) => run.tables.length > 0),
    activity: page.runs.some((run) => run.counters),
  };
  const jump = (id: string) => {
    const target = document.getElementById(id);
    target?.scrollIntoView();
    target?.querySelector('h2')?.setAttribute('tabindex', '-1');
    target?.querySelector<HTMLElement>('h2')?.focus({ preventScroll: true });
  };
  return (
    <>
      <header>
        <h1>{page.title}</h1>
        <Controls page={page} />
      </header>
      <main id="main">
        {page.compared && <p class={page.compared.answers.length > 1 ? 'result several' : 'result'}>{page.compared.answers.map((answer) => <span>{unbroken(answer)}</span>)}</p>}
        {page.compared && <Comparison compared={page.compared} name={page.stem} />}
        <Answers page={page} />
        <nav aria-label="Sections">
          {SECTIONS.filter(([id]) => has[id] ?? true).map(([id, title]) => <button type="button" onClick={() => jump(id)}>{title}</button>)}
        </nav>
        <Findings page={page} />
        <Plans page={page} />
        {has.figures && <section id="figures"><h2>Figures</h2><Keys /><div class="figures">{views('main')}</div></section>}
        <Outcomes page={page} />
        <Activity page={page}><div class="figures">{views('hosts')}</div></Activity>
        <Hosts page={page}><div class="figures">{views('path')}</div></Hosts>
        <Method page={page} />
      </main>
    </>
  );
}

function Keys() {
  return <details class="fold keys"><summary>Keys of a figure</summary><p class="muted">These work while a figure has the focus. {KEYS}</p></details>;
}

function Controls({ page }: { page: Page }) {
  const toggle = (index: number) => {
    const hidden = new Set(hiddenRuns.value);
    if (!hidden.delete(index)) hidden.add(index);
    hiddenRuns.value = hidden;
  };
  return (
    <div class="controls">
      {page.runs.length > 1 && (
        <span class="tools" role="group" aria-label="Runs in the figures">
          {page.runs.map((run, index) => <button type="button" aria-pressed={!hiddenRuns.value.has(index)} onClick={() => toggle(index)}>{run.title}</button>)}
        </span>
      )}
      {brush.value && (
        <span class="tools">
          <button type="button" onClick={() => { brush.value = null; }}>Time {seconds(brush.value[0])} to {seconds(brush.value[1])}: show all</button>
        </span>
      )}
      <label>Rates <select value={inBytes.value ? 'bytes' : 'bits'} onChange={(event) => { inBytes.value = event.currentTarget.value === 'bytes'; }}>
        <option value="bits">bits</option><option value="bytes">bytes</option>
      </select></label>
      <LookChoice />
    </div>
  );
}
