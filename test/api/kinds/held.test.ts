/**
 * Inputs with the errors that upstream's current source defines: autoscalers, budgets, networks, slices, leases,
 * admission rules.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, context, created, type Document, kindNamed, texts } from './samples.ts';

type Change = (document: Document) => void;
type Case = readonly [kind: string, change: Change, expected: readonly string[]];

const put =
  (value: unknown, ...path: (string | number)[]): Change =>
  (document) => {
    const last = path.at(-1) ?? '';
    const parent = path.length === 1 ? document : at(document, ...path.slice(0, -1));
    (parent as Record<string | number, unknown>)[last] = value;
  };

const all =
  (...changes: Change[]): Change =>
  (document) => {
    for (const change of changes) change(document);
  };

function errorsOf(kind: string, change: Change): string[] {
  const { strategy } = kindNamed(kind);
  const document = created(kind, change);
  return texts([...(strategy.validate?.(document) ?? []), ...(strategy.validateCreate?.(document) ?? [])]);
}

function check(cases: readonly Case[]): void {
  for (const [kind, change, expected] of cases) assert.deepEqual(errorsOf(kind, change), expected, kind);
}

const container = (name: string) => ({
  type: 'ContainerResource',
  containerResource: { name: 'cpu', container: name, target: { type: 'Utilization', averageUtilization: 50 } },
});
const described = (apiVersion: string) => ({
  type: 'Object',
  object: {
    describedObject: { apiVersion, kind: 'Service', name: 'web' },
    metric: { name: 'hits' },
    target: { type: 'Value', value: '1' },
  },
});
const LABEL =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

test('requires API groups of autoscaler targets and valid container names', () => {
  check([
    ['HorizontalPodAutoscaler', put([container('app')], 'spec', 'metrics'), []],
    [
      'HorizontalPodAutoscaler',
      put([container('App')], 'spec', 'metrics'),
      [`spec.metrics[0].containerResource.container: Invalid value: "App": ${LABEL}`],
    ],
    [
      'HorizontalPodAutoscaler',
      put('v1', 'spec', 'scaleTargetRef', 'apiVersion'),
      ['spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group'],
    ],
    [
      'HorizontalPodAutoscaler',
      put({ apiVersion: '', kind: 'ReplicationController', name: 'web' }, 'spec', 'scaleTargetRef'),
      [],
    ],
    [
      'HorizontalPodAutoscaler',
      put('a/b/c', 'spec', 'scaleTargetRef', 'apiVersion'),
      ['spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
    ],
    ['HorizontalPodAutoscaler', put([described('v1')], 'spec', 'metrics'), []],
    [
      'HorizontalPodAutoscaler',
      put([described('a/b/c')], 'spec', 'metrics'),
      [
        'spec.metrics[0].object.describedObject.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
      ],
    ],
    ['HorizontalPodAutoscaler', put('0', 'spec', 'behavior', 'scaleDown', 'tolerance'), []],
    [
      'HorizontalPodAutoscaler',
      put('-100m', 'spec', 'behavior', 'scaleDown', 'tolerance'),
      ['spec.behavior.scaleDown.tolerance: Invalid value: "-100m": must be greater than or equal to 0'],
    ],
    [
      'HorizontalPodAutoscaler',
      all(put(0, 'spec', 'minReplicas'), put([container('app')], 'spec', 'metrics')),
      [
        'spec.minReplicas: Invalid value: 0: must be greater than or equal to 1',
        'spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas',
      ],
    ],
  ]);
});

test('accepts autoscaler versions that are invalid but unchanged', () => {
  const { strategy } = kindNamed('HorizontalPodAutoscaler');
  const bare = (name: string, kind = 'Deployment') =>
    created(
      'HorizontalPodAutoscaler',
      all(
        put({ apiVersion: 'v1', kind, name }, 'spec', 'scaleTargetRef'),
        put([described('a/b/c')], 'spec', 'metrics'),
      ),
    );
  assert.deepEqual(texts(strategy.validateUpdate?.(bare('other'), bare('web'))), []);
  assert.deepEqual(texts(strategy.validateUpdate?.(bare('web', 'ReplicaSet'), bare('web'))), [
    'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group',
  ]);
});

test('validates the conditions of a disruption budget', () => {
  const budget = created('PodDisruptionBudget');
  const good = { type: 'DisruptionAllowed', status: 'True', reason: 'SufficientPods', message: '' };
  at(budget, 'status')['conditions'] = [
    { ...good, lastTransitionTime: '2026-01-01T00:00:00Z' },
    { ...good, status: 'Maybe', reason: '1', observedGeneration: -1 },
  ];
  assert.deepEqual(
    texts(kindNamed('PodDisruptionBudget').statusStrategy?.validateUpdate?.(budget, budget)).map((text) =>
      text.replace(/ \(e\.g\..*/, ''),
    ),
    [
      'status.conditions[1].type: Duplicate value: "DisruptionAllowed"',
      'status.conditions[1].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
      'status.conditions[1].observedGeneration: Invalid value: -1: must be greater than or equal to zero',
      'status.conditions[1].lastTransitionTime: Required value',
      "status.conditions[1].reason: Invalid value: \"1\": a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    ],
  );
});

