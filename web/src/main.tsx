// Starts the page: a report with its data within it, or the dashboard of a server.

import { render } from 'preact';
import { App } from './app.tsx';
import { Dashboard, Locked } from './dashboard.tsx';
import { begin } from './drawing.ts';
import { follow } from './live.tsx';
import { Skip } from './parts.tsx';
import { get, refused, takeToken, type Look } from './server.ts';
import { embedded, unpacked } from './source.ts';
import { linked, printing, themed } from './state.ts';
import './page.css';

async function start(): Promise<void> {
  const root = document.getElementById('page')!;
  const data = document.getElementById('data');
  themed();
  addEventListener('beforeprint', () => { printing.value = true; });
  addEventListener('afterprint', () => { printing.value = false; });
  try {
    begin(unpacked(document.getElementById('drawing')!));
    const view = data ? report(data) : await dashboard();
    root.textContent = '';
    render(view, root);
  } catch (error) {
    root.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  }
  document.documentElement.dataset.ready = 'yes';
}

function report(data: Element) {
  const page = embedded(data);
  linked(page.figures.map((figure) => figure.id));
  return <><Skip /><App page={page} /></>;
}

async function dashboard() {
  takeToken();
  // An address with another token, in the same tab.
  addEventListener('hashchange', () => { if (location.hash.startsWith('#token=')) location.reload(); });
  try {
    const look = await get<Look>('look');
    follow();
    return <Dashboard look={look} />;
  } catch (error) {
    if (refused.value) return <Locked />;
    throw error;
  }
}

void start();
