/**
 * ClusterOperators of this cluster's components, and the evaluation of their probes. Their names are the same as in
 * OpenShift, so that OpenShift's tools find them. Source: openshift/api config/v1 ClusterOperator (meaning of
 * conditions).
 */

import { oldestVersion } from '../../../../base/versions/release-version.ts';
import type { OperandVersion, RelatedObject } from '../../kinds/config/types.ts';
import { type Assessment, hostCountText, listed, onHosts, perHost, recentValue } from './assess.ts';
import type { LeaseFact, Probed, ProbeFacts } from './facts.ts';

export interface OperatorState {
  readonly name: string;
  readonly assessment: Assessment;
  readonly versions: readonly OperandVersion[];
  readonly relatedObjects: readonly RelatedObject[];
}

interface Operator {
  readonly name: string;
  readonly exists?: (facts: ProbeFacts) => boolean;
  readonly assess: (facts: ProbeFacts) => Assessment;
  /** Names of operands whose reported version is the version of Kubernetes. */
  readonly operands?: readonly string[];
  readonly mastersOnly?: boolean;
  readonly related: readonly RelatedObject[];
}

/**
 * Age of a renewal from which the lease counts as lost if, in addition, the controllers of a master do not respond. The
 * holder renews the lease every 2 s.
 */
const LATE_LEASE_MS = 5_000;

const related = (group: string, resource: string, name: string, namespace?: string): RelatedObject =>
  namespace === undefined ? { group, resource, name } : { group, resource, namespace, name };
const configObject = (resource: string): RelatedObject => related('config.openshift.io', resource, 'cluster');
const namespace = (name: string): RelatedObject => related('', 'namespaces', name);

const onAny = (facts: ProbeFacts, probe: 'router' | 'slices' | 'authentication'): boolean =>
  facts.hosts.some(({ report }) => report?.probes[probe] !== undefined);

function assessEtcd(facts: ProbeFacts): Assessment {
  const found = recentValue(facts.etcd, 'members of the store');
  if ('otherwise' in found) return found.otherwise;
  const { members, quorum } = found.value;
  const voters = members.filter(({ learner }) => !learner);
  const healthy = voters.filter(({ state }) => state === 'ok');
  const well = `${healthy.length} of ${voters.length} members are available`;
  const unhealthy = [
    ...members.filter(({ state }) => state !== 'ok').map(({ name, state }) => `${name || 'a new member'} is ${state}`),
    ...members.flatMap(({ name, state, errors }) => (state === 'ok' ? errors.map((each) => `${name}: ${each}`) : [])),
  ].map((message) => ({ reason: 'Member', message }));
  const degraded = { reason: 'EtcdMembersDegraded', message: `${well}; ${listed(unhealthy)}` };
  if (!quorum || healthy.length <= voters.length / 2) {
    return { well, degraded, unavailable: { reason: 'NoQuorum', message: `no quorum: ${well}` } };
  }
  return unhealthy.length === 0 ? { well } : { well, degraded };
}

/**
 * Assessment of a component that runs on all masters and has one leader. While the leader does not renew its lease, the
 * component is unavailable, even if the other instances respond.
 */
function assessLed(what: string, reason: string, facts: ProbeFacts, lease: Probed<LeaseFact>): Assessment {
  const hosts = onHosts(facts, 'controllers', { mastersOnly: true });
  const own = perHost(what, reason, hosts);
  if (own.unavailable !== undefined || own.unknown !== undefined) return own;
  const found = recentValue(lease, `lease of ${what}`);
  if ('otherwise' in found) return found.otherwise;
  const { holder, renewedMs, durationMs } = found.value;
  const well = `${what} leads as ${holder}; ${own.well}`;
  const late = renewedMs > durationMs || (hosts.failed.length > 0 && renewedMs > LATE_LEASE_MS);
  if (holder !== '' && !late) return { ...own, well };
  const message =
    holder === '' ? `no process has the lease of ${what}` : `${holder} does not renew the lease of ${what}`;
  const finding = { reason: `${reason}NotLed`, message };
  return { well, unavailable: finding, degraded: own.degraded ?? finding };
}

