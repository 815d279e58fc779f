import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import {
  formatReservedPorts,
  RESERVED_PORTS_ANNOTATION,
  type ReservedPort,
  reservedPortsOf,
} from '../../../src/api/kinds/nodes/nodes/host-ports.ts';

const annotated = (text: string, kubelet = 0): Node => ({
  metadata: { annotations: { [RESERVED_PORTS_ANNOTATION]: text } },
  status: { daemonEndpoints: { kubeletEndpoint: { Port: kubelet } } },
});

test('writes reserved ports sorted and without duplicates, and parses the same list', () => {
  const ports: ReservedPort[] = [
    { protocol: 'UDP', port: 7946 },
    { protocol: 'TCP', port: 8443 },
    { protocol: 'TCP', port: 8443 },
  ];
  const text = formatReservedPorts(ports);
  assert.equal(text, 'TCP/8443,UDP/7946');
  assert.deepEqual(reservedPortsOf(annotated(text)), [
    { protocol: 'TCP', port: 8443 },
    { protocol: 'UDP', port: 7946 },
  ]);
});

test('uses the kubelet port if the annotation is missing, skips malformed entries and limits their number', () => {
  assert.deepEqual(reservedPortsOf({ status: { daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } } }), [
    { protocol: 'TCP', port: 10_250 },
  ]);
  assert.deepEqual(reservedPortsOf(annotated('TCP/10250', 10_250)).length, 1);
  assert.deepEqual(reservedPortsOf(annotated('TCP/0,TCP/65536,ICMP/1,TCP,, TCP/1,TCP/1x,8443')), []);
  const many = Array.from({ length: 1_000 }, (_, index) => `TCP/${index + 1}`).join(',');
  assert.equal(reservedPortsOf(annotated(many)).length, 64);
  assert.deepEqual(reservedPortsOf({}), []);
});
