/** Pods that fill the node's disk: the pod must be evicted and the node must keep working. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { Appliance, eventually, run } from '../../e2e/harness.ts';
import { importHelloImage } from '../../e2e/images.ts';
import { idle, pod, shell } from '../../e2e/pods/lab.ts';
import type { AttackLab } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const SMALL_DISK = '160m';
/** Usage is checked every second; the rest is for starting the containers on a busy machine. */
const EVICTED_WITHIN_MS = 60_000;

const volume = { volumes: [{ name: 'data', emptyDir: {} }] };
const mounted = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };

async function fillTheDisk(appliance: Appliance, scratch: string): Promise<void> {
  const status = async (): Promise<Pod['status']> =>
    (JSON.parse(await appliance.must(['get', 'pod', 'filler', '-o', 'json'])) as Pod).status;
  const usedPart = async (): Promise<number> => {
    const { blocks, bfree } = await statfs(appliance.root);
    return 1 - bfree / blocks;
  };
  await appliance.start();
  await importHelloImage(appliance, scratch);
  // The script fills the disk as long as it runs, including space that is freed.
  const script =
    'i=0; while :; do i=$((i+1)); dd if=/dev/zero of=/data/$i bs=64k count=64 2>/dev/null || sleep 0.01; done';
  const filler = pod('filler', { ...volume, containers: [shell(script, mounted)], terminationGracePeriodSeconds: 30 });
  await appliance.must(['create', '-f', '-'], { input: JSON.stringify(filler) });
  await eventually('the disk fills', 15_000, async () => ((await usedPart()) > 0.9 ? true : undefined));
  const evicted = await eventually('the pod is evicted', 20_000, async () => {
    const now = await status();
    return now?.phase === 'Failed' ? now : undefined;
  });
  assert.equal(evicted.reason, 'Evicted');
  assert.match(evicted.message ?? '', /^The node was low on resource: ephemeral-storage\. Threshold quantity: /);
  assert.ok(
    evicted.conditions?.some(({ type, reason }) => type === 'DisruptionTarget' && reason === 'TerminationByKubelet'),
  );
  await eventually('its disk space is free again', 10_000, async () => ((await usedPart()) < 0.5 ? true : undefined));
  await eventually('writes are accepted again', 10_000, async () =>
    (await appliance.kubectl(['create', 'configmap', 'afterwards'])).code === 0 ? true : undefined,
  );
  await appliance.must(['delete', 'pod', 'filler', '--timeout=15s']);
  const nodes = await appliance.must(['get', 'nodes', '--no-headers']);
  assert.match(nodes, / Ready /);
}

/**
 * Here a process outside of pods fills the disk and takes all space that is freed, so the store only has the reserve in
 * its own files.
 */
async function deleteOnAFullDisk(appliance: Appliance, scratch: string): Promise<void> {
  await appliance.start();
  await importHelloImage(appliance, scratch);
  const system = ['-n', 'kube-system'];
  // Critical pods are not evicted.
  const spec = { containers: [idle()], priorityClassName: 'system-node-critical' };
  const graceful = pod('graceful', spec, { namespace: 'kube-system' });
  await appliance.must(['create', '-f', '-'], { input: JSON.stringify(graceful) });
  await appliance.must([...system, 'wait', '--for=condition=Ready', 'pod/graceful', '--timeout=20s']);
  const filler = spawn(
    'sh',
    ['-c', `while :; do cat /dev/zero >>'${join(appliance.root, 'filler')}'; sleep 0.01; done`],
    {
      stdio: 'ignore',
    },
  );
  try {
    const refused = await eventually('ordinary writes are refused', 15_000, async () => {
      const ran = await appliance.kubectl(['create', 'configmap', `more-${performance.now()}`]);
      return ran.code === 0 ? undefined : ran.stderr;
    });
    assert.match(refused, /out of disk space/);
    const lease = ['-n', 'kube-node-lease', 'get', 'leases', '-o', 'jsonpath={.items[0].spec.renewTime}'];
    const renewed = await appliance.must(lease);
    await Promise.all([
      appliance.must([...system, 'delete', 'pod', 'graceful', '--timeout=15s']),
      eventually('the node renews its lease', 15_000, async () =>
        (await appliance.must(lease)) > renewed ? true : undefined,
      ),
    ]);
  } finally {
    filler.kill('SIGKILL');
  }
}

async function onSmallDisk(attack: (appliance: Appliance, scratch: string) => Promise<void>): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'he-attack-disk-'));
  const root = join(scratch, 'root');
  assert.equal((await run('mkdir', [root])).code, 0);
  const mount = await run('mount', ['-t', 'tmpfs', '-o', `size=${SMALL_DISK}`, 'tmpfs', root]);
  assert.equal(mount.code, 0, mount.stderr);
  const appliance = await Appliance.create({ root });
  try {
    await attack(appliance, scratch);
  } catch (error) {
    throw new Error(`${String(error)}\n${appliance.output.slice(-6_000)}`);
  } finally {
    await appliance.stop();
    await run('umount', ['-l', root]);
    await rm(scratch, { recursive: true, force: true });
  }
}

