import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CertificateSigningRequest } from '../../../../src/api/generated/certificates/v1.ts';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import {
  authorityOf,
  rejectionReason,
  SIGNER,
} from '../../../../src/api/kinds/identity/certificatesigningrequests/policy.ts';
import type { CertificateRequestFacts } from '../../../../src/api/kinds/identity/certificatesigningrequests/signer-port.ts';
import { APPROVED_ANNOTATION, DECLARED_ANNOTATION } from '../../../../src/api/kinds/nodes/nodes/serving-addresses.ts';
import { timestamp } from '../../../../src/base/time/timestamps.ts';
import {
  awaitsSignature,
  cleanInMs,
  planApproval,
  validityMs,
} from '../../../../src/controllers/identity/signing-requests/approval.ts';
import type { ServingEvidence } from '../../../../src/controllers/identity/signing-requests/serving-names.ts';
import { NOW, node } from '../../objects.ts';

const facts = (more: Partial<CertificateRequestFacts> = {}): CertificateRequestFacts => ({
  commonName: 'system:node:n',
  organizations: ['system:nodes'],
  dnsNames: [],
  ipAddresses: [],
  emailAddresses: [],
  uris: [],
  requestsCa: false,
  signatureValid: true,
  keyType: 'ec',
  keyBits: 256,
  ...more,
});
const CLIENT = ['digital signature', 'client auth'];
const SERVER = ['digital signature', 'server auth'];
const serving = facts({ dnsNames: ['n'] });

const cases: readonly (readonly [string, string, readonly string[], CertificateRequestFacts, boolean])[] = [
  ['a kubelet client', SIGNER.kubeletClient, CLIENT, facts(), true],
  ['a kubelet client with key encipherment', SIGNER.kubeletClient, [...CLIENT, 'key encipherment'], facts(), true],
  ['a kubelet client without client auth', SIGNER.kubeletClient, ['digital signature'], facts(), false],
  ['a kubelet client with server auth', SIGNER.kubeletClient, [...CLIENT, 'server auth'], facts(), false],
  ['a kubelet client with a DNS name', SIGNER.kubeletClient, CLIENT, facts({ dnsNames: ['n'] }), false],
  ['a kubelet client with an IP address', SIGNER.kubeletClient, CLIENT, facts({ ipAddresses: ['10.0.0.1'] }), false],
  ['a kubelet client with an e-mail address', SIGNER.kubeletClient, CLIENT, facts({ emailAddresses: ['a@b'] }), false],
  ['a kubelet client with a URI', SIGNER.kubeletClient, CLIENT, facts({ uris: ['spiffe://x'] }), false],
  [
    'a kubelet client with two organizations',
    SIGNER.kubeletClient,
    CLIENT,
    facts({ organizations: ['system:nodes', 'system:masters'] }),
    false,
  ],
  ['a kubelet client without an organization', SIGNER.kubeletClient, CLIENT, facts({ organizations: [] }), false],
  ['a kubelet client with another name', SIGNER.kubeletClient, CLIENT, facts({ commonName: 'admin' }), false],
  [
    'a kubelet client with an empty node name',
    SIGNER.kubeletClient,
    CLIENT,
    facts({ commonName: 'system:node:' }),
    false,
  ],
  ['a serving certificate of a kubelet', SIGNER.kubeletServing, SERVER, serving, true],
  ['a serving certificate without names', SIGNER.kubeletServing, SERVER, facts(), false],
  ['a serving certificate with client auth', SIGNER.kubeletServing, CLIENT, serving, false],
  [
    'a serving certificate with an e-mail address',
    SIGNER.kubeletServing,
    SERVER,
    facts({ dnsNames: ['n'], emailAddresses: ['a@b'] }),
    false,
  ],
  ['any client', SIGNER.client, CLIENT, facts({ commonName: 'jane', organizations: ['dev'] }), true],
  ['a client of system:masters', SIGNER.client, CLIENT, facts({ organizations: ['system:masters'] }), false],
  ['a client with server auth', SIGNER.client, [...CLIENT, 'server auth'], facts(), false],
  ['a CA certificate', SIGNER.client, CLIENT, facts({ requestsCa: true }), false],
  ['a request with an invalid signature', SIGNER.client, CLIENT, facts({ signatureValid: false }), false],
  ['a 1024-bit RSA key', SIGNER.client, CLIENT, facts({ keyType: 'rsa', keyBits: 1024 }), false],
  ['a 16384-bit RSA key', SIGNER.client, CLIENT, facts({ keyType: 'rsa', keyBits: 16_384 }), false],
  ['a request for an unknown signer', 'example.com/x', CLIENT, facts(), false],
];

for (const name of ['a/../b', 'a b', 'a\nb', 'A', 'ä', 'a\u0000', '-a', 'a..b', '*', 'n,O=system:masters'])
  test(`signer: rejects the node name ${JSON.stringify(name)}`, () => {
    const commonName = `system:node:${name}`;
    assert.match(rejectionReason(SIGNER.kubeletClient, CLIENT, facts({ commonName })) ?? '', /the name of a node/);
    const requested = facts({ commonName, dnsNames: ['n'] });
    assert.match(rejectionReason(SIGNER.kubeletServing, SERVER, requested) ?? '', /the name of a node/);
  });

