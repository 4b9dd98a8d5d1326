// The hosts: whether their agents answer, what they are, and how two differ.

import { useEffect, useState } from 'preact/hooks';
import type { Fact, Table } from './model.ts';
import { useTitle } from './route.tsx';
import { get } from './server.ts';
import { Rows, TableView } from './table.tsx';

interface Facts {
  names: [string, string];
  took_ms: [number | null, number | null];
  facts: Fact[];
}

/** What is known of a host. */
interface State {
  text: string;
  facts?: Facts;
}

const ask = (a: string, b: string): Promise<Facts> => get(`agent?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);

/** Checks at the same time: each costs its host a moment. */
const AT_ONCE = 4;

export function Agents() {
  const [hosts, setHosts] = useState<string[] | null>(null);
  const [error, setError] = useState('');
  const [more, setMore] = useState('');
  const [states, setStates] = useState<ReadonlyMap<string, State>>(new Map());
  const [against, setAgainst] = useState('');
  const [busy, setBusy] = useState(false);
  useTitle('thru: agents');
  useEffect(() => { get<{ hosts: string[] }>('agents').then((all) => setHosts(all.hosts), (fault: Error) => setError(fault.message)); }, []);
  const add = (event: Event) => {
    event.preventDefault();
    if (more.trim() && hosts && !hosts.includes(more.trim())) setHosts([more.trim(), ...hosts]);
    setMore('');
  };
  const note = (host: string, state: State) => setStates((now) => new Map(now).set(host, state));
  const check = async (host: string) => {
    note(host, { text: 'connecting' });
    try {
      const facts = await ask(against === host ? '' : against, host);
      note(host, { text: `answers: connected and described itself in ${facts.took_ms[1]} ms`, facts });
    } catch (fault) {
      note(host, { text: (fault as Error).message });
    }
  };
  const checkAll = async () => {
    setBusy(true);
    const left = [...hosts!];
    const next = async (): Promise<void> => {
      const host = left.shift();
      if (host !== undefined) {
        await check(host);
        await next();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
    setBusy(false);
  };
  return (
    <main id="main">
      <h1>Agents</h1>
      <p class="muted">Hosts that runs with agents reached, and known agents. A check connects to the agent and compares its host with another one.</p>
      {error && <p role="alert"><strong>{error}</strong></p>}
      <form class="controls" onSubmit={add}>
        <label>Host <input value={more} onInput={(event) => setMore(event.currentTarget.value)} placeholder="name, or name:port" /></label><button type="submit">Add</button>
        <label>Compare with <select value={against} onChange={(event) => setAgainst(event.currentTarget.value)}>
          <option value="">this host</option>{hosts?.map((host) => <option value={host}>{host}</option>)}
        </select></label>
        <button type="button" class="main" disabled={busy || !hosts?.length} onClick={() => void checkAll()}>{busy ? 'Checking' : 'Check all'}</button>
      </form>
      {hosts?.length === 0 && <p>There are no known agents yet. Start <code>thru serve</code> on another host.</p>}
      {hosts && hosts.length > 0 && (
        <div class="wide" tabIndex={0} role="group" aria-label="Hosts">
          <table class="agents">
            <thead><tr><th scope="col">Host</th><th scope="col">Agent</th><th scope="col">Kernel</th><th scope="col">Differences</th><th scope="col"><span class="unseen">Check</span></th></tr></thead>
            <tbody>{hosts.map((host) => <Agent key={host} host={host} state={states.get(host)} check={() => void check(host)} />)}</tbody>
          </table>
        </div>
      )}
    </main>
  );
}

function Agent({ host, state, check }: { host: string; state: State | undefined; check: () => void }) {
  const [open, setOpen] = useState(false);
  const facts = state?.facts;
  const differing = facts?.facts.filter((fact) => fact.differs).length;
  return (
    <>
      <tr>
        <th scope="row">{host}</th>
        <td role="status">{state?.text ?? 'not checked yet'}</td>
        <td>{facts?.facts.find((fact) => fact.name === 'kernel')?.far}</td>
        <td>{facts && <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>{differing === 0 ? 'none' : differing} from {facts.names[0]}</button>}</td>
        <td><button type="button" onClick={check} aria-label={`Check ${host}`}>Check</button></td>
      </tr>
      {open && facts && <tr><td colSpan={5}><Difference facts={facts} /></td></tr>}
    </>
  );
}

function Difference({ facts: { names, facts } }: { facts: Facts }) {
  const table = (title: string, some: Fact[]): Table => ({
    title, head: ['fact', ...names], numeric: [false, false, false], note: '', rows: some.map((fact) => [`${fact.group === 'settings' ? '' : `${fact.group}: `}${fact.name}`, fact.near, fact.far]),
  });
  const differing = facts.filter((fact) => fact.differs);
  return (
    <div class="facts">
      {differing.length === 0 ? <p class="muted">No recorded value differs between the two hosts.</p> : <Rows table={table('What differs', differing)} name={`${names[1]}-differences`} />}
      <TableView table={table('Everything recorded about both', facts)} name={names[1]} folded />
    </div>
  );
}
