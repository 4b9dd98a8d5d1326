// Quantities as texts, the same as those of `thru` (crates/model/src/units.rs): test/units.json has cases for both.

/** Round trips beyond a percentile: 100 stands for 99 %. */
export const TAIL = '1/(1-q)';

type Prefix = [number, string];

const RATES: Prefix[] = [[1e12, 'Tbit/s'], [1e9, 'Gbit/s'], [1e6, 'Mbit/s'], [1e3, 'kbit/s'], [1, 'bit/s']];
const BYTE_RATES: Prefix[] = [[1e12, 'TB/s'], [1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s'], [1, 'B/s']];
const TIMES: Prefix[] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const SIZES: Prefix[] = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB'], [1, 'B']];
const COUNTS: Prefix[] = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];

/** With a fixed number of decimals; a tie goes to the even digit, as in Rust. */
export function fixed(value: number, decimals: number): string {
  const scaled = Math.abs(value) * 10 ** decimals;
  if (scaled % 1 === 0.5 && Number.isInteger(value * 2 ** (decimals + 1))) {
    const even = 2 * Math.round(scaled / 2);
    return ((Math.sign(value) * even) / 10 ** decimals).toFixed(decimals);
  }
  return value.toFixed(decimals);
}

export function threeDigits(value: number): string {
  const size = Math.abs(value);
  return fixed(value, size === 0 ? 0 : size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/** A half width relative to its value: `±1.2 %`. No measurement is exact: a width that rounds to nothing is `±<0.1 %`. */
export function plusMinus(width: number): string {
  const percent = 100 * width;
  return percent < 0.05 ? '±<0.1 %' : `±${percent.toFixed(percent < 9.95 ? 1 : 0)} %`;
}

function prefixed(value: number, units: Prefix[]): string {
  const [size, name] = units.find(([size]) => Math.abs(value) >= size * 0.9995) ?? units.at(-1)!;
  return `${threeDigits(value / size)} ${name}`.trimEnd();
}

export const seconds = (ns: number): string => prefixed(ns, TIMES);
export const count = (value: number): string => prefixed(value, COUNTS);

/** A rate in bit/s, as bits or bytes. */
export const rate = (bps: number, inBytes: boolean): string => (inBytes ? prefixed(bps / 8, BYTE_RATES) : prefixed(bps, RATES));

/** Exact: in the largest unit that divides the size. */
export function size(bytes: number): string {
  const whole = Math.max(0, Math.round(bytes));
  const [unit, name] = SIZES.find(([unit]) => whole >= unit && whole % unit === 0) ?? [1, 'B'];
  return `${whole / unit} ${name}`;
}

/** The percentile of a value in `TAIL`, with all its nines. */
export function percentile(value: number): string {
  const beyond = 100 / Math.max(1, value);
  const decimals = Math.min(12, Math.max(0, Math.ceil(2 - Math.log10(beyond))));
  const text = fixed(100 - beyond, decimals);
  return `${text.includes('.') ? text.replace(/\.?0+$/, '') : text} %`;
}

export function when(ns: number): string {
  const time = new Date(Math.max(0, ns) / 1e6);
  return Number.isNaN(time.getTime()) ? 'no time' : `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

export function quantity(value: number, unit: string, inBytes = false): string {
  if (!Number.isFinite(value)) return 'no value';
  switch (unit) {
    case 'B': return size(value);
    case 'bit/s': return rate(value, inBytes);
    case 'ns': return seconds(value);
    case '1/s': return `${count(value)}/s`;
    case 'ratio': return `B/A ${fixed(value, 4)}`;
    case TAIL: return percentile(value);
    default: return unit === '' ? count(value) : `${count(value)} ${unit}`;
  }
}

/** Like `quantity`, but a size with three digits too: for means, and values that are compared. */
export const rounded = (value: number, unit: string, inBytes: boolean): string => (unit === 'B' ? prefixed(value, SIZES) : quantity(value, unit, inBytes));
