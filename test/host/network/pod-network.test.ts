/** Pod CIDRs of the host, kept in a file for a start without the API server. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { InformerFactory } from '../../../src/client/index.ts';
import { followPodNetwork } from '../../../src/host/network/pod-network.ts';
import type { PodNetwork } from '../../../src/runtime/oci/port.ts';

async function follow(prepare: (file: string) => Promise<void>) {
  const directory = await mkdtemp(join(tmpdir(), 'he-cidr-'));
  const file = join(directory, 'pod-cidr');
  await prepare(file);
  const applied: string[] = [];
  const nodes: ((node: Node) => void)[] = [];
  const informer = {
    onChange: ({ added }: { added: (node: Node) => void }) => {
      nodes.push(added);
      return () => {};
    },
    start: () => {},
    synced: Promise.resolve(),
  };
  const follower = await followPodNetwork({
    network: { setPodCidrs: async (cidrs: string[]) => void applied.push(cidrs.join()) } as unknown as PodNetwork,
    informers: { informer: () => informer } as unknown as InformerFactory,
    nodeName: toNodeName('n1'),
    file,
    initial: '10.128.0.0/24',
    log: silentLog,
    onReady: () => {},
  });
  return { directory, file, applied, follower, seen: (node: Node) => nodes.forEach((each) => void each(node)) };
}

test('applies the initial CIDR only when no CIDR is saved', async () => {
  const fresh = await follow(async () => {});
  const saved = await follow((file) => writeFile(file, '10.128.7.0/24\n'));
  try {
    assert.deepEqual([fresh.applied, saved.applied], [['10.128.0.0/24'], ['10.128.7.0/24']]);
    assert.equal(await readFile(fresh.file, 'utf8'), '10.128.0.0/24\n');
  } finally {
    for (const { directory } of [fresh, saved]) await rm(directory, { recursive: true });
  }
});

test('waits for the Node if the saved CIDR cannot be read', async () => {
  const { directory, applied, follower, seen } = await follow((file) => mkdir(file).then(() => {}));
  try {
    assert.deepEqual(applied, []);
    assert.match(follower.notReady() ?? '', /EISDIR/);
    seen({ spec: { podCIDR: '10.128.7.0/24' } });
    for (let turn = 0; turn < 100 && follower.notReady() !== undefined; turn++)
      await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual([applied, follower.notReady()], [['10.128.7.0/24'], undefined]);
  } finally {
    await rm(directory, { recursive: true });
  }
});