function assessPools(facts: ProbeFacts): Assessment {
  const found = recentValue(facts.pools, 'MachineConfigPools');
  if ('otherwise' in found) return found.otherwise;
  const pools = found.value;
  const having = (type: string): { reason: string; message: string }[] =>
    pools.flatMap(({ name, conditions }) =>
      conditions
        .filter((each) => each.type === type && each.status === 'True')
        .map(({ message }) => ({
          reason: type,
          message: message === '' ? `pool ${name}` : `pool ${name}: ${message}`,
        })),
    );
  const degraded = having('Degraded');
  const updating = having('Updating');
  const well = `${pools.length} pools are available`;
  return {
    well,
    ...(degraded.length === 0 ? {} : { degraded: { reason: 'MachineConfigPoolsDegraded', message: listed(degraded) } }),
    ...(updating.length === 0 ? {} : { progressing: { reason: 'PoolsUpdating', message: listed(updating) } }),
    ...(degraded.length === 0
      ? {}
      : { notUpgradeable: { reason: 'DegradedPool', message: `degraded pools block an update: ${listed(degraded)}` } }),
  };
}

function assessStorage(facts: ProbeFacts): Assessment {
  const found = recentValue(facts.storage, 'storage classes');
  if ('otherwise' in found) return found.otherwise;
  const { defaultClass, provisioner, served } = found.value;
  const well = `class ${defaultClass} is provisioned by ${provisioner}`;
  if (defaultClass === undefined) {
    const finding = { reason: 'NoDefaultClass', message: 'no StorageClass is the default' };
    return { well, unavailable: finding, degraded: finding };
  }
  if (served) return { well };
  const finding = { reason: 'NoProvisioner', message: `class ${defaultClass}: ${provisioner} does not run` };
  return { well, unavailable: finding, degraded: finding };
}

function assessMetrics(facts: ProbeFacts): Assessment {
  const found = recentValue(facts.metrics, 'metrics.k8s.io');
  if ('otherwise' in found) return found.otherwise;
  const all = facts.hosts.length;
  const well = `metrics of ${hostCountText(found.value.nodes, all)}`;
  if (found.value.nodes === 0) {
    const finding = { reason: 'NoMetrics', message: 'metrics.k8s.io has no metrics of any node' };
    return { well, unavailable: finding, degraded: finding };
  }
  return found.value.nodes >= all ? { well } : { well, degraded: { reason: 'MissingMetrics', message: well } };
}

