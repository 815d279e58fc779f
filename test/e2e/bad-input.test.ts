/** Invalid input and missing resources: clear errors, no data loss, no hanging. */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Appliance, eventually, executable, run } from './harness.ts';
import { helloImage } from './images.ts';

describe('errors of manifests and images', () => {
  let appliance: Appliance;
  before(async () => {
    appliance = await Appliance.create();
    await appliance.start();
  });
  after(async () => {
    await appliance?.stop();
  });

  test('logs no warnings about expected conditions at the first start', async () => {
    // Missing capabilities and slowness are properties of the test machine.
    const ofMachine = /CAP_SYS_RESOURCE|event loop was blocked/;
    const warnings = (): string[] =>
      appliance.output.split('\n').filter((line) => /^\S+ [WE] /.test(line) && !ofMachine.test(line));
    await eventually('the operators are available', 60_000, async () => {
      const { stdout } = await appliance.kubectl([
        'get',
        'clusteroperators',
        '-o',
        'jsonpath={..conditions[?(@.type=="Available")].status}',
      ]);
      return stdout !== '' && !stdout.includes('False') ? true : undefined;
    });
    assert.deepEqual(warnings(), []);
  });

  for (const [line, shown] of [
    ['rig console nope', /^hyperedge: rigclaim "nope" not found in namespace "default"; see hyperedge rig list\n$/],
    ['rig console nope --rig', /^hyperedge: rig "nope" not found; see hyperedge rig list\n$/],
    ['rig power on nope', /^hyperedge: rigclaim "nope" not found in namespace "default"; see hyperedge rig list\n$/],
    [
      'ca rotate --phase finish',
      /^hyperedge: ca rotate: no rotation is in progress; begin with hyperedge ca rotate --phase new-ca\n$/,
    ],
    ['ca rotate --phase reissue', /there is no next authority; run "hyperedge ca rotate --phase new-ca" first\n$/],
    ['members remove zz', /^hyperedge: no member is called zz; there are: .+\n$/],
    ['token revoke abcdef', /^hyperedge: token abcdef does not exist; see hyperedge token list\n$/],
    ['run', /^hyperedge: hyperedge already runs on .+ with pid \d+; stop it first\n$/],
  ] as const)
    test(`reports the error of hyperedge ${line} in one line`, async () => {
      const ran = await appliance.inside(executable, [...line.split(' '), '--root', appliance.root]);
      assert.equal(ran.code, 1);
      assert.match(ran.stderr, shown);
    });

  const apply = (manifest: string, ...args: string[]) =>
    // The leading `---` prevents kubectl from parsing a flow mapping as JSON.
    appliance.kubectl(['apply', ...args, '-f', '-'], { input: `---\n${manifest}`, timeoutMs: 20_000 });

  test('reports an unknown field under strict validation', async () => {
    const ran = await apply('{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dataa: {}}', '--validate=strict');
    assert.notEqual(ran.code, 0);
    assert.match(ran.stderr, /unknown field "dataa"/);
  });

  test('names the field whose value has the wrong type', async () => {
    const ran = await apply(
      '{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: two}}',
      '--validate=false',
    );
    assert.notEqual(ran.code, 0);
    assert.match(ran.stderr, /replicas/);
  });

  test('names the field and value of an invalid name', async () => {
    const ran = await apply('{apiVersion: v1, kind: ConfigMap, metadata: {name: Bad_Name}}');
    assert.notEqual(ran.code, 0);
    assert.match(ran.stderr, /metadata\.name: Invalid value: "Bad_Name"/);
  });

  test('reports an unknown kind with its version', async () => {
    const ran = await apply('{apiVersion: v1, kind: Gadget, metadata: {name: a}}');
    assert.notEqual(ran.code, 0);
    assert.match(ran.stderr, /no matches for kind "Gadget"/);
  });

  test('kubectl rejects malformed YAML and JSON manifests', async () => {
    const token = await appliance.must(['create', 'token', 'default']);
    const server = await appliance.must(['config', 'view', '-o', 'jsonpath={.clusters[0].cluster.server}']);
    const ran = await appliance.inside('curl', [
      '-sSk',
      '--max-time',
      '5',
      '-X',
      'POST',
      `${server}/api/v1/namespaces/default/configmaps`,
      '-H',
      `Authorization: Bearer ${token.trim()}`,
      '-H',
      'Content-Type: application/yaml',
      '--data-binary',
      'a: [1,\n b: {',
    ]);
    const status = JSON.parse(ran.stdout);
    // The default service account may not create config maps, so both status codes are valid.
    assert.ok(status.code === 400 || status.code === 403, ran.stdout);
    const throughKubectl = await apply('a: [1,\n b: {');
    assert.notEqual(throughKubectl.code, 0);
    const asAdmin = await appliance.kubectl(['create', '--raw', '/api/v1/namespaces/default/configmaps', '-f', '-'], {
      input: '{"kind":',
    });
    assert.match(asAdmin.stderr, /BadRequest|invalid|unexpected/i);
  });

  test('reports a missing image in the container status and an event, and a policy that forbids the pull', async () => {
    await apply(
      `{apiVersion: v1, kind: Pod, metadata: {name: absent}, spec: {containers: [{name: c, image: "127.0.0.1:1/none/absent:1"}]}}`,
    );
    await eventually('ErrImagePull', 30_000, async () => {
      const waiting = JSON.parse(await appliance.must(['get', 'pod', 'absent', '-o', 'json'])).status
        .containerStatuses?.[0]?.state?.waiting;
      return /^(ErrImagePull|ImagePullBackOff)$/.test(waiting?.reason ?? '') && waiting.message !== ''
        ? true
        : undefined;
    });
    await eventually('back-off', 60_000, async () =>
      /ImagePullBackOff/.test(await appliance.must(['get', 'pod', 'absent', '--no-headers'])) ? true : undefined,
    );
    assert.match(await appliance.must(['describe', 'pod', 'absent']), /Failed to pull image/);
    await apply(
      `{apiVersion: v1, kind: Pod, metadata: {name: never}, spec: {containers: [{name: c, image: "${helloImage}", imagePullPolicy: Never}]}}`,
    );
    await eventually('ErrImageNeverPull', 30_000, async () =>
      /ErrImageNeverPull/.test(await appliance.must(['get', 'pod', 'never', '--no-headers'])) ? true : undefined,
    );
  });

  test('a second start on the same root reports the PID of the first process', async () => {
    const second = await appliance.hyperedge(['run', '--root', appliance.root], { timeoutMs: 20_000 });
    assert.equal(second.code, 1);
    assert.match(second.stderr, new RegExp(`\\b${appliance.hostPid}\\b`));
    assert.equal(await appliance.must(['get', '--raw', '/readyz']), 'ok');
  });

  test('hyperedge run names a port that is in use', async () => {
    const other = join(appliance.root, 'other');
    await mkdir(other);
    const ran = await appliance.hyperedge(['run', '--root', other], { timeoutMs: 30_000 });
    assert.equal(ran.code, 1, ran.stdout + ran.stderr);
    assert.match(ran.stderr, /\b(8443|10250|2379)\b.*(in use|taken)|(in use|taken).*\b(8443|10250|2379)\b/i);
  });
});

