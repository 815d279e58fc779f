import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { GROUP_CLAIM } from '../../../../src/api/kinds/nodes/nodes/own-labels.ts';
import { resources } from '../../../../src/api/resources.ts';
import { silentLog } from '../../../../src/base/log.ts';
import type { ApiClient } from '../../../../src/client/types.ts';
import { systemClock } from '../../../../src/host/process/process.ts';
import { followNodeGroup } from '../../../../src/openshift/machine-config/node-groups/index.ts';
import { fedInformers } from '../../../network/dns/harness.ts';

test('retries a failed claim of a node group without waiting for a change of the Node', async () => {
  const fed = fedInformers();
  const nodes = fed.of(resources.nodes);
  const claimed = Promise.withResolvers<unknown>();
  let attempts = 0;
  const resource = {
    patch: async (name: string, _namespace: undefined, _type: string, body: Node) => {
      attempts += 1;
      if (attempts < 3) throw new Error('unavailable');
      nodes.set({ metadata: { name, annotations: body.metadata?.annotations ?? {} } });
      claimed.resolve(body.metadata?.annotations);
      return body;
    },
  };
  const stop = followNodeGroup({
    informers: fed.factory,
    client: { resource: () => resource } as unknown as ApiClient,
    nodeName: 'n1',
    group: 'node-config-compute',
    onConfig: () => {},
    clock: systemClock,
    log: silentLog,
  });
  nodes.set({ metadata: { name: 'n1' } });
  nodes.sync();
  const deadline = new Promise((resolve) => setTimeout(resolve, 5_000, 'not claimed').unref());
  assert.deepEqual(await Promise.race([claimed.promise, deadline]), { [GROUP_CLAIM]: 'node-config-compute' });
  await new Promise((resolve) => setTimeout(resolve, 50));
  stop();
  assert.equal(attempts, 3);
});
