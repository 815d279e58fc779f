/** Small objects for planner tests. */

import type { Deployment, ReplicaSet } from '../../src/api/generated/apps/v1.ts';
import type { Node, Pod, Service } from '../../src/api/generated/core/v1.ts';
import { timestamp } from '../../src/base/time/timestamps.ts';

export const NOW = Date.parse('2026-01-01T00:00:00Z');

let serial = 0;
export const nextUid = (): string => `uid-${++serial}`;

/** A repeatable source of randomness (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

export interface PodFacts {
  name?: string;
  node?: string;
  labels?: Record<string, string>;
  ready?: boolean;
  readySinceMs?: number;
  phase?: string;
  deleting?: boolean;
  owner?: string;
  createdMs?: number;
  restarts?: number;
  annotations?: Record<string, string>;
  ip?: string;
}

export function pod(facts: PodFacts = {}): Pod {
  const uid = nextUid();
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: facts.name ?? uid,
      namespace: 'ns',
      uid,
      labels: facts.labels ?? { app: 'a' },
      ...(facts.annotations === undefined ? {} : { annotations: facts.annotations }),
      creationTimestamp: timestamp(facts.createdMs ?? NOW - 3_600_000),
      ...(facts.deleting === true ? { deletionTimestamp: timestamp(NOW) } : {}),
      ...(facts.owner === undefined
        ? {}
        : { ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: facts.owner, controller: true }] }),
    },
    spec: { containers: [{ name: 'c' }], ...(facts.node === undefined ? {} : { nodeName: facts.node }) },
    status: {
      phase: facts.phase ?? 'Running',
      ...(facts.ip === undefined ? {} : { podIP: facts.ip, podIPs: [{ ip: facts.ip }] }),
      conditions:
        facts.ready === undefined
          ? []
          : [
              {
                type: 'Ready',
                status: facts.ready ? 'True' : 'False',
                lastTransitionTime: timestamp(facts.readySinceMs ?? NOW - 60_000),
              },
            ],
      ...(facts.restarts === undefined
        ? {}
        : {
            containerStatuses: [
              { name: 'c', image: '', imageID: '', ready: true, restartCount: facts.restarts, state: {} },
            ],
          }),
    },
  };
}

export function replicaSet(replicas: number, facts: Partial<ReplicaSet['metadata']> = {}): ReplicaSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'rs', namespace: 'ns', uid: nextUid(), generation: 1, ...facts },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'a' } },
      template: { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  };
}

export function deployment(replicas: number, spec: Partial<NonNullable<Deployment['spec']>> = {}): Deployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd', namespace: 'ns', uid: nextUid(), generation: 1 },
    spec: {
      replicas,
      progressDeadlineSeconds: 600,
      revisionHistoryLimit: 10,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      selector: { matchLabels: { app: 'a' } },
      template: { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'v1' }] } },
      ...spec,
    },
  };
}

export function node(
  name: string,
  facts: { ready?: 'True' | 'False' | 'Unknown'; labels?: Record<string, string> } = {},
): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: `uid-${name}`, labels: facts.labels ?? {}, creationTimestamp: timestamp(NOW - 3_600_000) },
    spec: {},
    status: {
      conditions:
        facts.ready === undefined ? [] : [{ type: 'Ready', status: facts.ready, lastHeartbeatTime: timestamp(NOW) }],
    },
  };
}

export function service(spec: NonNullable<Service['spec']>): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name: 'svc', namespace: 'ns', uid: 'uid-svc' }, spec };
}
