/**
 * From an offline bundle to a running application on a blank host without a network. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { open, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { HELLO_IMAGE, writeHelloImage } from '../../build/hello-image.ts';
import { PRODUCT_VERSION } from '../../src/base/versions/version.ts';
import { createOffline } from '../../src/host/install/offline-bundle.ts';
import { eventually, executable } from '../e2e/harness.ts';
import { copyAnotherBuild } from './support/another-build.ts';
import { NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const PROGRAM = `/root/${basename(executable)}`;
const BUNDLE = '/root/stick/site.offline';
const APPLICATION = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello, namespace: default}
spec:
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: ${HELLO_IMAGE}
        imagePullPolicy: Never
        command: [/bin/sh, -c, 'trap "exit 0" TERM; while :; do sleep 1 & wait $!; done']
`;

describe('offline bundle', { skip: missing ?? false }, () => {
  let host: NspawnHost;
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');

  before(async () => {
    host = await NspawnHost.create((line) => console.log(line), undefined, { blank: true });
    const at = (name: string): string => join(host.root, 'root/stick', name);
    await host.boot();
    await host.must('mkdir', ['/root/stick']);
    await writeHelloImage(at('hello.tar'));
    await writeFile(at('hello.yaml'), APPLICATION);
    await writeFile(at('key.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
    // The bundle has another build than the one that is started: it installs its own.
    await copyAnotherBuild(executable, at('program'));
    await createOffline({
      bundle: at('site.offline'),
      version: PRODUCT_VERSION,
      key: privateKey,
      executables: new Map([[process.arch, at('program')]]),
      packages: [],
      images: [at('hello.tar')],
      manifests: [at('hello.yaml')],
      join: undefined,
    });
    await host.must('sh', ['-c', 'sha256sum < /root/stick/program > /root/digest']);
    await host.must('sh', ['-c', 'rm /root/stick/program /root/stick/hello.tar /root/stick/hello.yaml']);
  });
  after(() => host?.stop());

  const install = (bundle: string, ...args: string[]) =>
    host.inside(PROGRAM, ['install', '--from', bundle, '--timeout', '300', ...args], { timeoutMs: 400_000 });
  const key = ['--key', '/root/stick/key.pub'];

  test('rejects a bundle that is damaged, truncated or signed with an untrusted key, and installs nothing', async () => {
    const bundle = join(host.root, BUNDLE);
    const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' });
    await writeFile(join(host.root, 'root/other.pub'), other);
    const { size } = await stat(bundle);
    await host.must('cp', [BUNDLE, '/root/damaged']);
    const damaged = await open(join(host.root, 'root/damaged'), 'r+');
    await damaged.write(Buffer.from('damage'), 0, 6, size - 4_096).finally(() => damaged.close());
    await host.must('sh', ['-c', `head -c ${size - 10_000} ${BUNDLE} > /root/short`]);
    for (const [path, args, expected] of [
      [BUNDLE, ['--key', '/root/other.pub'], /manifest\.json\.sig: no trusted key has signed the manifest$/],
      [BUNDLE, [], /no key is trusted; give --key FILE with the public key/],
      ['/root/damaged', key, /\/root\/damaged: hello\.(?:tar|yaml): /],
      ['/root/short', key, /\/root\/short: hello\.\w+: the file is truncated; copy it again$/],
      ['/root/none', key, /cannot read \/root\/none/],
    ] as const) {
      const ran = await install(path, ...args);
      assert.equal(ran.code, 1, `${ran.stdout}${ran.stderr}`);
      assert.match(ran.stderr.trim(), expected);
      assert.equal(ran.stderr.trim().split('\n').length, 1, ran.stderr);
    }
    for (const path of ['/etc/origin', '/usr/local/bin/hyperedge', '/etc/systemd/system/hyperedge.service'])
      assert.notEqual((await host.inside('test', ['-e', path])).code, 0, path);
    assert.equal(await host.must('find', ['/var/cache/hyperedge', '-name', '.offline*']), '');
  });

  test('hyperedge version --check reports that the bundle contains another build of the same version', async () => {
    const ran = await host.inside(PROGRAM, ['version', '--check', BUNDLE, ...key]);
    console.log(ran.stdout);
    assert.equal(ran.code, 1, ran.stderr);
    assert.match(ran.stdout, /another build of the same version/);
  });

  test('installs from a bundle without a network and runs the application of the bundle', async () => {
    const began = performance.now();
    const ran = await install(BUNDLE, ...key);
    assert.equal(ran.code, 0, `${ran.stdout}${ran.stderr}`);
    console.log(ran.stdout);
    const running = await eventually('a running application', 120_000, async () => {
      const shown = await host.kubectl(['get', 'deployment', 'hello', '-o', 'json'], { timeoutMs: 5_000 });
      if (shown.code !== 0) return undefined;
      return JSON.parse(shown.stdout).status?.readyReplicas === 1 ? true : undefined;
    });
    assert.ok(running);
    console.log(`application runs ${((performance.now() - began) / 1000).toFixed(1)} s after the start of install`);
    const digest = await readFile(join(host.root, 'root/digest'), 'utf8');
    assert.equal(await host.must('sh', ['-c', 'sha256sum < /usr/local/bin/hyperedge']), digest);
    assert.equal(await host.must('find', ['/var/cache/hyperedge', '-name', '.offline*']), '');
  });

  test('a second installation from the same bundle detects the installed executable and changes nothing', async () => {
    const compared = await host.must('hyperedge', ['version', '--check', BUNDLE, ...key]);
    console.log(compared);
    assert.match(compared, /: same$/m);
    const pid = await host.must('systemctl', ['show', 'hyperedge', '-p', 'MainPID']);
    const again = await host.must('hyperedge', ['install', '--from', BUNDLE, ...key], { timeoutMs: 300_000 });
    assert.match(again, /all files are in place/);
    assert.equal(await host.must('systemctl', ['show', 'hyperedge', '-p', 'MainPID']), pid);
  });
});
