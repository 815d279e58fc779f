/**
 * Built-in flow schemas and priority levels. The mandatory ones cover requests of administrators and requests that no
 * other schema matches. The suggested ones can be changed if their auto-update annotation is false. Source:
 * k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap; docs, "API Priority and Fairness", Defaults.
 */
import type {
  FlowSchema,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  PriorityLevelConfiguration,
  ResourcePolicyRule,
  Subject,
} from '../generated/flowcontrol/v1.ts';

/** Annotation with which the server keeps the spec of an object equal to its suggestion, if the value is 'true'. */
export const AUTO_UPDATE_ANNOTATION = 'apf.kubernetes.io/autoupdate-spec';
export const EXEMPT = 'exempt';
export const CATCH_ALL = 'catch-all';

const EVERYBODY = ['system:unauthenticated', 'system:authenticated'];
const CONTROLLER_MANAGER = 'system:kube-controller-manager';
const SCHEDULER = 'system:kube-scheduler';

const metadata = (name: string) => ({ name, annotations: { [AUTO_UPDATE_ANNOTATION]: 'true' } });

interface Queues {
  readonly queues: number;
  readonly handSize: number;
}

const QUEUE_LENGTH_LIMIT = 50;

function limited(name: string, shares: number, lendablePercent: number, queues?: Queues): PriorityLevelConfiguration {
  return {
    metadata: metadata(name),
    spec: {
      type: 'Limited',
      limited: {
        nominalConcurrencyShares: shares,
        lendablePercent,
        limitResponse:
          queues === undefined
            ? { type: 'Reject' }
            : { type: 'Queue', queuing: { ...queues, queueLengthLimit: QUEUE_LENGTH_LIMIT } },
      },
    },
  };
}

const groups = (...names: string[]): Subject[] => names.map((name) => ({ kind: 'Group', group: { name } }));
const users = (...names: string[]): Subject[] => names.map((name) => ({ kind: 'User', user: { name } }));
const systemAccounts = (...names: string[]): Subject[] =>
  names.map((name) => ({ kind: 'ServiceAccount', serviceAccount: { name, namespace: 'kube-system' } }));

function resources(
  verbs: string[],
  group: string,
  names: string[],
  { clusterScope = false }: { readonly clusterScope?: boolean } = {},
): ResourcePolicyRule {
  return {
    verbs,
    apiGroups: [group],
    resources: names,
    ...(clusterScope ? { clusterScope } : {}),
    namespaces: ['*'],
  };
}

const EVERY_RESOURCE = resources(['*'], '*', ['*'], { clusterScope: true });
const EVERY_PATH: NonResourcePolicyRule = { verbs: ['*'], nonResourceURLs: ['*'] };
const ELECTION_VERBS = ['get', 'create', 'update'];
const LEASES = 'coordination.k8s.io';

const everythingOf = (subjects: Subject[]): PolicyRulesWithSubjects => ({
  subjects,
  resourceRules: [EVERY_RESOURCE],
  nonResourceRules: [EVERY_PATH],
});

function schema(
  name: string,
  level: string,
  matchingPrecedence: number,
  distinguisher: 'ByUser' | 'ByNamespace' | undefined,
  rule: PolicyRulesWithSubjects,
): FlowSchema {
  return {
    metadata: metadata(name),
    spec: {
      priorityLevelConfiguration: { name: level },
      matchingPrecedence,
      ...(distinguisher === undefined ? {} : { distinguisherMethod: { type: distinguisher } }),
      rules: [rule],
    },
  };
}

/** Levels that must exist with this spec. While an object is missing, its level applies nevertheless. */
export const mandatoryLevels: readonly PriorityLevelConfiguration[] = [
  {
    metadata: metadata(EXEMPT),
    spec: { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
  },
  limited(CATCH_ALL, 5, 0),
];

export const mandatorySchemas: readonly FlowSchema[] = [
  schema(EXEMPT, EXEMPT, 1, undefined, everythingOf(groups('system:masters'))),
  schema(CATCH_ALL, CATCH_ALL, 10_000, 'ByUser', everythingOf(groups(...EVERYBODY))),
];

export const suggestedLevels: readonly PriorityLevelConfiguration[] = [
  limited('system', 30, 33, { queues: 64, handSize: 6 }),
  limited('node-high', 40, 25, { queues: 64, handSize: 6 }),
  limited('leader-election', 10, 0, { queues: 16, handSize: 4 }),
  limited('workload-high', 40, 50, { queues: 128, handSize: 6 }),
  limited('workload-low', 100, 90, { queues: 128, handSize: 6 }),
  limited('global-default', 20, 50, { queues: 128, handSize: 6 }),
];

export const suggestedSchemas: readonly FlowSchema[] = [
  schema('system-nodes', 'system', 500, 'ByUser', everythingOf(groups('system:nodes'))),
  schema('system-node-high', 'node-high', 400, 'ByUser', {
    subjects: groups('system:nodes'),
    resourceRules: [
      resources(['*'], '', ['nodes', 'nodes/status'], { clusterScope: true }),
      resources(['*'], LEASES, ['leases']),
    ],
  }),
  schema('probes', EXEMPT, 2, undefined, {
    subjects: groups(...EVERYBODY),
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }],
  }),
  schema('system-leader-election', 'leader-election', 100, 'ByUser', {
    subjects: [...users(CONTROLLER_MANAGER, SCHEDULER), ...systemAccounts('*')],
    resourceRules: [resources(ELECTION_VERBS, LEASES, ['leases'])],
  }),
  // This schema must precede the next one, which would classify the same writes as leader election.
  schema('endpoint-controller', 'workload-high', 150, 'ByUser', {
    subjects: [
      ...users(CONTROLLER_MANAGER),
      ...systemAccounts('endpoint-controller', 'endpointslicemirroring-controller'),
    ],
    resourceRules: [resources(ELECTION_VERBS, '', ['endpoints'])],
  }),
  schema('workload-leader-election', 'leader-election', 200, 'ByUser', {
    subjects: systemAccounts('*'),
    resourceRules: [
      resources(ELECTION_VERBS, '', ['endpoints', 'configmaps']),
      resources(ELECTION_VERBS, LEASES, ['leases']),
    ],
  }),
  schema('kube-controller-manager', 'workload-high', 800, 'ByNamespace', everythingOf(users(CONTROLLER_MANAGER))),
  schema('kube-scheduler', 'workload-high', 800, 'ByNamespace', everythingOf(users(SCHEDULER))),
  schema('kube-system-service-accounts', 'workload-high', 900, 'ByNamespace', everythingOf(systemAccounts('*'))),
  schema('service-accounts', 'workload-low', 9_000, 'ByUser', everythingOf(groups('system:serviceaccounts'))),
  schema('global-default', 'global-default', 9_900, 'ByUser', everythingOf(groups(...EVERYBODY))),
];

/** Spec of the mandatory object with this name; undefined for other names. */
export function mandatorySpec<T extends FlowSchema | PriorityLevelConfiguration>(
  objects: readonly T[],
  name: string | undefined,
): NonNullable<T['spec']> | undefined {
  return objects.find(({ metadata: own }) => own?.name === name)?.spec ?? undefined;
}
