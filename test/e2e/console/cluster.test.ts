/** Overview, node page and route of the console on a host with the profile okd and the packaged executable. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Appliance, eventually, sleep } from '../harness.ts';
import { accessibilityFaults, CONSOLE, logIn, SERVER, type Tab, TestBrowser, withoutBrowser } from './browser.ts';

const HOST = 'console-openshift-console.apps.lab.example';
const BOOTSTRAP =
  'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nopenshift: {profile: okd, domain: apps.lab.example}\n';
const skip = withoutBrowser() ?? false;
if (skip !== false) console.log(`skipped: ${skip}`);

describe('console of a cluster with the profile okd', { timeout: 560_000, skip }, () => {
  let root = '';
  let host: Appliance;
  let browser: TestBrowser;
  let password = '';
  let node = '';

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'he-console-'));
    await mkdir(join(root, 'etc/origin'), { recursive: true });
    await writeFile(join(root, 'etc/origin/bootstrap.yaml'), BOOTSTRAP);
    host = await Appliance.create({ root });
    await host.start(180_000);
    const created = await host.hyperedge(['kubeadmin', 'create', '--root', host.root]);
    assert.equal(created.code, 0, created.stderr);
    password = created.stdout.trim();
    const { items } = JSON.parse(await host.must(['get', 'nodes', '-o', 'json']));
    node = items[0].metadata.name;
    const { address } = items[0].status.addresses.find((each: { type: string }) => each.type === 'InternalIP');
    browser = await TestBrowser.start(host, [`--host-resolver-rules=MAP ${HOST} ${address}`]);
  });
  after(async () => {
    await browser?.stop();
    await host?.stop();
    await rm(root, { recursive: true, force: true });
  });

  const withTab = async (body: (tab: Tab) => Promise<void>): Promise<void> => {
    const tab = await browser.newTab({ viewport: { width: 1200, height: 800 } });
    try {
      await body(tab);
      assert.deepEqual(tab.faults, []);
    } finally {
      await tab.context.close();
    }
  };
  const consoleUrl = (): Promise<string> =>
    host.must([
      ...['get', 'configmap', 'console-public', '-n', 'openshift-config-managed'],
      ...['-o', 'jsonpath={.data.consoleURL}'],
    ]);

  test('shows usage, maintenance and alerts with their fix on the overview', async () => {
    await withTab(async (tab) => {
      const { page } = tab;
      await logIn(tab, 'kubeadmin', password);
      await page.waitForSelector('section[aria-label=Maintenance] >> text=/next expiry 20..-/');
      await page.waitForSelector('section[aria-label=Maintenance] >> text=/snapshot/');
      await page.waitForSelector('section[aria-label=Usage] figure:has-text("CPU") .plot canvas');
      await page.waitForSelector('section[aria-label=Usage] >> text=/used: average .*, highest .*, latest/');
      const conditions = [
        { type: 'HyperedgeAlerts', status: 'True', reason: 'AlertsFiring', message: 'StoreHasNoLeader (critical); x' },
      ];
      const patch = ['patch', 'node', node, '--subresource=status', '--type=strategic'];
      // The kubelet reports the end of this alert with its next status.
      let fires = true;
      const firing = (async () => {
        for (; fires; await sleep(500))
          await host.kubectl([...patch, '-p', JSON.stringify({ status: { conditions } })]);
      })();
      try {
        await page.waitForSelector(`section[aria-label=Alerts] >> text=The store member ${node} has no leader.`);
        await page.waitForSelector('section[aria-label=Alerts] >> text=/Fix: Run "hyperedge members"/');
      } finally {
        fires = false;
        await firing;
      }
      assert.deepEqual(await accessibilityFaults(page), []);
    });
  });

  test('shows machine configuration, hardware and plots of a node; cordons and drains the node', async () => {
    await withTab(async (tab) => {
      const { page } = tab;
      await logIn(tab, 'kubeadmin', password);
      await page.click(`section[aria-label=Nodes] a:text-is("${node}")`);
      await page.waitForSelector('section[aria-label="Machine configuration"] >> text=Done');
      await page.waitForSelector(
        'section[aria-label="Machine configuration"] dt:text-is("Drift") + dd:text-is("none")',
      );
      await page.waitForSelector('section[aria-label=Hardware] dt:text-is("Machine ID")');
      await page.waitForSelector('figure:has-text("Memory") .plot canvas');
      await page.click('button:text-is("Run doctor")');
      await page.waitForSelector('section[aria-label=Doctor] progress');
      await page.waitForSelector('section[aria-label=Doctor] >> text=/[0-9]+ ok.* at 20..-/');
      await page.waitForSelector('section[aria-label=Doctor] h3:has-text("certificates")');
      const raw = ['create', '--raw', `/api/v1/nodes/${node}/proxy/hyperedge/doctor`, '-f', '/dev/null'];
      const report = JSON.parse(await host.must(raw));
      assert.equal(report.checks.find(({ id }: { id: string }) => id === 'api').result, 'ok', JSON.stringify(report));
      const isCordoned = async (): Promise<string> =>
        host.must(['get', 'node', node, '-o', 'jsonpath={.spec.unschedulable}']);
      await page.click('button:text-is("Cordon")');
      await page.waitForSelector('button:text-is("Uncordon")');
      assert.equal(await isCordoned(), 'true');
      await page.click('button:text-is("Uncordon")');
      await page.waitForSelector('button:text-is("Cordon")');
      assert.equal(await isCordoned(), '');
      await page.click('button:text-is("Drain")');
      await page.click('dialog button:text-is("Start the drain")');
      await page.waitForSelector(`text=Node ${node} is drained.`);
      assert.equal(await isCordoned(), 'true');
      await page.click('button:text-is("Uncordon")');
      await page.waitForSelector('button:text-is("Cordon")');
      assert.deepEqual(await accessibilityFaults(page), []);
    });
  });

  test('logs in through the route, whose address leads to the console', async () => {
    await eventually('the URL of the console', 60_000, async () =>
      (await consoleUrl()) === `https://${HOST}` ? true : undefined,
    );
    await withTab(async (tab) => {
      await logIn(tab, 'kubeadmin', password, `https://${HOST}/`);
      assert.equal(tab.page.url(), `https://${HOST}/console/`);
      await tab.page.waitForSelector('.user:text-is("kube:admin")');
      await tab.page.waitForSelector('section[aria-label=Nodes] >> text=Ready');
    });
    const client = JSON.parse(await host.must(['get', 'oauthclient', 'console', '-o', 'json']));
    assert.ok(client.redirectURIs.includes(`https://${HOST}/console/callback`), client.redirectURIs.join());
  });

  test('a disabled console has no files, no route and no OAuth client', async () => {
    await writeFile(join(root, 'etc/origin/bootstrap.yaml'), `${BOOTSTRAP}console: {enabled: false}\n`);
    await host.halt('SIGTERM');
    await host.start(180_000);
    await eventually('no route', 90_000, async () =>
      (await host.must(['get', 'routes,services,endpointslices', '-n', 'openshift-console', '-o', 'name'])) === ''
        ? true
        : undefined,
    );
    await eventually('no URL', 30_000, async () => ((await consoleUrl()) === '' ? true : undefined));
    const args = ['-sk', '-o', '/dev/null', '-w', '%{http_code}', CONSOLE];
    assert.equal((await host.inside('curl', args)).stdout, '404');
    assert.equal((await host.kubectl(['get', 'oauthclient', 'console'])).code, 1);
    const html = ['-sk', '-o', '/dev/null', '-w', '%{http_code}', '-H', 'accept: text/html', `${SERVER}/`];
    assert.notEqual((await host.inside('curl', html)).stdout, '302');
  });
});
