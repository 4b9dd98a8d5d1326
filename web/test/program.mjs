// The browser, and the program whose pages it shows.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';

export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
const THRU = process.env.WEB_THRU ?? new URL('../../target/debug/thru', import.meta.url).pathname;
export const missing = !CHROMIUM ? 'no chromium (Debian: apt-get install chromium)' : !existsSync(THRU) ? `no program at ${THRU}` : false;
if (missing) console.log(`SKIPPED: the page in a browser: ${missing}`);

/** The options of a test that needs the browser. Its bound is for a test that hangs, beside a build. */
export const needed = { skip: missing, timeout: 180_000 };

/** The browser and the program of a file of tests, once `prepare` has run; both end with the file. */
export function opened(prepare) {
  const at = {};
  before(async () => {
    if (missing) return;
    at.folder = mkdtempSync(join(tmpdir(), 'page-'));
    at.program = new Program(at.folder);
    await prepare(at);
    const { chromium } = await import('playwright-core');
    at.browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  }, { timeout: 120_000 });
  after(async () => {
    await at.browser?.close();
    at.program?.end();
    if (at.folder) rmSync(at.folder, { recursive: true, force: true });
  });
  return at;
}

/** The program with its runs and sockets in a folder of its own. */
export class Program {
  constructor(folder) {
    this.folder = folder;
    mkdirSync(join(folder, 'runtime'), { mode: 0o700 });
    this.env = { ...process.env, XDG_DATA_HOME: folder, XDG_RUNTIME_DIR: join(folder, 'runtime'), THRU_CONFIG: '' };
    this.started = [];
  }

  run(...args) {
    return execFileSync(THRU, args, { env: this.env, cwd: this.folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 30 });
  }

  start(...args) {
    const child = spawn(THRU, args, { env: this.env, cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe'] });
    this.started.push(child);
    return child;
  }

  /** Starts a server; returns it and what of its output matches. */
  async serve(announced, ...args) {
    const child = this.start(...args);
    const found = await new Promise((resolve, reject) => {
      let text = '';
      const take = (part) => {
        text += part;
        const match = announced.exec(text);
        if (match) resolve(match[0]);
      };
      child.stdout.on('data', take);
      child.stderr.on('data', take);
      child.on('exit', () => reject(new Error(`the server ended: ${text}`)));
    });
    return [child, found];
  }

  agent() {
    return this.serve(/127\.0\.0\.1:[1-9]\d*/, 'serve', '--listen', '127.0.0.1:0', '--open');
  }

  end() {
    this.started.forEach((child) => child.kill());
  }
}