const ports = (...given: object[]): Change => put({ podSelector: {}, ingress: [{ ports: given }] }, 'spec');

test('requires a numeric port for endPort, and rejects a second ingress class', () => {
  const at0 = 'spec.ingress[0].ports[0].endPort';
  const annotation = 'kubernetes.io/ingress.class';
  check([
    ['NetworkPolicy', ports({ port: 80, endPort: 90 }), []],
    [
      'NetworkPolicy',
      ports({ port: 80, endPort: 70 }),
      [`${at0}: Invalid value: 80: must be greater than or equal to \`port\``],
    ],
    [
      'NetworkPolicy',
      ports({ endPort: 90 }),
      [`${at0}: Invalid value: 90: may not be specified when \`port\` is not specified`],
    ],
    [
      'NetworkPolicy',
      ports({ port: 'http', endPort: 90 }),
      [`${at0}: Invalid value: 90: may not be specified when \`port\` is non-numeric`],
    ],
    [
      'NetworkPolicy',
      put(
        { podSelector: {}, egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] } }] }] },
        'spec',
      ),
      ['spec.egress[0].to[0].ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`'],
    ],
    ['Ingress', put({ [annotation]: 'edge' }, 'metadata', 'annotations'), []],
    [
      'Ingress',
      put({ [annotation]: 'other' }, 'metadata', 'annotations'),
      [`annotations.${annotation}: Invalid value: "other": must match \`ingressClassName\` when both are specified`],
    ],
    [
      'IngressClass',
      put({ kind: 'K', name: 'n', scope: 'Namespace' }, 'spec', 'parameters'),
      ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
    ],
    [
      'IngressClass',
      put({ kind: 'K', name: 'n', scope: 'Cluster', namespace: 'd' }, 'spec', 'parameters'),
      ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
    ],
  ]);
});

test('limits the hints of an EndpointSlice and requires FQDN addresses of at least two labels', () => {
  const hints = (forZones: string[], forNodes: string[] = []): Change =>
    put(
      { forZones: forZones.map((name) => ({ name })), forNodes: forNodes.map((name) => ({ name })) },
      'endpoints',
      0,
      'hints',
    );
  const names = (...addresses: string[]): Change => all(put('FQDN', 'addressType'), put([{ addresses }], 'endpoints'));
  check([
    ['EndpointSlice', hints(['a', 'b'], ['node-1', 'node-2']), []],
    ['EndpointSlice', hints(['a', 'a']), ['endpoints[0].hints.forZones[1].name: Duplicate value: "a"']],
    ['EndpointSlice', hints([...'abcdefghi']), ['endpoints[0].hints.forZones: Too many: 9: must have at most 8 items']],
    ['EndpointSlice', names('web.example.com.', 'web.example.com'), []],
    [
      'EndpointSlice',
      names('web', ''),
      [
        'endpoints[0].addresses[0]: Invalid value: "web": should be a domain with at least two segments separated by dots',
        'endpoints[0].addresses[1]: Required value',
      ],
    ],
    ['EndpointSlice', hints([], ['n', 'n']), ['endpoints[0].hints.forNodes[1].name: Duplicate value: "n"']],
    [
      'EndpointSlice',
      hints([], [...'abcdefghi']),
      ['endpoints[0].hints.forNodes: Too many: 9: must have at most 8 items'],
    ],
  ]);
});

