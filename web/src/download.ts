// Files that the page makes: CSV, SVG, PNG.

export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A cell after RFC 4180; text that a spreadsheet would run as a formula begins with an apostrophe. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^[-+]?[\d.]+(e[-+]?\d+)?$/i.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csv = (rows: Iterable<string[]>): string => Array.from(rows, (row) => `${row.map(cell).join(',')}\r\n`).join('');

export const saveText = (name: string, type: string, text: string): void => save(name, new Blob([text], { type }));
