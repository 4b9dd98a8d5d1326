// One run, or several beside each other; also while it is conducted.

import { useEffect, useRef, useState } from 'preact/hooks';
import { App } from './app.tsx';
import { Cores, Estimates, LiveFigures, Progress, Stop, running } from './live.tsx';
import type { Page } from './model.ts';
import { pageOf, type Look } from './server.ts';
import { useTitle } from './route.tsx';
import { linked } from './state.ts';

/** A running run is asked for at most once in this time, ms. */
const AGAIN = 1000;

export function RunView({ ids, look }: { ids: string[]; look: Look }) {
  const [page, setPage] = useState<Page | null>(null);
  const [error, setError] = useState('');
  const run = ids.length === 1 ? running(ids[0]!) : undefined;
  const stored = run?.stored ?? 0;
  const asked = useRef(0);
  useEffect(() => {
    let stale = false;
    const show = () => {
      asked.current = Date.now();
      pageOf(ids).then((data) => { if (!stale) { setPage(data); setError(''); } }, (fault: Error) => { if (!stale) setError(fault.message); });
    };
    // A run that has only begun is not in the store yet.
    if (run && (!run.kept || run.stored === 0)) {
      setError('');
      return;
    }
    const timer = setTimeout(show, run && run.ended === null ? Math.max(0, asked.current + AGAIN - Date.now()) : 0);
    return () => { stale = true; clearTimeout(timer); };
  }, [ids.join(), stored, run?.ended]);
  const names = page?.figures.map((figure) => figure.id).join() ?? '';
  useEffect(() => (page ? linked(page.figures.map((figure) => figure.id)) : undefined), [names]);
  useTitle(page?.document ?? (run ? `thru ${run.kind}: ${run.name ?? run.target ?? run.id}` : `thru: ${ids.join(', ')}`));
  // Without stored data nothing else has a title and a main part.
  const [Outer, Title] = page ? ['div', 'p'] as const : ['main', 'h1'] as const;
  return (
    <Outer id={page ? undefined : 'main'}>
      {!page && <Title>{run ? `${run.name ?? run.kind}${run.target ? ` to ${run.target}` : ''}` : error ? 'This run cannot be shown' : 'Loading'}</Title>}
      {run && (
        <section class="now" aria-label="This run now">
          {run.ended === null ? <p><b>Running</b> <Progress run={run} /> <Stop run={run} /></p> : <p>{run.ended === 'finished' ? <b>Finished.</b> : <strong>The run ended: {run.ended}.</strong>} {run.error}{run.kept && run.stored === 0 && ' Nothing was measured, so nothing is stored.'}</p>}
          <p class="muted"><code>{run.command}</code></p>
          {!run.kept && <p class="muted">This run is not stored: it disappears when it ends.</p>}
          {run.ended === null && <Estimates run={run} />}
          {run.ended === null && <Cores run={run} />}
          {run.ended === null && <LiveFigures run={run} look={look} />}
        </section>
      )}
      {error && <p role="alert"><strong>{error}</strong></p>}
      {page && <App page={page} />}
    </Outer>
  );
}

