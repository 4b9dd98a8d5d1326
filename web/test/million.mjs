// Puts a million samples into the goodput of a report, as the program packs them.
import { readFileSync, writeFileSync } from 'node:fs';
import { deflateSync, inflateSync } from 'node:zlib';

const COUNT = 1_000_000;

export function million(from, to) {
  const html = readFileSync(from, 'utf8');
  const start = html.indexOf('id="data">') + 10;
  const end = html.indexOf('<', start);
  const block = inflateSync(Buffer.from(html.slice(start, end), 'base64'));
  const length = block.readUInt32LE(0);
  const page = JSON.parse(block.subarray(4, 4 + length));
  const columns = block.subarray(4 + length);
  const figure = page.figures.find((one) => one.id === 'goodput');
  const [x, y] = [new Float64Array(COUNT), new Float64Array(COUNT)];
  let seed = 1;
  for (let n = 0; n < COUNT; n++) {
    seed = (seed * 16807) % 2147483647;
    x[n] = n * 1e6 + (seed % 1000);
    y[n] = 9e9 + 1e9 * Math.sin(n / 9000) + seed / 3;
  }
  // Numbers that are not whole keep 24 bits of their fraction.
  const bits = new BigUint64Array(y.buffer);
  for (let n = 0; n < COUNT; n++) bits[n] = (bits[n] + (1n << 27n)) & ~((1n << 28n) - 1n);
  const steps = Int32Array.from(x, (value, n) => (n ? value - x[n - 1] : 0));
  const added = Buffer.concat([planes(new Uint8Array(steps.buffer), 4), planes(new Uint8Array(y.buffer), 8)]);
  const at = columns.length;
  Object.assign(figure.series[0], {
    x: { at, count: COUNT, code: 'steps', first: x[0] }, y: { at: at + 4 * COUNT, count: COUNT, code: 'doubles', first: 0 }, low: null, high: null,
  });
  const json = Buffer.from(JSON.stringify(page));
  const size = Buffer.alloc(4);
  size.writeUInt32LE(json.length);
  const packed = deflateSync(Buffer.concat([size, json, columns, added])).toString('base64');
  const text = html.slice(0, start) + packed + html.slice(end);
  writeFileSync(to, text);
  return Buffer.byteLength(text);
}

function planes(bytes, width) {
  const count = bytes.length / width;
  const all = Buffer.alloc(bytes.length);
  for (let n = 0; n < count; n++) for (let plane = 0; plane < width; plane++) all[plane * count + n] = bytes[n * width + plane];
  return all;
}
