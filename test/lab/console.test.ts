/**
 * The web console on three hosts, each a master and a node, in chromium on the network of the first host. Journeys use
 * the browser only; kubectl verifies. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { busyboxLayer, writeDockerArchive } from '../../build/docker-archive.ts';
import { releaseFileName } from '../../src/api/releases/manifest.ts';
import { digestOf, writeBundle } from '../../src/openshift/updates/io/index.ts';
import { NEWEST_LEVEL } from '../../src/store/index.ts';
import { accessibilityFaults, type Tab, TestBrowser, withoutBrowser } from '../e2e/console/browser.ts';
import { eventually, executable, projectRoot, run } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = (await whyNoNspawn()) ?? withoutBrowser();
if (missing !== undefined) console.log(`not run: ${missing}`);

const FORMER = '0.1.0';
const RELEASE = '0.2.0';
/** Each of three hosts must be healthy for 60 s. */
const ROLLED_MS = 700_000;
/** The last host must be healthy for 60 s after its page shows the new version. */
const COMPLETED_MS = 240_000;
const IMAGE = 'lab.local/greeter:1';
/** The kubelet's controller reports a host without a link after this time at the latest. */
const NOTICED_MS = 30_000;
const DROP_IN = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nupdates: {healthyWithin: 60s}\n';
const policy = (name: string, spec: object): object => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace: 'default' },
  spec,
});
/** `greeter` only accepts connections of `client`, on its port. */
const POLICIES = {
  nobody: policy('nobody', { podSelector: {}, policyTypes: ['Ingress'] }),
  'greeter-from-client': policy('greeter-from-client', {
    podSelector: { matchLabels: { app: 'greeter' } },
    ingress: [{ from: [{ podSelector: { matchLabels: { app: 'client' } } }], ports: [{ port: 8080 }] }],
  }),
};
const MEMBERS = 'section[aria-label="Members of the store"]';
const RING = 'section[aria-label="Gossip ring"]';
const VERSIONS = 'section[aria-label="Versions of the hosts"]';

