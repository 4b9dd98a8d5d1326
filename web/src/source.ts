// The data of a report, within its file: compressed (zlib) and in base64.

import { page } from './columns.ts';
import type { Page } from './model.ts';

/** Unpacks what an element of the document contains. */
export async function unpacked(element: Element): Promise<Uint8Array<ArrayBuffer>> {
  if (typeof DecompressionStream === 'undefined') throw new Error('this browser cannot unpack the data (DecompressionStream)');
  const text = atob(element.textContent ?? '');
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
  element.textContent = '';
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export const embedded = async (element: Element): Promise<Page> => page(await unpacked(element));
