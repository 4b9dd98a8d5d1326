// The hosts: whether their agents answer, what they are, and how two differ.

import { useEffect, useState } from 'preact/hooks';
import type { Fact, Table } from './model.ts';
import { get } from './server.ts';
import { Rows, TableView } from './table.tsx';

interface Facts {
  names: [string, string];
  took_ms: [number | null, number | null];
  facts: Fact[];
}

type State = { text: string; facts?: Facts };

const ask = (a: string, b: string): Promise<Facts> => get(`agent?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);

export function Agents() {
  const [hosts, setHosts] = useState<string[] | null>(null);
  const [error, setError] = useState('');
  const [more, setMore] = useState('');
  useEffect(() => { get<{ hosts: string[] }>('agents').then((all) => setHosts(all.hosts), (fault: Error) => setError(fault.message)); }, []);
  const add = (event: Event) => {
    event.preventDefault();
    if (more.trim() && hosts && !hosts.includes(more.trim())) setHosts([more.trim(), ...hosts]);
    setMore('');
  };
  return (
    <main>
      <h1>Agents</h1>
      <p class="muted">Hosts of stored runs and known agents. A check connects to the agent and compares its host with this one.</p>
      {error && <p role="alert"><strong>{error}</strong></p>}
      <form class="controls" onSubmit={add}><label>Host <input value={more} onInput={(event) => setMore(event.currentTarget.value)} placeholder="name, or name:port" /></label><button type="submit">Add</button></form>
      {hosts?.length === 0 && <p>There are no known agents yet. Start <code>thru serve</code> on another host.</p>}
      <ul class="agents">{hosts?.map((host) => <Agent key={host} host={host} others={hosts.filter((other) => other !== host)} />)}</ul>
    </main>
  );
}

function Agent({ host, others }: { host: string; others: string[] }) {
  const [state, setState] = useState<State | null>(null);
  const [against, setAgainst] = useState('');
  const check = () => {
    setState({ text: 'Connecting' });
    ask(against, host).then((facts) => setState({ text: `answers: connected and described itself in ${facts.took_ms[1]} ms`, facts }), (fault: Error) => setState({ text: fault.message }));
  };
  return (
    <li class="answer">
      <h2>{host}</h2>
      <p class="tools">
        <label>Compare with <select value={against} onChange={(event) => setAgainst(event.currentTarget.value)}>
          <option value="">this host</option>{others.map((other) => <option value={other}>{other}</option>)}
        </select></label>
        <button type="button" onClick={check} aria-label={`Check ${host}`}>Check</button>
      </p>
      <p role="status">{state?.text}</p>
      {state?.facts && <Difference facts={state.facts} />}
    </li>
  );
}

function Difference({ facts: { names, facts } }: { facts: Facts }) {
  const table = (title: string, some: Fact[]): Table => ({
    title, head: ['', ...names], numeric: [false, false, false], note: '', rows: some.map((fact) => [`${fact.group === 'settings' ? '' : `${fact.group}: `}${fact.name}`, fact.near, fact.far]),
  });
  const differing = facts.filter((fact) => fact.differs);
  return (
    <div class="facts">
      {differing.length === 0 ? <p class="muted">No recorded value differs between the two hosts.</p> : <Rows table={table('What differs', differing)} name={`${names[1]}-differences`} />}
      <TableView table={table('Everything recorded about both', facts)} name={names[1]} folded />
    </div>
  );
}
