/** A container that replaces entries of its volume by links while the kubelet changes their group (fsGroup). */
import assert from 'node:assert/strict';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { idle, pod, shell } from '../../e2e/pods/lab.ts';
import type { AttackCase } from '../port.ts';

const GROUP = 4242;
const ENTRIES = 40;
const STARTS = 8;
const mounted = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'raced-owners' } }];

/** Exchanges links and files repeatedly from several processes. */
const exchange = (outside: string): string => `
  cd /data && for i in $(seq ${ENTRIES}); do ln -s ${outside}/f$i l$i; touch f$i; done; ln -s ${outside} link; mkdir real
  for k in 1 2 3 4; do
    while :; do for i in $(seq $k 4 ${ENTRIES}); do mv f$i t$i && mv l$i f$i && mv f$i l$i && mv t$i f$i; done; done &
  done
  while :; do mv real held && mv link real && mv real link && mv held real; done`;

export const cases: readonly AttackCase[] = [
  {
    finding: 12,
    title: 'links that a pod swaps during a change of volume ownership reach no file of the host',
    timeoutMs: 180_000,
    attack: async ({ pods }) => {
      const outside = join(pods.scratch, 'owned-by-root');
      await mkdir(outside);
      for (let at = 1; at <= ENTRIES; at++) await writeFile(join(outside, `f${at}`), '', { mode: 0o600 });
      await pods.apply(
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name: 'raced-owners', namespace: 'default' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '8Mi' } } },
        },
        pod('owner-racer', { volumes, containers: [shell(exchange(outside), mounted)] }),
      );
      const started: string[] = [];
      try {
        await pods.ready('owner-racer');
        for (let at = 0; at < STARTS; at++) {
          const name = `owner-${at}`;
          const securityContext = { fsGroup: GROUP, fsGroupChangePolicy: 'Always' };
          await pods.apply(pod(name, { volumes, securityContext, containers: [idle(mounted)] } as object));
          started.push(name);
          await pods.ready(name, 60_000);
        }
        for (const name of ['', ...(await readdir(outside))]) {
          const { gid, mode } = await stat(join(outside, name));
          assert.equal(gid, 0, name);
          assert.equal(mode & 0o022, 0, name);
        }
      } finally {
        await pods.remove('owner-racer', ...started);
        await pods.kubectl('delete', 'pvc', 'raced-owners', '--wait=false');
      }
    },
  },
];
