// A new test: the options of a command, and its command line.

import { useEffect, useState } from 'preact/hooks';
import { known, live, Stop } from './live.tsx';
import { choose, go, Link, query, runsPath, useTitle } from './route.tsx';
import { get, post } from './server.ts';

interface Field {
  name: string;
  label: string;
  /** Whether it is among those that are asked for most. */
  first: boolean;
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
  title: string;
  about: string;
  subject: Field | null;
  has_hosts: boolean;
  fields: Field[];
}

/** What was filled in is in the address, each option by its name; a switch is on. */
const [TEST, SUBJECT, ON] = ['test', 'subject', 'on'] as const;
const valueOf = (name: string): string => query.value.get(name) ?? '';
const isSet = (field: Field): boolean => valueOf(field.name) !== '';

export function NewTest() {
  const [forms, setForms] = useState<Form[]>([]);
  const [hosts, setHosts] = useState<string[]>([]);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  useTitle('thru: new test');
  useEffect(() => {
    get<Form[]>('forms').then(setForms, (fault: Error) => setError(fault.message));
    get<{ hosts: string[] }>('agents').then((all) => setHosts(all.hosts), () => {});
  }, []);
  const form = forms.find((one) => one.command === valueOf(TEST)) ?? forms[0];
  if (!form) return <main id="main"><h1>New test</h1>{error && <p role="alert"><strong>{error}</strong></p>}</main>;
  const subject = form.subject ? valueOf(SUBJECT).trim() : '';
  const options = form.fields.filter(isSet).map(({ name, value }): [string, string | null] => [name, value === null ? null : valueOf(name)]);
  const start = (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError('');
    post<{ run: string | null }>('tests', { command: form.command, subject, options })
      .then(async ({ run }) => {
        if (run) await known(run);
        go(run ? runsPath([run]) : '/');
      })
      .catch((fault: Error) => setError(fault.message))
      .finally(() => setBusy(false));
  };
  const others = form.fields.filter((field) => !field.first);
  const headings = [...new Set(others.map((field) => field.heading))];
  const count = others.filter(isSet).length;
  return (
    <main id="main">
      <h1>New test</h1>
      <form class="test" onSubmit={start}>
        <fieldset class="tools"><legend class="unseen">Test</legend>
          {forms.map((one) => <label class="pick"><input type="radio" name="command" checked={one === form} onChange={() => choose({ [TEST]: one.command })} /> {one.title}</label>)}
        </fieldset>
        <p class="muted"><code>thru {form.command}</code> {coded(form.about)}</p>
        {form.subject && <Subject form={form} subject={form.subject} hosts={hosts} />}
        {form.fields.filter((field) => field.first).map((field) => <Input key={field.name} field={field} />)}
        {others.length > 0 && (
          <details class="fold more"><summary>More options <span class="muted">({count || 'none'} set)</span></summary>
            {headings.map((heading) => {
              const fields = others.filter((field) => field.heading === heading);
              return <fieldset key={heading ?? ''}><legend>{heading ?? 'Of the test'}</legend>{fields.map((field) => <Input key={field.name} field={field} />)}</fieldset>;
            })}
          </details>
        )}
        {error && <p role="alert" class="message"><strong>{error}</strong></p>}
        <div class="line">
          <CommandLine words={['thru', form.command, ...(form.has_hosts ? subject.split(/[\s,]+/) : [subject]).filter(Boolean), ...options.flatMap(words)]} />
          <button type="submit" class="main" disabled={busy}>{busy ? 'Starting' : 'Start'}</button>
        </div>
        {live.value.filter((run) => run.ended === null).map((run) => <p><Link to={runsPath([run.id])}>{run.name ?? run.kind}</Link> is running <Stop run={run} /></p>)}
      </form>
    </main>
  );
}

function Subject({ form, subject, hosts }: { form: Form; subject: Field; hosts: string[] }) {
  const label = form.has_hosts ? 'Hosts' : subject.value === 'PLAN.toml' ? 'Plan file' : 'Host';
  return (
    <p class="field">
      <label for="subject">{label}</label>
      <input id="subject" list="hosts" value={valueOf(SUBJECT)} onInput={(event) => choose({ [SUBJECT]: event.currentTarget.value })} aria-describedby="subject-help" />
      <span id="subject-help" class="muted">{coded(subject.help)}</span>
      <datalist id="hosts">{label !== 'Plan file' && hosts.map((host) => <option value={host} />)}</datalist>
    </p>
  );
}

function Input({ field }: { field: Field }) {
  const value = valueOf(field.name);
  const change = (next: string) => choose({ [field.name]: next });
  const id = `option-${field.name}`;
  const common = { id, 'aria-describedby': `${id}-help` };
  const input = () => {
    if (field.value === null) return <input {...common} type="checkbox" checked={value === ON} onChange={(event) => change(event.currentTarget.checked ? ON : '')} />;
    if (field.choices.length > 0) {
      return (
        <select {...common} value={value} onChange={(event) => change(event.currentTarget.value)}>
          <option value="">{field.default ?? 'default'}</option>
          {field.choices.map((choice) => <option value={choice}>{choice}</option>)}
        </select>
      );
    }
    const [least, most] = field.range;
    const number = field.number ? { type: 'number', min: least!, max: most! } : {};
    return <input {...common} {...number} value={value} placeholder={field.default ?? field.value} onInput={(event) => change(event.currentTarget.value)} />;
  };
  return <p class="field"><label for={id}>{field.label}</label>{input()}<span id={`${id}-help`} class="muted"><code>--{field.name}</code> {coded(field.help)}{span(field.range)}</span></p>;
}

/** A text of help, whose commands and options stand between backticks. */
const coded = (text: string) => text.split('`').map((part, index) => (index % 2 ? <code>{part}</code> : part));

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
  return <><pre aria-label="Command line">{line}</pre><button type="button" onClick={copy}>{copied ? 'Copied' : 'Copy'}</button></>;
}
