// Requests to the server of the page, with the token of its address.

import { signal } from '@preact/signals';
import { page } from './columns.ts';
import type { Page, Theme } from './model.ts';

/** Where this origin keeps the token: another port of the same machine has no access to it. */
const KEY = 'throughline-token';
/** Time between two tries to reach the server, ms. */
const AGAIN = 1500;

/** Whether the server does not know the token. */
export const refused = signal(false);
/** Whether the stream of events is open. */
export const connected = signal(true);

/** Takes the token out of the address, so that it is not copied with it. */
export function takeToken(): void {
  const given = /(?:^#|&)token=([\w-]+)/.exec(location.hash);
  if (!given) return;
  localStorage.setItem(KEY, given[1]!);
  history.replaceState(null, '', location.pathname + location.search);
}

async function ask(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Authorization: `Bearer ${localStorage.getItem(KEY) ?? ''}` };
  const more: RequestInit = { method, headers };
  if (signal) more.signal = signal;
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
    more.body = JSON.stringify(body);
  }
  let answer: Response;
  try {
    answer = await fetch(`/api/${path}`, more);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error('The server does not answer. Is thru web still running?');
  }
  if (answer.ok) return answer;
  if (answer.status === 401) refused.value = true;
  const text = await answer.text();
  let error: string | undefined;
  try {
    error = (JSON.parse(text) as { error?: string }).error;
  } catch { /* not ours */ }
  throw new Error(error ?? text ?? answer.statusText);
}

export const get = async <T>(path: string): Promise<T> => (await ask('GET', path)).json() as Promise<T>;
export const post = async <T>(path: string, body: unknown): Promise<T> => (await ask('POST', path, body)).json() as Promise<T>;
export const remove = async (path: string): Promise<void> => { await ask('DELETE', path); };

/** The data of runs, as a report has them. */
export async function pageOf(ids: string[]): Promise<Page> {
  const query = ids.map((id) => `run=${encodeURIComponent(id)}`).join('&');
  return page(new Uint8Array(await (await ask('GET', `page?${query}`)).arrayBuffer()));
}

/** The colours of figures. */
export interface Look {
  light: Theme;
  dark: Theme;
}

/** Calls `take` with each message of a stream of events. When it ends it is opened again, and `again` is called before. */
export function events(path: string, again: () => void, take: (data: string) => void): void {
  const open = async () => {
    try {
      const answer = await ask('GET', path);
      again();
      connected.value = true;
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ''; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const messages = text.split('\n\n');
        text = messages.pop()!;
        for (const message of messages) {
          const data = message.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart());
          if (data.length > 0) take(data.join('\n'));
        }
      }
    } catch { /* told by `connected` */ }
    connected.value = false;
    if (!refused.value) setTimeout(() => void open(), AGAIN);
  };
  void open();
}
