/** Creates the report of `hyperedge status` from the gathered facts. */
import { timestamp } from '../../base/time/timestamps.ts';
import type { Gathered } from '../../doctor/port.ts';
import type {
  About,
  ApiNode,
  ClusterStatus,
  GatheredStatus,
  MemberStatus,
  NodeStatus,
  RingNode,
  SourceName,
  Unknown,
} from '../port.ts';
import { alarmsOf, knownValue } from './alarms.ts';

const MAX_NEXT = 8;

/** Names of the sources in the report, where it lists what is unknown. */
const SOURCES: Readonly<Record<SourceName, string>> = {
  process: 'this host',
  nodes: 'nodes of the API server',
  ring: 'hosts of the gossip ring',
  store: 'members of the store',
  certificates: 'certificates',
  snapshots: 'snapshots',
  update: 'update',
  pools: 'pools',
  operators: 'cluster operators',
};

export function reportOf(facts: GatheredStatus, about: About): ClusterStatus {
  const { nowMs } = about;
  const alarms = alarmsOf(facts, about);
  const unknown = unknownOf(facts, about);
  const store = knownValue(facts.store);
  const update = knownValue(facts.update);
  const pools = knownValue(facts.pools);
  const certificates = knownValue(facts.certificates);
  const [soonest] = (certificates ?? [])
    .filter(({ problem }) => problem === undefined)
    .toSorted((left, right) => left.notAfterMs - right.notAfterMs);
  const available = update?.available ?? [];
  const next = [
    ...alarms.map((alarm) => alarm.next),
    ...(available[0] === undefined ? [] : [`oc adm upgrade --to=${available[0]}`]),
    ...(unknown.length > 0 && about.installed
      ? [`hyperedge doctor${about.root === '/' ? '' : ` --root ${about.root}`}`]
      : []),
    ...(about.installed ? [] : ['hyperedge install']),
  ];
  const isBad = alarms.some(({ severity }) => severity === 'error') || !about.installed;
  return {
    time: timestamp(nowMs),
    result: isBad ? 'error' : alarms.length + unknown.length > 0 ? 'warning' : 'ok',
    nodes: nodesOf(facts, about),
    ...(store === undefined ? {} : { quorum: store.quorum, members: membersOf(facts) }),
    ...(soonest === undefined
      ? {}
      : {
          certificates: {
            count: certificates?.length ?? 0,
            next: {
              file: soonest.file,
              expires: timestamp(soonest.notAfterMs),
              inMs: soonest.notAfterMs - nowMs,
            },
          },
        }),
    ...snapshotsOf(facts, nowMs),
    ...(update === undefined
      ? {}
      : {
          update: {
            current: update.current,
            ...(update.desired === '' || update.desired === update.current ? {} : { desired: update.desired }),
            available,
          },
        }),
    ...(pools === undefined ? {} : { pools }),
    alarms,
    unknown,
    next: [...new Set(next)].slice(0, MAX_NEXT),
  };
}

function unknownOf(facts: GatheredStatus, { installed }: About): Unknown[] {
  if (!installed) return [];
  const names = Object.keys(SOURCES).filter((name): name is SourceName => name in facts);
  const failed = names.flatMap((name) => {
    const fact: Gathered<unknown> = facts[name];
    return fact.state === 'failed' ? [{ what: SOURCES[name], why: fact.reason }] : [];
  });
  // Sources that failed for the same reason, such as an API server that does not respond, are listed together.
  return [...Map.groupBy(failed, ({ why }) => why)].map(([why, each]) => ({
    what: each.map(({ what }) => what).join(', '),
    why,
  }));
}

function nodesOf(facts: GatheredStatus, { nowMs, nodeName, installed }: About): NodeStatus[] {
  const host = knownValue(facts.process);
  const api = new Map((knownValue(facts.nodes) ?? []).map((node) => [node.name, node]));
  const ring = new Map((knownValue(facts.ring) ?? []).map((node) => [node.name, node]));
  const own = installed && nodeName !== '' ? [nodeName] : [];
  const names = [...new Set([...api.keys(), ...ring.keys(), ...own])].toSorted();
  return names.map((name) => {
    const [node, member] = [api.get(name), ring.get(name)];
    const release = member?.version || (name === nodeName ? host?.version : undefined);
    const kubeletVersion = node?.kubeletVersion ?? (name === nodeName ? host?.kubernetes.kubelet : undefined);
    const lastContactMs = contactOf(node, member, nowMs) ?? (name === nodeName && host !== undefined ? 0 : undefined);
    return {
      ...healthOf(node, member),
      name,
      roles: node?.roles ?? member?.roles ?? [],
      ...(release === undefined || release === '' ? {} : { release }),
      ...(kubeletVersion === undefined ? {} : { kubeletVersion }),
      ...(lastContactMs === undefined ? {} : { lastContactMs }),
      from: node !== undefined ? 'api' : member !== undefined ? 'gossip' : 'host',
    };
  });
}

function healthOf(
  node: ApiNode | undefined,
  member: RingNode | undefined,
): Pick<NodeStatus, 'health' | 'reason' | 'schedulable'> {
  if (node === undefined) return { health: member?.state ?? 'unknown' };
  const { ready, reason, schedulable } = node;
  return {
    health: ready ? 'Ready' : 'NotReady',
    ...(ready ? {} : { reason }),
    ...(schedulable ? {} : { schedulable }),
  };
}

/**
 * Time since the last contact: the last renewal of the Lease or the last contact in the gossip ring, whichever is
 * later.
 */
function contactOf(node: ApiNode | undefined, member: RingNode | undefined, nowMs: number): number | undefined {
  const ages = [
    ...(node?.renewedMs === undefined ? [] : [Math.max(0, nowMs - node.renewedMs)]),
    ...(member === undefined ? [] : [member.state === 'alive' ? 0 : member.forMs]),
  ];
  return ages.length === 0 ? undefined : Math.min(...ages);
}

function membersOf(facts: GatheredStatus): MemberStatus[] {
  const ring = knownValue(facts.ring) ?? [];
  const flushes = new Map(ring.map(({ memberId, fsyncMs }) => [memberId?.replace(/^0+/, ''), fsyncMs]));
  return (knownValue(facts.store)?.members ?? []).map(({ name, id, role, state, lag, dbBytes }) => {
    const fsyncMs = flushes.get(id.replace(/^0+/, ''));
    return {
      name: name === '' ? id : name,
      id,
      role,
      state,
      ...(lag === undefined ? {} : { lag }),
      ...(fsyncMs === undefined ? {} : { fsyncMs }),
      ...(dbBytes === undefined ? {} : { dbBytes }),
    };
  });
}

function snapshotsOf(facts: GatheredStatus, nowMs: number): Pick<ClusterStatus, 'snapshots'> {
  const snapshots = knownValue(facts.snapshots);
  if (snapshots === undefined) return {};
  const { directory, every, newest } = snapshots;
  const shown =
    newest === undefined
      ? {}
      : {
          newest: {
            file: newest.file,
            revision: newest.revision,
            bytes: newest.bytes,
            time: timestamp(newest.takenMs),
            ageMs: Math.max(0, nowMs - newest.takenMs),
          },
        };
  return { snapshots: { directory, ...(every === undefined ? {} : { every }), ...shown } };
}

/** Exit code of the command: 1 if the report contains an error, otherwise 0. */
export const exitCodeOf = ({ result }: Pick<ClusterStatus, 'result'>): number => (result === 'error' ? 1 : 0);
