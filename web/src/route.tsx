// Which view is shown: the path of the address; and what was chosen in it: its query.

import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

export const path = signal(location.pathname);
export const query = signal(new URLSearchParams(location.search));

/** What was chosen last in each view, for those who return to it. */
const chosen = new Map<string, string>();

function took(): void {
  path.value = location.pathname;
  query.value = new URLSearchParams(location.search);
  chosen.set(location.pathname, location.search);
}

took();
addEventListener('popstate', took);

export function go(to: string): void {
  if (to !== location.pathname + location.search) history.pushState(null, '', to);
  took();
  scrollTo(0, 0);
}

/** Writes what was chosen in this view into the address; empty values stand for what is chosen at first. */
export function choose(values: Record<string, string>): void {
  const next = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const text = next.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
  history.replaceState(null, '', location.pathname + (text && `?${text}`) + location.hash);
  took();
}

/** A view as it was left. */
export const asLeft = (view: string): string => view + (chosen.get(view) ?? '');

/** What the tab, the history and a printed file are called. */
export function useTitle(title: string | undefined): void {
  useEffect(() => { if (title) document.title = title; }, [title]);
}

interface LinkProps {
  to: string;
  current?: boolean;
  children: ComponentChildren;
}

export function Link({ to, current, children }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(to);
  };
  return <a href={to} onClick={follow} aria-current={current ? 'page' : undefined}>{children}</a>;
}

export const runsPath = (ids: string[]): string => `/runs/${ids.map(encodeURIComponent).join(',')}`;
