/** Fixtures of test rigs: a pod gets only its board, a second pod waits, and the pod of an unplugged board fails. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startDraDriver } from '../dra/driver.ts';
import { eventually, executable } from './harness.ts';
import { idle, PodLab, pod } from './pods/lab.ts';

const GOAL_MS = 30_000;
let lab: PodLab;
let board: ChildProcess;
let console1: string;
let console2: string;
let second: ChildProcess | undefined;

/** A simulated board: a pseudo-terminal that echoes its input. */
async function plug(path = console1): Promise<ChildProcess> {
  const child = spawn('socat', ['-d', `PTY,link=${path},rawer`, 'EXEC:cat'], { stdio: 'ignore' });
  await eventually('the board', 5_000, async () =>
    (await lab.appliance.inside('test', ['-c', path])).code === 0 ? true : undefined,
  );
  return child;
}

before(
  async () => {
    lab = await PodLab.create(async (root) => {
      console1 = join(root, 'board-1');
      console2 = join(root, 'board-2');
      await mkdir(join(root, 'etc/origin'), { recursive: true });
      await writeFile(
        join(root, 'etc/origin/bootstrap.yaml'),
        [
          'apiVersion: hyperedge.dev/v1',
          'kind: Bootstrap',
          'fixtures:',
          `  board-1: {type: serial, path: ${console1}}`,
          '  disk-1: {type: block, path: /dev/loop7}',
          `  board-2: {type: serial, path: ${console2}}`,
          'rigPower:',
          '  psu-on: [/bin/echo, "supply on; $(reboot)"]',
          '  psu-off: [/bin/false]',
          '',
        ].join('\n'),
      );
    });
    board = await plug();
    second = await plug(console2);
  },
  { timeout: 90_000 },
);
after(
  async () => {
    board?.kill();
    second?.kill();
    await lab?.stop();
  },
  { timeout: 90_000 },
);

const wants = (resource: string) => ({ ...idle(), resources: { limits: { [resource]: '1' } } });
const conditionOf = async (name: string): Promise<string> => {
  const found = JSON.parse(await lab.kubectl('get', 'pod', name, '-o', 'json'));
  return found.status.conditions?.find((each: { type: string }) => each.type === 'PodScheduled')?.message ?? '';
};

const allocatable = (amount: string) =>
  eventually(`${amount} board in the Node`, GOAL_MS, async () => {
    const { items } = JSON.parse(await lab.kubectl('get', 'nodes', '-o', 'json'));
    return items[0].status.allocatable['rig.hyperedge.dev/board-1'] === amount ? true : undefined;
  });

test('gives a pod its board as an extended resource, lets a second pod wait, and fails the first pod after unplugging', {
  timeout: 120_000,
}, async () => {
  await eventually('the board in the Node', GOAL_MS, async () => {
    const { items } = JSON.parse(await lab.kubectl('get', 'nodes', '-o', 'json'));
    return items[0].status.allocatable['rig.hyperedge.dev/board-1'] === '1' ? true : undefined;
  });
  await lab.apply(pod('first', { containers: [wants('rig.hyperedge.dev/board-1')] }));
  await lab.ready('first');
  assert.equal((await lab.exec('first', 'sh', '-c', 'echo $RIG_BOARD_1')).trim(), '/dev/board-1');
  assert.match(await lab.exec('first', 'sh', '-c', 'echo ping > /dev/board-1; head -n1 /dev/board-1'), /ping/);
  await assert.rejects(lab.exec('first', 'ls', '/dev/disk-1', '/dev/loop7'));
  await lab.apply(pod('second', { containers: [wants('rig.hyperedge.dev/board-1')] }));
  await eventually('the second to wait', GOAL_MS, async () =>
    /Insufficient rig.hyperedge.dev\/board-1/.test(await conditionOf('second')) ? true : undefined,
  );
  await lab.kubectl('delete', 'pod', 'second', '--wait=true');
  board.kill();
  const failed = await eventually('the first to fail', GOAL_MS, async () => {
    const found = JSON.parse(await lab.kubectl('get', 'pod', 'first', '-o', 'json'));
    return found.status.phase === 'Failed' ? found : undefined;
  });
  assert.equal(failed.status.reason, 'FixtureUnplugged');
  assert.match(failed.status.message, /fixture board-1 was unplugged/);
  const slice = JSON.parse(await lab.kubectl('get', 'resourceslices', '-o', 'json')).items[0];
  const device = slice.spec.devices.find((each: { name: string }) => each.name === 'board-1');
  assert.equal(device.taints?.[0]?.key, 'rig.hyperedge.dev/unplugged');
  board = await plug();
  await allocatable('1');
  await lab.apply(pod('second', { containers: [wants('rig.hyperedge.dev/board-1')] }));
  await lab.ready('second');
  await lab.kubectl('delete', 'pod', 'first', 'second', '--wait=true', '--grace-period=1');
});

