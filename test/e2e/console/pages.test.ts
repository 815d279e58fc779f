/**
 * All pages in a browser against a small API server in this process: no uncaught error, no violation of the content
 * security policy or of accessibility rules, hostile texts stay text, and refused actions are disabled with a reason.
 */
import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { ApiServer, launch, openPage, PATHS, skip } from './page-server.ts';

/** Limit for the growth of the heap of an idle page. After garbage collections the heap varies by less. */
const IDLE_GROWTH_BYTES = 1 << 20;

/** Longer than the interval at which plots of an hour are refreshed. */
const REFRESH_MS = 61_000;

/** Pixels of the first plot that have the colour of the first line in the current theme. */
const DRAWN = `(() => {
  const canvas = document.querySelector('.plot canvas');
  const text = getComputedStyle(document.documentElement).getPropertyValue('--series-1').trim();
  const wanted = [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 200 && wanted.every((each, index) => Math.abs(data[at + index] - each) < 12)) count++;
  return count;
})()`;

describe('pages in a browser', { skip, timeout: 480_000 }, () => {
  const server = new ApiServer();
  const directory = join(tmpdir(), `he-pages-${process.pid}`);
  let browser: Browser;
  before(async () => {
    await server.start(directory);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server.stop();
    await rm(directory, { recursive: true, force: true });
  });

  test('pages in a browser show hostile texts as text and have no violations of accessibility rules', async () => {
    const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    const { page, faults } = await openPage(browser, 1_200);
    for (const path of PATHS) {
      await page.goto(`${server.url}/console${path}`);
      await page.waitForSelector('#view h1');
      await page.waitForTimeout(300);
      await page.evaluate(axe);
      const found = (await page.evaluate('axe.run(document).then(({ violations }) => violations)')) as {
        id: string;
        nodes: { html: string; failureSummary: string }[];
      }[];
      for (const { id, nodes } of found)
        faults.push(`${path}: ${id}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary}`);
      assert.equal(await page.evaluate("document.querySelectorAll('main img').length"), 0, path);
    }
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('pages in a browser plot the usage of a node in both themes, with the same facts as text', async () => {
    const { page, faults } = await openPage(browser, 1_200);
    await page.goto(`${server.url}/console/nodes/n1`);
    await page.waitForSelector('figure >> text=/used: average .* cores?, highest 2 cores, latest/');
    await page.waitForSelector(
      'figure:has-text("Temperature") >> text=There are no samples of this yet, or the host does not measure it.',
    );
    for (const theme of ['light', 'dark']) {
      await page.waitForSelector(`html[data-theme=${theme}] .plot canvas`);
      await page.waitForTimeout(500);
      assert.equal(await page.locator('.plot canvas').count(), 4);
      const drawn = Number(await page.evaluate(DRAWN));
      assert.ok(drawn > 50, `${theme}: ${drawn} pixels have the colour of the first line`);
      await page.click('button[aria-label$=" colours"]');
    }
    const label = await page.locator('.plot').first().getAttribute('aria-label');
    assert.match(label ?? '', /^Plot: CPU\. used: average .*capacity: 4 cores$/);
    await page.click('button:text-is("24h")');
    await page.waitForSelector('.plot canvas');
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('pages in a browser draw the connections of network policies, by keyboard and on a small screen', async () => {
    const { page, faults } = await openPage(browser, 360);
    await page.goto(`${server.url}/console/network?view=reach&ns=n`);
    await page.waitForSelector('tr:has-text("app=web"):has-text("app=db") >> text=TCP 5432–5434');
    const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    assert.ok(Number(wide) <= 0, `the page is ${wide} px wider than the screen`);
    // Only connections of addresses outside the cluster to the pod db are denied.
    assert.equal(await page.locator('svg path.edge').count(), 5);
    const db = page.locator('svg [role=button][aria-label^="app=db 1 pod"]');
    assert.match((await db.getAttribute('aria-label')) ?? '', /Reached by app=web on TCP 5432–5434\.$/);
    await db.focus();
    assert.equal(await page.locator('svg path.edge.active').count(), 3);
    await page.keyboard.press('Enter');
    assert.equal(await db.getAttribute('aria-pressed'), 'true');
    assert.equal(await page.locator('section[aria-label=Connections] tbody tr').count(), 3);
    await page.evaluate(await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'));
    assert.deepEqual(await page.evaluate('axe.run(document).then(({ violations }) => violations)'), []);
    await page.waitForSelector('footer code:text-is("kubectl describe networkpolicies.networking.k8s.io -n n")');
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('a long list shows each row as a block on a small screen, with few rows in the page', async () => {
    const { page, faults } = await openPage(browser, 360);
    await page.goto(`${server.url}/console/pods`);
    const list = page.locator('section[aria-label=Pods]');
    await list.locator('td:has-text("p0")').first().waitFor();
    const region = "document.querySelector('section[aria-label=Pods]')";
    /** Key of the row in the middle of the visible part of the list. */
    const middle = `(() => {
      const { left, top, width, height } = ${region}.getBoundingClientRect();
      return document.elementFromPoint(left + width / 2, top + height / 2)?.closest('tr')?.dataset.key ?? '';
    })()`;
    const untilRow = async (start: string): Promise<void> => {
      let key = '';
      for (let round = 0; round < 100 && !key.startsWith(start); round++) {
        await page.waitForTimeout(50);
        key = String(await page.evaluate(middle));
      }
      assert.ok(key.startsWith(start), `the row in the middle is '${key}'`);
    };
    assert.equal(await page.evaluate(`${region}.scrollWidth - ${region}.clientWidth`), 0);
    assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth')) <= 0);
    await list.focus();
    const started = performance.now();
    for (let step = 0; step < 30; step++) {
      await page.keyboard.press('PageDown');
      await page.waitForTimeout(50);
    }
    console.log(`30 pages of a list of 2,002 pods took ${Math.round(performance.now() - started)} ms`);
    await untilRow('n/p');
    await page.evaluate(`${region}.scrollTo(0, ${region}.scrollHeight / 2)`);
    await untilRow('n/p');
    await page.keyboard.press('End');
    await list.locator('tr[data-key="n/web"] >> text=Running').waitFor();
    const rows = await list.locator('tbody tr').count();
    assert.ok(rows < 100, `${rows} rows`);
    await page.evaluate(await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'));
    assert.deepEqual(await page.evaluate('axe.run(document).then(({ violations }) => violations)'), []);
    // A filter that makes the list short, and its removal, show the first rows again.
    await page.keyboard.press('f');
    await page.keyboard.type('p77');
    await list.locator('tr[data-key="n/p77"]').waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Delete');
    await untilRow('n/');
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('pages in a browser show a host without power as down, with last contact and no old usage', async () => {
    server.toDeadHost.length = 0;
    const { page, faults } = await openPage(browser, 360);
    page.setDefaultTimeout(10_000);
    for (const path of ['/', '/nodes', '/nodes/n2', '/hosts', '/hosts?view=nodes']) {
      await page.goto(`${server.url}/console${path}`);
      const card = page.locator('section[aria-label="Hosts that do not answer"] .finding');
      await card
        .filter({ hasText: /Unreachable: n2 does not answer\. Last contact \d+d ago, at 2026-01-01 00:00:00 UTC/ })
        .waitFor();
      await card.filter({ hasText: 'Check the power and the network of the host' }).waitFor();
      const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      assert.ok(Number(wide) <= 0, `${path} is ${wide} px wider than the screen`);
    }
    await page.goto(`${server.url}/console/`);
    await page.waitForSelector('section[aria-label="Capacity and usage"] >> text=/CPU 3 cores .75 %. of 4 cores/');
    await page.waitForSelector('.plot canvas');
    await page.goto(`${server.url}/console/nodes`);
    await page.waitForSelector('tr:has-text("n1") >> text=3 cores of 4 cores');
    await page.waitForSelector('tr:has-text("n2") >> text=– of 4 cores');
    assert.deepEqual(server.toDeadHost, []);
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('the overview loads over HTTP/1.1, with fewer watches than connections of the browser', async () => {
    const http1 = new ApiServer();
    await http1.start(directory, { withoutHttp2: true });
    const { page, faults } = await openPage(browser, 360);
    page.setDefaultTimeout(10_000);
    try {
      await page.goto(`${http1.url}/console/`);
      await page.waitForSelector('section[aria-label="Capacity and usage"] >> text=/CPU 3 cores .75 %. of 4 cores/');
      await page.waitForSelector('.plot canvas');
      await page.waitForSelector('text=/Last contact \\d+d ago, at 2026-01-01 00:00:00 UTC/');
      assert.ok(http1.watches.size <= 3, `${http1.watches.size} watches of the overview`);
      await page.goto(`${http1.url}/console/pods`);
      await page.waitForSelector('td:has-text("p0")');
      assert.deepEqual(faults, []);
    } finally {
      await page.close();
      http1.stop();
    }
  });

  test('ages use the clock of the server, and the overview reports a wrong clock of the computer', async () => {
    const expected = Math.floor((Date.now() - Date.parse('2026-01-01T00:00:00Z')) / 86_400_000);
    for (const errorDays of [1, -1, 3_653, -3_653]) {
      const { page, faults } = await openPage(browser, 360);
      await page.clock.install({ time: Date.now() + errorDays * 86_400_000 });
      await page.goto(`${server.url}/console/`);
      await page.waitForSelector(`text=/clock of this computer is \\d+\\w+ ${errorDays > 0 ? 'ahead of' : 'behind'}/`);
      await page.goto(`${server.url}/console/pods`);
      await page.waitForSelector(`td[data-column=Age]:text-is("${expected}d")`);
      assert.deepEqual(faults, []);
      await page.close();
    }
  });

  test('plots follow metrics that end and appear again', async () => {
    const { page, faults } = await openPage(browser, 1_200);
    await page.clock.install();
    await page.goto(`${server.url}/console/nodes/n1`);
    const legend = page.locator('figure:has-text("Pressure") .u-series');
    const untilLines = (count: number): Promise<void> =>
      legend
        .nth(count)
        .waitFor({ state: 'attached' })
        .then(() => legend.nth(count + 1).waitFor({ state: 'detached' }));
    try {
      await untilLines(3);
      server.withheld.add('pressureIo');
      await page.clock.runFor(REFRESH_MS);
      await untilLines(2);
      server.withheld.clear();
      await page.clock.runFor(REFRESH_MS);
      await untilLines(3);
      assert.deepEqual(faults, []);
    } finally {
      server.withheld.clear();
      await page.close();
    }
  });

  test('pages that stay open for a day keep their number of watches and their heap', async () => {
    for (const path of ['/', '/workloads']) {
      const { page, faults } = await openPage(browser, 1_200);
      await page.clock.install();
      await page.goto(`${server.url}/console${path}`);
      await page.waitForSelector('#view h1');
      const devtools = await page.context().newCDPSession(page);
      /** Lets due timers run once per step, as in a laptop that wakes up now and then. */
      const passHours = async (hours: number): Promise<{ watches: number; bytes: number }> => {
        for (let step = 0; step < hours * 2; step++) {
          await page.clock.fastForward(1_800_000);
          await page.waitForTimeout(150);
        }
        await untilSteady(page, () => server.watches.size);
        await devtools.send('HeapProfiler.collectGarbage');
        const { usedSize } = await devtools.send('Runtime.getHeapUsage');
        return { watches: server.watches.size, bytes: usedSize };
      };
      const before = await passHours(2);
      const after = await passHours(22);
      const later = `after 22 hours ${after.watches}, ${after.bytes}`;
      const text = `${path}: ${before.watches} watches, ${before.bytes} bytes; ${later}`;
      console.log(text);
      assert.ok(before.watches > 0, text);
      assert.equal(after.watches, before.watches, text);
      assert.ok(after.bytes - before.bytes < IDLE_GROWTH_BYTES, text);
      assert.deepEqual(faults, []);
      await page.close();
    }
  });

  test('a message of a failure does not cover the end of a page on a small screen', async () => {
    const { page } = await openPage(browser, 360);
    await page.goto(`${server.url}/console/pods/n/p0`);
    await page.waitForSelector('button[title*="You may not delete pods in namespace n"]');
    await page.locator('button', { hasText: 'Delete' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('.toast.failed', { timeout: 10_000 });
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    const end = "document.querySelector('#view').lastElementChild.getBoundingClientRect().bottom";
    const top = "document.querySelector('.toast').getBoundingClientRect().top";
    assert.ok(Number(await page.evaluate(`${end} - ${top}`)) <= 0);
    await page.close();
  });

  test('pages of objects lead back to their list, and their titles contain the name', async () => {
    const { page, faults } = await openPage(browser, 1_200);
    for (const [path, back, title] of [
      ['/nodes/n1', '/nodes', 'n1 · Node · hyperedge'],
      ['/pods/n/p0', '/pods', 'p0 · Pod · hyperedge'],
      ['/workloads/deployments/n/web', '/workloads?kind=deployments', 'web · Workload · hyperedge'],
      ['/secrets/n/s', '/configuration?view=secrets', 's · Secret · hyperedge'],
      ['/rigs/bench', '/rigs', 'bench · Rig · hyperedge'],
      ['/resources/core/v1/pods/p0?ns=n', '/resources/core/v1/pods', 'p0 · Object · hyperedge'],
    ]) {
      await page.goto(`${server.url}/console${path}`);
      assert.equal(await page.locator('.parent a').getAttribute('href'), `/console${back}`);
      assert.equal(await page.locator('nav [aria-current=true]').count(), 1, path);
      for (let round = 0; round < 50 && (await page.title()) !== title; round++) await page.waitForTimeout(50);
      assert.equal(await page.title(), title);
    }
    await page.goto(`${server.url}/console/pods/n/p0`);
    await page.click('p >> a:text-is("n1")');
    await page.waitForSelector('h1:text-is("Node n1")');
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('empty lists name the reason, and offer to remove it', async () => {
    const { page, faults } = await openPage(browser, 360);
    await page.goto(`${server.url}/console/pods?filter=absent`);
    await page.click('text=No entry matches the filter. >> button');
    await page.waitForSelector('td:has-text("p0")');
    await page.goto(`${server.url}/console/network?ns=n`);
    await page.click('text=There are none in namespace n. >> button:text-is("Show all namespaces")');
    await page.waitForSelector('footer code:text-is("kubectl get services -A")');
    assert.equal(await page.locator('section[aria-label=Service] thead').isVisible(), false);
    await page.goto(`${server.url}/console/secrets/n/absent`);
    await page.waitForSelector('.bad:text-is("HTTP 404")');
    await page.goto(`${server.url}/console/`);
    await page.waitForSelector('.health >> text=/with 2001 warnings/');
    await page.click('a:has-text("1980 other pods do not run.")');
    await page.waitForSelector('h1:text-is("Pods")');
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('forms fit small screens, and columns of controls cannot be chosen for the order', async () => {
    const { page, faults } = await openPage(browser, 360);
    await page.goto(`${server.url}/console/hosts?view=upload`);
    const box = await page.locator('input[name=older]').boundingBox();
    const form = await page.locator('form').boundingBox();
    assert.ok(box !== null && form !== null && box.x - form.x < 30, 'the checkbox is at the start of its line');
    for (const name of ['node', 'archives']) {
      const field = await page.locator(`[name=${name}]`).boundingBox();
      assert.ok(field !== null && field.x + field.width <= form.x + form.width + 1, `${name} is wider than the form`);
    }
    await page.goto(`${server.url}/console/rigs`);
    await page.waitForSelector('th button:text-is("Queue")');
    assert.equal(await page.locator('th button:text-is("Actions")').count(), 0);
    await page.goto(`${server.url}/console/rigs/bench`);
    await page.waitForSelector('text=The rig has no fixtures.');
    await page.waitForSelector('li:has-text("Granted without an end")');
    await page.waitForSelector('section[aria-label=Uses] td >> text=/^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d UTC$/');
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('the value of a secret can be hidden again', async () => {
    const { page } = await openPage(browser, 360);
    server.allows = true;
    try {
      await page.goto(`${server.url}/console/secrets/n/s`);
      await page.click('button:text-is("Show password")');
      await page.waitForSelector('pre:text-is("geheim")');
      await page.click('button:text-is("Hide password")');
      await page.waitForSelector('pre:text-is("geheim")', { state: 'detached' });
    } finally {
      server.allows = false;
      await page.close();
    }
  });

  test('pages in a browser explain a pod, and disable refused actions with the reason', async () => {
    const { page } = await openPage(browser, 1_200);
    await page.goto(`${server.url}/console/pods/n/p0`);
    await page.waitForSelector('.finding >> text=the image reg/app:1');
    const button = page.locator('button', { hasText: 'Delete' });
    await page.waitForSelector('button[title*="You may not delete pods in namespace n"]');
    assert.equal(await button.getAttribute('aria-disabled'), 'true');
    await page.goto(`${server.url}/console/nodes/n1`);
    await page.waitForSelector('section[aria-label=Doctor] button[title*="You may not create nodes/proxy"]');
    await page.close();
  });
});

/** Waits until a number has not changed for a second, because watches are opened again some time after a wake-up. */
async function untilSteady(page: Page, read: () => number): Promise<void> {
  let last = read();
  for (let steady = 0, round = 0; steady < 10 && round < 100; round++) {
    await page.waitForTimeout(100);
    steady = read() === last ? steady + 1 : 0;
    last = read();
  }
}