test('names file, line and field of an invalid bootstrap file', async () => {
  const appliance = await Appliance.create();
  try {
    const path = join(appliance.root, 'etc/origin/bootstrap.yaml');
    await mkdir(join(appliance.root, 'etc/origin'), { recursive: true });
    const cases: [string, RegExp][] = [
      [
        'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nroles: [master, etcd, node]\nrols: [x]\n',
        /bootstrap\.yaml:4.*rols/,
      ],
      ['apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nroles: master\n', /bootstrap\.yaml:3.*roles/],
      ['apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nroles: [master\n', /bootstrap\.yaml:\d/],
      ['apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nroles: [master]\nroles: [node]\n', /bootstrap\.yaml:4.*roles/],
    ];
    for (const [text, wanted] of cases) {
      await writeFile(path, text);
      const ran = await appliance.hyperedge(['run', '--root', appliance.root], { timeoutMs: 20_000 });
      assert.equal(ran.code === 1 || ran.code === 2, true, ran.stdout + ran.stderr);
      assert.match(ran.stderr, wanted);
      assert.equal(ran.stderr.trim().split('\n').length, 1, ran.stderr);
    }
  } finally {
    await appliance.stop();
  }
});

test('rejects writes with a clear Status on a full disk, serves reads, and recovers when there is space', async () => {
  const { mkdtemp } = await import('node:fs/promises');
  const { tmpdir } = await import('node:os');
  const root = await mkdtemp(join(tmpdir(), 'he-full-'));
  const mounted = await run('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', root]);
  assert.equal(mounted.code, 0, mounted.stderr);
  const appliance = await Appliance.create({ root });
  try {
    await appliance.start();
    await appliance.must(['create', 'cm', 'kept', '--from-literal=k=v']);
    const block = join(root, 'ballast');
    await run('dd', ['if=/dev/zero', `of=${block}`, 'bs=1M']);
    const bulk = 'x'.repeat(200_000);
    const refused = await eventually('a refused write', 60_000, async () => {
      const ran = await appliance.kubectl(['create', '-f', '-'], {
        input: JSON.stringify({
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { generateName: 'bulk-' },
          data: { bulk },
        }),
        timeoutMs: 20_000,
      });
      return ran.code === 0 ? undefined : ran.stderr;
    });
    assert.match(refused, /space/);
    assert.equal(await appliance.must(['get', 'cm', 'kept', '-o', 'jsonpath={.data.k}']), 'v');
    await rm(block);
    await eventually('writes again', 60_000, async () => {
      const ran = await appliance.kubectl(['create', 'cm', 'afterwards', '--from-literal=k=v']);
      return ran.code === 0 ? true : undefined;
    });
    assert.equal(await appliance.must(['get', 'cm', 'kept', '-o', 'jsonpath={.data.k}']), 'v');
  } finally {
    await appliance.stop();
    await run('umount', ['-l', root]);
    await rm(root, { recursive: true, force: true });
  }
});
