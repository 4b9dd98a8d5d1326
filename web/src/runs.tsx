// The runs of the store.

import { useEffect, useState } from 'preact/hooks';
import { choose, Link, go, query, runsPath, useTitle } from './route.tsx';
import { live } from './live.tsx';
import { SortButton, unbroken } from './parts.tsx';
import { get, post, remove } from './server.ts';
import { when } from './units.ts';

interface Listed {
  id: string;
  name: string | null;
  kind: string;
  target: string | null;
  transport: string;
  started_unix_ns: number;
  measured: string;
  result: string;
  trust: string | null;
  ending: string | null;
  running: boolean;
  starred: boolean;
  tags: string[];
}

interface Found {
  runs: Listed[];
  all: number;
}

/** The most runs beside each other. */
const MOST = 12;
/** Runs of a page of the list. */
const AT_ONCE = 100;

/** The columns with what the server sorts them by, and whether the highest or latest is first at first. */
const COLUMNS: [title: string, order: string | null, falling: boolean][] = [
  ['Begun', 'begun', true], ['Run', 'run', false], ['Target', 'target', false], ['Result', 'result', true], ['Trust', 'trust', true], ['Tags', null, false],
];

/** What is listed, as the address has it. */
function wanted() {
  const of = (name: string) => query.value.get(name) ?? '';
  const [, order = 'begun', rising] = /^(\w+?)(-rising)?$/.exec(of('sort')) ?? [];
  return {
    search: of('search'), starred: of('starred') === 'yes', order, rising: rising !== undefined, page: Math.max(1, Math.trunc(Number(of('page'))) || 1),
    ticked: of('runs').split(',').filter(Boolean),
  };
}

const tick = (ids: string[]): void => choose({ runs: ids.join(',') });

export function Runs() {
  const [found, setFound] = useState<Found | null>(null);
  const [error, setError] = useState('');
  const [round, setRound] = useState(0);
  const { search, starred, order, rising, page, ticked } = wanted();
  useTitle('thru: runs');
  // What runs stored since changes the list.
  const ended = live.value.filter((run) => run.ended !== null).length;
  const asked = `runs?search=${encodeURIComponent(search)}&starred=${starred}&order=${order}&rising=${rising}&skipped=${(page - 1) * AT_ONCE}`;
  useEffect(() => {
    let stale = false;
    const timer = setTimeout(() => {
      get<Found>(asked).then((all) => { if (!stale) { setFound(all); setError(''); } }, (fault: Error) => { if (!stale) setError(fault.message); });
    }, 120);
    return () => { stale = true; clearTimeout(timer); };
  }, [asked, ended, live.value.length, round]);
  const after = (work: Promise<unknown>) => { work.then(() => setRound(round + 1), (fault: Error) => setError(fault.message)); };
  return (
    <main id="main">
      <h1>Runs</h1>
      <div class="controls">
        <label>Search <input type="search" value={search} onInput={(event) => choose({ search: event.currentTarget.value, page: '' })} placeholder="name, kind, host, tag, date" /></label>
        <label><input type="checkbox" checked={starred} onChange={(event) => choose({ starred: event.currentTarget.checked ? 'yes' : '', page: '' })} /> starred only</label>
        <button type="button" disabled={ticked.length < 2} onClick={() => go(runsPath(ticked))}>Compare {ticked.length > 1 ? ticked.length : 'ticked'} runs</button>
        {ticked.length > 0 && <button type="button" onClick={() => tick([])}>Untick all</button>}
      </div>
      {error && <p role="alert"><strong>{error}</strong></p>}
      {found && found.all === 0 && <Nothing chosen={Boolean(search) || starred} />}
      {found && found.runs.length > 0 && <Table runs={found.runs} ticked={ticked} after={after} order={order} rising={rising} />}
      {found && <Pages all={found.all} page={page} />}
    </main>
  );
}

function Nothing({ chosen }: { chosen: boolean }) {
  if (chosen) return <p class="muted">No matching runs.</p>;
  return <p>There are no stored runs yet. <Link to="/new">Start a test</Link>, or run <code>thru stream HOST</code>: it appears here while it runs.</p>;
}

/** Which part of the list is shown, and the way to the others. */
function Pages({ all, page }: { all: number; page: number }) {
  if (all <= AT_ONCE && page === 1) return null;
  const last = Math.max(1, Math.ceil(all / AT_ONCE));
  const to = (other: number) => { choose({ page: other > 1 ? String(other) : '' }); scrollTo(0, 0); };
  return (
    <nav class="pages" aria-label="Pages">
      <button type="button" disabled={page <= 1} onClick={() => to(Math.min(page - 1, last))}>Previous</button>
      <span>{page > last ? 'Nothing here' : `${(page - 1) * AT_ONCE + 1} to ${Math.min(page * AT_ONCE, all)}`} of {all} runs</span>
      <button type="button" disabled={page >= last} onClick={() => to(page + 1)}>Next</button>
    </nav>
  );
}

