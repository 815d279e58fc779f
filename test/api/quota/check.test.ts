/** Resource quotas: usage of objects, the quotas that count them, and messages of rejections. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ResourceQuota } from '../../../src/api/generated/core/v1.ts';
import type { KubeObject } from '../../../src/api/meta/object.ts';
import { amountsOf, amountsText, listOf } from '../../../src/api/quota/amounts.ts';
import { checkRequest, type LimitedResource } from '../../../src/api/quota/check.ts';
import { countedBy, countName, evaluatorOf, type GroupResource } from '../../../src/api/quota/evaluators.ts';
import { calculateUsage, countedKinds, planStatus } from '../../../src/api/quota/totals.ts';

type Loose = Record<string, unknown>;
const NOW = Date.parse('2026-01-01T00:00:00Z');
const PODS = { group: '', plural: 'pods' };
const object = (body: Loose): KubeObject => body as unknown as KubeObject;
const pod = (spec: Loose, more: Loose = {}): KubeObject =>
  object({ metadata: { name: 'p' }, spec: { containers: [{ name: 'c' }], ...spec }, ...more });
const container = (requests: Loose, limits: Loose = {}, more: Loose = {}): Loose => ({
  name: 'c',
  resources: { requests, limits },
  ...more,
});
const usage = (resource: GroupResource, of: KubeObject): Record<string, string> => {
  const evaluator = evaluatorOf(resource);
  assert.ok(evaluator);
  return listOf(evaluator.usage(of, NOW));
};
const quota = (hard: Loose, used: Loose | undefined, spec: Loose = {}, name = 'q'): ResourceQuota =>
  object({ metadata: { name }, spec: { hard, ...spec }, status: { hard, used } }) as ResourceQuota;

function verdict(
  quotas: readonly ResourceQuota[],
  of: KubeObject,
  {
    resource = PODS,
    old,
    limited = [],
  }: { resource?: GroupResource; old?: KubeObject; limited?: readonly LimitedResource[] } = {},
): string {
  const evaluator = evaluatorOf(resource);
  assert.ok(evaluator);
  const states = quotas.map((each) => ({
    name: each.metadata?.name ?? '',
    quota: each,
    used: amountsOf(each.status?.used as never),
  }));
  const found = checkRequest(states, { evaluator, object: of, old, limited, nowMs: NOW });
  if (found.kind === 'refused') return found.message;
  return [...found.charges].map(([index, amounts]) => `${states[index]?.name}: ${amountsText(amounts)}`).join('; ');
}

describe('quota usage of objects', () => {
  const cases: [what: string, of: KubeObject, used: Record<string, string>][] = [
    ['a pod that says nothing', pod({}), { 'count/pods': '1', pods: '1' }],
    [
      'every name of what containers ask for',
      pod({
        containers: [
          container({ cpu: '100m', memory: '1Gi', 'hugepages-2Mi': '4Mi', 'example.com/gpu': '2' }, { cpu: '1' }),
          container({ cpu: '150m', 'ephemeral-storage': '1Gi' }, { 'ephemeral-storage': '2Gi' }),
          container({ 'deviceclass.resource.kubernetes.io/gpus': '1' }),
        ],
      }),
      {
        'count/pods': '1',
        cpu: '250m',
        'ephemeral-storage': '1Gi',
        'hugepages-2Mi': '4Mi',
        'limits.cpu': '1',
        'limits.ephemeral-storage': '2Gi',
        memory: '1Gi',
        pods: '1',
        'requests.cpu': '250m',
        'requests.deviceclass.resource.kubernetes.io/gpus': '1',
        'requests.ephemeral-storage': '1Gi',
        'requests.example.com/gpu': '2',
        'requests.hugepages-2Mi': '4Mi',
        'requests.memory': '1Gi',
      },
    ],
    [
      'init containers one after the other, sidecars beside all that come later',
      pod({
        containers: [container({ cpu: '1' })],
        initContainers: [
          container({ cpu: '2' }),
          container({ cpu: '500m' }, {}, { restartPolicy: 'Always' }),
          container({ cpu: '3' }),
        ],
      }),
      { 'count/pods': '1', cpu: '3500m', pods: '1', 'requests.cpu': '3500m' },
    ],
    [
      'overhead, of limits only where there are any',
      pod({ containers: [container({ cpu: '1' }, { memory: '1Gi' })], overhead: { cpu: '100m', memory: '24Mi' } }),
      {
        'count/pods': '1',
        cpu: '1100m',
        'limits.memory': '1048Mi',
        memory: '24Mi',
        pods: '1',
        'requests.cpu': '1100m',
        'requests.memory': '24Mi',
      },
    ],
    [
      'what is said for the pod as a whole',
      pod({ containers: [container({ cpu: '1' })], resources: { requests: { cpu: '3' }, limits: { memory: '1Gi' } } }),
      { 'count/pods': '1', cpu: '3', 'limits.memory': '1Gi', pods: '1', 'requests.cpu': '3' },
    ],
    [
      'a resize: the larger of what it has and what it asked for',
      pod(
        { containers: [container({ cpu: '1', memory: '2Gi' }, { cpu: '1' })] },
        {
          status: {
            containerStatuses: [
              {
                name: 'c',
                resources: { requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: '3' } },
                allocatedResources: { cpu: '1500m' },
              },
            ],
          },
        },
      ),
      {
        'count/pods': '1',
        cpu: '2',
        'limits.cpu': '3',
        memory: '2Gi',
        pods: '1',
        'requests.cpu': '2',
        'requests.memory': '2Gi',
      },
    ],
    [
      'a resize that cannot be: what it has',
      pod(
        { containers: [container({ cpu: '9' })] },
        {
          status: {
            conditions: [{ type: 'PodResizePending', status: 'True', reason: 'Infeasible' }],
            containerStatuses: [{ name: 'c', resources: { requests: { cpu: '2' } } }],
          },
        },
      ),
      { 'count/pods': '1', cpu: '2', pods: '1', 'requests.cpu': '2' },
    ],
    ['a pod that has ended', pod({}, { status: { phase: 'Succeeded' } }), { 'count/pods': '1' }],
    [
      'a pod that should be gone',
      pod({}, { metadata: { deletionTimestamp: '2025-12-31T23:59:00Z', deletionGracePeriodSeconds: 30 } }),
      { 'count/pods': '1' },
    ],
    [
      'a pod that is going',
      pod({}, { metadata: { deletionTimestamp: '2025-12-31T23:59:40Z', deletionGracePeriodSeconds: 30 } }),
      { 'count/pods': '1', pods: '1' },
    ],
  ];
  for (const [what, of, used] of cases) it(what, () => assert.deepEqual(usage(PODS, of), used));

  it('services: counts the requested node ports', () => {
    const service = (spec: Loose) => usage({ group: '', plural: 'services' }, object({ spec }));
    const ports = [{ port: 1 }, { port: 2, nodePort: 30_001 }];
    const of = (nodePorts: number, balancers: number) => ({
      'count/services': '1',
      services: '1',
      'services.loadbalancers': String(balancers),
      'services.nodeports': String(nodePorts),
    });
    assert.deepEqual(service({ type: 'ClusterIP', ports }), of(0, 0));
    assert.deepEqual(service({ type: 'NodePort', ports }), of(2, 0));
    assert.deepEqual(service({ type: 'LoadBalancer', ports }), of(2, 1));
    assert.deepEqual(service({ type: 'LoadBalancer', ports, allocateLoadBalancerNodePorts: false }), of(1, 1));
  });

  it('resource claims: counts the maximum number of devices per class', () => {
    const ask = (deviceClassName: string, count: number) => ({ deviceClassName, allocationMode: 'ExactCount', count });
    const claims = { group: 'resource.k8s.io', plural: 'resourceclaims' };
    const requests = [
      { name: 'a', exactly: ask('gold', 2) },
      { name: 'b', exactly: { deviceClassName: 'gold', allocationMode: 'All' } },
      { name: 'c', firstAvailable: [ask('gold', 1), ask('silver', 2), ask('silver', 3)] },
    ];
    assert.deepEqual(usage(claims, object({ spec: { devices: { requests } } })), {
      'count/resourceclaims.resource.k8s.io': '1',
      'gold.deviceclass.resource.k8s.io/devices': '35',
      'silver.deviceclass.resource.k8s.io/devices': '3',
    });
    assert.deepEqual(countedBy('gold.deviceclass.resource.k8s.io/devices'), claims);
  });

  it('claims: counts by class, in whole bytes, and with the allocated size', () => {
    const claim = (body: Loose) => usage({ group: '', plural: 'persistentvolumeclaims' }, object(body));
    assert.deepEqual(
      claim({
        spec: { storageClassName: 'gold', resources: { requests: { storage: '1.5' } } },
        status: { allocatedResources: { storage: '10Gi' } },
      }),
      {
        'count/persistentvolumeclaims': '1',
        'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '1',
        'gold.storageclass.storage.k8s.io/requests.storage': '10Gi',
        persistentvolumeclaims: '1',
        'requests.storage': '10Gi',
      },
    );
    assert.equal(claim({ spec: { resources: { requests: { storage: '1500m' } } } })['requests.storage'], '2');
  });

  it('every kind except events has an object count quota, some kinds also by a legacy name', () => {
    assert.deepEqual(usage({ group: 'example.com', plural: 'crontabs' }, object({})), {
      'count/crontabs.example.com': '1',
    });
    assert.deepEqual(usage({ group: '', plural: 'secrets' }, object({})), { 'count/secrets': '1', secrets: '1' });
    assert.deepEqual(usage({ group: 'apps', plural: 'secrets' }, object({})), { 'count/secrets.apps': '1' });
    assert.equal(evaluatorOf({ group: '', plural: 'events' }), undefined);
    assert.equal(evaluatorOf({ group: 'events.k8s.io', plural: 'events' }), undefined);
  });

  it('resource names are mapped to kinds', () => {
    const names: Record<string, string | undefined> = {
      cpu: 'count/pods',
      'requests.cpu': 'count/pods',
      'hugepages-1Gi': 'count/pods',
      'requests.example.com/gpu': 'count/pods',
      'requests.deviceclass.resource.kubernetes.io/gpus': 'count/pods',
      'requests.kubernetes.io/gpus': undefined,
      'requests.storage': 'count/persistentvolumeclaims',
      'gold.storageclass.storage.k8s.io/requests.storage': 'count/persistentvolumeclaims',
      'services.nodeports': 'count/services',
      secrets: 'count/secrets',
      'count/deployments.apps': 'count/deployments.apps',
      'count/crontabs.stable.example.com': 'count/crontabs.stable.example.com',
      'count/': undefined,
      'example.com/gpu': undefined,
    };
    for (const [name, kind] of Object.entries(names)) {
      const found = countedBy(name);
      assert.equal(found === undefined ? undefined : countName(found), kind, name);
    }
  });
});

describe('a request with quotas', () => {
  const small = pod({ containers: [container({ cpu: '1' }, { cpu: '2' })] });

  it('a request with quotas is charged to every quota that counts the object, for the resources of the quota', () => {
    assert.equal(
      verdict(
        [
          quota({ cpu: '2', pods: '5' }, { cpu: '1', pods: '5' }, { scopes: ['Terminating'] }, 'terminating'),
          quota({ 'limits.cpu': '4', pods: '5' }, { 'limits.cpu': '0', pods: '1' }, {}, 'a'),
          quota({ secrets: '1' }, { secrets: '1' }, {}, 'secrets'),
          quota({ 'count/pods': '3' }, { 'count/pods': '2' }, { scopes: ['NotBestEffort'] }, 'b'),
        ],
        small,
      ),
      'a: limits.cpu=2,pods=1; b: count/pods=1',
    );
  });

  it('a request with quotas is rejected with requested, used and limited amounts of all exceeded resources', () => {
    const hard = { 'requests.cpu': '1500m', 'limits.cpu': '10', pods: '2' };
    assert.equal(
      verdict([quota(hard, { 'requests.cpu': '1', 'limits.cpu': '2', pods: '2' })], small),
      'exceeded quota: q, requested: pods=1,requests.cpu=1, used: pods=2,requests.cpu=1, limited: pods=2,requests.cpu=1500m',
    );
  });

  it('a request with quotas is rejected if a container does not set a limited resource', () => {
    const hard = { 'requests.cpu': '9', 'limits.memory': '9Gi', pods: '9' };
    const used = { 'requests.cpu': '0', 'limits.memory': '0', pods: '0' };
    const silent = pod({
      containers: [container({ cpu: '1' }), { ...container({}), name: 'b' }],
      initContainers: [{ name: 'a' }],
    });
    assert.equal(
      verdict([quota(hard, used)], silent),
      'failed quota: q: must specify limits.memory for: a,b,c; requests.cpu for: a,b',
    );
    const whole = pod({ resources: { requests: { cpu: '1' } } });
    assert.equal(verdict([quota(hard, used)], whole), 'q: pods=1,requests.cpu=1');
  });

  it('a request with quotas is rejected while the usage is unknown', () => {
    assert.equal(
      verdict([quota({ pods: '1', cpu: '1' }, { pods: '0' })], small),
      'status unknown for quota: q, resources: cpu,pods',
    );
  });

  it('an update is charged for the added usage, but never refunded', () => {
    const services = { group: '', plural: 'services' };
    const service = (type: string, ports: number) =>
      object({ spec: { type, ports: new Array(ports).fill({ port: 1 }) } });
    const hard = { services: '1', 'services.nodeports': '3' };
    const of = quota(hard, { services: '1', 'services.nodeports': '2' });
    const change = (from: KubeObject, to: KubeObject) => verdict([of], to, { resource: services, old: from });
    assert.equal(change(service('ClusterIP', 1), service('NodePort', 1)), 'q: services.nodeports=1');
    assert.equal(change(service('NodePort', 2), service('NodePort', 1)), '');
    assert.equal(
      change(service('NodePort', 1), service('NodePort', 3)),
      'exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=2, limited: services.nodeports=3',
    );
  });

  it('a pod that changes to another quota is charged in full to the new quota', () => {
    const terminating = quota({ pods: '1' }, { pods: '0' }, { scopes: ['Terminating'] });
    const evaluator = evaluatorOf(PODS);
    const bound = pod({ activeDeadlineSeconds: 1 });
    assert.equal(evaluator?.handles({ operation: 'UPDATE', subresource: '', object: bound, old: pod({}) }), true);
    assert.equal(evaluator?.handles({ operation: 'UPDATE', subresource: '', object: bound, old: bound }), false);
    assert.equal(verdict([terminating], bound, { old: pod({}) }), 'q: pods=1');
    assert.equal(verdict([terminating], bound, { old: bound }), '');
  });

  it('a resize is charged for its growth', () => {
    const sized = (cpu: string) => pod({ containers: [container({ cpu })] });
    const of = [quota({ 'requests.cpu': '3' }, { 'requests.cpu': '2' })];
    assert.equal(verdict(of, sized('1500m'), { old: sized('1') }), 'q: requests.cpu=500m');
    assert.equal(verdict(of, sized('500m'), { old: sized('1') }), '');
    assert.match(verdict(of, sized('3'), { old: sized('1') }), /^exceeded quota: q, requested: requests.cpu=2, /);
  });

  it('evaluates the scopes of quotas and their selectors', () => {
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ namespaces: ['x'] }] } };
    const weighted = {
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [{ podAffinityTerm: { namespaceSelector: {} } }],
      },
    };
    const priority = (operator: string, values?: string[]) => ({
      scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator, ...(values ? { values } : {}) }] },
    });
    const cases: [scope: Loose, of: KubeObject, counted: boolean][] = [
      [{ scopes: ['BestEffort'] }, pod({}), true],
      [{ scopes: ['BestEffort'] }, small, false],
      [{ scopes: ['NotBestEffort', 'NotTerminating'] }, small, true],
      [{ scopes: ['Terminating'] }, pod({ activeDeadlineSeconds: 0 }), true],
      [{ scopes: ['CrossNamespacePodAffinity'] }, pod({ affinity }), true],
      [{ scopes: ['CrossNamespacePodAffinity'] }, pod({ affinity: weighted }), true],
      [{ scopes: ['CrossNamespacePodAffinity'] }, small, false],
      [priority('In', ['high']), pod({ priorityClassName: 'high' }), true],
      [priority('In', ['high']), pod({ priorityClassName: 'low' }), false],
      [priority('In', ['high']), pod({}), false],
      [priority('NotIn', ['high']), pod({}), true],
      [priority('NotIn', ['high']), pod({ priorityClassName: 'high' }), false],
      [priority('Exists'), pod({ priorityClassName: 'high' }), true],
      [priority('Exists'), pod({}), false],
      [priority('DoesNotExist'), pod({}), true],
    ];
    for (const [scope, of, counted] of cases) {
      const found = verdict([quota({ pods: '1' }, { pods: '0' }, scope)], of);
      assert.equal(found, counted ? 'q: pods=1' : '', JSON.stringify([scope, of]));
    }
    const claims = { group: '', plural: 'persistentvolumeclaims' };
    const claim = object({ spec: { volumeAttributesClassName: 'fast' } });
    const scope = {
      scopeSelector: {
        matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['fast'] }],
      },
    };
    const of = quota({ persistentvolumeclaims: '1' }, { persistentvolumeclaims: '0' }, scope);
    assert.equal(verdict([of], claim, { resource: claims }), 'q: persistentvolumeclaims=1');
    assert.equal(verdict([of], object({ spec: {} }), { resource: claims }), '');
  });

  it('a limited resource requires a quota that covers it', () => {
    const limited = (more: Partial<LimitedResource>) => ({
      limited: [{ matchContains: [], matchScopes: [], ...more }],
    });
    const contains = limited({ matchContains: ['cpu'] });
    assert.equal(verdict([], small, contains), 'insufficient quota to consume: cpu,limits.cpu,requests.cpu');
    const all = { cpu: '9', 'limits.cpu': '9', 'requests.cpu': '9' };
    const unused = { cpu: '0', 'limits.cpu': '0', 'requests.cpu': '0' };
    assert.equal(verdict([quota(all, unused)], small, contains), 'q: cpu=1,limits.cpu=2,requests.cpu=1');
    const scope = { scopeName: 'PriorityClass', operator: 'In', values: ['high', 'higher'] };
    const important = pod({ priorityClassName: 'high' });
    const scoped = limited({ matchScopes: [scope] });
    assert.equal(
      verdict([], important, scoped),
      'insufficient quota to match these scopes: [{PriorityClass In [high higher]}]',
    );
    assert.equal(verdict([], small, scoped), '');
    const cover = quota({ pods: '1' }, { pods: '0' }, { scopeSelector: { matchExpressions: [scope] } });
    assert.equal(verdict([cover], important, scoped), 'q: pods=1');
  });
});

describe('total usage of a quota', () => {
  it('the total usage of a quota sums the objects in its scope, and keeps the last usage of unknown kinds', () => {
    const hard = { pods: '9', 'requests.cpu': '9', secrets: '9', 'count/crontabs.example.com': '9' };
    const of = quota(hard, { 'count/crontabs.example.com': '4' });
    assert.deepEqual(countedKinds(of).map(countName).sort(), [
      'count/crontabs.example.com',
      'count/pods',
      'count/secrets',
    ]);
    const running = pod({ containers: [container({ cpu: '1500m' })] });
    const used = calculateUsage(
      of,
      ({ plural }) => {
        if (plural === 'pods') return [running, running, pod({}, { status: { phase: 'Failed' } })];
        return plural === 'secrets' ? [object({})] : undefined;
      },
      NOW,
    );
    assert.deepEqual(listOf(used), { 'count/crontabs.example.com': '4', pods: '2', 'requests.cpu': '3', secrets: '1' });
    const scoped = quota({ pods: '9' }, {}, { scopes: ['BestEffort'] });
    assert.deepEqual(listOf(calculateUsage(scoped, () => [running, pod({})], NOW)), { pods: '1' });
  });

  it('raises the usage of a quota at once, and lowers the usage only in a recalculation', () => {
    const hard = { pods: '9', secrets: '9' };
    const of = quota(hard, { pods: '3', secrets: '1' });
    const reckoned = amountsOf({ pods: '2', secrets: '2' });
    assert.deepEqual(planStatus(of, reckoned, false), {
      status: { hard, used: { pods: '3', secrets: '2' } },
      isHeldBack: true,
    });
    assert.deepEqual(planStatus(of, reckoned, true), {
      status: { hard, used: { pods: '2', secrets: '2' } },
      isHeldBack: false,
    });
    assert.deepEqual(planStatus(of, amountsOf({ pods: '3', secrets: '1' }), false), {
      status: undefined,
      isHeldBack: false,
    });
    const fresh = object({ metadata: { name: 'q' }, spec: { hard } }) as ResourceQuota;
    assert.deepEqual(planStatus(fresh, amountsOf({ pods: '0', secrets: '0' }), false).status, {
      hard,
      used: { pods: '0', secrets: '0' },
    });
  });
});
