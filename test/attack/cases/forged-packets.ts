/**
 * Packets that pods forge: VXLAN frames to the host, directly and through a service, and source addresses of other
 * pods.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { eventually, sleep } from '../../e2e/harness.ts';
import { isReady, shell } from '../../e2e/pods/lab.ts';
import type { AttackLab, Tenant } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const TUNNEL = 4789;
const OTHER = 4790;
const NEVER_MS = 2_000;
/** Program that prints all datagrams. argv: ports. */
const LISTENER = `
for (const port of process.argv.slice(1)) {
  const socket = require('dgram').createSocket('udp4');
  socket.on('message', (d) => console.log(String(d)));
  socket.bind(Number(port), () => console.log('bound ' + port));
}`;
/** Program that sends a datagram. argv: source address or '-', destination, port, text. */
const SENDER = `
const [from, to, port, text] = process.argv.slice(1);
const socket = require('dgram').createSocket('udp4');
socket.bind(0, from === '-' ? undefined : from, () => socket.send(text, Number(port), to, () => socket.close()));`;

async function running(
  lab: AttackLab,
  tenant: Tenant,
  name: string,
): Promise<{ ip: string; hostIp: string; netns: string }> {
  const made = await lab.request(tenant, 'POST', `/api/v1/namespaces/${tenant.namespace}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 0, containers: [shell('exec sleep 3600')] },
  });
  assert.equal(made.code, 201, made.body);
  const { status } = await lab.pods.untilPods(`${tenant.namespace}/${name} ready`, (): Pod | undefined => {
    const pod = lab.pods.pod(name, tenant.namespace);
    return pod !== undefined && isReady(pod) ? pod : undefined;
  });
  const directory = join(lab.appliance.root, 'var/lib/origin/network');
  for (const file of await readdir(directory)) {
    const record = JSON.parse(await readFile(join(directory, file), 'utf8')) as { ips: string[]; netnsPath: string };
    if (record.ips.includes(status?.podIP ?? ''))
      return { ip: status?.podIP ?? '', hostIp: status?.hostIP ?? '', netns: record.netnsPath };
  }
  throw new Error(`${name}: no record of its network`);
}

/** Sends from the pod's network namespace with any source address, as a pod with raw sockets can. */
async function send(
  lab: AttackLab,
  netns: string,
  from: string,
  to: string,
  port: number,
  text: string,
): Promise<void> {
  const command = [`--net=${netns}`, process.execPath, '-e', SENDER, from, to, String(port), text];
  const ran = await lab.appliance.inside('nsenter', command);
  assert.equal(ran.code, 0, ran.stderr);
}

async function listening(
  lab: AttackLab,
  netns: string | undefined,
  ports: readonly number[],
): Promise<{ heard(): string; stop(): void }> {
  let heard = '';
  const command = [process.execPath, '-e', LISTENER, ...ports.map(String)];
  const [file = '', ...args] = netns === undefined ? command : ['nsenter', `--net=${netns}`, ...command];
  const child = lab.appliance.spawnInside(file, args);
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    heard += text;
  });
  await eventually('the listener', 10_000, () => (heard.split('bound').length > ports.length ? true : undefined));
  return { heard: () => heard, stop: () => void child.kill('SIGKILL') };
}

const arrives = (listener: { heard(): string }, text: string): Promise<true> =>
  eventually(text, 10_000, () => (listener.heard().includes(text) ? true : undefined));

export const cases: readonly AttackCase[] = [
  {
    finding: 48,
    title: "a pod reaches the host's VXLAN port neither directly nor through a service",
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      const { hostIp, netns } = await running(lab, tenant, 'sender');
      const port = { name: 'frames', protocol: 'UDP', port: 80, targetPort: TUNNEL };
      await lab.pods.apply(
        {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: 'frames', namespace: tenant.namespace },
          spec: { ports: [port] },
        },
        {
          apiVersion: 'discovery.k8s.io/v1',
          kind: 'EndpointSlice',
          metadata: {
            name: 'frames-1',
            namespace: tenant.namespace,
            labels: { 'kubernetes.io/service-name': 'frames' },
          },
          addressType: 'IPv4',
          ports: [{ name: 'frames', protocol: 'UDP', port: TUNNEL }],
          endpoints: [{ addresses: [hostIp], conditions: { ready: true } }],
        },
      );
      const args = ['get', 'service', 'frames', '-n', tenant.namespace, '-o', 'jsonpath={.spec.clusterIP}'];
      const clusterIp = await lab.pods.kubectl(...args);
      const listener = await listening(lab, undefined, [TUNNEL, OTHER]);
      try {
        await send(lab, netns, '-', hostIp, OTHER, 'to-another-port');
        await arrives(listener, 'to-another-port');
        await send(lab, netns, '-', hostIp, TUNNEL, 'frame-direct');
        for (let round = 0; round < 10; round++) {
          await send(lab, netns, '-', clusterIp, 80, 'frame-by-service');
          await sleep(NEVER_MS / 10);
        }
        assert.doesNotMatch(listener.heard(), /frame/);
      } finally {
        listener.stop();
        await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
      }
    },
  },
  {
    finding: 48,
    title: 'a pod cannot send packets with a forged source address',
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      const [sender, target, victim] = await Promise.all(
        ['sender', 'target', 'victim'].map((name) => running(lab, tenant, name)),
      );
      assert.ok(sender !== undefined && target !== undefined && victim !== undefined);
      const listener = await listening(lab, target.netns, [OTHER]);
      try {
        await send(lab, sender.netns, sender.ip, target.ip, OTHER, 'own source');
        await arrives(listener, 'own source');
        const add = [`--net=${sender.netns}`, 'ip', 'addr', 'add', `${victim.ip}/32`, 'dev', 'eth0'];
        assert.equal((await lab.appliance.inside('nsenter', add)).code, 0);
        await send(lab, sender.netns, victim.ip, target.ip, OTHER, 'forged');
        await sleep(NEVER_MS);
        assert.doesNotMatch(listener.heard(), /forged/);
      } finally {
        listener.stop();
        await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
      }
    },
  },
];