test('drops election fields of leases unless the fields are already stored', () => {
  const elected = (): Document => ({
    ...created('Lease'),
    spec: { holderIdentity: 'a', strategy: 'OldestEmulationVersion', preferredHolder: 'b' },
  });
  const { strategy } = kindNamed('Lease');
  const fresh = elected();
  strategy.prepareForCreate?.(fresh, context);
  assert.deepEqual(fresh['spec'], { holderIdentity: 'a' });
  const changed = elected();
  strategy.prepareForUpdate?.(changed, fresh, context);
  assert.deepEqual(changed['spec'], { holderIdentity: 'a' });
  const kept = elected();
  strategy.prepareForUpdate?.(kept, elected(), context);
  assert.deepEqual(kept['spec'], elected()['spec']);
});

const rules = (...resources: string[]): Change => put(resources, 'webhooks', 0, 'rules', 0, 'resources');
const POLICY = 'ValidatingAdmissionPolicy';
const DNS1035 =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

test('rejects resources in webhook rules that a wildcard already covers', () => {
  const at0 = 'webhooks[0].rules[0].resources';
  check([
    ['ValidatingWebhookConfiguration', rules('pods/*', 'services', '*/scale', 'pods'), []],
    ['ValidatingWebhookConfiguration', rules('pods/log', 'pods/*'), []],
    [
      'ValidatingWebhookConfiguration',
      rules('pods/*', 'pods/log', '*/scale', 'jobs/scale'),
      [
        `${at0}[1]: Invalid value: "pods/log": if 'pods/*' is present, must not specify pods/log`,
        `${at0}[3]: Invalid value: "jobs/scale": if '*/scale' is present, must not specify jobs/scale`,
      ],
    ],
    ['ValidatingWebhookConfiguration', rules('pods', '*'), []],
    [
      'ValidatingWebhookConfiguration',
      rules('*', 'pods'),
      [`${at0}: Invalid value: ["*","pods"]: if '*' is present, must not specify other resources without subresources`],
    ],
    [
      'ValidatingWebhookConfiguration',
      put(['v1', 'v1'], 'webhooks', 0, 'admissionReviewVersions'),
      ['webhooks[0].admissionReviewVersions[1]: Invalid value: "v1": duplicate version'],
    ],
  ]);
  const foreign = created('ValidatingWebhookConfiguration', put(['v9'], 'webhooks', 0, 'admissionReviewVersions'));
  const { strategy } = kindNamed('ValidatingWebhookConfiguration');
  assert.deepEqual(texts(strategy.validate?.(foreign)), [
    'webhooks[0].admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1',
  ]);
  assert.deepEqual(texts(strategy.validate?.(foreign, foreign)), []);
});

