// Pieces that the kinds of figures share.

import type { ComponentChildren, RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { csv, save, saveText } from './download.ts';
import type { Figure } from './model.ts';
import { choice, type Choice } from './state.ts';

/** The width of an element, kept up to date; 0 before it is known. */
export function useWidth(box: RefObject<HTMLElement>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!box.current) return;
    const take = () => setWidth(Math.floor(box.current?.clientWidth ?? 0));
    take();
    const observer = new ResizeObserver(take);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** A figure with its title. */
export function Picture({ figure, children }: { figure: Figure; children: ComponentChildren }) {
  return (
    <section class="figure" id={`figure-${figure.id}`} aria-label={figure.title}>
      <h3>{figure.title}</h3>
      {figure.subtitle && <p class="muted">{figure.subtitle}</p>}
      {children}
    </section>
  );
}

interface SaveProps {
  name: string;
  title: string;
  svg: () => void;
  canvas: () => HTMLCanvasElement | null;
  rows: () => Iterable<string[]>;
}

export function Save({ name, title, svg, canvas, rows }: SaveProps) {
  const png = () => canvas()?.toBlob((blob) => { if (blob) save(`${name}.png`, blob); });
  const values = () => saveText(`${name}.csv`, 'text/csv', csv(rows()));
  return (
    <span class="tools saving">
      <button type="button" onClick={svg} aria-label={`Save ${title} as SVG`}>SVG</button>
      <button type="button" onClick={png} aria-label={`Save ${title} as PNG`}>PNG</button>
      <button type="button" onClick={values} aria-label={`Save ${title} as CSV`}>CSV</button>
    </span>
  );
}

export function LookChoice() {
  return (
    <label>Look <select value={choice.value} onChange={(event) => { choice.value = event.currentTarget.value as Choice; }}>
      <option value="system">system</option><option value="light">light</option><option value="dark">dark</option>
    </select></label>
  );
}
