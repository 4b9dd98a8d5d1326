// The ticks of an axis and their texts, as crates/report/src/draw/ticks.rs chooses them.

import type { Axis } from './model.ts';
import { position, type Span } from './scale.ts';
import { axisUnit, fixed, percentile, size, TAIL } from './units.ts';

export interface Ticks {
  major: [number, string][];
  minor: number[];
  title: string;
}

export function ticks(axis: Axis, span: Span, room: number, inBytes: boolean): Ticks {
  const most = Math.max(2, Math.floor(room));
  const given = (axis.ticks ?? []).filter(([value]) => inside(span, value));
  if (span.scale === 'names') return { major: thinned(given, most * 3), minor: [], title: axis.label };
  if (given.length > 1) return { major: thinned(given, most), minor: [], title: axis.label };
  if (span.scale === 'date') return dates(axis, span, most);
  if (span.scale === 'linear') return linear(axis, span, most, inBytes);
  const [values, minor] = axis.unit === 'B' ? binary(span, most) : axis.unit === TAIL ? [tail(span, most), []] : decimal(span, most, axis.unit === 'bit/s' && inBytes ? 8 : 1);
  return { major: values.map((value) => [value, tickText(value, axis.unit, inBytes)]), minor, title: axis.label };
}

const inside = (span: Span, value: number) => {
  const share = position(span, value);
  return share >= -1e-9 && share <= 1 + 1e-9;
};

/** Every n-th, so that there are at most `most`. */
function thinned(all: [number, string][], most: number): [number, string][] {
  const every = Math.ceil(all.length / most);
  return all.filter((_, index) => index % every === 0);
}

function binary(span: Span, room: number): [number[], number[]] {
  const first = Math.ceil(Math.log2(span.low) - 1e-9);
  const last = Math.floor(Math.log2(span.high) + 1e-9);
  const step = [1, 2, 3, 4, 5, 6, 10, 20, 50].find((step) => Math.trunc((last - first) / step) < room) ?? 100;
  const powers = Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => first + n);
  const major = powers.filter((n) => n % step === 0).map((n) => 2 ** n);
  if (major.length < 2) return [even(span, room), []];
  return [major, powers.length <= 65 ? powers.map((n) => 2 ** n) : []];
}

function decimal(span: Span, room: number, factor: number): [number[], number[]] {
  const [low, high] = [span.low / factor, span.high / factor];
  const decades = Math.log10(high / low);
  if (decades < 0.8) return [even({ ...span, low, high }, room).map((value) => value * factor), []];
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const at = (digits: number[], every: number) => {
    const values: number[] = [];
    for (let n = first; n <= last; n++) if (n % every === 0) for (const digit of digits) values.push(digit * 10 ** n);
    return values.filter((value) => value >= low * 0.999999 && value <= high * 1.000001).map((value) => value * factor);
  };
  const minor = decades <= 8 ? at([2, 3, 4, 5, 6, 7, 8, 9], 1) : [];
  const fine = at([1, 2, 5], 1);
  if (fine.length <= room && decades < 3.2) return [fine, minor];
  let every = 1;
  while (every < 400 && at([1], every).length > room) every++;
  return [at([1], every), minor];
}

const tail = (span: Span, room: number) =>
  [1, 2, ...Array.from({ length: 15 }, (_, n) => 10 ** (n + 1))].filter((value) => value >= span.low && value <= span.high).slice(0, room + 2);

function niceStep(length: number, room: number): { step: number; decimals: number } {
  const rough = Math.max(length / room, 1e-290);
  let exponent = Math.floor(Math.log10(rough));
  const power = 10 ** exponent;
  const digit = [1, 2, 2.5, 5].find((digit) => digit * power >= rough * 0.999999) ?? 10;
  if (digit === 10) exponent++;
  return { step: digit * power, decimals: Math.min(12, Math.max(0, -exponent) + (digit === 2.5 && exponent <= 0 ? 1 : 0)) };
}

function multiples(low: number, high: number, step: number): number[] {
  const first = Math.ceil(low / step - 1e-9);
  const values: number[] = [];
  for (let n = 0; n < 100 && (first + n) * step <= high + step * 1e-9; n++) values.push((first + n) * step);
  return values;
}

const even = (span: Span, room: number) => multiples(span.low, span.high, niceStep(span.high - span.low, room).step);

function linear(axis: Axis, span: Span, room: number, inBytes: boolean): Ticks {
  const { factor, name } = axisUnit(Math.max(Math.abs(span.high), Math.abs(span.low)), axis.unit, inBytes);
  const [low, high] = [span.low / factor, span.high / factor];
  const { step, decimals } = niceStep(high - low, room);
  const major = multiples(low, high, step).map((value): [number, string] => [value * factor, value === 0 ? '0' : fixed(value, decimals)]);
  return { major, minor: [], title: name ? `${axis.label} (${name})` : axis.label };
}

const SECOND = 1e9;
const DATE_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000];

function dates(axis: Axis, span: Span, room: number): Ticks {
  const length = span.high - span.low;
  const step = (DATE_STEPS.find((step) => length / (step * SECOND) <= room) ?? Math.ceil(length / SECOND / room)) * SECOND;
  const text = (ns: number) => {
    const iso = new Date(ns / 1e6).toISOString();
    return step >= 86400 * SECOND ? iso.slice(0, 10) : step >= 60 * SECOND ? (iso.slice(11, 16) === '00:00' ? iso.slice(5, 10) : iso.slice(11, 16)) : iso.slice(11, 19);
  };
  const day = new Date(span.low / 1e6).toISOString().slice(0, 10);
  const major = multiples(span.low, span.high, step).map((value): [number, string] => [value, text(value)]);
  return { major, minor: [], title: step >= 86400 * SECOND ? axis.label : `${axis.label} (UTC, from ${day})` };
}

/** Up to four decimals, with an exponent only for very large and very small values. */
function short(value: number): string {
  if (value !== 0 && !(Math.abs(value) >= 1e-4 && Math.abs(value) < 1e6)) return value.toExponential();
  return String(Number(value.toFixed(4)));
}

function tickText(value: number, unit: string, inBytes: boolean): string {
  if (unit === 'B' && value >= 1) return size(value);
  if (unit === TAIL) return percentile(value);
  const { factor, name } = axisUnit(value, unit, inBytes);
  return `${short(value / factor)} ${name}`.trimEnd();
}
