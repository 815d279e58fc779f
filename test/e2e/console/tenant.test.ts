/**
 * The console of a user with the role `view` in one namespace: what the user sees, refused actions, misleading texts of
 * other users, and a restart of the API server while the tab is open.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Appliance, eventually } from '../harness.ts';
import { helloImage, importHelloImage } from '../images.ts';
import { accessibilityFaults, logIn, type Tab, TestBrowser, withoutBrowser } from './browser.ts';

const skip = withoutBrowser() ?? false;
if (skip !== false) console.log(`skipped: ${skip}`);
const DEADLINE_MS = 30_000;
const PASSWORD = 'a-long-password';
/** A message that would show `gnp.exe` as `exe.png` and would colour a terminal. */
const MISLEADING = '\u001b[31mimage\u202egnp.exe';
const SHOWN = 'image\\u{202e}gnp.exe';
const LISTS = ['/workloads', '/pods', '/network', '/storage', '/configuration', '/resources/core/v1/pods'];
const OAUTH = {
  apiVersion: 'config.openshift.io/v1',
  kind: 'OAuth',
  metadata: { name: 'cluster' },
  spec: {
    identityProviders: [
      { name: 'local', mappingMethod: 'claim', type: 'HTPasswd', htpasswd: { fileData: { name: 'users' } } },
    ],
  },
};

describe('console of a tenant', { timeout: 400_000, skip }, () => {
  let host: Appliance;
  let browser: TestBrowser;
  let scratch: string;
  let tab: Tab;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'he-tenant-'));
    host = await Appliance.create();
    await host.start(180_000);
    await importHelloImage(host, scratch);
    for (const name of ['team', 'other']) await host.must(['create', 'namespace', name]);
    const hash = createHash('sha1').update(PASSWORD).digest('base64');
    const literal = `--from-literal=htpasswd=vera:{SHA}${hash}`;
    await host.must(['create', 'secret', 'generic', 'users', '-n', 'openshift-config', literal]);
    await host.must(['apply', '--server-side', '--force-conflicts', '-f', '-'], { input: JSON.stringify(OAUTH) });
    await host.must(['create', 'rolebinding', 'vera', '--clusterrole=view', '--user=vera', '-n', 'team']);
    const run = ['--', '/bin/sh', '-c', 'while true; do sleep 1; done'];
    for (const name of ['team', 'other'])
      await host.must(['create', 'deployment', `app-of-${name}`, `--image=${helloImage}`, '-n', name, ...run]);
    await host.must(['create', 'deployment', 'broken', '--image=registry.invalid/missing:1', '-n', 'team']);
    const about = { kind: 'Namespace', apiVersion: 'v1', name: 'team', namespace: 'team' };
    const event = {
      ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'misleading', namespace: 'team' } },
      ...{ involvedObject: about, reason: 'Misleading', message: MISLEADING, type: 'Normal' },
      lastTimestamp: new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+/, ''),
    };
    await host.must(['create', '-f', '-'], { input: JSON.stringify(event) });
    browser = await TestBrowser.start(host);
    tab = await browser.newTab({ viewport: { width: 1_200, height: 800 } });
    tab.context.setDefaultTimeout(DEADLINE_MS);
    await logIn(tab, 'vera', PASSWORD);
  });
  after(async () => {
    await browser?.stop();
    await host?.stop();
    await rm(scratch, { recursive: true, force: true });
  });

  const open = async ({ page }: Tab, path: string): Promise<void> => {
    await page.evaluate(
      `{ const link = document.createElement('a'); link.href = ${JSON.stringify(`/console${path}`)}; document.body.append(link); link.click(); link.remove() }`,
    );
  };

  test('the overview shows the namespace of the user, with the problems of its pods', async () => {
    const { page } = tab;
    const card = page.locator('section[aria-label=team]');
    await card.locator('text=/1 of 2 pods with problems/').waitFor();
    await card.locator('text=/cannot be fetched: the registry cannot be reached/').waitFor();
    assert.doesNotMatch((await page.textContent('main')) ?? '', /other|NaN|undefined|forbidden/);
    assert.deepEqual(await accessibilityFaults(page), []);
  });

  test('lists begin with the namespace of the user, and the form of Create proposes it', async () => {
    const { page } = tab;
    for (const path of LISTS) {
      await open(tab, path);
      await page.waitForURL(/[?&]ns=team/);
      await page.waitForSelector('main select >> text=team', { state: 'attached' });
      assert.doesNotMatch((await page.textContent('main')) ?? '', /app-of-other/, path);
    }
    await open(tab, '/workloads');
    await page.waitForSelector('main a:text-is("app-of-team")');
    await open(tab, '/create');
    await eventually('the namespace in the form', DEADLINE_MS, async () =>
      (await page.inputValue('input[name=namespace]')) === 'team' ? true : undefined,
    );
  });

  test('all actions are disabled with the reason', async () => {
    const { page } = tab;
    await open(tab, '/workloads/deployments/team/broken');
    await page.waitForSelector(
      'button:has-text("Delete")[title*="You may not delete deployments.apps in namespace team"]',
    );
    for (const label of ['Scale', 'Restart', 'Roll back', 'Pause the roll-out'])
      await page.waitForSelector(`button:has-text("${label}")[aria-disabled=true][title*="You may not patch"]`);
    await page.click(`button:has-text("Delete")`, { force: true });
    await page.waitForSelector('.toast >> text=/You may not delete/');
    await page.click('a:has-text("Logs and events of broken-")');
    await page.waitForSelector('h1:has-text("Pod team/broken-")');
    await page.waitForSelector('button:has-text("Delete")[aria-disabled=true][title*="You may not delete pods"]');
  });

  test('a misleading message of an event is shown with its hidden characters', async () => {
    const admin = await browser.newTab();
    try {
      await admin.page.goto((await host.hyperedge(['console', '--root', host.root])).stdout.trim());
      await admin.page.waitForSelector('section[aria-label="Recent events"] >> text=Misleading');
      const events = await admin.page.textContent('section[aria-label="Recent events"]');
      assert.ok(events?.includes(SHOWN), events ?? '');
      await open(admin, '/resources/core/v1/events/misleading?ns=team');
      await admin.page.waitForSelector('.cm-specialChar[title*="right-to-left override"]');
      assert.deepEqual(admin.faults, []);
    } finally {
      await admin.context.close();
    }
  });

  test('a list stays visible while the API server restarts, and follows changes afterwards', async () => {
    const { page } = tab;
    await open(tab, '/workloads?ns=team');
    const ready = page.locator('tr:has-text("app-of-team") td[data-column=Ready]');
    await ready.locator('text=1/1').waitFor();
    const api = (await host.processes()).find(({ command }) => / api --config /.test(command));
    assert.ok(api);
    process.kill(api.pid, 'SIGKILL');
    await page.waitForSelector('main >> text=reconnecting, the data may be old');
    assert.equal(await ready.textContent(), '1/1');
    await eventually('the API server', 2 * DEADLINE_MS, async () =>
      (await host.kubectl(['scale', 'deployment/app-of-team', '-n', 'team', '--replicas=2'])).code === 0
        ? true
        : undefined,
    );
    await ready.locator('text=2/2').waitFor({ timeout: 2 * DEADLINE_MS });
    await page.waitForSelector('main >> text=reconnecting, the data may be old', { state: 'detached' });
    assert.deepEqual(tab.faults, []);
  });
});