const OPERATORS: readonly Operator[] = [
  {
    name: 'authentication',
    exists: (facts) => onAny(facts, 'authentication'),
    assess: (facts) =>
      perHost('the OAuth server', 'OAuthServer', onHosts(facts, 'authentication', { mastersOnly: true })),
    mastersOnly: true,
    related: [configObject('authentications'), configObject('oauths'), namespace('openshift-config')],
  },
  {
    name: 'dns',
    assess: (facts) => perHost('cluster DNS', 'DNS', onHosts(facts, 'dns')),
    related: [configObject('dnses'), related('', 'services', 'kube-dns', 'kube-system')],
  },
  {
    name: 'etcd',
    assess: assessEtcd,
    mastersOnly: true,
    related: [namespace('kube-system')],
  },
  {
    name: 'ingress',
    exists: (facts) => onAny(facts, 'router'),
    assess: (facts) => perHost('the router', 'IngressController', onHosts(facts, 'router')),
    related: [configObject('ingresses'), namespace('openshift-ingress'), related('route.openshift.io', 'routes', '')],
  },
  {
    name: 'kube-apiserver',
    assess: (facts) => ({
      ...perHost('the API server', 'APIServer', onHosts(facts, 'api', { mastersOnly: true })),
      ...(facts.skew.length === 0
        ? {}
        : { notUpgradeable: { reason: 'KubeletSkewUnsupported', message: facts.skew.join('; ') } }),
    }),
    operands: ['kube-apiserver'],
    mastersOnly: true,
    related: [configObject('apiservers'), namespace('kube-system')],
  },
  {
    name: 'kube-controller-manager',
    assess: (facts) => assessLed('the controller manager', 'ControllerManager', facts, facts.controllersLease),
    operands: ['kube-controller-manager'],
    mastersOnly: true,
    related: [
      namespace('kube-system'),
      related('coordination.k8s.io', 'leases', 'kube-controller-manager', 'kube-system'),
    ],
  },
  {
    name: 'kube-scheduler',
    assess: (facts) => assessLed('the scheduler', 'Scheduler', facts, facts.schedulerLease),
    operands: ['kube-scheduler'],
    mastersOnly: true,
    related: [
      configObject('schedulers'),
      namespace('kube-system'),
      related('coordination.k8s.io', 'leases', 'kube-scheduler', 'kube-system'),
    ],
  },
  {
    name: 'machine-config',
    exists: ({ pools }) => pools.state !== 'absent',
    assess: assessPools,
    related: [
      namespace('openshift-machine-config-operator'),
      related('machineconfiguration.openshift.io', 'machineconfigpools', ''),
    ],
  },
  {
    name: 'monitoring',
    exists: ({ metrics }) => metrics.state !== 'absent',
    assess: assessMetrics,
    related: [related('metrics.k8s.io', 'nodes', ''), related('metrics.k8s.io', 'pods', '')],
  },
  {
    name: 'network',
    assess: (facts) => perHost('the pod network', 'Network', onHosts(facts, 'network')),
    operands: ['kube-proxy'],
    related: [configObject('networks'), related('', 'nodes', '')],
  },
  {
    name: 'node-tuning',
    exists: (facts) => onAny(facts, 'slices'),
    assess: (facts) => perHost('the hierarchy of slices', 'Slices', onHosts(facts, 'slices')),
    operands: ['kubelet'],
    related: [related('', 'nodes', '')],
  },
  {
    name: 'storage',
    exists: ({ storage }) => storage.state !== 'absent',
    assess: assessStorage,
    related: [related('storage.k8s.io', 'storageclasses', ''), related('storage.k8s.io', 'csidrivers', '')],
  },
];

/** Names of all ClusterOperators that may be written. Others are not modified. */
export const OPERATOR_NAMES: readonly string[] = OPERATORS.map(({ name }) => name);

/** Assessments and versions of the operators that exist in this cluster. */
export function operatorStates(facts: ProbeFacts): OperatorState[] {
  return OPERATORS.filter(({ exists }) => exists?.(facts) ?? true).map((operator) => {
    const versions = versionsOf(operator, facts);
    return {
      name: operator.name,
      assessment: withUpdate(operator.assess(facts), facts, versions),
      versions,
      relatedObjects: operator.related,
    };
  });
}

/** Versions that an operator reports. A version counts as reached once the last host runs it. */
function versionsOf({ operands = [], mastersOnly = false }: Operator, { hosts }: ProbeFacts): OperandVersion[] {
  const reports = hosts.flatMap(({ master, report }) =>
    report === undefined || (mastersOnly && !master) ? [] : report,
  );
  const version = oldestVersion(reports.map((each) => each.version));
  const kubernetes = oldestVersion(reports.map((each) => each.kubernetes.replace(/^v|[+].*$/g, '')));
  if (version === undefined) return [];
  return [
    { name: 'operator', version },
    ...(kubernetes === undefined ? [] : operands.map((name) => ({ name, version: kubernetes }))),
  ];
}

function withUpdate(assessment: Assessment, facts: ProbeFacts, versions: readonly OperandVersion[]): Assessment {
  const at = versions.find(({ name }) => name === 'operator')?.version;
  if (facts.updatingTo === undefined || at === facts.updatingTo || assessment.progressing !== undefined)
    return assessment;
  const message = `hosts are updated from ${at ?? 'an unknown version'} to ${facts.updatingTo}`;
  return { ...assessment, progressing: { reason: 'HostsUpdating', message } };
}
