/**
 * `npm run bench:console [-- PODS CHANGES]` measures the web console with chromium on one host with the packaged
 * executable: time to the first view after a login, CPU time and memory of the API server, frames a second and memory
 * of a tab that shows PODS (2000) pods with CHANGES (200) changes a second. Also prints the load of the machine.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { CONSOLE, logIn, TestBrowser } from '../e2e/console/browser.ts';
import { Appliance, eventually, sleep } from '../e2e/harness.ts';

const [pods, changes] = [process.argv[2] ?? '2000', process.argv[3] ?? '200'];
const LOGINS = 3;
const SETTLE_MS = 20_000;
const IDLE_MS = 30_000;
const FRAMES_MS = 10_000;
/** Milliseconds of a clock tick: USER_HZ is 100 on every Linux port. */
const TICK_MS = 10;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
const say = (what: string, value: string): void => console.log(`${what}: ${value} (load ${loadavg()[0]?.toFixed(1)})`);

async function apiPid(host: Appliance): Promise<number> {
  const found = (await host.processes()).find(({ command }) => / api --config /.test(command));
  if (found === undefined) throw new Error('the API server does not run');
  return found.pid;
}

async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

async function rssMb(pid: number): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}

/** Share of a core that a process uses, in percent. */
async function shareOf(pid: number): Promise<number> {
  const before = await cpuMs(pid);
  await sleep(IDLE_MS);
  return ((await cpuMs(pid)) - before) / (IDLE_MS / 100);
}

/** Milliseconds from the submitted password to the health sentence. */
async function firstViewMs(browser: TestBrowser, password: string): Promise<number> {
  const { page, context } = await browser.newTab();
  await page.goto(CONSOLE);
  await page.waitForURL(/\/login\?/);
  await page.fill('input[name=username]', 'kubeadmin');
  await page.fill('input[name=password]', password);
  const begin = performance.now();
  await Promise.all([page.waitForSelector('.health:not([data-level=unknown])'), page.click('button[type=submit]')]);
  const tookMs = performance.now() - begin;
  await context.close();
  return tookMs;
}

const FRAMES = `new Promise((resolve) => {
  let frames = 0;
  let longest = 0;
  const begin = performance.now();
  let last = begin;
  const next = (now) => {
    frames++;
    longest = Math.max(longest, now - last);
    last = now;
    if (now - begin < ${FRAMES_MS}) requestAnimationFrame(next);
    else resolve({ rate: (frames * 1000) / (now - begin), longest });
  };
  requestAnimationFrame(next);
})`;

async function heapMb(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  return usedSize / 2 ** 20;
}

async function withHost<T>(bootstrap: string, measure: (host: Appliance) => Promise<T>): Promise<T> {
  const root = await mkdtemp(join(tmpdir(), 'he-bench-console-'));
  await mkdir(join(root, 'etc/origin'), { recursive: true });
  const head = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n';
  await writeFile(join(root, 'etc/origin/bootstrap.yaml'), head + bootstrap);
  const host = await Appliance.create({ root });
  try {
    await host.start(180_000);
    return await measure(host);
  } finally {
    await host.stop();
    await rm(root, { recursive: true, force: true });
  }
}

async function measureLists(host: Appliance, page: Page, api: number): Promise<void> {
  const program = join(import.meta.dirname, 'console/changes.child.ts');
  const child = host.spawnInside(process.execPath, [program, host.kubeconfig, pods, changes]);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr?.pipe(process.stderr);
  try {
    await eventually('the pods', 180_000, () => (output.includes('ready') ? true : undefined));
    await page.click('nav a[href="/console/pods"]');
    await page.waitForSelector('td >> text=bench-');
    await sleep(5_000);
    const before = await cpuMs(api);
    const { rate, longest } = (await page.evaluate(FRAMES)) as { rate: number; longest: number };
    const share = ((await cpuMs(api)) - before) / (FRAMES_MS / 100);
    const reached = output.trim().split('\n').at(-1) ?? '';
    say(`frames with ${pods} pods, ${reached} of ${changes} changes/s`, `${rate.toFixed(1)}/s`);
    say('longest frame', `${longest.toFixed(0)} ms`);
    say('CPU of the API server meanwhile, with the writes', `${share.toFixed(1)} % of a core`);
    say('heap of the tab', `${(await heapMb(page)).toFixed(1)} MB`);
  } finally {
    child.kill('SIGKILL');
  }
}

await withHost('', async (host) => {
  const created = await host.hyperedge(['kubeadmin', 'create', '--root', host.root]);
  if (created.code !== 0) throw new Error(created.stderr);
  const password = created.stdout.trim();
  const api = await apiPid(host);
  await sleep(SETTLE_MS);
  say('memory of the API server, console on and unused', `${(await rssMb(api)).toFixed(1)} MB (RSS)`);
  const idle = await shareOf(api);
  say('CPU of the idle API server', `${idle.toFixed(2)} % of a core`);
  const browser = await TestBrowser.start(host);
  try {
    const times: number[] = [];
    for (let round = 0; round < LOGINS; round++) times.push(await firstViewMs(browser, password));
    say(
      'first view after the password, median',
      `${median(times).toFixed(0)} ms of ${times.map((each) => each.toFixed(0))}`,
    );
    const tab = await browser.newTab({ viewport: { width: 1280, height: 900 } });
    await logIn(tab, 'kubeadmin', password);
    await sleep(10_000);
    const open = await shareOf(api);
    say('CPU of the API server with one overview', `${open.toFixed(2)} % of a core, +${(open - idle).toFixed(2)}`);
    say('heap of the overview', `${(await heapMb(tab.page)).toFixed(1)} MB`);
    say('memory of the API server, console in use', `${(await rssMb(api)).toFixed(1)} MB (RSS)`);
    await measureLists(host, tab.page, api);
  } finally {
    await browser.stop();
  }
});
await withHost('console: {enabled: false}\n', async (host) => {
  await sleep(SETTLE_MS);
  say('memory of the API server, console off', `${(await rssMb(await apiPid(host))).toFixed(1)} MB (RSS)`);
});