for (const [title, signer, usages, given, accepted] of cases) {
  test(`signer: ${accepted ? 'accepts' : 'rejects'} ${title}`, () =>
    assert.equal(rejectionReason(signer, usages, given) === undefined, accepted));
}

const request = (
  spec: Partial<NonNullable<CertificateSigningRequest['spec']>>,
  conditions: { type: string; atMs: number }[] = [],
): CertificateSigningRequest => ({
  metadata: { name: 'r', creationTimestamp: timestamp(NOW) },
  spec: { request: '', signerName: SIGNER.kubeletClient, usages: CLIENT, ...spec },
  status: {
    conditions: conditions.map(({ type, atMs }) => ({ type, status: 'True', lastUpdateTime: timestamp(atMs) })),
  },
});
const evidence: ServingEvidence = {
  source: undefined,
  inventory: [],
  nodes: [],
  apiServers: ['10.0.0.1'],
  serviceCidrs: ['172.30.0.0/16', 'fd02::/112'],
  clusterCidrs: ['10.128.0.0/14'],
  domains: ['cluster.local', 'apps.lab.example'],
};
const approve = (
  spec: Partial<NonNullable<CertificateSigningRequest['spec']>>,
  more: Partial<Parameters<typeof planApproval>[0]> = {},
) =>
  planApproval(
    { request: request(spec), facts: facts(), node: undefined, tokenEndsAtMs: undefined, evidence, ...more },
    NOW,
  );

test('approves the renewal of a node independent of its readiness', () => {
  const plan = approve({ username: 'system:node:n' }, { node: node('n', { ready: 'True' }) });
  assert.equal(plan.kind, 'approve-if-allowed');
  assert.ok(plan.kind === 'approve-if-allowed' && plan.subresources.includes('selfnodeclient'));
});

test('approves a bootstrap identity for a free name or a node that is not ready, while its token is valid', () => {
  const username = 'system:bootstrap:abcdef';
  assert.equal(approve({ username }).kind, 'approve-if-allowed');
  assert.equal(approve({ username }, { node: node('n', { ready: 'Unknown' }) }).kind, 'approve-if-allowed');
  assert.equal(approve({ username }, { node: node('n', { ready: 'True' }) }).kind, 'ignore');
  assert.equal(approve({ username }, { tokenEndsAtMs: NOW + 1 }).kind, 'approve-if-allowed');
  assert.equal(approve({ username }, { tokenEndsAtMs: NOW }).kind, 'ignore');
  assert.equal(approve({ username }, { tokenEndsAtMs: 'absent' }).kind, 'ignore');
});

test('rejects another node that requests the name of a live node', () => {
  assert.equal(approve({ username: 'system:node:evil' }, { node: node('n', { ready: 'True' }) }).kind, 'ignore');
});

const SERVING = {
  username: 'system:node:n',
  groups: ['system:nodes'],
  signerName: SIGNER.kubeletServing,
  usages: SERVER,
};

test('approves a serving certificate only for the node itself and its name', () => {
  const self = node('n');
  assert.equal(approve(SERVING, { facts: serving, node: self }).kind, 'approve');
  assert.equal(approve(SERVING, { facts: serving }).kind, 'ignore');
  assert.equal(approve({ ...SERVING, username: 'system:node:m' }, { facts: serving, node: self }).kind, 'ignore');
  assert.equal(approve({ ...SERVING, groups: [] }, { facts: serving, node: self }).kind, 'ignore');
});

test('does not trust addresses that only the node reports', () => {
  const names = ['kubernetes.default.svc', '172.30.0.1', '10.0.0.7', 'api'];
  const self: Node = {
    ...node('n'),
    status: { addresses: names.map((address) => ({ type: 'InternalIP', address })) },
  };
  for (const name of names) {
    const requested = /^[0-9]/.test(name) ? { ipAddresses: [name] } : { dnsNames: ['n', name] };
    assert.equal(approve(SERVING, { facts: facts(requested), node: self }).kind, 'ignore', name);
  }
});

test('trusts an address proven by the connection, the inventory or an administrator', () => {
  const requested = { facts: facts({ dnsNames: ['n'], ipAddresses: ['10.0.0.7'] }) };
  const plan = (more: Partial<ServingEvidence>, annotations: Record<string, string> = {}) =>
    approve(SERVING, {
      ...requested,
      node: { metadata: { name: 'n', annotations } },
      evidence: { ...evidence, ...more },
    }).kind;
  assert.equal(plan({}), 'ignore');
  assert.equal(plan({ source: '10.0.0.8' }), 'ignore');
  assert.equal(plan({ source: '10.0.0.7' }), 'approve');
  assert.equal(plan({ inventory: ['10.0.0.7'] }), 'approve');
  assert.equal(plan({}, { [DECLARED_ANNOTATION]: 'n.example, 10.0.0.7' }), 'approve');
  // The record of the last approval is no proof, because the address may belong to another host by now.
  assert.equal(plan({}, { [APPROVED_ANNOTATION]: '10.0.0.7' }), 'ignore');
});

