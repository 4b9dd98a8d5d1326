// Maps values of an axis to shares of its length.

import type { Axis, Scale } from './model.ts';

export interface Span {
  scale: Scale;
  low: number;
  high: number;
}

/** Larger magnitudes are left out: no measurement has them. */
const LIMIT = 1e100;

export const drawable = (scale: Scale, value: number): boolean =>
  scale === 'log' ? value > 1 / LIMIT && value < LIMIT : Math.abs(value) < LIMIT;

/** The share of the axis at a value; NaN for one that it cannot show. */
export function position(span: Span, value: number): number {
  if (span.scale === 'log') return value > 0 ? Math.log(value / span.low) / Math.log(span.high / span.low) : NaN;
  return (value - span.low) / (span.high - span.low);
}

export function valueAt(span: Span, share: number): number {
  if (span.scale === 'log') return span.low * (span.high / span.low) ** share;
  return span.low + share * (span.high - span.low);
}

/** The range of `low` to `high` with a margin. */
export function fit(scale: Scale, low: number, high: number, air: number): Span {
  if (!(low <= high)) return { scale, low: scale === 'log' ? 1 : 0, high: 10 };
  switch (scale) {
    case 'linear': {
      const from = Math.min(low, 0);
      const to = high > from ? high : from + 1;
      return { scale, low: from < 0 ? from * (1 + air) : from, high: to + (to - from) * air };
    }
    case 'names': return { scale, low: low - 0.5, high: high + 0.5 };
    case 'date': {
      const room = high > low ? (high - low) * air : 1.8e12;
      return { scale, low: low - room, high: high + room };
    }
    case 'log': {
      const widen = Math.max(1, Math.sqrt(2 / (high / low)));
      const ratio = ((high / low) * widen * widen) ** air;
      return { scale, low: low / widen / ratio, high: high * widen * ratio };
    }
  }
}

/** The span with the ends that the axis requests. */
export function requested(span: Span, axis: Axis): Span {
  const end = (value: number | null | undefined, own: number) => (value != null && drawable(span.scale, value) ? value : own);
  const asked = { ...span, low: end(axis.low, span.low), high: end(axis.high, span.high) };
  return asked.low < asked.high ? asked : span;
}

/** A part of a span, by shares of its length. */
export const part = (span: Span, from: number, to: number): Span => ({ scale: span.scale, low: valueAt(span, from), high: valueAt(span, to) });
