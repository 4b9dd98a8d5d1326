// Pieces that the kinds of figures share.

import type { ComponentChildren, RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { csv, save, saveText } from './download.ts';
import { file, type Drawn, type View } from './drawing.ts';
import type { Figure } from './model.ts';
import { choice, printing, type Choice } from './state.ts';

/** The width of a figure on paper, px: two stand beside each other, but one with several panels has the whole width. */
const PAPER = 340;
const WIDE_PAPER = 1000;

/** The width of an element, kept up to date; 0 before it is known, and that of paper while the page is printed. */
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
  if (!printing.value || width === 0) return width;
  return box.current?.closest('.figure.panels') ? WIDE_PAPER : PAPER;
}

/** A figure with its title. */
export function Picture({ figure, children }: { figure: Figure; children: ComponentChildren }) {
  return (
    <div class={figure.panels.length > 3 ? 'figure panels' : 'figure'} role="group" id={`figure-${figure.id}`} aria-label={figure.title}>
      <h3>{figure.title}</h3>
      {figure.subtitle && <p class="muted">{figure.subtitle}</p>}
      {children}
    </div>
  );
}

/** A drawing. The SVG is our own: it has no script, and its texts are escaped. */
export function Drawing({ drawn }: { drawn: Drawn }) {
  return <div class="picture" dangerouslySetInnerHTML={{ __html: drawn.svg }} />;
}

/** An SVG file as a picture of twice as many pixels. */
async function pictureOf(svg: string): Promise<Blob | null> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => { canvas.toBlob(resolve); });
}

interface SaveProps {
  name: string;
  figure: Figure;
  view: View;
  rows: () => Iterable<string[]>;
}

/** Narrower figures are saved at this width, px. */
const NARROWEST = 640;

export function Save({ name, figure, view, rows }: SaveProps) {
  const { title } = figure;
  const whole = () => file(figure, { ...view, width: Math.max(NARROWEST, view.width) });
  const svg = () => saveText(`${name}.svg`, 'image/svg+xml', whole());
  const png = () => void pictureOf(whole()).then((blob) => { if (blob) save(`${name}.png`, blob); });
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

/** The head of a column that a table can be sorted by. */
export function SortButton({ title, order, sort }: { title: string; order: 'ascending' | 'descending' | undefined; sort: () => void }) {
  return <button type="button" class="sort" onClick={sort}>{title}<span aria-hidden="true">{order === 'ascending' ? ' ▲' : order === 'descending' ? ' ▼' : ''}</span></button>;
}

/** Past the controls before the main part. The address keeps its state. */
export function Skip() {
  const skip = (event: Event) => {
    event.preventDefault();
    const main = document.querySelector('main');
    main?.setAttribute('tabindex', '-1');
    main?.focus();
  };
  return <a class="skip" href="#main" onClick={skip}>To the content</a>;
}

/** A text whose numbers stay with their units. */
export const unbroken = (text: string): string => text.replaceAll(/(\d) (?=[%a-zµ])/gi, '$1\u00a0');