test('never approves addresses of services, pods, API servers and other nodes', () => {
  const victim: Node = {
    metadata: { name: 'victim', annotations: { [APPROVED_ANNOTATION]: 'victim,10.0.0.9' } },
    status: { addresses: [{ type: 'InternalIP', address: '10.0.0.11' }] },
  };
  const older: Node = {
    metadata: { name: 'older' },
    status: { addresses: [{ type: 'InternalIP', address: '10.0.0.10' }] },
  };
  const plan = (ip: string, dnsNames: readonly string[] = []) =>
    approve(SERVING, {
      facts: facts({ dnsNames, ipAddresses: [ip] }),
      node: { metadata: { name: 'n', annotations: { [DECLARED_ANNOTATION]: dnsNames.join() } } },
      evidence: { ...evidence, source: ip, nodes: [victim, older, { metadata: { name: 'n' } }] },
    }).kind;
  for (const ip of [
    '172.30.0.1',
    'fd02::1',
    '10.128.0.9',
    '10.0.0.1',
    '10.0.0.9',
    '10.0.0.10',
    '169.254.169.254',
    '0.0.0.0',
  ])
    assert.equal(plan(ip), 'ignore', ip);
  // A node with a recorded approval cannot block other nodes with the addresses it reports.
  assert.equal(plan('10.0.0.11'), 'approve');
  for (const name of [
    'victim',
    'VICTIM',
    'kubernetes',
    'localhost',
    'a.b.svc',
    'a.b.svc.cluster.local',
    'x.apps.lab.example',
    '*.x',
  ])
    assert.equal(plan('10.0.0.7', [name]), 'ignore', name);
});

test('rejects the name of a node that looks like a service name', () => {
  for (const name of [
    'kubernetes.default.svc',
    'localhost',
    'kubernetes',
    'oauth.apps.lab.example',
    'a.svc.cluster.local',
  ])
    assert.equal(
      approve(
        { ...SERVING, username: `system:node:${name}` },
        { facts: facts({ commonName: `system:node:${name}`, dnsNames: [name] }), node: { metadata: { name } } },
      ).kind,
      'ignore',
      name,
    );
});

test('never approves requests for the general client signer automatically', () => {
  assert.equal(approve({ username: 'x', signerName: SIGNER.client }).kind, 'ignore');
});

test('limits the requested validity of a certificate', () => {
  assert.equal(validityMs(request({}), 5_000), 5_000);
  assert.equal(validityMs(request({ expirationSeconds: 3_600 }), 86_400_000), 3_600_000);
  assert.equal(validityMs(request({ expirationSeconds: 60 }), 86_400_000), 600_000);
  assert.equal(validityMs(request({ expirationSeconds: 864_000 }), 86_400_000), 86_400_000);
});

test('never signs a denied request', () => {
  assert.equal(awaitsSignature(request({}, [{ type: 'Approved', atMs: NOW }])), true);
  const both = request({}, [
    { type: 'Approved', atMs: NOW },
    { type: 'Denied', atMs: NOW },
  ]);
  assert.equal(awaitsSignature(both), false);
});

test('deletes finished requests after an hour and pending ones after a day', () => {
  const hour = 3_600_000;
  assert.equal(cleanInMs(request({}), NOW), 24 * hour);
  assert.equal(cleanInMs(request({}), NOW + 25 * hour), 0);
  assert.equal(cleanInMs(request({}, [{ type: 'Denied', atMs: NOW }]), NOW), hour);
});

test('signs with the cluster CA while a master or the node runs a release without the kubelet CA', () => {
  const reporting = (name: string, report: object, labels = {}): Node => ({
    metadata: { name, labels, annotations: { 'hyperedge.dev/host-report': JSON.stringify(report) } },
  });
  const older = { version: '0.1.0', kubernetes: 'v1.36.0', probes: {} };
  const newer = { ...older, kubeletAuthority: true };
  const master = { 'node-role.kubernetes.io/master': 'true' };
  const by = (...nodes: Node[]) => authorityOf(SIGNER.kubeletServing, 'system:node:n', nodes);
  assert.equal(by(), 'kubelet');
  assert.equal(by({ metadata: { name: 'n' } }), 'kubelet');
  assert.equal(by(reporting('n', newer), reporting('m', newer, master)), 'kubelet');
  assert.equal(by(reporting('n', older), reporting('m', newer, master)), 'cluster');
  assert.equal(by(reporting('n', newer), reporting('m', older, master)), 'cluster');
  assert.equal(by(reporting('n', newer), reporting('other', older)), 'kubelet');
  assert.equal(authorityOf(SIGNER.kubeletClient, 'system:node:n', []), 'cluster');
});
