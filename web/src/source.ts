// Where a page gets its data from. A report has them in the file itself; a dashboard will ask a server.

import { page } from './columns.ts';
import type { Page } from './model.ts';

export interface Source {
  load(): Promise<Page>;
}

/** The data within the file, compressed (zlib) and in base64. */
export class Embedded implements Source {
  constructor(private readonly element: Element) {}

  async load(): Promise<Page> {
    if (typeof DecompressionStream === 'undefined') throw new Error('this browser cannot unpack the data (DecompressionStream)');
    const text = atob(this.element.textContent ?? '');
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
    this.element.textContent = '';
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
    return page(new Uint8Array(await new Response(stream).arrayBuffer()));
  }
}
