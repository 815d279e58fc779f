/**
 * A blank Debian host with only the executable: install, a pod, a reboot, an upgrade, uninstall. Run by `npm run
 * test:lab`.
 */
import assert from 'node:assert/strict';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { HELLO_IMAGE, writeHelloImage } from '../../build/hello-image.ts';
import { eventually, executable, type Ran } from '../e2e/harness.ts';
import { copyAnotherBuild } from './support/another-build.ts';
import { NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const DOWNLOAD = `/root/${basename(executable)}`;
const INSTALLED = '/usr/local/bin/hyperedge';
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

describe('blank host', { skip: missing ?? false }, () => {
  let host: NspawnHost;

  before(async () => {
    host = await NspawnHost.create((line) => console.log(line), undefined, { blank: true });
    await host.boot();
  });
  after(() => host?.stop());

  /** All paths in the host's file system with their types, except those that any running system changes. */
  const tree = async (): Promise<Set<string>> => {
    const found = await host.must('find', ['/', '-xdev', '-not', '-path', '/proc*', '-not', '-path', '/tmp/*']);
    const changing = /^\/(var\/(log\/(journal|wtmp|lastlog|btmp)|lib\/systemd|tmp|cache\/ldconfig)|root\/)/;
    return new Set(found.split('\n').filter((path) => !changing.test(path)));
  };
  const links = async (): Promise<string> => (await host.must('ls', ['/sys/class/net'])).trim();
  const cgroups = async (): Promise<string> =>
    host.must('find', ['/sys/fs/cgroup', '(', '-name', 'kubepods*', '-o', '-name', 'hyperedge*', ')']);

  const install = (args: readonly string[] = [], program = DOWNLOAD): Promise<Ran> =>
    host.inside(program, ['install', ...args], { timeoutMs: 200_000 });

  const hello = (): Promise<string> =>
    eventually('a Ready pod', 60_000, async () => {
      const shown = await host.kubectl(['get', 'pod', 'hello', '-o', 'json'], { timeoutMs: 5_000 });
      if (shown.code !== 0) return undefined;
      const { status, metadata } = JSON.parse(shown.stdout);
      const ready = status.conditions?.find((each: { type: string }) => each.type === 'Ready')?.status === 'True';
      return ready ? `${metadata.uid} ${status.containerStatuses[0].restartCount}` : undefined;
    });

  let clean: Set<string>;
  let cleanLinks: string;

  test('a blank host has no container runtime and no network programs before the installation', async () => {
    for (const program of ['runc', 'conmon', 'nft', 'ip', 'socat'])
      assert.notEqual((await host.inside('sh', ['-c', `command -v ${program}`])).code, 0, program);
    clean = await tree();
    cleanLinks = await links();
  });

  test('an installation with invalid flags fails with one line that names the fix, and leaves no files', async () => {
    const token = 'abcdef.0123456789abcdef';
    const hash = `sha256:${'0'.repeat(64)}`;
    const cases: readonly [readonly string[], number, RegExp][] = [
      [['--join', 'https://10.9.9.9:8443'], 2, /give --join, --token and --ca-hash together/],
      [['--roles', 'master,boss'], 1, /^hyperedge: --roles: must be one of master, etcd, node, not "boss"$/],
      [
        ['--join', 'https://10.9.9.9:8443', '--token', 'secret', '--ca-hash', hash],
        1,
        /^hyperedge: --token: the value is not accepted; give a token of "hyperedge token create"$/,
      ],
      [
        ['--join', '10.9.9.9', '--token', token, '--ca-hash', hash],
        1,
        /^hyperedge: --join: "10\.9\.9\.9" is not accepted; give the URL of an API server/,
      ],
      [['--address', '10.9.9.9'], 1, /^hyperedge: --address: no link of this host has 10\.9\.9\.9; give one of /],
      [['--config', '/none.yaml'], 1, /^hyperedge: --config: cannot read \/none\.yaml/],
      [
        ['--host-tools'],
        1,
        /^hyperedge: this host lacks runc, conmon, nft, ip, bridge and hostTools is set; run apt-get install/,
      ],
      [['--node-name', 'x'], 1, /^hyperedge: port 8443 for the API server is in use; free it or set ports\.api/],
    ];
    await host.must('systemd-run', ['--unit=taken', 'systemd-socket-activate', '-l', '8443', '/bin/cat']);
    await eventually('a taken port', 10_000, async () =>
      /:20FB /.test(await host.must('cat', ['/proc/net/tcp', '/proc/net/tcp6'])) ? true : undefined,
    );
    try {
      for (const [args, code, expected] of cases) {
        const ran = await install(args);
        assert.equal(ran.code, code, ran.stderr);
        assert.match(ran.stderr.trim(), expected);
        assert.equal(ran.stderr.trim().split('\n').length, 1, ran.stderr);
      }
    } finally {
      await host.must('systemctl', ['stop', 'taken']);
    }
    const before = await tree();
    assert.deepEqual(
      [...before].filter((path) => !clean.has(path) && !path.startsWith('/var/cache/hyperedge')),
      [],
    );
  });

  test('hyperedge install makes a blank host Ready with no other file than the executable', async () => {
    const begin = performance.now();
    const ran = await install(['--node-name', 'blank-1', '--address', host.address]);
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    assert.equal(ran.code, 0, `${ran.stdout}${ran.stderr}${(await host.journal()).slice(-4_000)}`);
    assert.match(ran.stdout, /node blank-1 is Ready/);
    assert.match(ran.stdout, /What is next:/);
    console.log(`blank host Ready ${seconds} s after install`);
    assert.match(await host.mustKubectl(['get', 'nodes', '-o', 'wide']), /blank-1\s+Ready/);
    const shown = await host.must('systemctl', ['show', 'hyperedge', '-p', 'Type,Delegate,WatchdogUSec,Slice']);
    assert.deepEqual(shown.trim().split('\n').sort(), [
      'Delegate=yes',
      'Slice=hyperedge.slice',
      'Type=notify',
      'WatchdogUSec=1min',
    ]);
    assert.equal(await host.must('systemctl', ['is-enabled', 'hyperedge']), 'enabled\n');
    await host.must('master-logs', ['api', 'api', '--tail', '1']);
    assert.match(await host.must('hyperkube', ['kube-proxy', '--help']), /^Usage: hyperedge proxy/);
    assert.equal(await host.must('hyperedge', ['config', 'check']), '/etc/origin/bootstrap.yaml: ok\n');
  });

  test('kubectl exec passes standard input to a pod on an installed host', async () => {
    const archive = join(host.root, 'root/hello.tar');
    await writeHelloImage(archive);
    await host.must('hyperedge', ['image', 'import', '/root/hello.tar']);
    await host.mustKubectl(['apply', '-f', '-'], { input: POD });
    await hello();
    const output = await host.mustKubectl(['exec', '-i', 'hello', '--', '/bin/sh', '-c', 'cat'], { input: 'input' });
    assert.equal(output, 'input');
  });

  test('a second installation changes nothing, and an upgrade replaces the executable while the pod keeps running', async () => {
    const before = await hello();
    const pid = await host.must('systemctl', ['show', 'hyperedge', '-p', 'MainPID']);
    const again = await install(['--node-name', 'blank-1', '--address', host.address], INSTALLED);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, /all files are in place/);
    assert.equal(await host.must('systemctl', ['show', 'hyperedge', '-p', 'MainPID']), pid);

    await copyAnotherBuild(executable, join(host.root, 'root/upgrade'));
    const upgraded = await install([], '/root/upgrade');
    assert.equal(upgraded.code, 0, `${upgraded.stdout}${upgraded.stderr}`);
    assert.match(upgraded.stdout, /hyperedge\.service restarts with the new files; pods keep running/);
    assert.notEqual(await host.must('systemctl', ['show', 'hyperedge', '-p', 'MainPID']), pid);
    await host.must('cmp', ['/root/upgrade', INSTALLED]);
    assert.equal(await hello(), before);
  });

  test('an installed host refuses to join another cluster', async () => {
    const hash = `sha256:${'0'.repeat(64)}`;
    const token = 'abcdef.0123456789abcdef';
    const ran = await install(['--join', 'https://10.9.9.9:8443', '--token', token, '--ca-hash', hash]);
    assert.equal(ran.code, 1);
    assert.match(
      ran.stderr,
      /^hyperedge: --join: this host belongs to the cluster with CA sha256:[0-9a-f]{64}; run hyperedge reset/,
    );
  });

  test('an installed host starts automatically after a reboot', async () => {
    await host.powerOff();
    await host.boot();
    await eventually('the API server', 60_000, async () =>
      (await host.kubectl(['get', '--raw', '/readyz'], { timeoutMs: 5_000 })).code === 0 ? true : undefined,
    );
    await hello();
  });

  test('hyperedge uninstall leaves nothing on the host', async () => {
    const ran = await host.inside('hyperedge', ['uninstall', '--purge'], { timeoutMs: 120_000 });
    assert.equal(ran.code, 0, `${ran.stdout}${ran.stderr}`);
    // There is no message about anything that could not be removed.
    assert.doesNotMatch(ran.stdout, /: /);
    const left = [...(await tree())].filter((path) => !clean.has(path));
    assert.deepEqual(left, []);
    assert.equal(await links(), cleanLinks);
    assert.equal(await cgroups(), '');
    const units = await host.must('systemctl', [
      'list-units',
      '--all',
      '--plain',
      '--no-legend',
      'hyperedge*',
      'kubepods*',
    ]);
    assert.equal(units, '');
    const mounts = (await host.must('cat', ['/proc/self/mountinfo']))
      .split('\n')
      .map((line) => line.split(' ')[4] ?? '');
    assert.deepEqual(
      mounts.filter((point) => /^\/(run\/hyperedge|var\/lib\/origin\/)/.test(point)),
      [],
    );
    assert.equal(await host.nft(['list', 'ruleset']), '');
  });

  test('hyperedge reset keeps the data in a backup, and the host can be installed again', async () => {
    assert.equal((await install()).code, 0);
    const ran = await host.inside('hyperedge', ['reset'], { timeoutMs: 120_000 });
    console.log(ran.stdout);
    assert.equal(ran.code, 0, `${ran.stdout}${ran.stderr}`);
    assert.match(ran.stdout, /the data is kept in \/var\/lib\/hyperedge-kept\//);
    assert.notEqual((await host.inside('systemctl', ['is-active', 'hyperedge'])).stdout, 'active\n');
    const kept = await host.must('find', ['/var/lib/hyperedge-kept', '-name', 'revisions.db']);
    assert.match(kept, /var\/lib\/origin\/openshift\.local\.etcd/);
    assert.equal((await install()).code, 0);
    assert.equal((await host.inside('hyperedge', ['uninstall'], { timeoutMs: 120_000 })).code, 0);
  });
});