describe('console of three hosts', { skip: missing ?? false, timeout: 2_400_000 }, () => {
  let cluster: LabCluster;
  let a: NspawnHost;
  let browser: TestBrowser;
  let tab: Tab;
  let work = '';
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');

  before(async () => {
    work = await mkdtemp(join(tmpdir(), 'he-console-'));
    const build = [join(projectRoot, 'build/package.ts'), '--release', RELEASE, '--output', join(work, RELEASE)];
    const built = await run(process.execPath, build, { timeoutMs: 300_000 });
    assert.equal(built.code, 0, built.stderr);
    cluster = await LabCluster.formed({ masters: 3, nodes: 0 }, 'console');
    a = cluster.host(0);
    const archive = join(work, 'greeter.tar');
    const Cmd = ['/bin/sh', '-c', 'echo greeter has started; mkdir /www; exec httpd -f -p 8080 -h /www'];
    await writeDockerArchive(archive, [
      { tag: IMAGE, layers: [await busyboxLayer()], config: { Env: ['PATH=/bin'], Cmd, WorkingDir: '/' } },
    ]);
    for (const host of cluster.hosts) {
      await run('cp', [archive, join(host.root, 'root/greeter.tar')]);
      await host.must('hyperedge', ['image', 'import', '/root/greeter.tar'], { timeoutMs: 120_000 });
      const directory = join(host.root, 'etc/origin/bootstrap.yaml.d');
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, '50-updates.yaml'), DROP_IN, { mode: 0o600 });
    }
    browser = await TestBrowser.start({ holderPid: a.pid1 });
    tab = await browser.newTab({ viewport: { width: 1280, height: 900 } });
    await tab.page.goto((await a.must('hyperedge', ['console'])).trim());
    await tab.page.waitForSelector('.frame h1');
  });
  after(async () => {
    await browser?.stop();
    await cluster?.stop();
    await rm(work, { recursive: true, force: true });
  });

  const page = (name: string): Promise<void> => tab.page.click(`nav a:text-is("${name}")`);
  const view = (name: string): Promise<void> => tab.page.click(`main button:text-is("${name}")`);
  const create = async (name: string, image: string, replicas: number): Promise<void> => {
    await page('Create');
    await tab.page.fill('input[name=name]', name);
    await tab.page.fill('input[name=image]', image);
    await tab.page.fill('input[name=replicas]', String(replicas));
    await tab.page.fill('input[name=port]', '8080');
    await tab.page.click('form button:text-is("Create")');
    await tab.page.waitForSelector(`h1:text-is("Deployment default/${name}")`);
  };

  const apply = async (object: object): Promise<void> => {
    await page('Create');
    await view('YAML');
    await tab.page.click('.cm-content');
    for (const key of ['Control+A', 'Delete']) await tab.page.keyboard.press(key);
    // The text is inserted as one line, because chromium adds style attributes to an insertion of several lines,
    // which the content security policy forbids.
    await tab.page.keyboard.insertText(JSON.stringify(object));
    await view('Apply');
  };

  test('runs an application created with the form, and explains why another application cannot run', async () => {
    await create('greeter', IMAGE, 3);
    await tab.page.waitForSelector('.ready:text-is("3 of 3")');
    await create('broken', 'registry.invalid/missing:1', 1);
    const reason = 'section[aria-label="Reason of the failure"]';
    await tab.page.waitForSelector(
      `${reason} >> text=Container broken: the image registry.invalid/missing:1 cannot be fetched`,
    );
    await tab.page.waitForSelector(`${reason} >> text=/^Fix: /`);
    assert.deepEqual(await accessibilityFaults(tab.page), []);
    await page('Overview');
    await tab.page.waitForSelector('main li >> text=/cannot be fetched: the registry cannot be reached/');
    await tab.page.click('main li a:has-text("Pod default/broken-")');
    await tab.page.waitForSelector('h1:has-text("Pod default/broken-")');
    await page('Workloads');
    await tab.page.click('main a:text-is("broken")');
    await tab.page.click('button:text-is("Delete")');
    await tab.page.click('dialog button:text-is("Delete")');
    await tab.page.waitForSelector('h1:text-is("Workloads")');
    await tab.page.waitForSelector('main a:text-is("broken")', { state: 'detached' });
    assert.equal(await a.mustKubectl(['get', 'deployments', '-o', 'name']), 'deployment.apps/greeter\n');
    const services = await a.mustKubectl(['get', 'services', '-l', 'app', '-o', 'name']);
    assert.equal(services, 'service/greeter\n');
    await tab.page.click('main a:text-is("greeter")');
    await tab.page.click('table a:has-text("greeter-") >> nth=0');
    await view('Logs');
    await tab.page.waitForSelector('.log >> text=greeter has started');
  });

  test('draws which pods of a namespace may connect to each other under its network policies', async () => {
    await create('client', IMAGE, 1);
    for (const [name, object] of Object.entries(POLICIES)) {
      await apply(object);
      await eventually(`policy ${name}`, 30_000, async () =>
        (await a.mustKubectl(['get', 'networkpolicies', '-o', 'name'])).includes(`/${name}\n`) ? true : undefined,
      );
    }
    await page('Network');
    await view('Reachability');
    await tab.page.selectOption('main select', 'default');
    await tab.page.waitForSelector(
      'tr:has-text("client (Deployment)"):has-text("greeter (Deployment)") >> text=TCP 8080',
    );
    const greeter = tab.page.locator('svg [role=button][aria-label^="greeter (Deployment) 3 pods"]');
    assert.match((await greeter.getAttribute('aria-label')) ?? '', /Reached by client \(Deployment\) on TCP 8080\.$/);
  });

  test('drains a node, shows the progress, and uncordons the node', async () => {
    const { name } = cluster.host(1);
    const onNode = ['get', 'pods', '-l', 'app=greeter', '--field-selector', `spec.nodeName=${name}`, '-o', 'name'];
    await page('Nodes');
    await tab.page.click(`main a:text-is("${name}")`);
    await view('Drain');
    await tab.page.click('dialog button:text-is("Start the drain")');
    await tab.page.waitForSelector('text=/Drain: \\d+ of \\d+ pods have ended/');
    await tab.page.waitForSelector(`.toast >> text=Node ${name} is drained.`);
    await tab.page.waitForSelector('main >> text=Cordoned');
    assert.equal(await a.mustKubectl(onNode), '');
    await view('Uncordon');
    await tab.page.waitForSelector('main >> text=Ready');
    await tab.page.waitForSelector('button:text-is("Cordon")');
  });

  test('shows a disconnected host in the overview, the store and the gossip ring, and shows when it is back', async () => {
    const cut = cluster.host(2);
    // The page queries the masters in its order, and the next master only if the previous one does not respond.
    await page('Hosts and updates');
    await view('Store');
    await tab.page.waitForSelector(`${MEMBERS} tr:has-text("${cut.name}") >> text=ok`);
    assert.equal(await tab.page.locator(`${MEMBERS} tbody tr`).count(), 3);
    await tab.page.waitForSelector(`${RING} tr:has-text("${cut.name}") >> text=alive`);
    assert.equal(await tab.page.locator(`${RING} tbody tr`).count(), 3);
    await cluster.lan.cable(cut, false);
    try {
      await cluster.line.step('lost link shown in the store and the ring', async () => {
        const options = { timeout: 2 * NOTICED_MS };
        await tab.page.waitForSelector(`${MEMBERS} tr:has-text("${cut.name}") >> text=unreachable`, options);
        await tab.page.waitForSelector(`${RING} tr:has-text("${cut.name}") >> text=dead`, options);
      });
      await view('Hosts');
      await tab.page.waitForSelector(`main tr:has-text("${cut.name}") >> text=Unreachable`, { timeout: NOTICED_MS });
      await page('Overview');
      const nodes = `section[aria-label=Nodes] li:has-text("${cut.name}")`;
      await tab.page.waitForSelector(`${nodes} >> text=Unreachable`, { timeout: NOTICED_MS });
      await tab.page.waitForSelector('.health >> text=/need(?:s)? attention/');
    } finally {
      await cluster.lan.cable(cut, true);
    }
    await cluster.line.step('return shown on the overview', () =>
      tab.page.waitForSelector(`section[aria-label=Nodes] li:has-text("${cut.name}") >> text=Ready`),
    );
    await page('Hosts and updates');
    await view('Store');
    await tab.page.waitForSelector(`${MEMBERS} tr:has-text("${cut.name}") >> text=ok`);
    await tab.page.waitForSelector(`${RING} tr:has-text("${cut.name}") >> text=alive`);
    await cluster.untilReady(a, cluster.hosts);
    await cluster.untilVoters(a, cluster.hosts);
  });

  test('uploads an update, starts it, and shows its progress on each host in the same tab', async () => {
    const key = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const metadata = { name: 'release-keys', namespace: 'openshift-config' };
    await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'lab.pem': key } });
    await eventually('the key', 30_000, async () =>
      (await a.kubectl(['get', 'configmap', 'release-keys', '-n', 'openshift-config'])).code === 0 ? true : undefined,
    );
    await page('Hosts and updates');
    await view('Upload an update');
    await upload(RELEASE, join(work, RELEASE));
    await tab.page.click('a:text-is("Start the update")');
    await tab.page.waitForSelector(`text=All 3 hosts have version ${FORMER}.`);
    await view(`Update to ${RELEASE}`);
    await tab.page.click(`dialog button:text-is("Update to ${RELEASE}")`);
    await tab.page.waitForSelector(`${VERSIONS} >> text=waiting`);
    const steps = await phasesUntil(RELEASE);
    assert.match(steps.join(), /trying/);
    await tab.page.waitForSelector(`main li >> text=/^${RELEASE}: completed/`, { timeout: COMPLETED_MS });
    assert.equal(await tab.page.locator(`${VERSIONS} td:text-is("${RELEASE}")`).count(), 3);
    // The tab is the one that was opened before the update: its session and its watches continue.
    await page('Workloads');
    await tab.page.click('main a:text-is("greeter")');
    await tab.page.fill('input[type=number]', '2');
    await view('Scale');
    await tab.page.waitForSelector('.ready:text-is("2 of 2")');
    assert.deepEqual(await versions(), new Set([RELEASE]));
  });

  test('rolls all hosts back to the former release, which is uploaded first', async () => {
    await page('Hosts and updates');
    await tab.page.waitForSelector(`button[aria-disabled=true]:text-is("Roll back to ${FORMER}")`);
    await tab.page.waitForSelector(`main >> text=Release ${FORMER} is not imported.`);
    await tab.page.click(`a:text-is("Upload its bundle")`);
    await upload(FORMER, executable);
    await tab.page.click('a:text-is("Go to the versions")');
    await view(`Roll back to ${FORMER}`);
    await tab.page.click(`dialog button:text-is("Roll back to ${FORMER}")`);
    const steps = await phasesUntil(FORMER);
    assert.match(steps.join(), /trying/);
    await tab.page.waitForSelector(`main li:first-child >> text=/^${FORMER}: completed/`, { timeout: COMPLETED_MS });
    assert.deepEqual(await versions(), new Set([FORMER]));
    const [latest] = JSON.parse(await a.mustKubectl(['get', 'clusterversion', 'version', '-o', 'json'])).status.history;
    assert.deepEqual([latest.version, latest.state], [FORMER, 'Completed']);
    // The same tab continues: the replicas are those of the time before the roll-back, and can be changed.
    await page('Workloads');
    await tab.page.click('main a:text-is("greeter")');
    await tab.page.waitForSelector('.ready:text-is("2 of 2")');
    await tab.page.fill('input[type=number]', '3');
    await view('Scale');
    await tab.page.waitForSelector('.ready:text-is("3 of 3")');
    await cluster.untilVoters(a, cluster.hosts);
  });

  const versions = async (): Promise<Set<string>> =>
    new Set(
      await Promise.all(
        cluster.hosts.map(async (host) => JSON.parse(await host.must('hyperedge', ['status', '-o', 'json'])).version),
      ),
    );

  /** Uploads a signed bundle with the open form. */
  async function upload(version: string, program: string): Promise<void> {
    const name = releaseFileName('x64');
    const { size } = await stat(program);
    const files = [{ name, architecture: 'x64', size, sha256: await digestOf(program) } as const];
    const manifest = { version, kubernetes: 'v1.36.0+hyperedge1', channels: [], files, storeLevel: NEWEST_LEVEL };
    const bundle = join(work, `${version}.bundle`);
    await writeBundle(bundle, manifest, new Map([[name, program]]), privateKey);
    await tab.page.setInputFiles('input[name=archives]', bundle);
    await view('Upload');
    const imported = `ul[aria-label=Imported] >> text=${version}`;
    await tab.page.waitForSelector(imported, { timeout: 240_000 }).catch(async (error: unknown) => {
      throw new Error(`${String(error)}\n${await tab.page.textContent('body')}`);
    });
    await rm(bundle);
  }

  /** Waits until all hosts have this version. Returns the phases that the page has shown meanwhile. */
  async function phasesUntil(version: string): Promise<string[]> {
    await tab.page.waitForSelector(`${VERSIONS} >> text=waiting`);
    const phases = new Set<string>();
    await cluster.line.step(`all hosts change to ${version} in the browser`, () =>
      eventually(`version ${version} on all hosts`, ROLLED_MS, async () => {
        for (const text of await tab.page.locator(`${VERSIONS} tbody td:nth-child(3)`).allInnerTexts())
          phases.add(text);
        const isOver = ((await tab.page.textContent('#view')) ?? '').includes(`All 3 hosts have version ${version}.`);
        return isOver ? true : undefined;
      }),
    );
    return [...phases];
  }

  test('the console has neither a violation of the content security policy nor an uncaught error', () => {
    assert.deepEqual(tab.faults, []);
  });
});
