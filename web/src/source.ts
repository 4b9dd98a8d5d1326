// The data of a report, within its file: compressed (zlib) and in base64.

import { unzlibSync } from 'fflate';
import { page } from './columns.ts';
import type { Page } from './model.ts';

/** Unpacks what an element of the document contains, at once: a browser that prints a file waits for nothing. */
export function unpacked(element: Element): Uint8Array<ArrayBuffer> {
  const text = atob(element.textContent ?? '');
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
  element.textContent = '';
  return unzlibSync(packed) as Uint8Array<ArrayBuffer>;
}

export const embedded = (element: Element): Page => page(unpacked(element));
