/** Host ports: mappings for the runtime and the report on the Node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { PRODUCT_VERSION } from '../../../src/base/versions/version.ts';
import { DEFAULT_KUBELET_CONFIG, type KubeletConfig } from '../../../src/kubelet/index.ts';
import { NodeAgent } from '../../../src/kubelet/node/node-agent.ts';
import { portMappings } from '../../../src/kubelet/pods/containers/port-mappings.ts';
import { KubeletEvents } from '../../../src/kubelet/pods/events.ts';
import type { HostInfo } from '../../../src/kubelet/port.ts';
import { realClock } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

test('maps host ports only of the containers that admission checks, not of regular init containers', () => {
  const ports = (hostPort: number) => [{ containerPort: 80, hostPort }, { containerPort: 81 }];
  const spec = {
    initContainers: [
      { name: 'ends', ports: ports(30_080) },
      { name: 'sidecar', restartPolicy: 'Always', ports: ports(8081) },
    ],
    containers: [{ name: 'main', ports: [{ containerPort: 53, hostPort: 53, protocol: 'UDP', hostIP: '10.0.0.5' }] }],
  };
  assert.deepEqual(portMappings({ spec }), [
    { protocol: 'TCP', containerPort: 80, hostPort: 8081, hostIp: '' },
    { protocol: 'UDP', containerPort: 53, hostPort: 53, hostIp: '10.0.0.5' },
  ]);
  assert.deepEqual(portMappings({ spec: { ...spec, hostNetwork: true } }), []);
});

test('the kubelet updates the reserved ports of an existing Node', async () => {
  const api = new MemoryApi();
  const annotations = { 'hyperedge.dev/reserved-host-ports': 'TCP/8443', other: 'kept' };
  api.put(resources.nodes, { metadata: { name: 'n', annotations } });
  const registered = Promise.withResolvers<Node>();
  const config = {
    ...DEFAULT_KUBELET_CONFIG,
    nodeName: 'n',
    reservedPorts: [
      { protocol: 'TCP', port: 9443 },
      { protocol: 'UDP', port: 7946 },
    ],
  } as unknown as KubeletConfig;
  const agent = new NodeAgent({
    config,
    info: { architecture: 'amd64', operatingSystem: 'linux', hostname: 'n' } as HostInfo,
    client: api.client(),
    events: new KubeletEvents({ nowMs: () => 0 }),
    clock: realClock,
    log: silentLog,
    status: async () => ({}),
    volumesInUse: async () => [],
    onRegistered: registered.resolve,
    onReady: () => {},
  });
  try {
    void agent.start();
    assert.deepEqual((await registered.promise).metadata?.annotations, {
      'hyperedge.dev/reserved-host-ports': 'TCP/9443,UDP/7946',
      'hyperedge.dev/version': PRODUCT_VERSION,
      other: 'kept',
    });
  } finally {
    agent.stop();
  }
});
