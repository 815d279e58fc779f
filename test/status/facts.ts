/** Gathered facts of a healthy cluster of two masters and one node. */
import type { Gathered } from '../../src/doctor/port.ts';
import type { About, GatheredStatus, StatusFacts } from '../../src/status/port.ts';

export const NOW_MS = Date.parse('2026-11-01T12:00:00Z');
const DAY_MS = 24 * 3_600_000;

export const ABOUT: About = {
  nowMs: NOW_MS,
  root: '/',
  nodeName: 'pi-1',
  nodeIp: '10.0.0.1',
  installed: true,
  version: '0.1.0',
};

const node = (name: string, roles: readonly string[]): StatusFacts['nodes'][number] => ({
  name,
  roles,
  kubeletVersion: 'v1.36.0',
  ready: true,
  reason: '',
  schedulable: true,
  pressures: [],
  renewedMs: NOW_MS - 4000,
});
const member = (name: string, memberId: string | undefined): StatusFacts['ring'][number] => ({
  name,
  version: '0.1.0',
  state: 'alive',
  forMs: 60_000,
  memberId,
  roles: memberId === undefined ? ['node'] : ['master', 'etcd', 'node'],
  fsyncMs: memberId === undefined ? undefined : 2.5,
});

export const HEALTHY: StatusFacts = {
  process: {
    pid: 700,
    version: '0.1.0',
    kubernetes: { kubelet: 'v1.36.0', apiServer: 'v1.36.0', skew: [] },
    node: 'pi-1',
    nodeIp: '10.0.0.1',
    startedAt: '2026-11-01T00:00:00.000Z',
    ready: true,
    cgroupDriver: 'systemd',
    kubeconfig: '/etc/origin/master/admin.kubeconfig',
    components: [{ name: 'api', state: 'running', restarts: 0, startedAt: '2026-11-01T00:00:09.000Z', pid: 701 }],
    failures: [],
    layout: 'store: 2 voters; survives the loss of no member; join another master to survive the loss of one',
  },
  nodes: [node('pi-1', ['master', 'worker']), node('pi-2', ['master', 'worker']), node('pi-3', ['worker'])],
  ring: [member('pi-1', '00000000000000a1'), member('pi-2', '00000000000000b2'), member('pi-3', undefined)],
  store: {
    quorum: true,
    members: [
      { name: 'pi-1', id: 'a1', role: 'leader', state: 'ok', lag: 0, dbBytes: 5_000_000, errors: [] },
      { name: 'pi-2', id: 'b2', role: 'voter', state: 'ok', lag: 3, dbBytes: 5_000_000, errors: [] },
    ],
  },
  certificates: [
    {
      file: '/etc/origin/master/admin.crt',
      subject: 'CN=system:admin',
      notBeforeMs: 0,
      notAfterMs: NOW_MS + 90 * DAY_MS,
      chainProblem: undefined,
      problem: undefined,
    },
    {
      file: '/etc/origin/master/ca.crt',
      subject: 'CN=openshift-signer',
      notBeforeMs: 0,
      notAfterMs: NOW_MS + 900 * DAY_MS,
      chainProblem: undefined,
      problem: undefined,
    },
  ],
  snapshots: {
    directory: '/var/lib/origin/snapshots',
    newest: { file: '/var/lib/origin/snapshots/a.db', takenMs: NOW_MS - 7_200_000, revision: 812, bytes: 5_000_000 },
    problems: [],
    every: '24h',
    everyMs: DAY_MS,
  },
  update: { current: '0.1.0', available: [], desired: '0.1.0', failing: undefined, unfinished: undefined },
  pools: [{ name: 'worker', machines: 3, updated: 3, unavailable: 0, paused: false, degraded: undefined }],
  operators: [],
};

export const failed = (reason: string): Gathered<never> => ({ state: 'failed', reason });
export const absent = (reason: string): Gathered<never> => ({ state: 'absent', reason });

/** The healthy facts with some values replaced, and some sources without facts. */
export function gathered(
  changed: Partial<StatusFacts> = {},
  missing: Partial<Record<keyof StatusFacts, Gathered<never>>> = {},
): GatheredStatus {
  const of = <N extends keyof StatusFacts>(name: N): Gathered<StatusFacts[N]> =>
    missing[name] ?? { state: 'known', value: { ...HEALTHY, ...changed }[name] };
  return {
    process: of('process'),
    nodes: of('nodes'),
    ring: of('ring'),
    store: of('store'),
    certificates: of('certificates'),
    snapshots: of('snapshots'),
    update: of('update'),
    pools: of('pools'),
    operators: of('operators'),
  };
}