interface TableProps {
  runs: Listed[];
  ticked: string[];
  after: (work: Promise<unknown>) => void;
  order: string;
  rising: boolean;
}

function Table({ runs, ticked, after, order, rising }: TableProps) {
  const sort = (column: string, falling: boolean) => {
    const next = column === order ? !rising : !falling;
    choose({ sort: column === 'begun' && !next ? '' : `${column}${next ? '-rising' : ''}`, page: '' });
  };
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Runs">
      <table class="runs">
        <thead><tr>
          <th scope="col"><span class="unseen">Compare</span></th><th scope="col"><span class="unseen">Star</span></th>
          {COLUMNS.map(([title, column, falling]) => {
            const ordered = column === order ? (rising ? 'ascending' : 'descending') : undefined;
            return <th scope="col" aria-sort={ordered}>{column ? <SortButton title={title} order={ordered} sort={() => sort(column, falling)} /> : title}</th>;
          })}
          <th scope="col"><span class="unseen">Delete</span></th>
        </tr></thead>
        <tbody>{runs.map((run) => <Row key={run.id} run={run} ticked={ticked} after={after} />)}</tbody>
      </table>
    </div>
  );
}

function Row({ run, ticked, after }: { run: Listed; ticked: string[]; after: (work: Promise<unknown>) => void }) {
  const at = `runs/${encodeURIComponent(run.id)}`;
  const title = run.name ?? run.kind;
  const on = ticked.includes(run.id);
  const others = ticked.filter((id) => id !== run.id);
  return (
    <tr>
      <td class="mark"><input type="checkbox" checked={on} disabled={!on && ticked.length >= MOST} onChange={() => tick(on ? others : [...ticked, run.id])} aria-label={`Compare ${title} ${run.id}`} /></td>
      <td class="mark"><button type="button" class="star" aria-pressed={run.starred} aria-label={`Star ${title} ${run.id}`} onClick={() => after(post(at, { starred: !run.starred }))}>{run.starred ? '★' : '☆'}</button></td>
      <td class="time">{when(run.started_unix_ns)}</td>
      <th scope="row"><Link to={runsPath([run.id])}>{title}</Link> <span class="muted">{[run.name && run.kind, run.transport, run.measured].filter(Boolean).join(', ')}</span></th>
      <td data-title={run.target ? 'to' : undefined}>{run.target}</td>
      <td>{run.running ? <strong>running</strong> : <>{unbroken(run.result)} {run.ending !== 'finished' && <strong>{run.ending ?? 'not finished'}</strong>}</>}</td>
      <td data-title={run.trust ? 'trust' : undefined}>{run.trust}</td>
      <td class="mark"><Tags run={run} save={(tags) => after(post(at, { tags }))} /></td>
      <td class="mark"><Delete title={`${title} ${run.id}`} act={() => { if (on) tick(others); after(remove(at)); }} /></td>
    </tr>
  );
}

function Tags({ run, save }: { run: Listed; save: (tags: string[]) => void }) {
  const [text, setText] = useState<string | null>(null);
  if (text === null) {
    return (
      <>
        {run.tags.map((tag) => <button type="button" class="tag" title={`Search for ${tag}`} onClick={() => choose({ search: tag, page: '' })}>{tag}</button>)}
        <button type="button" class="quiet" aria-label={`${run.tags.length ? 'Edit the tags of' : 'Tag'} ${run.name ?? run.kind} ${run.id}`} onClick={() => setText(run.tags.join(', '))}>{run.tags.length ? 'Edit' : 'Tag'}</button>
      </>
    );
  }
  const done = (event: Event) => {
    event.preventDefault();
    setText(null);
    save(text.split(',').map((tag) => tag.trim()).filter(Boolean));
  };
  const field = (input: HTMLInputElement | null) => { if (input && document.activeElement !== input) input.focus(); };
  return (
    <form onSubmit={done}>
      <input ref={field} value={text} aria-label="Tags, separated by commas" onInput={(event) => setText(event.currentTarget.value)} onKeyDown={(event) => { if (event.key === 'Escape') setText(null); }} />
      <button type="submit">Save</button>
    </form>
  );
}

function Delete({ title, act }: { title: string; act: () => void }) {
  const [asked, setAsked] = useState(false);
  if (!asked) return <button type="button" class="quiet" aria-label={`Delete ${title}`} onClick={() => setAsked(true)}>Delete</button>;
  return (
    <span class="tools">
      <button type="button" class="danger" onClick={act} aria-label={`Delete for good: ${title}`}>Delete for good</button>
      <button type="button" onClick={() => setAsked(false)}>Keep</button>
    </span>
  );
}
