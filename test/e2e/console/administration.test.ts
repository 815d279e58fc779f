/** Administration of a host through the console: store, snapshots, uploads, and the rights of other users. */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { writeHelloImage } from '../../../build/hello-image.ts';
import { releaseFileName } from '../../../src/api/releases/manifest.ts';
import { type AnyObject, listAt } from '../../../src/console/data/api/resources.ts';
import { writeBundle } from '../../../src/openshift/updates/io/index.ts';
import { Appliance, eventually } from '../harness.ts';
import { helloImage } from '../images.ts';
import { type Tab, TestBrowser, withoutBrowser } from './browser.ts';

const skip = withoutBrowser() ?? false;
if (skip !== false) console.log(`skipped: ${skip}`);
const DEADLINE_MS = 30_000;
const DROPPED = 'dropped.example/app:1';

interface Answer {
  readonly status: number;
  readonly body: string;
}

describe('administration of a host', { timeout: 500_000, skip }, () => {
  let host: Appliance;
  let browser: TestBrowser;
  let scratch: string;
  let tab: Tab;
  let node: string;
  let path: string;
  let snapshots: string;
  let uploads: string;
  const addresses: string[] = [];

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'he-administration-'));
    host = await Appliance.create();
    await host.start(180_000);
    node = await host.must(['get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}']);
    path = `/api/v1/nodes/${node}/proxy/hyperedge`;
    snapshots = join(host.root, 'var/lib/origin/snapshots');
    uploads = join(host.root, 'var/lib/origin/images/uploads');
    browser = await TestBrowser.start(host);
    tab = await browser.newTab({ acceptDownloads: true });
    tab.context.setDefaultTimeout(DEADLINE_MS);
    tab.context.on('request', (request) => addresses.push(request.url()));
    const { stdout } = await host.hyperedge(['console', '--root', host.root]);
    await tab.page.goto(stdout.trim());
    await tab.page.waitForSelector('.frame h1');
  });
  after(async () => {
    await browser?.stop();
    await host?.stop();
    await rm(scratch, { recursive: true, force: true });
  });

  const open = async (page: string): Promise<void> => {
    await tab.page.evaluate(
      `{ const link = document.createElement('a'); link.href = ${JSON.stringify(`/console${page}`)}; document.body.append(link); link.click(); link.remove() }`,
    );
  };
  /** Sends a request from the page with the token of a service account, and a forged name. */
  const send = (method: string, target: string, token: string, body = 'undefined'): Promise<Answer> =>
    tab.page.evaluate(
      `fetch(${JSON.stringify(target)}, { method: ${JSON.stringify(method)}, body: ${body}, credentials: 'omit', headers: { authorization: ${JSON.stringify(`Bearer ${token}`)}, 'x-remote-user': 'evil' } })
        .then(async (answer) => ({ status: answer.status, body: (await answer.text()).slice(0, 2000) }))`,
    );
  const account = async (name: string, role: string): Promise<string> => {
    await host.must(['create', 'serviceaccount', name]);
    await host.must([
      'create',
      'clusterrolebinding',
      name,
      `--clusterrole=${role}`,
      `--serviceaccount=default:${name}`,
    ]);
    return (await host.must(['create', 'token', name])).trim();
  };

  const containerOf = (component: string): Promise<string> =>
    host
      .must([
        ...['get', 'pod', '-n', 'kube-system', `master-${component}-${node}`],
        ...['-o', 'jsonpath={.status.containerStatuses[0].containerID}'],
      ])
      .catch(() => '');

  test('shows the leader of the store', async () => {
    await open('/hosts?view=store');
    await tab.page.waitForSelector('section[aria-label="Members of the store"] td:text-is("leader")');
    await tab.page.waitForSelector('section[aria-label="Members of the store"] >> text=ok');
  });

  test('saves a snapshot and downloads the unchanged file', async () => {
    const { page } = tab;
    await page.click('button:text-is("Save now")');
    await page.waitForSelector(`text=/Revision \\d+ is saved on ${node}/`);
    const [name = ''] = (await readdir(snapshots)).filter((each) => each.endsWith('.db'));
    await page.waitForSelector(`td:text-is("${name}")`);
    await page.click('button:text-is("Download")');
    const [got] = await Promise.all([
      page.waitForEvent('download'),
      page.click('dialog[open] button:text-is("Download")'),
    ]);
    assert.equal(got.suggestedFilename(), name);
    const saved = join(scratch, name);
    await got.saveAs(saved);
    const digest = async (file: string): Promise<string> =>
      createHash('sha256')
        .update(await readFile(file))
        .digest('hex');
    assert.equal(await digest(saved), await digest(join(snapshots, name)));
    const status = await host.hyperedge(['snapshot', 'status', saved]);
    assert.equal(status.code, 0, status.stderr);
    assert.match(host.output, /snapshot download requested .*user=(?:kube:admin|"kube:admin")/);
    assert.deepEqual(
      (await readdir(snapshots)).filter((each) => !each.endsWith('.db')),
      [],
    );
  });

  test('refuses users without the right to run commands on the node', async () => {
    const [name = ''] = await readdir(snapshots);
    await host.must(['create', 'clusterrole', 'node-viewer', '--verb=get', '--resource=nodes/proxy']);
    for (const role of ['view', 'edit', 'admin', 'node-viewer']) {
      const token = await account(`test-${role}`, role);
      const list = await send('GET', `${path}/snapshots`, token);
      assert.equal(list.status, role === 'node-viewer' ? 200 : 403, `${role}: ${list.body}`);
      for (const [method, target] of [
        ['POST', `${path}/snapshots`],
        ['POST', `${path}/snapshots/${name}`],
        ['POST', `${path}/images`],
        ['POST', `${path}/bundles`],
        ['POST', `${path}/restart?component=controllers`],
      ] as const)
        assert.equal((await send(method, target, token)).status, 403, `${role} ${method} ${target}`);
      const read = await send('GET', `${path}/snapshots/${name}`, token);
      assert.equal(read.status, role === 'node-viewer' ? 405 : 403);
      assert.doesNotMatch(read.body, /SQLite/);
      const restarts = await send('GET', `${path}/restart`, token);
      assert.equal(restarts.status, role === 'node-viewer' ? 200 : 403);
    }
    assert.doesNotMatch(host.output, /component restart requested/);
    assert.equal((await readdir(snapshots)).length, 1);
  });

  test('serves no file outside of the directory of snapshots, and saves one snapshot at a time', async () => {
    const token = await account('test-root', 'cluster-admin');
    await writeFile(join(snapshots, '../outside.db'), 'outside');
    for (const name of ['..%2foutside.db', '%2e%2e', '..%252foutside.db', 'missing.db', '.snapshot-1-01234567.part']) {
      const { status, body } = await send('POST', `${path}/snapshots/${name}`, token);
      assert.ok(status === 404 || status === 400, `${name}: ${status}`);
      assert.doesNotMatch(body, /^outside/);
    }
    const both = await Promise.all([1, 2].map(() => send('POST', `${path}/snapshots`, token)));
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 429]);
    assert.match(host.output, /snapshot requested .*user="?system:serviceaccount:default:test-root/);
    assert.doesNotMatch(host.output, /user="?evil/);
  });

  test('uploads an image from a selected or dropped file, and reports damaged archives', async () => {
    const { page } = tab;
    const archive = join(scratch, 'hello.tar');
    await writeHelloImage(archive);
    await open('/storage?view=upload');
    await page.setInputFiles('input[name=archives]', archive);
    await page.click('button:text-is("Upload")');
    await page.waitForSelector(`ul[aria-label=Imported] >> text=${helloImage}`);
    const images = await host.hyperedge(['image', 'list', '--root', host.root]);
    assert.ok(images.stdout.includes(helloImage.replace(/:.*$/, '')), images.stdout);
    await page.evaluate(
      `{ const data = new DataTransfer(); data.items.add(new File(['no archive'], 'broken.tar'));
         document.querySelector('form').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })) }`,
    );
    await page.waitForSelector('text=broken.tar (10 B)');
    await page.click('button:text-is("Upload")');
    await page.waitForSelector('text=/archive: /');
    assert.deepEqual(await readdir(uploads), []);
  });

  test('removes the file of an upload that is aborted, and accepts the next upload', async () => {
    const token = (await host.must(['create', 'token', 'test-root'])).trim();
    const outcome = tab.page.evaluate(
      `{ const stop = new AbortController();
         globalThis.stopUpload = () => stop.abort();
         fetch(${JSON.stringify(`${path}/images?name=${DROPPED}`)}, { method: 'POST', signal: stop.signal, credentials: 'omit',
           body: new Blob(Array.from({ length: 64 }, () => new Uint8Array(4 << 20))), headers: { authorization: ${JSON.stringify(`Bearer ${token}`)} } })
           .then(() => 'completed', () => 'aborted') }`,
    );
    await eventually('a file of the upload', DEADLINE_MS, async () =>
      (await readdir(uploads)).length > 0 ? true : undefined,
    );
    await tab.page.evaluate('stopUpload()');
    assert.equal(await outcome, 'aborted');
    await eventually('removal of the file', DEADLINE_MS, async () =>
      (await readdir(uploads)).length === 0 ? true : undefined,
    );
    await eventually('the place of the upload', DEADLINE_MS, async () =>
      (await send('GET', `${path}/images`, token)).body.includes('"isBusy":false') ? true : undefined,
    );
  });

  test('answers a second upload while one runs, although its body is not read', async () => {
    const token = (await host.must(['create', 'token', 'test-root'])).trim();
    const first = tab.page.evaluate(
      `{ const stop = new AbortController();
         globalThis.stopUpload = () => stop.abort();
         const body = new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array(1 << 20)) });
         fetch(${JSON.stringify(`${path}/images`)}, { method: 'POST', signal: stop.signal, credentials: 'omit', duplex: 'half',
           body, headers: { authorization: ${JSON.stringify(`Bearer ${token}`)} } }).then(() => 'completed', () => 'aborted') }`,
    );
    await eventually('a file of the upload', DEADLINE_MS, async () =>
      (await readdir(uploads)).length > 0 ? true : undefined,
    );
    const body = 'new Blob(Array.from({ length: 64 }, () => new Uint8Array(1 << 20)))';
    const second = await send('POST', `${path}/images`, token, body);
    assert.equal(second.status, 429, second.body);
    assert.match(second.body, /another archive is being uploaded to this host/);
    await tab.page.evaluate('stopUpload()');
    assert.equal(await first, 'aborted');
    await eventually('the place of the upload', DEADLINE_MS, async () =>
      (await send('GET', `${path}/images`, token)).body.includes('"isBusy":false') ? true : undefined,
    );
  });

  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  /** A signed bundle whose executable does not run. */
  const bundleOf = async (version: string, storeLevel?: number): Promise<string> => {
    const content = Buffer.from(`release ${version}`);
    const source = join(scratch, `executable-${version}`);
    await writeFile(source, content);
    const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';
    const sha256 = createHash('sha256').update(content).digest('hex');
    const file = { name: releaseFileName(architecture), architecture, size: content.length, sha256 } as const;
    const manifest = { version, kubernetes: 'v1.36.0+hyperedge1', channels: [], files: [file] };
    const bundle = join(scratch, `${version}.bundle`);
    const level = storeLevel === undefined ? {} : { storeLevel };
    await writeBundle(bundle, { ...manifest, ...level }, new Map([[file.name, source]]), privateKey);
    return bundle;
  };

  test('uploads a signed update, and refuses an unsigned update', async () => {
    const { page } = tab;
    const bundle = await bundleOf('99.0.0');
    await open('/hosts?view=upload');
    await page.setInputFiles('input[name=archives]', bundle);
    await page.click('button:text-is("Upload")');
    await page.waitForSelector('text=/no key is trusted/');
    const key = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const keys = ['-n', 'openshift-config', 'create', 'configmap', 'release-keys', `--from-literal=lab.pem=${key}`];
    await host.must(keys);
    await page.click('button:text-is("Upload")');
    await page.waitForSelector('ul[aria-label=Imported] >> text=99.0.0');
    await eventually('an available update', DEADLINE_MS, async () =>
      (await host.must(['get', 'clusterversion', 'version', '-o', 'json'])).includes('"99.0.0"') ? true : undefined,
    );
  });

  test('shows the version and the phase of each host', async () => {
    const { page } = tab;
    await open('/hosts');
    await page.waitForSelector(`section[aria-label="Versions of the hosts"] tr:has-text("${node}") >> text=up to date`);
    await page.waitForSelector('text=No completed release precedes this one.');
  });

  test('rolls back to a release of the history, unless the release is missing or cannot read the store', async () => {
    const { page } = tab;
    const version = async (): Promise<AnyObject> =>
      JSON.parse(await host.must(['get', 'clusterversion', 'version', '-o', 'json']));
    const [latest] = listAt(await version(), 'status', 'history');
    const entry = (name: string): object => ({ ...latest, version: name, image: `example/release:${name}` });
    const history = [latest, entry('0.0.2')];
    const patch = ['patch', 'clusterversion', 'version', '--type=merge', '-p'];
    await host.must([...patch, JSON.stringify({ status: { history } }), '--subresource=status']);
    await open('/hosts');
    await page.waitForSelector('main >> text=Release 0.0.2 is not imported. Upload its bundle');
    await page.waitForSelector('button[aria-disabled=true]:has-text("Roll back to 0.0.2")');
    const load = async (level: number): Promise<void> => {
      await host.hyperedge(['bundle', 'remove', '--root', host.root, '0.0.2']);
      const bundle = await bundleOf('0.0.2', level);
      const { code, stderr } = await host.hyperedge(['bundle', 'import', '--root', host.root, '--force', bundle]);
      assert.equal(code, 0, stderr);
    };
    await load(1);
    await page.waitForSelector('text=/release 0.0.2 reads stores up to level 1, and the store has level/');
    await load(99);
    await page.click('button[aria-disabled=false]:has-text("Roll back to 0.0.2")');
    await page.click('dialog[open] button:text-is("Roll back to 0.0.2")');
    await page.waitForSelector('text=The return to 0.0.2 is requested.');
    // This host has no installed executable, so it abandons the update.
    await page.waitForSelector('section[aria-label="Versions of the hosts"] >> text=given up');
    await page.waitForSelector('section[aria-label="Versions of the hosts"] >> text=/run hyperedge install first/');
    const { spec } = await version();
    assert.deepEqual((spec as { desiredUpdate: unknown }).desiredUpdate, { version: '0.0.2', force: true });
    await host.must([...patch, JSON.stringify({ spec: { desiredUpdate: null } })]);
    await page.waitForSelector('section[aria-label="Versions of the hosts"] >> text=up to date');
  });

  test('restarts one known component at a time', async () => {
    const token = (await host.must(['create', 'token', 'test-root'])).trim();
    for (const query of [
      '',
      '?component=',
      '?component=kubelet',
      '?component=..%2fapi',
      '?component=api&component=etcd',
    ]) {
      const { status, body } = await send('POST', `${path}/restart${query}`, token);
      assert.equal(status, 400, `${query}: ${body}`);
      assert.match(body, /^component: /);
    }
    const started = await containerOf('controllers');
    const both = await Promise.all([1, 2, 3].map(() => send('POST', `${path}/restart?component=controllers`, token)));
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 429, 429]);
    const lines = (both.find(({ status }) => status === 200)?.body ?? '').trim().split('\n');
    assert.equal(JSON.parse(lines[0] ?? '').stage, 'restarting');
    assert.equal(JSON.parse(lines.at(-1) ?? '').result?.component, 'controllers');
    assert.notEqual(await containerOf('controllers'), started);
    assert.match(host.output, /component restart requested .*user="?system:serviceaccount:default:test-root/);
  });

  for (const [component, label] of [
    ['controllers', 'controllers'],
    ['etcd', 'store member'],
    ['api', 'API server'],
  ] as const)
    test(`restarts ${component} from the page of the node, which shows the outcome`, async () => {
      const { page } = tab;
      await open(`/nodes/${node}`);
      const started = await containerOf(component);
      await page.click(`button:text-is("Restart ${label}")`);
      await page.click(`dialog[open] button:text-is("Restart ${label}")`);
      await page.waitForSelector(`footer >> text=hyperedge master-restart ${component}`);
      await page.waitForSelector(`text=The restart of the ${label} is complete.`, { timeout: 3 * DEADLINE_MS });
      await eventually('another container', DEADLINE_MS, async () =>
        (await containerOf(component)) === started ? undefined : true,
      );
    });

  test('shows why the new revision of a component failed', async () => {
    const { page } = tab;
    const config = join(host.root, 'etc/origin/master/master-config.yaml');
    const text = await readFile(config, 'utf8');
    await writeFile(config, `${text}\nkubernetesMasterConfig: [`);
    await page.click('button:text-is("Restart API server")');
    await page.click('dialog[open] button:text-is("Restart API server")');
    const failure =
      'text=/Restart of the API server: api: revision \\d+ failed and revision \\d+ runs: .*correct the files/';
    await page.waitForSelector(failure, { timeout: 4 * DEADLINE_MS });
    await writeFile(config, text);
  });

  test('plots the flush times of the store', async () => {
    await open('/hosts?view=store');
    const { page } = tab;
    const plots = 'section[aria-label="Flush times"]';
    await page.waitForSelector(`${plots} >> text=/${node}: average .* ms, highest/`, { timeout: 3 * DEADLINE_MS });
    await page.waitForSelector(`${plots} canvas`);
  });

  test('the console keeps the token out of URLs, and causes no error in the page', () => {
    for (const token of tab.tokens) for (const address of addresses) assert.ok(!address.includes(token), address);
    assert.deepEqual(tab.faults, []);
  });
});
