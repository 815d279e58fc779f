import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { APPROVED_ANNOTATION, DECLARED_ANNOTATION } from '../../../../src/api/kinds/nodes/nodes/serving-addresses.ts';
import { planAddressRecord } from '../../../../src/controllers/identity/signing-requests/address-records.ts';
import type { ServingEvidence } from '../../../../src/controllers/identity/signing-requests/serving-names.ts';

interface Facts {
  readonly reported?: readonly string[];
  readonly approved?: string;
  readonly declared?: string;
  readonly source?: string;
  readonly inventory?: readonly string[];
  readonly ring?: string;
  readonly others?: readonly Node[];
  readonly apiServers?: readonly string[];
}

const nodeOf = (name: string, { reported = ['192.0.2.7'], approved, declared }: Facts): Node => ({
  metadata: {
    name,
    annotations: {
      ...(approved === undefined ? {} : { [APPROVED_ANNOTATION]: approved }),
      ...(declared === undefined ? {} : { [DECLARED_ANNOTATION]: declared }),
    },
  },
  status: { addresses: reported.map((address) => ({ type: 'InternalIP', address })) },
});
const plan = (facts: Facts): readonly [string | undefined, string | undefined] => {
  const node = nodeOf('one', facts);
  const evidence: ServingEvidence = {
    source: facts.source,
    inventory: facts.inventory ?? [],
    apiServers: facts.apiServers ?? [],
    nodes: [node, ...(facts.others ?? [])],
    serviceCidrs: ['172.30.0.0/16'],
    clusterCidrs: ['10.128.0.0/14'],
    domains: ['cluster.local'],
  };
  const { record, problem } = planAddressRecord(node, evidence, facts.ring);
  return [record, problem];
};
const FOREIGN = '192.0.2.7 is neither the address that sent the request (192.0.2.8) nor declared';

test('records an address that the connection, the inventory or an administrator proves', () => {
  assert.deepEqual(plan({ approved: '', source: '192.0.2.7' }), ['192.0.2.7', undefined]);
  assert.deepEqual(plan({ approved: 'one', source: '192.0.2.7' }), ['one,192.0.2.7', undefined]);
  assert.deepEqual(plan({ approved: '', source: '192.0.2.8', inventory: ['192.0.2.7'] }), ['192.0.2.7', undefined]);
  assert.deepEqual(plan({ approved: '', source: '192.0.2.8', declared: '192.0.2.7' }), [undefined, undefined]);
  assert.deepEqual(plan({ approved: 'one,192.0.2.7', source: '192.0.2.8' }), [undefined, undefined]);
  // The address of the node has changed, so other nodes may use the former address.
  assert.deepEqual(plan({ approved: 'one,192.0.2.6', source: '192.0.2.7' }), ['one,192.0.2.7', undefined]);
});

test('does not record unproven addresses, or addresses of services, pods and other hosts', () => {
  assert.deepEqual(plan({ approved: '', source: '192.0.2.8' }), [undefined, FOREIGN]);
  // The ring proves an address only of a Node of an earlier release.
  assert.deepEqual(plan({ approved: '', source: '192.0.2.8', ring: '192.0.2.7' }), [undefined, FOREIGN]);
  const claim = (address: string, more: Facts = {}): string | undefined =>
    plan({ approved: '', reported: [address], source: address, ...more })[1];
  assert.match(claim('172.30.0.1') ?? '', /range of services/);
  assert.match(claim('10.128.0.9') ?? '', /range of pods/);
  const two = nodeOf('two', { approved: 'two,192.0.2.7' });
  assert.match(claim('192.0.2.7', { others: [two] }) ?? '', /belongs to another host/);
  assert.match(claim('192.0.2.7', { source: '192.0.2.8', apiServers: ['192.0.2.7'] }) ?? '', /belongs to another host/);
});

test('trusts a Node of an earlier release until the source address of its writes changes', () => {
  assert.deepEqual(plan({ source: '192.0.2.7' }), ['192.0.2.7', undefined]);
  assert.deepEqual(plan({ source: '192.0.2.8', ring: '192.0.2.7' }), ['192.0.2.7', undefined]);
  assert.deepEqual(plan({ source: '192.0.2.7', apiServers: ['192.0.2.7'] }), ['192.0.2.7', undefined]);
  assert.deepEqual(plan({}), [undefined, undefined]);
  assert.deepEqual(plan({ source: '127.0.0.1' }), [undefined, undefined]);
  assert.deepEqual(plan({ source: '192.0.2.8' }), ['', FOREIGN]);
});
