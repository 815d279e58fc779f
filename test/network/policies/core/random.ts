/** Random policies, pods and packets from a small set of values, so that they often match. */
import type { Namespace, Pod } from '../../../../src/api/generated/core/v1.ts';
import type { LabelSelector } from '../../../../src/api/generated/meta/v1.ts';
import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '../../../../src/api/generated/networking/v1.ts';
import type { Packet } from './table.ts';

export type Random = () => number;

export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
const some = <T>(random: Random, max: number, make: () => T): T[] =>
  Array.from({ length: Math.floor(random() * (max + 1)) }, make);

export const NAMESPACES = ['a', 'b', 'c'];
export const NODES = ['n1', 'n2'];
const PORTS = [80, 443, 8080, 8081, 65_535];
const NAMES = ['web', 'dns'];
const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;
const BLOCKS = [
  { cidr: '0.0.0.0/0', except: ['10.0.0.0/29', '10.0.0.0/30'] },
  { cidr: '10.0.0.5/29' },
  { cidr: '192.0.2.0/24', except: ['192.0.2.128/25'] },
  { cidr: '::/0' },
  { cidr: 'fd00::/125', except: ['fd00::4/127', 'fd00::1/128'] },
];

const labels = (random: Random): Record<string, string> => ({
  ...(random() < 0.7 ? { app: pick(random, ['x', 'y']) } : {}),
  ...(random() < 0.3 ? { tier: pick(random, ['x', 'y']) } : {}),
});

function selector(random: Random): LabelSelector {
  if (random() < 0.25) return {};
  if (random() < 0.5) return { matchLabels: labels(random) };
  const operator = pick(random, ['In', 'NotIn', 'Exists', 'DoesNotExist']);
  const values = operator.endsWith('In') ? { values: some(random, 1, () => 'y').concat('x') } : {};
  return { matchExpressions: [{ key: pick(random, ['app', 'tier']), operator, ...values }] };
}

export const randomNamespace = (random: Random, name: string): Namespace => ({
  metadata: { name, labels: labels(random) },
});

export function randomPod(random: Random, index: number): Pod {
  return {
    metadata: { namespace: pick(random, NAMESPACES), name: `p${index}`, labels: labels(random) },
    spec: {
      nodeName: pick(random, NODES),
      ...(random() < 0.1 ? { hostNetwork: true } : {}),
      containers: [
        {
          name: 'c',
          ports: some(random, 2, () => ({
            name: pick(random, NAMES),
            containerPort: pick(random, PORTS),
            protocol: pick(random, PROTOCOLS),
          })),
        },
      ],
    },
    status: {
      phase: random() < 0.1 ? 'Succeeded' : 'Running',
      podIPs: random() < 0.1 ? [] : [{ ip: `10.0.0.${index}` }, { ip: `fd00::${index.toString(16)}` }],
    },
  };
}

function peer(random: Random): NetworkPolicyPeer {
  const chance = random();
  if (chance < 0.3) return { ipBlock: pick(random, BLOCKS) };
  if (chance < 0.6) return { podSelector: selector(random) };
  if (chance < 0.8) return { namespaceSelector: selector(random) };
  return { namespaceSelector: selector(random), podSelector: selector(random) };
}

function port(random: Random): NetworkPolicyPort {
  const protocol = random() < 0.3 ? {} : { protocol: pick(random, PROTOCOLS) };
  const chance = random();
  if (chance < 0.2) return protocol;
  if (chance < 0.4) return { ...protocol, port: pick(random, NAMES) };
  if (chance < 0.6) return { ...protocol, port: 80, endPort: pick(random, [80, 443, 9000]) };
  return { ...protocol, port: pick(random, PORTS) };
}

export function randomPolicy(random: Random, index: number): NetworkPolicy {
  const types = pick(random, [undefined, ['Ingress'], ['Egress'], ['Ingress', 'Egress']]);
  return {
    metadata: { namespace: pick(random, NAMESPACES), name: `q${index}` },
    spec: {
      podSelector: selector(random),
      ...(types === undefined ? {} : { policyTypes: types }),
      ingress: some(random, 2, () => ({
        from: some(random, 2, () => peer(random)),
        ports: some(random, 3, () => port(random)),
      })),
      ...(types?.includes('Egress')
        ? {
            egress: some(random, 2, () => ({
              to: some(random, 2, () => peer(random)),
              ports: some(random, 3, () => port(random)),
            })),
          }
        : {}),
    },
  };
}

export function randomPacket(random: Random, pods: number): Packet {
  const isSix = random() < 0.5;
  const address = (): string => {
    const index = 1 + Math.floor(random() * (pods + 2));
    if (random() < 0.1) return isSix ? '2001:db8::1' : pick(random, ['192.0.2.1', '192.0.2.200']);
    return isSix ? `fd00::${index.toString(16)}` : `10.0.0.${index}`;
  };
  const protocol = pick(random, ['tcp', 'udp', 'sctp']);
  return { from: address(), to: address(), protocol, port: pick(random, [...PORTS, 81, 9001]) };
}