test('validates parameters, variables, objects and annotations of policies', () => {
  check([
    [
      POLICY,
      put({ apiVersion: 'a/b/c', kind: 'My_Kind' }, 'spec', 'paramKind'),
      [
        'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
        `spec.paramKind.kind: Invalid value: "My_Kind": may have mixed case, but should otherwise match: ${DNS1035}`,
      ],
    ],
    [
      POLICY,
      put({ apiVersion: 'example.com/', kind: 'Limit' }, 'spec', 'paramKind'),
      ['spec.paramKind.apiVersion: Invalid value: "example.com/": version must be specified'],
    ],
    [POLICY, put({ apiVersion: 'example.com/v1', kind: 'Limit' }, 'spec', 'paramKind'), []],
    [
      POLICY,
      put([{ name: 'in', expression: '1' }], 'spec', 'variables'),
      ['spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier'],
    ],
    [
      POLICY,
      put(['a', 'a/b', 'a'], 'spec', 'matchConstraints', 'resourceRules', 0, 'resourceNames'),
      [
        `spec.matchConstraints.resourceRules[0].resourceNames[1]: Invalid value: "a/b": may not contain '/'`,
        'spec.matchConstraints.resourceRules[0].resourceNames[2]: Duplicate value: "a"',
      ],
    ],
    [
      POLICY,
      put(
        [{ expression: 'true', message: ' ', messageExpression: ' ', reason: 'Unauthorized' }],
        'spec',
        'validations',
      ),
      [
        'spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
        'spec.validations[0].message: Invalid value: " ": must be non-empty if specified',
        'spec.validations[0].reason: Unsupported value: "Unauthorized": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
      ],
    ],
    [
      POLICY,
      put([{ expression: 'true', message: 'a\rb' }], 'spec', 'validations'),
      ['spec.validations[0].message: Invalid value: "a\\rb": must not contain line breaks'],
    ],
    [
      POLICY,
      put(
        [
          { key: 'a', valueExpression: "'x'" },
          { key: 'a', valueExpression: `'${'x'.repeat(5 * 1024)}'` },
        ],
        'spec',
        'auditAnnotations',
      ),
      [
        'spec.auditAnnotations[1].valueExpression: Required value: must not exceed 5120 bytes in length',
        'spec.auditAnnotations[1].key: Duplicate value: "a"',
      ],
    ],
    [
      'ValidatingAdmissionPolicyBinding',
      put({ name: 'a/b', parameterNotFoundAction: 'Deny' }, 'spec', 'paramRef'),
      [`spec.paramRef.name: Invalid value: "a/b": may not contain '/'`],
    ],
    [
      'ValidatingAdmissionPolicyBinding',
      put({ objectSelector: { matchLabels: { '!': 'a' } } }, 'spec', 'matchResources'),
      [
        "spec.matchResources.objectSelector.matchLabels: Invalid value: \"!\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    ],
  ]);
  const policy = created(POLICY);
  at(policy, 'status')['typeChecking'] = { expressionWarnings: [{ fieldRef: ' ', warning: '' }] };
  assert.deepEqual(texts(kindNamed(POLICY).statusStrategy?.validateUpdate?.(policy, policy)), [
    'status.typeChecking.expressionWarnings[0].warning: Required value',
    'status.typeChecking.expressionWarnings[0].fieldRef: Required value',
  ]);
});

test('validates verbs, namespaces and paths of flow schemas', () => {
  const rule = (change: object): Change =>
    put([{ subjects: [{ kind: 'Group', group: { name: 'g' } }], ...change }], 'spec', 'rules');
  const path = (...nonResourceURLs: string[]): Change =>
    rule({ nonResourceRules: [{ verbs: ['get'], nonResourceURLs }] });
  const resources = (change: object): Change =>
    rule({ resourceRules: [{ verbs: ['get'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], ...change }] });
  const SUPPORTED = '"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"';
  check([
    ['FlowSchema', path('/', '/healthz/*', '/a'), []],
    [
      'FlowSchema',
      path('/healthz*'),
      [
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "/healthz*": wildcard can only do suffix matching',
      ],
    ],
    [
      'FlowSchema',
      rule({ nonResourceRules: [{ verbs: ['post'], nonResourceURLs: ['*'] }] }),
      [`spec.rules[0].nonResourceRules[0].verbs: Unsupported value: ["post"]: supported values: ${SUPPORTED}`],
    ],
    [
      'FlowSchema',
      resources({ verbs: [] }),
      ['spec.rules[0].resourceRules[0].verbs: Required value: verbs must contain at least one value'],
    ],
    [
      'FlowSchema',
      resources({ namespaces: ['A'] }),
      [
        `spec.rules[0].resourceRules[0].namespaces[0]: Invalid value: "A": each member of this list must be '*' or a DNS-1123 label; ${LABEL}`,
      ],
    ],
    [
      'FlowSchema',
      put(
        [{ kind: 'User', group: { name: 'g' }, serviceAccount: { name: 's', namespace: 'n' } }],
        'spec',
        'rules',
        0,
        'subjects',
      ),
      [
        "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
        "spec.rules[0].subjects[0].serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'",
        "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
      ],
    ],
  ]);
  const level = created('PriorityLevelConfiguration', put({ type: 'Exempt', limited: {} }, 'spec'));
  assert.deepEqual(texts(kindNamed('PriorityLevelConfiguration').strategy.validate?.(level)), [
    "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
    'spec.limited: Forbidden: must be nil if the type is not Limited',
  ]);
  for (const kind of ['FlowSchema', 'PriorityLevelConfiguration']) {
    const document = created(kind);
    at(document, 'status')['conditions'] = [{ type: 'Dangling' }, { type: 'Dangling' }, { status: 'True' }];
    assert.deepEqual(texts(kindNamed(kind).statusStrategy?.validateUpdate?.(document, document)), [
      'status.conditions[1].type: Duplicate value: "Dangling"',
      'status.conditions[2].type: Required value: must not be empty',
    ]);
  }
});

test('drops the removed field configSource of nodes', () => {
  const { strategy, statusStrategy } = kindNamed('Node');
  const configured = () =>
    created('Node', (node) => {
      node['spec'] = { configSource: { configMap: { name: 'c' } }, externalID: 'x' };
      at(node, 'status')['config'] = { error: 'e' };
    });
  const fresh = configured();
  strategy.prepareForCreate?.(fresh, context);
  assert.equal(at(fresh, 'spec')['configSource'], undefined);
  assert.equal(at(fresh, 'status')['config'], undefined);
  const raw = { ...configured(), spec: { configSource: {}, externalID: 'x' } };
  assert.deepEqual(strategy.warnings?.(raw, undefined), [
    'spec.configSource: the feature is removed',
    'spec.externalID: this field is deprecated, and is unused by Kubernetes',
  ]);
  assert.deepEqual(texts(strategy.validateUpdate?.(created('Node'), fresh)), [
    'spec.externalID: Forbidden: may not be updated',
  ]);
  const reported = { ...created('Node'), status: { config: {} } };
  statusStrategy?.prepareForUpdate?.(reported, fresh, context);
  assert.deepEqual(reported.status, {});
  const short = created('Node', (node) => {
    at(node, 'status')['capacity'] = { cpu: '-1' };
  });
  assert.match(texts(strategy.validate?.(short)).join(), /^status\.capacity\.cpu: Invalid value: "-1"/);
});

test('rejects resources that a quota scope cannot restrict', () => {
  const expressions = 'spec.scopeSelector.matchExpressions';
  const quota = (hard: object, operator: string, values?: string[]): Change =>
    put({ hard, scopeSelector: { matchExpressions: [{ scopeName: 'Terminating', operator, values }] } }, 'spec');
  check([
    ['ResourceQuota', quota({ pods: '1', 'requests.hugepages-2Mi': '2Mi' }, 'Exists'), []],
    [
      'ResourceQuota',
      quota({ pods: '1' }, 'In', ['a']),
      [
        `${expressions}.operator: Invalid value: "In": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity`,
      ],
    ],
    [
      'ResourceQuota',
      quota({ pods: '1' }, 'Exists', ['a']),
      [
        `${expressions}.values: Invalid value: ["a"]: must be no value when \`operator\` is 'Exist' or 'DoesNotExist' for scope selector`,
      ],
    ],
  ]);
  assert.match(
    errorsOf('ResourceQuota', quota({ services: '1' }, 'Exists')).join(),
    /matchExpressions: Invalid value: \{.*\}: unsupported scope applied to resource$/,
  );
});
