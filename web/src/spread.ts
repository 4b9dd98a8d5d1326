// The points of a running test, by direction and over its flows.

import type { Line } from './model.ts';

export interface Point {
  time_s: number;
  trial: number;
  direction: 'send' | 'reverse';
  flow: number | null;
  /** An entry of the series, which has the rate alone. */
  fine: boolean;
  /** In this direction since the run began; null for a single flow. */
  bytes: number | null;
  bits_per_s: number | null;
  transactions_per_s: number | null;
  retransmits: number | null;
  rtt_ns: number | null;
  cwnd_bytes: number | null;
  lost: number | null;
  jitter_ns: number | null;
}

export const WAYS = ['send', 'reverse'] as const;

export const wayOf = ({ direction }: Pick<Point, 'direction'>): string => (direction === 'send' ? 'outbound' : 'return');

export const inBoth = (points: Point[]): boolean => WAYS.every((way) => points.some((point) => point.direction === way));

/** The median and the range of the flows of each moment, of each direction as a line. */
export function spread(points: Point[], of: (point: Point) => number | null, both: boolean): Omit<Line, 'colour'>[] {
  return WAYS.flatMap((way) => {
    const moments = new Map<number, number[]>();
    const flows = new Set<number>();
    for (const point of points) {
      const value = of(point);
      if (point.flow === null || point.direction !== way || value === null) continue;
      flows.add(point.flow);
      moments.set(point.time_s, [...(moments.get(point.time_s) ?? []), value]);
    }
    if (moments.size === 0) return [];
    const sorted = [...moments].map(([time, values]): [number, number[]] => [time, values.sort((a, b) => a - b)]);
    const column = (value: (values: number[]) => number) => Float64Array.from(sorted, ([, values]) => value(values));
    const middle = (values: number[]) => (values[Math.floor((values.length - 1) / 2)]! + values[Math.floor(values.length / 2)]!) / 2;
    return [{
      name: `median and range of ${flows.size} flows${both ? `, ${wayOf({ direction: way })}` : ''}`,
      run: 0, dash: 0, reference: false, stacked: false, steps: false, panel: null, sorted: true,
      x: Float64Array.from(sorted, ([time]) => time * 1e9), y: column(middle), low: column((values) => values[0]!), high: column((values) => values.at(-1)!),
    }];
  });
}

/** The flows with the lowest mean, or with the highest, the worst first; none where not all have a value. */
export function worst(points: Point[], of: (point: Point) => number | null, way: Point['direction'], lowest: boolean, most: number): number[] {
  const sums = new Map<number, [sum: number, count: number]>();
  for (const point of points) {
    const value = of(point);
    if (point.flow === null || point.direction !== way || value === null) continue;
    const [sum, count] = sums.get(point.flow) ?? [0, 0];
    sums.set(point.flow, [sum + value, count + 1]);
  }
  const means = [...sums].map(([flow, [sum, count]]): [number, number] => [flow, sum / count]);
  return means.sort((a, b) => (lowest ? a[1] - b[1] : b[1] - a[1])).slice(0, most).map(([flow]) => flow);
}
