/**
 * The Debian package on a blank host: installation, upgrade, removal, purge. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { HELLO_IMAGE, writeHelloImage } from '../../build/hello-image.ts';
import { debName, writePackage } from '../../build/release/package-files.ts';
import { eventually, executable } from '../e2e/harness.ts';
import { copyAnotherBuild } from './support/another-build.ts';
import { NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const INSTALLED = '/usr/local/bin/hyperedge';
const CONFFILE = '/etc/origin/bootstrap.yaml.d/00-package.yaml';
const OLD = '0.0.9';
const NEW = '0.1.0';
const POD = `
apiVersion: v1
kind: Pod
metadata: {name: hello, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ${HELLO_IMAGE}
    command: [/bin/sh, -c, 'trap "exit 0" TERM; while :; do sleep 1 & wait $!; done']
`;

describe('Debian package', { skip: missing ?? false }, () => {
  let host: NspawnHost;
  let clean: Set<string>;

  before(async () => {
    host = await NspawnHost.create((line) => console.log(line), undefined, { blank: true });
    const architecture = process.arch as 'x64' | 'arm64';
    const other = join(host.root, 'root/another-build');
    await copyAnotherBuild(executable, other);
    for (const [version, program] of [
      [OLD, executable],
      [NEW, other],
    ] as const)
      await writePackage(join(host.root, 'root', debName(version, architecture)), {
        executable: program,
        architecture,
        version,
        epoch: 1_700_000_000,
        notes: `# hyperedge ${version}\n\n- x\n`,
      });
    await host.boot();
    clean = await tree();
  });
  after(() => host?.stop());

  /** Paths of the host except those that any system or apt itself changes. */
  async function tree(): Promise<Set<string>> {
    const found = await host.must('find', ['/', '-xdev', '-not', '-path', '/proc*', '-not', '-path', '/tmp/*']);
    const changing =
      /^\/(var\/(log\/(journal|wtmp|lastlog|btmp|apt|dpkg)|lib\/(systemd|dpkg|apt)|cache\/(apt|ldconfig|debconf)|tmp)|root\/)/;
    return new Set(found.split('\n').filter((path) => !changing.test(path)));
  }

  const apt = (...args: string[]): Promise<string> =>
    host.must('apt-get', ['-y', '-q', ...args], { timeoutMs: 400_000, env: { DEBIAN_FRONTEND: 'noninteractive' } });
  const deb = (version: string): string => `/root/${debName(version, process.arch as 'x64' | 'arm64')}`;
  const units = (): Promise<string> =>
    host.must('systemctl', ['list-units', '--plain', '--no-legend', 'hyperedge*', 'kubepods*']);
  const pod = (): Promise<string> =>
    eventually('a Ready pod', 90_000, async () => {
      const shown = await host.kubectl(['get', 'pod', 'hello', '-o', 'json'], { timeoutMs: 5_000 });
      if (shown.code !== 0) return undefined;
      const { status, metadata } = JSON.parse(shown.stdout);
      const ready = status.conditions?.find((each: { type: string }) => each.type === 'Ready')?.status === 'True';
      return ready ? `${metadata.uid} ${status.containerStatuses[0].containerID}` : undefined;
    });

  test('installing the Debian package starts no unit', async () => {
    console.log(await apt('install', deb(OLD)));
    assert.equal(await units(), '');
    assert.notEqual((await host.inside('systemctl', ['is-enabled', 'hyperedge'])).stdout, 'enabled\n');
    assert.match(await host.must('/usr/bin/hyperedge', ['version']), /^hyperedge /);
    assert.match(await host.must('/usr/lib/hyperedge/bin/kube-proxy', ['--help']), /^Usage: hyperedge proxy/);
  });

  test('hyperedge install of the Debian package runs a pod', async () => {
    const ran = await host.inside('hyperedge', ['install', '--timeout', '300'], { timeoutMs: 320_000 });
    assert.equal(ran.code, 0, `${ran.stdout}${ran.stderr}`);
    console.log(ran.stdout);
    await writeHelloImage(join(host.root, 'root/hello.tar'));
    await host.must('hyperedge', ['image', 'import', '/root/hello.tar']);
    await host.mustKubectl(['apply', '-f', '-'], { input: POD });
    await pod();
  });

  test('an upgrade of the Debian package keeps pods and edited configuration', async () => {
    const before = await pod();
    await host.must('sh', ['-c', `echo '# edited' >> ${CONFFILE}`]);
    const pid = await host.must('systemctl', ['show', 'hyperedge', '-p', 'MainPID']);
    console.log(await apt('install', deb(NEW)));
    assert.notEqual(await host.must('systemctl', ['show', 'hyperedge', '-p', 'MainPID']), pid);
    await host.must('cmp', ['/root/another-build', INSTALLED]);
    assert.equal(await pod(), before);
    assert.match(await host.must('cat', [CONFFILE]), /# edited/);
  });

  test('removing the Debian package stops all pods and keeps the data for a later installation', async () => {
    const before = (await pod()).split(' ')[0];
    console.log(await apt('remove', 'hyperedge'));
    assert.equal(await units(), '');
    for (const path of [INSTALLED, '/etc/systemd/system/hyperedge.service', '/usr/bin/hyperedge'])
      assert.notEqual((await host.inside('test', ['-e', path])).code, 0, path);
    await host.must('test', ['-e', '/etc/origin/master/admin.kubeconfig']);
    await apt('install', deb(NEW));
    assert.equal(await units(), '');
    await host.must('hyperedge', ['install', '--timeout', '300'], { timeoutMs: 320_000 });
    assert.equal((await pod()).split(' ')[0], before);
  });

  test('purge of the Debian package leaves nothing on the host', async () => {
    console.log(await apt('purge', 'hyperedge'));
    const left = [...(await tree())].filter((path) => !clean.has(path));
    assert.deepEqual(left, []);
    assert.equal(await units(), '');
    assert.equal(await host.nft(['list', 'ruleset']), '');
    assert.equal((await host.inside('dpkg', ['-s', 'hyperedge'])).code, 1);
  });
});
