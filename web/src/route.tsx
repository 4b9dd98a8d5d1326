// Which view is shown: the path of the address.

import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

export const path = signal(location.pathname);

addEventListener('popstate', () => { path.value = location.pathname; });

export function go(to: string): void {
  if (to !== location.pathname) history.pushState(null, '', to);
  path.value = location.pathname;
  scrollTo(0, 0);
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
