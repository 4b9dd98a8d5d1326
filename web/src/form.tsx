// A new test: the options of a command, and its command line.

import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { known, live, Stop } from './live.tsx';
import { go, Link, runsPath } from './route.tsx';
import { get, post } from './server.ts';

interface Field {
  name: string;
  help: string;
  value: string | null;
  optional: boolean;
  choices: string[];
  default: string | null;
  /** The least and the greatest value; null for an open end. */
  range: [string | null, string | null];
  /** Whether the value is one whole number. */
  number: boolean;
  heading: string | null;
}

interface Form {
  command: string;
  about: string;
  subject: Field | null;
  fields: Field[];
}

/** What was filled in, by option; true is an option without a value. It stays while the page is open. */
type Filled = Record<string, string | true>;

const chosen = signal('stream');
const subject = signal('');
const filled = signal<Filled>({});

export function NewTest() {
  const [forms, setForms] = useState<Form[]>([]);
  const [hosts, setHosts] = useState<string[]>([]);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    get<Form[]>('forms').then(setForms, (fault: Error) => setError(fault.message));
    get<{ hosts: string[] }>('agents').then((all) => setHosts(all.hosts), () => {});
  }, []);
  const form = forms.find((one) => one.command === chosen.value);
  if (!form) return <main><h1>New test</h1>{error && <p role="alert"><strong>{error}</strong></p>}</main>;
  const options = form.fields.flatMap((field): [string, string | null][] => {
    const value = filled.value[field.name];
    if (value === undefined) return [];
    return [[field.name, value === true ? null : value]];
  });
  const start = (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError('');
    post<{ run: string | null }>('tests', { command: form.command, subject: form.subject ? subject.value : '', options })
      .then(async ({ run }) => {
        if (run) await known(run);
        go(run ? runsPath([run]) : '/');
      })
      .catch((fault: Error) => setError(fault.message))
      .finally(() => setBusy(false));
  };
  const headings = [...new Set([null, ...form.fields.map((field) => field.heading)])];
  const of = (heading: string | null) => form.fields.filter((field) => field.heading === heading);
  return (
    <main>
      <h1>New test</h1>
      <form class="test" onSubmit={start}>
        <fieldset class="tools"><legend class="unseen">Command</legend>
          {forms.map((one) => <label class="pick"><input type="radio" name="command" checked={one === form} onChange={() => { chosen.value = one.command; }} /> {one.command}</label>)}
        </fieldset>
        <p class="muted">{form.about}</p>
        {form.subject && (
          <p class="field"><label for="subject">{form.subject.value}</label>
            <input id="subject" list="hosts" value={subject.value} onInput={(event) => { subject.value = event.currentTarget.value; }} aria-describedby="subject-help" />
            <span id="subject-help" class="muted">{form.subject.help}</span>
            <datalist id="hosts">{hosts.map((host) => <option value={host} />)}</datalist></p>
        )}
        {headings.map((heading) => (heading === null
          ? of(heading).map((field) => <Input key={field.name} field={field} />)
          : <details class="fold"><summary>{heading} <span class="muted">({set(of(heading)) || 'nothing'} set)</span></summary>{of(heading).map((field) => <Input key={field.name} field={field} />)}</details>))}
        <CommandLine words={['thru', form.command, ...(form.subject && subject.value.trim() ? [subject.value.trim()] : []), ...options.flatMap(words)]} />
        {error && <p role="alert" class="message"><strong>{error}</strong></p>}
        <p class="tools"><button type="submit" class="main" disabled={busy}>{busy ? 'Starting' : 'Start'}</button></p>
        {live.value.filter((run) => run.ended === null).map((run) => <p><Link to={runsPath([run.id])}>{run.name ?? run.kind}</Link> is running <Stop run={run} /></p>)}
      </form>
    </main>
  );
}

const set = (fields: Field[]): number => fields.filter((field) => filled.value[field.name] !== undefined).length;

function Input({ field }: { field: Field }) {
  const value = filled.value[field.name];
  const change = (next: string | true | undefined) => {
    const { [field.name]: _, ...others } = filled.value;
    filled.value = next === undefined || next === '' ? others : { ...others, [field.name]: next };
  };
  const id = `option-${field.name}`;
  const common = { id, 'aria-describedby': `${id}-help` };
  const input = () => {
    if (field.value === null) return <input {...common} type="checkbox" checked={value === true} onChange={(event) => change(event.currentTarget.checked || undefined)} />;
    if (field.choices.length > 0) {
      return (
        <select {...common} value={value === true ? '' : (value ?? '')} onChange={(event) => change(event.currentTarget.value)}>
          <option value="">{field.default ?? 'default'}</option>
          {field.choices.map((choice) => <option value={choice}>{choice}</option>)}
        </select>
      );
    }
    const [least, most] = field.range;
    const number = field.number ? { type: 'number', min: least!, max: most! } : {};
    return <input {...common} {...number} value={value === true ? '' : (value ?? '')} placeholder={field.default ?? field.value} onInput={(event) => change(event.currentTarget.value)} />;
  };
  return <p class="field"><label for={id}>--{field.name}</label>{input()}<span id={`${id}-help`} class="muted">{field.help}{span(field.range)}</span></p>;
}

/** The range of a value in words. */
function span([least, most]: Field['range']): string {
  if (least === null) return '';
  return most === null ? ` (${least} or more)` : ` (${least} to ${most})`;
}

/** A word as a shell takes it. */
const quoted = (word: string): string => (/^[\w\-=.,:/%@+~]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const words = ([name, value]: [string, string | null]): string[] => (value === null ? [`--${name}`] : [`--${name}=${value}`]);

function CommandLine({ words }: { words: string[] }) {
  const [copied, setCopied] = useState(false);
  const line = words.map(quoted).join(' ');
  useEffect(() => setCopied(false), [line]);
  const copy = () => { void navigator.clipboard.writeText(line).then(() => setCopied(true), () => {}); };
  return <div class="line"><pre aria-label="Command line">{line}</pre><button type="button" onClick={copy}>{copied ? 'Copied' : 'Copy'}</button></div>;
}