test('keeps the second of two pods that claim a board Pending with the reason, until the first pod is deleted', {
  timeout: 120_000,
}, async () => {
  await lab.apply({
    apiVersion: 'resource.k8s.io/v1',
    kind: 'DeviceClass',
    metadata: { name: 'boards' },
    spec: { selectors: [{ cel: { expression: 'device.driver == "rig.hyperedge.dev"' } }] },
  });
  const expression = 'device.attributes["rig.hyperedge.dev"].fixture == "board-1"';
  for (const name of ['one', 'two']) {
    await lab.apply({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaim',
      metadata: { name, namespace: 'default' },
      spec: {
        devices: {
          requests: [{ name: 'board', exactly: { deviceClassName: 'boards', selectors: [{ cel: { expression } }] } }],
        },
      },
    });
    const container = { ...idle(), resources: { claims: [{ name: 'board' }] } };
    await lab.apply(
      pod(`claims-${name}`, {
        containers: [container],
        resourceClaims: [{ name: 'board', resourceClaimName: name }],
      } as never),
    );
    if (name === 'one') await lab.ready('claims-one');
  }
  assert.match(await lab.exec('claims-one', 'sh', '-c', 'echo pong > /dev/board-1; head -n1 /dev/board-1'), /pong/);
  await eventually('the second to wait', GOAL_MS, async () =>
    /cannot allocate all claims \(request "board": 1 of 1 matching devices in use/.test(await conditionOf('claims-two'))
      ? true
      : undefined,
  );
  const claim = JSON.parse(await lab.kubectl('get', 'resourceclaim', 'one', '-o', 'json'));
  assert.equal(claim.status.allocation.devices.results[0].device, 'board-1');
  assert.equal(claim.status.reservedFor[0].name, 'claims-one');
  const [slice] = JSON.parse(await lab.kubectl('get', 'resourceslices', '-o', 'json')).items;
  assert.equal(slice.metadata.ownerReferences[0].kind, 'Node');
  // A new rig with the board waits for the existing claim, and is free afterwards.
  const fixtures = [{ name: 'board', fixture: 'board-1', role: 'serial' }];
  await lab.apply({ apiVersion: RIG_API, kind: 'Rig', metadata: { name: 'late' }, spec: { fixtures } });
  await lab.apply(rigClaim('late', undefined, 'late'));
  await eventually('the rig to wait', GOAL_MS, async () =>
    /fixture board-1 is allocated to ResourceClaim default\/one/.test(
      (await statusOf('rigclaim', 'late')).conditions?.[0]?.message ?? '',
    )
      ? true
      : undefined,
  );
  await lab.kubectl('delete', 'pod', 'claims-one', '--wait=true', '--grace-period=1');
  await phase('late', 'Granted');
  await eventually('the second to wait for the rig', GOAL_MS, async () =>
    /fixture board-1 belongs to rig late/.test(await conditionOf('claims-two')) ? true : undefined,
  );
  await lab.kubectl('delete', 'rigclaim', 'late', '--wait=true');
  await lab.kubectl('delete', 'rig', 'late', '--wait=true');
  await lab.ready('claims-two');
});

const RIG_API = 'rig.hyperedge.dev/v1alpha1';
const rigClaim = (name: string, duration?: string, rigName = 'bench') => ({
  apiVersion: RIG_API,
  kind: 'RigClaim',
  metadata: { name, namespace: 'default' },
  spec: { rigName, ...(duration === undefined ? {} : { duration }) },
});
const onRig = (name: string, claim: string) => {
  const made = pod(name, { containers: [wants('rig.hyperedge.dev/board-2')], terminationGracePeriodSeconds: 1 });
  return { ...made, metadata: { ...made.metadata, annotations: { 'rig.hyperedge.dev/claim': claim } } };
};
const statusOf = async (kind: string, name: string) =>
  JSON.parse(await lab.kubectl('get', kind, name, '-o', 'json')).status ?? {};
const phase = (name: string, wanted: string) =>
  eventually(`claim ${name} to be ${wanted}`, GOAL_MS, async () => {
    const status = await statusOf('rigclaim', name);
    return status.phase === wanted ? status : undefined;
  });

test('starts the pod of a second claim on a rig when the first claim is released, and ends the pod with the lease of the claim', {
  timeout: 180_000,
}, async () => {
  await lab.apply({
    apiVersion: RIG_API,
    kind: 'Rig',
    metadata: { name: 'bench' },
    spec: {
      fixtures: [{ name: 'board', fixture: 'board-2', role: 'serial' }],
      maxLease: '1h',
      console: { fixture: 'board' },
      power: { on: { command: 'psu-on' }, off: { command: 'psu-off' } },
    },
  });
  await assert.rejects(
    lab.apply(pod('bare', { containers: [wants('rig.hyperedge.dev/board-2')] })),
    /fixture "board-2" belongs to rig "bench"; claim the rig with a RigClaim/,
  );
  await lab.apply(rigClaim('one'));
  await phase('one', 'Granted');
  await lab.apply(rigClaim('two', '20s'));
  const queued = await eventually('the second to get its place', GOAL_MS, async () => {
    const status = await statusOf('rigclaim', 'two');
    return status.position === 1 ? status : undefined;
  });
  assert.equal(queued.phase, 'Queued');
  await lab.apply(onRig('with-one', 'one'));
  await lab.apply(onRig('with-two', 'two'));
  await lab.ready('with-one');
  assert.equal((await statusOf('pod', 'with-two')).conditions[0].reason, 'SchedulingGated');
  await assert.rejects(
    lab.kubectl('patch', 'pod', 'with-two', '--type=merge', '-p', '{"spec":{"schedulingGates":[]}}'),
    /RigClaim "two" is not granted; wait for its turn/,
  );
  assert.match(
    await lab.kubectl('get', 'rigs'),
    /NAME +NODE +HOLDER +QUEUE +EXPIRES +AGE\nbench +\S+ +default\/one +1 /,
  );
  assert.match(await lab.kubectl('get', 'rigclaims'), /one +bench +Granted .*\ntwo +bench +Queued +1 /);
  await lab.kubectl('delete', 'rigclaim', 'one', '--wait=true');
  // The rig is released when the containers have ended; the pod is deleted afterwards.
  await eventually('the pod of the claim to be deleted', GOAL_MS, async () =>
    (await lab.kubectl('get', 'pods', '-o', 'name')).includes('with-one') ? undefined : true,
  );
  await phase('two', 'Granted');
  await lab.ready('with-two');
  const expired = await phase('two', 'Expired');
  assert.equal(expired.conditions[0].reason, 'LeaseExpired');
  await eventually('the pod of the lease to end', GOAL_MS, async () =>
    (await lab.kubectl('get', 'pods', '-o', 'name')).includes('with-two') ? undefined : true,
  );
  assert.match(
    await lab.kubectl('get', 'events', '--field-selector=reason=RigLeaseExpired'),
    /RigClaim two: the lease of rig bench has ended/,
  );
  await lab.kubectl('delete', 'rigclaim', 'two', '--wait=true');
});

test("provides and records the console of a rig, runs the host's power command, and requires a claim for both actions", {
  timeout: 120_000,
}, async () => {
  const kubeconfig = join(lab.appliance.root, 'etc/origin/master/admin.kubeconfig');
  const rig = (...args: string[]) => lab.appliance.hyperedge(['rig', ...args, '--kubeconfig', kubeconfig]);
  await lab.apply(rigClaim('mine'));
  await phase('mine', 'Granted');
  await lab.apply(rigClaim('waiting'));
  assert.match((await rig('power', 'on', 'waiting')).stderr, /RigClaim "waiting" is Queued; wait until it is Granted/);
  const on = await rig('power', 'on', 'mine');
  assert.deepEqual([on.code, on.stdout], [0, 'supply on; $(reboot)\n'], on.stderr);
  assert.match((await rig('power', 'off', 'mine')).stderr, /power off: command psu-off: exit code 1/);
  assert.match((await rig('console', 'waiting')).stderr, /console not opened/);
  const session = lab.appliance.spawnInside(executable, ['rig', 'console', 'mine', '--kubeconfig', kubeconfig]);
  let shown = '';
  session.stdout?.on('data', (chunk: Buffer) => {
    shown += chunk.toString();
  });
  session.stdin?.write('hello board\n');
  await eventually('the echo', GOAL_MS, async () => (shown.includes('hello board') ? true : undefined));
  const directory = join(lab.appliance.root, 'var/log/origin/rigs/bench');
  await eventually('the recording', GOAL_MS, async () => {
    const [name] = await readdir(directory);
    return name !== undefined && (await readFile(join(directory, name), 'utf8')).includes('hello board')
      ? true
      : undefined;
  });
  const [recording = ''] = await readdir(directory);
  const node = await lab.kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}');
  const logs = `/api/v1/nodes/${node}/proxy/logs/origin`;
  assert.match(await lab.kubectl('get', '--raw', `${logs}/`), /rigs/);
  const withheld = await lab.appliance.kubectl(['get', '--raw', `${logs}/rigs/bench/${recording}`]);
  assert.match(withheld.stderr, /NotFound|could not find/);
  await lab.kubectl('delete', 'rigclaim', 'mine', '--wait=true');
  await eventually('the console to close', GOAL_MS, async () => (session.exitCode === null ? undefined : true));
  assert.match((await rig('list')).stdout, /bench +\S+ +default\/waiting +0 /);
  assert.equal((await rig('release', 'waiting')).code, 0);
});

