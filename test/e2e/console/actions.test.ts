/** Actions of the console on a running cluster: form, roll-back, files, debug container, palette and editor. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { unpackTar } from 'modern-tar';
import { Appliance, eventually } from '../harness.ts';
import { helloImage, importHelloImage } from '../images.ts';
import { pod } from '../pods/lab.ts';
import { type Tab, TestBrowser, withoutBrowser } from './browser.ts';

const skip = withoutBrowser() ?? false;
if (skip !== false) console.log(`skipped: ${skip}`);
const DEADLINE_MS = 30_000;
/** Content and names that a page or a shell could interpret. */
const HOSTILE = '<img src=x onerror="document.title=1">';

describe('actions of the console', { timeout: 300_000, skip }, () => {
  let host: Appliance;
  let browser: TestBrowser;
  let scratch: string;
  let socat: ChildProcess | undefined;
  let tab: Tab;
  const addresses: string[] = [];

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'he-actions-'));
    host = await Appliance.create();
    const board = join(host.root, 'board');
    await mkdir(join(host.root, 'etc/origin'), { recursive: true });
    await writeFile(
      join(host.root, 'etc/origin/bootstrap.yaml'),
      `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nfixtures:\n  board: {type: serial, path: ${board}}\n` +
        'rigPower:\n  psu-on: [/bin/echo, supply on]\n',
    );
    // A simulated board: a pseudo-terminal that echoes its input.
    socat = spawn('socat', [`PTY,link=${board},rawer`, 'EXEC:cat'], { stdio: 'ignore' });
    await host.start(180_000);
    await importHelloImage(host, scratch);
    browser = await TestBrowser.start(host);
    tab = await browser.newTab({ acceptDownloads: true });
    tab.context.setDefaultTimeout(DEADLINE_MS);
    tab.context.on('request', (request) => addresses.push(request.url()));
    tab.page.on('websocket', (socket) => addresses.push(socket.url()));
    await host.must(['apply', '-f', '-'], { input: JSON.stringify(pod('target', {})) });
    const { stdout } = await host.hyperedge(['console', '--root', host.root]);
    await tab.page.goto(stdout.trim());
    await tab.page.waitForSelector('.frame h1');
  });
  after(async () => {
    await browser?.stop();
    await host?.stop();
    socat?.kill();
    await rm(scratch, { recursive: true, force: true });
  });

  const open = async (path: string): Promise<void> => {
    await tab.page.evaluate(
      `{ const link = document.createElement('a'); link.href = ${JSON.stringify(`/console${path}`)}; document.body.append(link); link.click(); link.remove() }`,
    );
  };
  const inTerminal = (text: string): Promise<true> =>
    eventually(`${text} in the terminal`, DEADLINE_MS, async () =>
      (await tab.page.textContent('.terminal'))?.includes(text) === true ? true : undefined,
    );
  const inTarget = (script: string): Promise<string> => host.must(['exec', 'target', '--', 'sh', '-c', script]);

  test('creates an application from the form, and rolls the application back to its first revision', async () => {
    const { page } = tab;
    await open('/create');
    await page.fill('input[name=name]', 'web');
    await page.fill('input[name=image]', 'not an image');
    await page.click('button:text-is("Create")');
    await page.waitForSelector('text=Use an image such as');
    await page.fill('input[name=image]', helloImage);
    await page.fill('input[name=port]', '8080');
    await page.click('button:text-is("Create")');
    await page.waitForURL(/\/workloads\/deployments\/default\/web$/);
    assert.equal(await host.must(['get', 'service', 'web', '-o', 'jsonpath={.spec.ports[0].port}']), '8080');
    await host.must(['set', 'env', 'deployment/web', 'BROKEN=yes']);
    await page.waitForSelector('text=new revision 2');
    await page.click('button:text-is("Roll back")');
    await page.click('dialog button:has-text("Show the changes")');
    await page.waitForSelector('dialog .removed >> text=BROKEN');
    await page.click('dialog button:has-text("Roll back to 1")');
    await eventually('the first template', DEADLINE_MS, async () =>
      (await host.must(['get', 'deployment', 'web', '-o', 'json'])).includes('BROKEN') ? undefined : true,
    );
    await page.waitForSelector('text=new revision 3');
  });

  test('copies files between browser and container, with hostile names and without links', async () => {
    const { page } = tab;
    await eventually('the pod', DEADLINE_MS, async () =>
      (await inTarget('mkdir -p /tmp /data/dir && echo ready')).includes('ready') ? true : undefined,
    );
    await open('/pods/default/target');
    await page.click('button:text-is("Files")');
    const name = `--to-command=reboot ${HOSTILE.replaceAll('/', '')}.txt`;
    const file = join(scratch, name);
    await writeFile(file, 'up'.repeat(300_000));
    await page.setInputFiles('input[name=files]', file);
    await page.fill('input[name=directory]', '../tmp');
    await page.click('button:text-is("Upload")');
    await page.waitForSelector('text=must be absolute');
    await page.fill('input[name=directory]', '/tmp');
    await page.click('button:text-is("Upload")');
    await page.waitForSelector('text=1 file written to /tmp');
    assert.equal((await inTarget('cat /tmp/--to* | wc -c')).trim(), '600000');

    await inTarget('echo hello > /data/dir/file && ln -sf /etc/passwd /data/dir/link && ln -sf dir /data/alias');
    const download = async (path: string): Promise<Buffer> => {
      await page.fill('input[name=path]', path);
      const [got] = await Promise.all([page.waitForEvent('download'), page.click('button:text-is("Download")')]);
      const saved = join(scratch, 'downloaded');
      await got.saveAs(saved);
      return readFile(saved);
    };
    assert.equal((await download('/data/dir/file')).toString(), 'hello\n');
    const entries = await unpackTar(await download('/data/dir'));
    assert.deepEqual(entries.map(({ header }) => `${header.type} ${header.name}`).sort(), [
      'directory dir/',
      'file dir/file',
    ]);
    await page.fill('input[name=path]', '/data/alias');
    await page.click('button:text-is("Download")');
    await page.waitForSelector('text=is a symlink to dir');
    await page.fill('input[name=path]', '/data/missing');
    await page.click('button:text-is("Download")');
    await page.waitForSelector('text=No such file');
  });

  test('adds a debug container and opens a terminal in the container', async () => {
    const { page } = tab;
    await open('/pods/default/target');
    await page.click('button:text-is("Debug")');
    await page.fill('input[name=image]', helloImage);
    await page.click('button:has-text("Add a debug container")');
    await page.waitForSelector('.terminal .xterm');
    await page.waitForSelector('text=connected');
    await page.keyboard.type('printf "\\033]0;evil\\007%s\\n" sum-$((40+2))\n');
    await inTerminal('sum-42');
    assert.notEqual(await page.title(), 'evil');
    // Keys that a phone does not have.
    await page.setViewportSize({ width: 360, height: 740 });
    await page.keyboard.type('sleep 1000\n');
    await page.click('.touch-keys button:text-is("Ctrl-C")');
    await page.keyboard.type('sleep 1001\n');
    await page.click('.touch-keys button:text-is("Ctrl")');
    await page.keyboard.type('c');
    await page.keyboard.type('echo stopped-$((40+3))\n');
    await inTerminal('stopped-43');
    await page.setViewportSize({ width: 1280, height: 720 });
    const containers = await host.must(['get', 'pod', 'target', '-o', 'jsonpath={.spec.ephemeralContainers[*].image}']);
    assert.equal(containers, helloImage);
  });

  test('finds an object in the palette, and opens its page', async () => {
    const { page } = tab;
    await open('/nodes');
    await page.waitForSelector('h1:text-is("Nodes")');
    await page.keyboard.press('Control+k');
    await page.waitForSelector('dialog.palette[open]');
    await page.keyboard.type('po targ');
    await page.waitForSelector('[role=option][aria-selected=true] >> text=default/target');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/pods\/default\/target$/);
  });

  test('marks the line of an error of a dry run, and describes the field at the cursor', async () => {
    const { page } = tab;
    await open('/create');
    await page.click('button:text-is("YAML")');
    await page.click('.cm-content');
    await page.keyboard.press('Control+End');
    await page.keyboard.type('wrong: 1');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    await page.waitForSelector('text=data (map of string)');
    await page.click('button:text-is("Check")');
    await page.waitForSelector('text=/Line 8: (?:wrong: field not declared|unknown field "wrong")/');
    await page.waitForSelector('.cm-lint-marker-error');
    assert.doesNotMatch(await host.must(['get', 'configmaps', '-o', 'name']), /example/);
  });

  test('shows what another user of the console changed before the change is overwritten', async () => {
    const { page } = tab;
    const applied = async (value: string): Promise<void> => {
      const metadata = { name: 'shared', namespace: 'default' };
      const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value } };
      const apply = ['apply', '--server-side', '--field-manager=hyperedge-console', '-f', '-'];
      await host.must(apply, { input: JSON.stringify(manifest) });
    };
    const value = (): Promise<string> => host.must(['get', 'configmap', 'shared', '-o', 'jsonpath={.data.value}']);
    await applied('first');
    await open('/resources/core/v1/configmaps/shared?ns=default');
    await page.click('.cm-content');
    await applied('second');
    await page.keyboard.press('Control+End');
    await page.keyboard.type('# mine');
    await page.click('button:text-is("Apply")');
    await page.waitForSelector('.card:has-text("has changed since you opened it") .added >> text=second');
    assert.equal(await value(), 'second');
    await page.click('button:text-is("Apply anyway")');
    await page.waitForSelector('.toast >> text=The objects are applied.');
    assert.equal(await value(), 'first');
  });

  test('claims a rig, switches its power and opens its serial console', async () => {
    const { page } = tab;
    const spec = {
      fixtures: [{ name: 'board', fixture: 'board', role: 'serial' }],
      console: { fixture: 'board' },
      power: { on: { command: 'psu-on' } },
    };
    const rig = { apiVersion: 'rig.hyperedge.dev/v1alpha1', kind: 'Rig', metadata: { name: 'bench' }, spec };
    await host.must(['apply', '-f', '-'], { input: JSON.stringify(rig) });
    await open('/rigs');
    await page.click('button:text-is("Claim bench")');
    await page.waitForURL(/\/rigclaims\/default\/console-/);
    await page.click('button:text-is("Power on")');
    await page.click('dialog button.main:text-is("Power on")');
    await page.waitForSelector('text=supply on');
    await page.waitForSelector('button[title*="This rig has no spec.power.off"]');
    await page.click('button:text-is("Open the console")');
    await page.waitForSelector('text=connected');
    await page.keyboard.type('board-speaks\n');
    await inTerminal('board-speaks');
    await page.click('button:has-text("Release console-")');
    await page.click('dialog button.main:has-text("Release console-")');
    await eventually('the rig to be free', DEADLINE_MS, async () =>
      (await host.must(['get', 'rigclaims', '-o', 'name'])).trim() === '' ? true : undefined,
    );
  });

  test('shows the use of the rig in a timeline, and its recording as text and as a file', async () => {
    const { page } = tab;
    await open('/rigs/bench');
    await page.waitForSelector('.timeline rect.series-1', { state: 'attached' });
    const use = page.locator('section[aria-label="Last uses"] tbody tr');
    await use.filter({ hasText: 'Released' }).waitFor();
    assert.match((await use.first().textContent()) ?? '', /^default\/console-\S+kube:admin\d{4}-/);
    await page.click('section[aria-label="Recordings of the consoles"] button:has-text("Show ")');
    await page.waitForSelector('pre.recording >> text=board-speaks');
    const button = 'section[aria-label="Recordings of the consoles"] button:has-text("Download ")';
    // Chromium ignores a second download of a page that begins more than five seconds after the click.
    const got = await eventually('the download', 90_000, async () => {
      const [begun] = await Promise.all([page.waitForEvent('download', { timeout: 15_000 }), page.click(button)]);
      return begun;
    });
    const saved = join(scratch, 'recording');
    await got.saveAs(saved);
    assert.match(await readFile(saved, 'utf8'), /board-speaks/);
    // The rights and inputs of the subresource.
    const path = '/apis/rig.hyperedge.dev/v1alpha1/rigs/bench/recordings';
    await host.must(['create', 'serviceaccount', 'tenant']);
    await host.must(['create', 'rolebinding', 'tenant', '--clusterrole=admin', '--serviceaccount=default:tenant']);
    const asTenant = await host.kubectl(['get', '--raw', path, '--as=system:serviceaccount:default:tenant']);
    assert.match(asTenant.stderr, /cannot get resource "rigs\/recordings"/);
    for (const file of ['..%2F..%2Fetc%2Fpasswd', '2026-01-01T000000-000Z.log', ''])
      await assert.rejects(host.must(['get', '--raw', `${path}?file=${file}`]));
    await assert.rejects(host.must(['get', '--raw', path.replace('bench', 'other')]), /not found/);
  });

  test('creates a join command whose secret appears in no URL', async () => {
    const { page } = tab;
    await open('/hosts?view=join');
    await page.click('button:has-text("Create a join command")');
    const command = (await page.textContent('.card pre')) ?? '';
    const [, id = '', secret = ''] =
      /--token ([a-z0-9]{6})\.([a-z0-9]{16}) --ca-hash sha256:[0-9a-f]{64}$/.exec(command) ?? [];
    assert.notEqual(secret, '', command);
    await page.waitForSelector('svg.qr');
    await page.click(`.card button:has-text("Revoke ${id}")`);
    await page.click(`dialog button.main:has-text("Revoke ${id}")`);
    await page.waitForSelector(`text=The token ${id} is revoked`);
    assert.doesNotMatch(await host.must(['get', 'secrets', '-n', 'kube-system', '-o', 'name']), new RegExp(id));
    assert.ok(addresses.some((address) => address.startsWith('wss:')));
    for (const hidden of [secret, ...tab.tokens])
      assert.deepEqual(
        addresses.filter((address) => address.includes(hidden.replace(/^sha256~/, ''))),
        [],
      );
    assert.deepEqual(tab.faults, []);
  });
});
