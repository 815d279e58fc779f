import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap, Node } from '../../../../src/api/generated/core/v1.ts';
import { GROUP_CLAIM, GROUP_LABEL } from '../../../../src/api/kinds/nodes/nodes/own-labels.ts';
import { resources } from '../../../../src/api/resources.ts';
import { silentLog } from '../../../../src/base/log.ts';
import type { ApiClient } from '../../../../src/client/types.ts';
import { groupLabels } from '../../../../src/host/config/node-group.ts';
import { systemClock } from '../../../../src/host/process/process.ts';
import { defaultGroups, keepNodeGroups } from '../../../../src/openshift/machine-config/node-groups/index.ts';
import { fedInformers } from '../../../network/dns/harness.ts';

const node = (name: string, metadata: Node['metadata']): Node => ({ metadata: { name, ...metadata } });

test('a Node that its host deleted and registered again returns to its former group, regardless of a new claim', async () => {
  const fed = fedInformers();
  const patched: [string, unknown][] = [];
  const resource = {
    create: async (object: ConfigMap) => object,
    patch: async (name: string, _namespace: undefined, _type: string, body: Node & ConfigMap) => {
      patched.push([name, body.data ?? body.metadata?.labels]);
      const old = fed.of(resources.nodes).get(name);
      if (old !== undefined) fed.of(resources.nodes).set(node(name, { ...old.metadata, ...body.metadata }));
      return body;
    },
  };
  const client = { resource: () => resource } as unknown as ApiClient;
  const stop = keepNodeGroups({
    informers: fed.factory,
    openAdmin: async () => ({ client, close: async () => {} }),
    labelsOf: groupLabels,
    clock: systemClock,
    log: silentLog,
  });
  const settle = () => new Promise((resolve) => setTimeout(resolve, 20));
  const nodes = fed.of(resources.nodes);
  const maps = fed.of(resources.configMaps);
  for (const group of defaultGroups()) maps.set(group);
  const claim = { annotations: { [GROUP_CLAIM]: 'node-config-infra' } };
  const label = { [GROUP_LABEL]: 'node-config-compute', 'node-role.kubernetes.io/compute': 'true' };
  maps.set({
    metadata: { namespace: 'openshift-node', name: 'hyperedge-left-nodes' },
    data: { back: 'node-config-compute old', leaving: 'node-config-compute same' },
  });
  nodes.set(node('leaving', { uid: 'same', labels: label }));
  nodes.set(node('back', { uid: 'new', ...claim }));
  nodes.sync();
  maps.sync();
  await settle();
  stop();
  // The record of a Node that is being deleted is kept.
  assert.deepEqual(patched, [
    ['back', label],
    ['hyperedge-left-nodes', { back: null }],
  ]);
});

test('creates the default node groups, and labels a Node by its first claim, but never as a master', async () => {
  const fed = fedInformers();
  const created: string[] = [];
  const labelled = new Map<string, unknown>();
  const resource = {
    create: async (object: ConfigMap) => {
      created.push(object.metadata?.name ?? '');
      fed.of(resources.configMaps).set(object);
      return object;
    },
    patch: async (name: string, _namespace: undefined, _type: string, body: Node) => {
      const old = fed.of(resources.nodes).get(name);
      labelled.set(name, body.metadata?.labels);
      fed
        .of(resources.nodes)
        .set(node(name, { ...old?.metadata, labels: { ...old?.metadata?.labels, ...body.metadata?.labels } }));
      return body;
    },
  };
  const client = { resource: () => resource } as unknown as ApiClient;
  const stop = keepNodeGroups({
    informers: fed.factory,
    openAdmin: async () => ({ client, close: async () => {} }),
    labelsOf: groupLabels,
    clock: systemClock,
    log: silentLog,
  });
  const settle = () => new Promise((resolve) => setTimeout(resolve, 20));
  const claims = (group: string): Node['metadata'] => ({ annotations: { [GROUP_CLAIM]: group } });
  const nodes = fed.of(resources.nodes);
  nodes.set(node('compute', claims('node-config-compute')));
  nodes.set(node('thief', claims('node-config-master')));
  nodes.set(node('moved', { ...claims('node-config-compute'), labels: { [GROUP_LABEL]: 'node-config-infra' } }));
  nodes.set(node('plain', {}));
  nodes.set(node('lost', claims('no-such-group')));
  nodes.sync();
  fed.of(resources.configMaps).sync();
  await settle();
  stop();
  assert.deepEqual(
    created.sort(),
    defaultGroups()
      .map(({ metadata }) => metadata?.name)
      .sort(),
  );
  assert.deepEqual(Object.fromEntries(labelled), {
    compute: { [GROUP_LABEL]: 'node-config-compute', 'node-role.kubernetes.io/compute': 'true' },
    thief: { [GROUP_LABEL]: 'node-config-master' },
    moved: { 'node-role.kubernetes.io/infra': 'true' },
  });
});
