/**
 * Certificates that a node requests: for its own identity only, never for services, the control plane or other nodes.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSigningRequest, generateKey, masterFiles } from '../../../src/pki/index.ts';
import type { AttackLab } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const NODE = 'attack-node';
const TOKEN = { id: 'attack', secret: 'attack0123456789' };
const PENDING_MS = 4_000;

interface SigningOrder {
  readonly name: string;
  readonly signerName: string;
  readonly usage: string;
  readonly dns: readonly string[];
  readonly ips: readonly string[];
}

class Node {
  readonly #lab: AttackLab;
  #identity: readonly string[] = [];

  constructor(lab: AttackLab) {
    this.#lab = lab;
  }

  as(identity: readonly string[]): void {
    this.#identity = identity;
  }

  send(method: string, path: string, body?: object) {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    return this.#lab.curl(`https://127.0.0.1:8443${path}`, [
      ...['-X', method, '-H', `Content-Type: ${type}`, ...this.#identity],
      ...(body === undefined ? [] : ['--data-binary', JSON.stringify(body)]),
    ]);
  }

  /** Submits the request and returns its private key. */
  async order({ name, signerName, usage, dns, ips }: SigningOrder): Promise<string> {
    const key = await generateKey();
    const subject = { commonName: `system:node:${NODE}`, organizations: ['system:nodes'] };
    const pem = createSigningRequest(key, subject, { dns, ips });
    const made = await this.send('POST', REQUESTS, {
      metadata: { name },
      spec: { request: Buffer.from(pem).toString('base64'), signerName, usages: ['digital signature', usage] },
    });
    assert.equal(made.code, 201, made.body);
    return key.export({ type: 'pkcs8', format: 'pem' }).toString();
  }

  /** Undefined if the request is not signed in time. */
  async certificate(name: string, withinMs: number): Promise<string | undefined> {
    const endMs = Date.now() + withinMs;
    do {
      const found = JSON.parse(await this.#lab.pods.kubectl('get', 'csr', name, '-o', 'json')) as {
        status?: { certificate?: string };
      };
      const { certificate } = found.status ?? {};
      if (certificate !== undefined) return Buffer.from(certificate, 'base64').toString();
      await new Promise((resolve) => setTimeout(resolve, 200));
    } while (Date.now() < endMs);
    return undefined;
  }
}

export const cases: readonly AttackCase[] = [
  {
    finding: 41,
    title: 'a holder of a join token gets no certificate for services, masters or other nodes',
    attack: async (lab) => {
      const node = new Node(lab);
      await lab.pods.apply({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `bootstrap-token-${TOKEN.id}`, namespace: 'kube-system' },
        type: 'bootstrap.kubernetes.io/token',
        stringData: {
          'token-id': TOKEN.id,
          'token-secret': TOKEN.secret,
          'usage-bootstrap-authentication': 'true',
          'auth-extra-groups': 'system:bootstrappers:hyperedge:node',
        },
      });
      node.as(['-H', `Authorization: Bearer ${TOKEN.id}.${TOKEN.secret}`]);
      const key = await node.order({
        name: `${NODE}-client`,
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usage: 'client auth',
        dns: [],
        ips: [],
      });
      const client = await node.certificate(`${NODE}-client`, 20_000);
      assert.ok(client !== undefined, 'the node joins');
      const pair = join(lab.appliance.root, `${NODE}.pem`);
      await writeFile(pair, client + key, { mode: 0o600 });
      node.as(['--cert', pair]);
      const path = `/api/v1/nodes/${NODE}`;
      const registered = await node.send('POST', '/api/v1/nodes', { metadata: { name: NODE } });
      assert.equal(registered.code, 201, registered.body);
      const [master] = JSON.parse(await lab.pods.kubectl('get', 'nodes', '-o', 'json')).items.filter(
        (each: { metadata: { name: string } }) => each.metadata.name !== NODE,
      );
      const masterAddresses: string[] = master.status.addresses.map((each: { address: string }) => each.address);
      const wanted = ['kubernetes.default.svc', '172.30.0.1', '10.99.99.99', 'localhost', ...masterAddresses];
      const status = {
        addresses: wanted.map((address) => ({ type: /^[\d.]+$/.test(address) ? 'InternalIP' : 'Hostname', address })),
      };
      const reported = await node.send('PATCH', `${path}/status`, { status });
      assert.equal(reported.code, 200, reported.body);
      for (const annotation of ['serving-addresses', 'approved-addresses']) {
        const annotations = { [`hyperedge.dev/${annotation}`]: wanted.join() };
        assert.equal((await node.send('PATCH', path, { metadata: { annotations } })).code, 403, annotation);
      }
      // The Node of the attacker is Ready, so the addresses of services of type LoadBalancer would include the reported
      // ones.
      const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
      const ready = { type: 'Ready', status: 'True', lastHeartbeatTime: now, lastTransitionTime: now };
      assert.equal((await node.send('PATCH', `${path}/status`, { status: { conditions: [ready] } })).code, 200);
      await lab.pods.apply({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: NODE, namespace: 'default' },
        spec: { type: 'LoadBalancer', ports: [{ port: 7_777 }] },
      });
      const serving = { signerName: 'kubernetes.io/kubelet-serving', usage: 'server auth' };
      for (const [at, name] of wanted.entries())
        await node.order({
          ...serving,
          name: `${NODE}-${at}`,
          ...(/^[\d.]+$/.test(name) ? { dns: [NODE], ips: [name] } : { dns: [NODE, name], ips: [] }),
        });
      await new Promise((resolve) => setTimeout(resolve, PENDING_MS));
      for (const [at, name] of wanted.entries())
        assert.equal(await node.certificate(`${NODE}-${at}`, 0), undefined, `${name} is not approved`);
      const service = await lab.pods.kubectl('get', 'service', NODE, '-o', 'json');
      assert.ok(
        masterAddresses.some((each) => service.includes(`"ip": "${each}"`)),
        service,
      );
      assert.ok(!service.includes('10.99.99.99'), service);
      // The node's own name is approved, and signed by an authority that is only trusted for kubelets.
      await node.order({ ...serving, name: `${NODE}-own`, dns: [NODE], ips: [] });
      const own = await node.certificate(`${NODE}-own`, 20_000);
      assert.ok(own !== undefined, 'its own name is approved');
      const { ca, kubeletCaBundle } = masterFiles(lab.appliance.root);
      const issued = new X509Certificate(own);
      assert.equal(issued.verify(new X509Certificate(await readFile(ca.cert)).publicKey), false);
      assert.ok(issued.verify(new X509Certificate(await readFile(kubeletCaBundle)).publicKey));
      await lab.pods.kubectl('delete', 'service', NODE);
      await lab.pods.kubectl('delete', 'node', NODE);
    },
  },
];
