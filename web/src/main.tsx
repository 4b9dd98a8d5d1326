// Starts the page.

import { render } from 'preact';
import { App } from './app.tsx';
import { Embedded } from './source.ts';
import { linked, printing, themed } from './state.ts';
import './page.css';

async function start(): Promise<void> {
  const root = document.getElementById('page')!;
  themed();
  try {
    const page = await new Embedded(document.getElementById('data')!).load();
    linked(page.figures.map((figure) => figure.id));
    root.textContent = '';
    render(<App page={page} />, root);
    addEventListener('beforeprint', () => { printing.value = true; });
    addEventListener('afterprint', () => { printing.value = false; });
  } catch (error) {
    root.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  }
  document.documentElement.dataset.ready = 'yes';
}

void start();