const evictedWithin = async (lab: AttackLab, name: string, message: RegExp): Promise<void> => {
  const evicted = await lab.pods.until(
    name,
    'evicted',
    ({ status }) => status?.reason === 'Evicted',
    EVICTED_WITHIN_MS,
  );
  assert.match(evicted.status?.message ?? '', message);
};

const limited = (script: string, more: object = {}): Pod['spec'] & object => ({
  containers: [shell(`${script}; sleep 1000`, { resources: { limits: { 'ephemeral-storage': '4Mi' } }, ...more })],
  ...volume,
});

/** Creates a tree that is deeper than any path by nesting pieces into each other. */
const dig = (at: string, pieces: number): string => `
  n=$(printf '%0250d' 0); p=$n; for i in 1 2 3 4 5 6 7 8 9; do p=$p/$n; done
  cd ${at} && mkdir tail && for i in $(seq ${pieces}); do mkdir -p new/$p && mv tail new/$p/ && mv new tail || exit 1; done`;

export const cases: readonly AttackCase[] = [
  {
    finding: 5,
    title: 'a pod that fills the disk is evicted, and the store accepts deletes and writes again',
    exclusive: true,
    attack: () => onSmallDisk(fillTheDisk),
  },
  {
    finding: 5,
    title: 'on a disk that stays full pods are deleted gracefully and leases are renewed',
    exclusive: true,
    attack: () => onSmallDisk(deleteOnAFullDisk),
  },
  {
    finding: 9,
    title: 'writable layers, logs and volumes cannot exceed their limits',
    attack: async (lab) => {
      const much = 'dd if=/dev/zero bs=64k count=160';
      await lab.pods.apply(
        pod('storage-layer', limited(`${much} of=/big`)),
        pod('storage-logs', limited(`${much} | tr '\\0' 'x' | fold -w 100`)),
        pod('storage-pod', limited(`${much} of=/data/big`, mounted)),
        pod('storage-message', limited(`${much} of=/dev/termination-log`)),
        pod('storage-hosts', limited(`${much} of=/etc/hosts`)),
        pod('storage-resolver', limited(`${much} of=/etc/resolv.conf`)),
        pod('storage-container', {
          containers: [
            shell(`${much} of=/big; sleep 1000`, { resources: { limits: { 'ephemeral-storage': '4Mi' } } }),
            shell('sleep 1000', { name: 'other', resources: { limits: { 'ephemeral-storage': '64Mi' } } }),
          ],
        }),
        pod('storage-volume', {
          containers: [shell(`${much} of=/data/big; sleep 1000`, mounted)],
          volumes: [{ name: 'data', emptyDir: { sizeLimit: '4Mi' } }],
        }),
      );
      const pods = /^Pod ephemeral local storage usage exceeds the total limit of containers 4Mi\. $/;
      try {
        await Promise.all([
          evictedWithin(lab, 'storage-layer', pods),
          evictedWithin(lab, 'storage-logs', pods),
          ...['pod', 'message', 'hosts', 'resolver'].map((each) => evictedWithin(lab, `storage-${each}`, pods)),
          evictedWithin(
            lab,
            'storage-container',
            /^Container main exceeded its local ephemeral storage limit "4Mi"\. $/,
          ),
          evictedWithin(lab, 'storage-volume', /^Usage of EmptyDir volume "data" exceeds the limit "4Mi"\. $/),
        ]);
      } finally {
        await lab.pods.remove(
          ...[...['layer', 'logs', 'pod', 'message', 'hosts', 'resolver', 'container', 'volume']].map(
            (each) => `storage-${each}`,
          ),
        );
      }
    },
  },
  {
    finding: 10,
    title: 'directory trees deeper than the maximum path length are deleted with their pod',
    timeoutMs: 240_000,
    attack: async (lab) => {
      const script = `(${dig('/data', 60)}) && (${dig('/tmp', 60)}) && touch /tmp/dug && sleep 1000`;
      const digger = pod('digger', { ...volume, containers: [shell(`mkdir -p /tmp; ${script}`, mounted)] });
      await lab.pods.apply(digger);
      await lab.pods.ready('digger');
      await eventually('both trees', 20_000, () => lab.pods.exec('digger', 'cat', '/tmp/dug').then(() => true));
      const seen = lab.pods.pod('digger');
      const uid = seen?.metadata?.uid ?? '';
      const container = (seen?.status?.containerStatuses?.[0]?.containerID ?? '').replace(/^.*:\/\//, '');
      assert.ok(uid !== '' && container !== '');
      await lab.pods.remove('digger');
      const state = join(lab.appliance.root, 'var/lib/origin');
      await eventually('nothing is left on disk', 200_000, async () => {
        const left = [
          ...(await readdir(join(state, 'openshift.local.volumes/pods'))),
          ...(await readdir(join(state, 'containers/containers'))),
        ];
        return left.includes(uid) || left.includes(container) ? undefined : true;
      });
    },
  },
];
