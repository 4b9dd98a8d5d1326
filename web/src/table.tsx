// Tables of texts.

import { useState } from 'preact/hooks';
import { csv, saveText } from './download.ts';
import type { Table } from './model.ts';

/** More rows are shown on request. */
const FIRST = 200;
/** Longer tables are folded. */
const LONG = 40;

interface Props {
  table: Table;
  name: string;
  folded?: boolean;
}

export function TableView({ table, name, folded = table.rows.length > LONG }: Props) {
  const [open, setOpen] = useState(!folded);
  if (table.rows.length === 0) return null;
  return (
    <details class="fold" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{table.title} <span class="muted">({table.rows.length})</span></summary>
      {open && <Rows table={table} name={name} />}
    </details>
  );
}

export function Rows({ table, name }: { table: Table; name: string }) {
  const [all, setAll] = useState(false);
  const look = (column: number) => (table.numeric[column] ? 'number' : undefined);
  const rows = all ? table.rows : table.rows.slice(0, FIRST);
  const file = () => saveText(`${name}.csv`, 'text/csv', csv([table.head, ...table.rows]));
  return (
    <>
      <div class="wide" tabIndex={0} role="group" aria-label={table.title}>
        <table>
          <caption class="unseen">{table.title}</caption>
          <thead><tr>{table.head.map((title, column) => (title ? <th scope="col" class={look(column)}>{title}</th> : <td />))}</tr></thead>
          <tbody>
            {rows.map((row) => (
              <tr>{row.map((text, column) => (column === 0 ? <th scope="row" class={look(column)}>{text}</th> : <td class={look(column)}>{text}</td>))}</tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.note && <p class="muted">{table.note}</p>}
      <p class="tools">
        {rows.length < table.rows.length && <button type="button" onClick={() => setAll(true)}>Show all {table.rows.length} rows</button>}
        <button type="button" onClick={file} aria-label={`Save ${table.title} as CSV`}>CSV</button>
      </p>
    </>
  );
}
