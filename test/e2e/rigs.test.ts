/** Fixtures of test rigs: a pod gets its board and nothing else, the second one waits, an unplugged one ends its pod. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from './harness.ts';
import { idle, PodLab, pod } from './pods/lab.ts';

const GOAL_MS = 30_000;
let lab: PodLab;
let board: ChildProcess;
let console1: string;

/** A board: a pseudo-terminal that repeats what it is sent. */
async function plug(): Promise<ChildProcess> {
  const child = spawn('socat', ['-d', `PTY,link=${console1},rawer`, 'EXEC:cat'], { stdio: 'ignore' });
  await eventually('the board', 5_000, async () =>
    (await lab.appliance.inside('test', ['-c', console1])).code === 0 ? true : undefined,
  );
  return child;
}

before(
  async () => {
    lab = await PodLab.create(async (root) => {
      console1 = join(root, 'board-1');
      await mkdir(join(root, 'etc/origin'), { recursive: true });
      await writeFile(
        join(root, 'etc/origin/bootstrap.yaml'),
        [
          'apiVersion: hyperedge.dev/v1',
          'kind: Bootstrap',
          'fixtures:',
          `  board-1: {type: serial, path: ${console1}}`,
          '  disk-1: {type: block, path: /dev/loop7}',
          '',
        ].join('\n'),
      );
    });
    board = await plug();
  },
  { timeout: 90_000 },
);
after(
  async () => {
    board?.kill();
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

test('a pod has its board as an extended resource, the second waits, and an unplugged board fails the first', {
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

test('claims of two pods on one board: the second is Pending with the reason until the first has gone', {
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
});