test("shares a vendor's device between the claims of two pods, and a third pod waits for capacity", {
  timeout: 120_000,
}, async () => {
  const [node] = JSON.parse(await lab.kubectl('get', 'nodes', '-o', 'json')).items;
  const nodeName = node.metadata.name;
  const name = 'gpu.example.com';
  const registry = join(lab.appliance.root, 'var/lib/kubelet/plugins_registry');
  const driver = await startDraDriver(registry, { name, pool: nodeName, device: 'gpu-0' });
  const api = 'resource.k8s.io/v1';
  const requestPolicy = { default: '10Gi', validRange: { min: '10Gi', step: '10Gi' } };
  const device = {
    name: 'gpu-0',
    allowMultipleAllocations: true,
    capacity: { memory: { value: '40Gi', requestPolicy } },
  };
  const pool = { name: nodeName, generation: 1, resourceSliceCount: 1 };
  const selectors = [{ cel: { expression: `device.driver == "${name}"` } }];
  await lab.apply(
    {
      apiVersion: api,
      kind: 'DeviceClass',
      metadata: { name },
      spec: { extendedResourceName: 'example.com/gpu', selectors },
    },
    {
      apiVersion: api,
      kind: 'ResourceSlice',
      metadata: { name: 'gpus' },
      spec: { nodeName, driver: name, pool, devices: [device] },
    },
  );
  const share = async (claim: string, memory: string): Promise<void> => {
    const exactly = { deviceClassName: name, selectors, capacity: { requests: { memory } } };
    const spec = { devices: { requests: [{ name: 'gpu', exactly }] } };
    const resourceClaims = [{ name: 'gpu', resourceClaimName: claim }];
    const containers = [{ ...idle(), resources: { claims: [{ name: 'gpu' }] } }];
    await lab.apply(
      { apiVersion: api, kind: 'ResourceClaim', metadata: { name: claim, namespace: 'default' }, spec },
      pod(claim, { containers, resourceClaims, terminationGracePeriodSeconds: 1 } as never),
    );
  };
  const resultOf = async (claim: string) => (await statusOf('resourceclaim', claim)).allocation.devices.results[0];
  try {
    await share('share-a', '11Gi');
    await share('share-b', '20Gi');
    await lab.ready('share-a');
    await lab.ready('share-b');
    await share('share-c', '1Gi');
    const [first, second] = [await resultOf('share-a'), await resultOf('share-b')];
    assert.deepEqual([first.device, first.consumedCapacity], ['gpu-0', { memory: '20Gi' }]);
    assert.deepEqual([second.device, second.consumedCapacity], ['gpu-0', { memory: '20Gi' }]);
    assert.match(first.shareID, /^[0-9a-f-]{36}$/);
    assert.notEqual(first.shareID, second.shareID);
    await eventually('the third to wait', GOAL_MS, async () =>
      /1 of 1 matching devices in use, 1 needed/.test(await conditionOf('share-c')) ? true : undefined,
    );
    await lab.kubectl('delete', 'pod', 'share-a', '--wait=true');
    await lab.ready('share-c');
    assert.deepEqual((await resultOf('share-c')).consumedCapacity, { memory: '10Gi' });
    assert.deepEqual([...driver.calls].sort(), [
      ...['prepare share-a', 'prepare share-b', 'prepare share-c', 'unprepare share-a'],
    ]);
    await lab.kubectl('delete', 'pod', 'share-b', 'share-c', '--wait=true');
    // The same device as an extended resource of its class.
    await lab.apply(pod('extended', { containers: [wants('example.com/gpu')], terminationGracePeriodSeconds: 1 }));
    await lab.ready('extended');
    const { conditions, extendedResourceClaimStatus: made } = await statusOf('pod', 'extended');
    assert.ok(conditions.every((each: { observedGeneration?: number }) => each.observedGeneration === 1));
    assert.equal((await resultOf(made.resourceClaimName)).device, 'gpu-0');
    assert.ok(driver.calls.includes(`prepare ${made.resourceClaimName}`));
    await lab.kubectl('delete', 'pod', 'extended', '--wait=true');
    await eventually('the claim to be deleted', GOAL_MS, async () =>
      (await lab.kubectl('get', 'resourceclaims', '-o', 'name')).includes(made.resourceClaimName) ? undefined : true,
    );
    assert.ok(driver.calls.includes(`unprepare ${made.resourceClaimName}`));
  } finally {
    await driver.stop();
  }
});
