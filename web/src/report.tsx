// The parts of the page that are texts.

import type { ComponentChildren } from 'preact';
import { unbroken } from './parts.tsx';
import { TableView } from './table.tsx';
import type { Page, Pair, Run, Table } from './model.ts';

const several = (page: Page) => page.runs.length > 1;

/** More runs than these have their own parts folded: the comparison above shows what they have in common. */
const FEW = 2;

/** The answer of each run. */
export function Answers({ page }: { page: Page }) {
  const cards = <div class="answers">{page.runs.map((run) => <Answer run={run} page={page} />)}</div>;
  return page.runs.length <= FEW ? cards : <details class="fold"><summary>Each run <span class="muted">({page.runs.length})</span></summary>{cards}</details>;
}

/** The answer, how far to rely on it, what it was measured on, and what it rests on. */
function Answer({ run, page }: { run: Run; page: Page }) {
  return (
    <article class="answer">
      {several(page) && <h2>{run.title}</h2>}
      {run.plan.map((line) => <p>{line}</p>)}
      <p class="result">{unbroken(run.result)}</p>
      <p class="muted">
        {run.trust && <TrustBadge trust={run.trust} />}
        {run.ending && <><strong>{run.ending}</strong>, </>}{run.measured}, {run.hosts}, {run.begun} <span class="id">{run.id}</span>
      </p>
      {run.answer.length > 0 && <Pairs rows={run.answer} />}
    </article>
  );
}

function TrustBadge({ trust: [name, about] }: { trust: [string, string] }) {
  return <span class={`trust ${name}`} title={about}>trust {name}</span>;
}

export function Pairs({ rows }: { rows: Pair[] }) {
  return <dl>{rows.map(([title, text]) => <div><dt>{title}</dt><dd>{text}</dd></div>)}</dl>;
}

/** A part of one run: below its name among several, and folded among many. */
function Part({ run, page, children }: { run: Run; page: Page; children: ComponentChildren }) {
  if (!several(page)) return <>{children}</>;
  const name = <>{run.title} <span class="id">{run.id}</span></>;
  if (page.runs.length <= FEW) return <><h3>{name}</h3>{children}</>;
  return <details class="fold"><summary>{name}</summary>{children}</details>;
}

export function Findings({ page }: { page: Page }) {
  return (
    <section id="findings">
      <h2>Findings</h2>
      {page.runs.map((run) => (
        <Part run={run} page={page}>
          {run.findings.length === 0 && <p class="muted">None for this run.</p>}
          <ul class="findings">{run.findings.map(({ kind, statement }) => <li><span class="kind">{kind}</span> {statement}</li>)}</ul>
          {run.keep.length > 0 && <><h3>To keep these settings</h3><pre>{run.keep.join('\n')}</pre></>}
        </Part>
      ))}
    </section>
  );
}

export function Plans({ page }: { page: Page }) {
  const runs = page.runs.filter((run) => run.tables.length > 0);
  if (runs.length === 0) return null;
  return (
    <section id="tables">
      <h2>Tables</h2>
      {runs.map((run) => (
        <Part run={run} page={page}>
          {run.tables.map((table, index) => <TableView table={table} name={`${run.id}-table-${index + 1}`} />)}
        </Part>
      ))}
    </section>
  );
}

export function Outcomes({ page }: { page: Page }) {
  return (
    <section id="outcomes">
      <h2>Outcomes</h2>
      {page.runs.map((run) => (
        <Part run={run} page={page}>
          {run.outcomes.rows.length === 0 && <p class="muted">This run has no outcome.</p>}
          <TableView table={run.outcomes} name={`${run.id}-outcomes`} />
          <Lines lines={run.notes} />
          {run.verdicts.length > 0 && <Pairs rows={run.verdicts} />}
          <TableView table={run.trials} name={`${run.id}-trials`} folded />
        </Part>
      ))}
    </section>
  );
}

/** More lines than these are folded. */
const MOST_LINES = 12;

function Lines({ lines }: { lines: string[] }) {
  if (lines.length === 0) return null;
  const list = <ul class="notes">{lines.map((line) => <li>{line}</li>)}</ul>;
  return lines.length <= MOST_LINES ? list : <details class="fold"><summary>Notes <span class="muted">({lines.length})</span></summary>{list}</details>;
}

export function Activity({ page, children }: { page: Page; children: ComponentChildren }) {
  const runs = page.runs.filter((run) => run.counters);
  if (runs.length === 0) return null;
  return (
    <section id="activity">
      <h2>Host activity</h2>
      {runs.map((run) => <Part run={run} page={page}><Lines lines={run.activity} /></Part>)}
      {children}
      {runs.map((run) => <TableView table={run.counters!} name={`${run.id}-counters`} folded />)}
    </section>
  );
}

export function Hosts({ page, children }: { page: Page; children: ComponentChildren }) {
  return (
    <section id="hosts">
      <h2>Hosts</h2>
      {children}
      {page.differing && <Differing table={page.differing} />}
      {page.runs.map((run) => <Part run={run} page={page}><Facts run={run} /></Part>)}
    </section>
  );
}

function Differing({ table }: { table: Table }) {
  return table.rows.length === 0 ? <p class="muted">No recorded value of the hosts differs between the runs.</p> : <TableView table={table} name="differences" />;
}

function Facts({ run }: { run: Run }) {
  const differing = run.facts.filter((fact) => fact.differs);
  const table = (title: string, facts: typeof run.facts): Table => ({
    title, head: ['fact', 'near', 'far'], numeric: [false, false, false], note: '',
    rows: facts.map((fact) => [`${fact.group === 'settings' ? '' : `${fact.group}: `}${fact.name}${fact.differs ? ' ≠' : ''}`, fact.near, fact.far]),
  });
  if (run.facts.length === 0) return <p class="muted">No inventory was recorded.</p>;
  return (
    <div class="facts">
      {differing.length === 0 ? <p class="muted">No recorded value differs between the two ends.</p> : <TableView table={table('What differs between the ends', differing)} name={`${run.id}-differences`} folded={false} />}
      <TableView table={table('Everything recorded about both ends', run.facts)} name={`${run.id}-hosts`} folded />
    </div>
  );
}

export function Method({ page }: { page: Page }) {
  return (
    <section id="method">
      <h2>How it was measured</h2>
      {page.runs.map((run) => (
        <Part run={run} page={page}>
          <pre>{run.command}</pre>
          <Pairs rows={run.method} />
        </Part>
      ))}
      <p class="muted">
        Rates are decimal, sizes binary. The NetPIPE rate is a block's bits over half the round trip, by NetPIPE's convention; half a
        round trip is not a one-way delay. ± is half the width of the interval relative to the value. To get the whole document of a run:
        {' '}<code>thru export RUN --format json</code>.
      </p>
    </section>
  );
}
