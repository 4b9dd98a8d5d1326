// The runs of the store.

import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { Link, go, runsPath } from './route.tsx';
import { live } from './live.tsx';
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
  starred: boolean;
  tags: string[];
}

/** The most runs beside each other. */
const MOST = 12;

const search = signal('');
const starredOnly = signal(false);
const ticked = signal<string[]>([]);

export function Runs() {
  const [found, setFound] = useState<{ runs: Listed[]; more: boolean } | null>(null);
  const [error, setError] = useState('');
  const [round, setRound] = useState(0);
  // What runs stored since changes the list.
  const ended = live.value.filter((run) => run.ended !== null).length;
  useEffect(() => {
    let stale = false;
    const query = `runs?search=${encodeURIComponent(search.value)}&starred=${starredOnly.value}`;
    const timer = setTimeout(() => {
      get<{ runs: Listed[]; more: boolean }>(query).then((all) => { if (!stale) { setFound(all); setError(''); } }, (fault: Error) => { if (!stale) setError(fault.message); });
    }, 120);
    return () => { stale = true; clearTimeout(timer); };
  }, [search.value, starredOnly.value, ended, live.value.length, round]);
  const after = (work: Promise<unknown>) => { work.then(() => setRound(round + 1), (fault: Error) => setError(fault.message)); };
  const chosen = ticked.value;
  return (
    <main>
      <h1>Runs</h1>
      <div class="controls">
        <label>Search <input type="search" value={search.value} onInput={(event) => { search.value = event.currentTarget.value; }} placeholder="name, kind, host, tag, date" /></label>
        <label><input type="checkbox" checked={starredOnly.value} onChange={(event) => { starredOnly.value = event.currentTarget.checked; }} /> starred only</label>
        <button type="button" disabled={chosen.length < 2} onClick={() => go(runsPath(chosen))}>Compare {chosen.length > 1 ? chosen.length : 'ticked'} runs</button>
        {chosen.length > 0 && <button type="button" onClick={() => { ticked.value = []; }}>Untick all</button>}
      </div>
      {error && <p role="alert"><strong>{error}</strong></p>}
      {found && found.runs.length === 0 && <Nothing />}
      {found && found.runs.length > 0 && <Table runs={found.runs} after={after} />}
      {found?.more && <p class="muted">There are more runs: search to narrow the list.</p>}
    </main>
  );
}

function Nothing() {
  if (search.value || starredOnly.value) return <p class="muted">No matching runs.</p>;
  return <p>There are no stored runs yet. <Link to="/new">Start a test</Link>, or run <code>thru stream HOST</code>: it appears here while it runs.</p>;
}

function Table({ runs, after }: { runs: Listed[]; after: (work: Promise<unknown>) => void }) {
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Runs">
      <table class="runs">
        <thead><tr>
          <th scope="col"><span class="unseen">Compare</span></th><th scope="col"><span class="unseen">Star</span></th>
          {['Begun', 'Run', 'Target', 'Result', 'Trust', 'Tags'].map((title) => <th scope="col">{title}</th>)}
          <th scope="col"><span class="unseen">Delete</span></th>
        </tr></thead>
        <tbody>{runs.map((run) => <Row key={run.id} run={run} after={after} />)}</tbody>
      </table>
    </div>
  );
}

function Row({ run, after }: { run: Listed; after: (work: Promise<unknown>) => void }) {
  const at = `runs/${encodeURIComponent(run.id)}`;
  const title = run.name ?? run.kind;
  const on = ticked.value.includes(run.id);
  const tick = () => { ticked.value = on ? ticked.value.filter((id) => id !== run.id) : [...ticked.value, run.id]; };
  return (
    <tr>
      <td><input type="checkbox" checked={on} disabled={!on && ticked.value.length >= MOST} onChange={tick} aria-label={`Compare ${title} ${run.id}`} /></td>
      <td><button type="button" class="star" aria-pressed={run.starred} aria-label={`Star ${title} ${run.id}`} onClick={() => after(post(at, { starred: !run.starred }))}>{run.starred ? '★' : '☆'}</button></td>
      <td class="time">{when(run.started_unix_ns)}</td>
      <th scope="row"><Link to={runsPath([run.id])}>{title}</Link> <span class="muted">{[run.name && run.kind, run.transport, run.measured].filter(Boolean).join(', ')}</span></th>
      <td>{run.target}</td>
      <td>{run.result} {run.ending !== 'finished' && <strong>{run.ending ?? 'not finished'}</strong>}</td>
      <td>{run.trust}</td>
      <td><Tags run={run} save={(tags) => after(post(at, { tags }))} /></td>
      <td><Delete title={`${title} ${run.id}`} act={() => { ticked.value = ticked.value.filter((id) => id !== run.id); after(remove(at)); }} /></td>
    </tr>
  );
}

function Tags({ run, save }: { run: Listed; save: (tags: string[]) => void }) {
  const [text, setText] = useState<string | null>(null);
  if (text === null) {
    return (
      <>
        {run.tags.map((tag) => <button type="button" class="tag" title={`Search for ${tag}`} onClick={() => { search.value = tag; }}>{tag}</button>)}
        <button type="button" class="quiet" aria-label={`Tags of ${run.name ?? run.kind} ${run.id}`} onClick={() => setText(run.tags.join(', '))}>{run.tags.length ? 'Edit' : 'Tag'}</button>
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
      <button type="button" class="danger" onClick={act} aria-label={`Delete ${title} for good`}>Delete for good</button>
      <button type="button" onClick={() => setAsked(false)}>Keep</button>
    </span>
  );
}
