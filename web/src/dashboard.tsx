// The page of `thru web`: its views, by the path of the address.

import { Agents } from './agents.tsx';
import { NewTest } from './form.tsx';
import { Strip } from './live.tsx';
import { LookChoice, Skip } from './parts.tsx';
import { asLeft, Link, path, useTitle } from './route.tsx';
import { RunView } from './run.tsx';
import { Runs } from './runs.tsx';
import { connected, refused, type Look } from './server.ts';

const VIEWS: [string, string][] = [['/', 'Runs'], ['/new', 'New test'], ['/agents', 'Agents']];

export function Dashboard({ look }: { look: Look }) {
  return (
    <>
      <Skip />
      <nav class="views" aria-label="Views">
        <b>Throughline</b>
        {VIEWS.map(([to, title]) => <Link to={asLeft(to)} current={path.value === to}>{title}</Link>)}
        {!path.value.startsWith('/runs/') && <span class="look"><LookChoice /></span>}
        {!connected.value && !refused.value && <span role="status"><strong>No connection to thru web: trying again</strong></span>}
        {refused.value && <span role="status"><strong>thru web was restarted: open the address that it printed</strong></span>}
      </nav>
      <Strip />
      <View look={look} />
    </>
  );
}

function View({ look }: { look: Look }) {
  const of = /^\/runs\/(.+)$/.exec(path.value);
  if (of) return <RunView key={of[1]!} ids={of[1]!.split(',').map(decodeURIComponent)} look={look} />;
  switch (path.value) {
    case '/': return <Runs />;
    case '/new': return <NewTest />;
    case '/agents': return <Agents />;
    default: return <Nowhere />;
  }
}

function Nowhere() {
  useTitle('thru: nothing here');
  return <main id="main"><h1>There is nothing here</h1><p><Link to="/">Runs</Link></p></main>;
}

/** Without a token nothing can be shown. */
export function Locked() {
  return <main id="main"><h1>Throughline</h1><p>This page needs the token of the server. Open the address that <code>thru web</code> printed: it ends with <code>#token=</code>.</p></main>;
}
