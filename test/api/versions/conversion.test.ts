import assert from 'node:assert/strict';
import { test } from 'node:test';
import { semanticEqual } from '../../../src/api/meta/equality.ts';
import type { JsonObject, JsonValue, KubeObject } from '../../../src/api/meta/object.ts';
import type { KindAlias, KindDefinition } from '../../../src/api/registry/definition.ts';
import { builtinKinds } from '../../../src/api/registry/index.ts';
import { noteVersion, servedAs } from '../../../src/api/registry/versions.ts';
import { pruneAndCheck } from '../../../src/api/schema/decode.ts';
import { type ObjectNode, schemaOf, schemaOfType } from '../../../src/api/schema/index.ts';
import { defaulted, kindNamed } from '../kinds/samples.ts';
import { type Random, randomDocument, randomOf } from '../schema/random.ts';

const RUNS = 60;
const CLEAN = { unknownFields: [], typeErrors: [] };

const SOURCES: Readonly<Record<string, readonly [type: string, ...values: string[]]>> = {
  resource: ['Resource', 'averageUtilization', 'averageValue'],
  containerResource: ['ContainerResource', 'averageUtilization', 'averageValue'],
  pods: ['Pods', 'averageValue'],
  object: ['Object', 'value', 'averageValue'],
  external: ['External', 'value', 'averageValue'],
};

const VALUES: Readonly<Record<string, [JsonValue, string]>> = {
  averageUtilization: [50, 'Utilization'],
  averageValue: ['7', 'AverageValue'],
  value: ['9', 'Value'],
};

/** Random valid metrics: one source with one target each. */
function metricsOf(random: Random, specs: boolean): JsonValue {
  return Object.entries(SOURCES).flatMap(([field, [type, ...values]]): JsonObject[] => {
    if (random() < 0.5) return [];
    const name = values[Math.floor(random() * values.length)] ?? '';
    const [value, target] = VALUES[name] ?? [0, ''];
    const own: JsonObject = field.toLowerCase().includes('resource') ? { name: 'cpu' } : { metric: { name: 'm' } };
    if (field === 'containerResource') own['container'] = 'c';
    if (field === 'object') own['describedObject'] = { kind: 'K', name: 'n' };
    own[specs ? 'target' : 'current'] = specs ? { type: target, [name]: value } : { [name]: value };
    return [{ type, [field]: own }];
  });
}

/** Turns a random document into one that could be stored. */
function repair(kind: KindDefinition, object: KubeObject, random: Random): void {
  const parts = object as { spec?: Record<string, JsonValue>; status?: Record<string, JsonValue> };
  if (kind.kind === 'HorizontalPodAutoscaler') {
    if (parts.spec?.['metrics'] !== undefined) parts.spec['metrics'] = metricsOf(random, true);
    if (parts.status?.['currentMetrics'] !== undefined) parts.status['currentMetrics'] = metricsOf(random, false);
  }
  // Validation requires `admissionReviewVersions`.
  const { webhooks } = object as { webhooks?: JsonObject[] };
  for (const webhook of webhooks ?? []) {
    webhook['admissionReviewVersions'] ??= ['v1'];
    if (webhook['sideEffects'] === undefined || webhook['sideEffects'] === '') webhook['sideEffects'] = 'None';
  }
  if (kind.kind === 'CustomResourceDefinition' && parts.spec !== undefined) {
    if (!parts.spec['scope']) parts.spec['scope'] = 'Cluster';
    const webhook = (parts.spec['conversion'] as JsonObject | undefined)?.['webhook'] as JsonObject | undefined;
    if (webhook !== undefined) webhook['conversionReviewVersions'] = ['v1'];
  }
  if (kind.kind === 'CertificateSigningRequest') {
    if (parts.spec !== undefined) parts.spec['usages'] ??= ['client auth'];
    for (const condition of (parts.status?.['conditions'] ?? []) as JsonObject[]) {
      if (condition['status'] === undefined || condition['status'] === '') condition['status'] = 'True';
    }
  }
  if (kind.kind === 'RoleBinding' || kind.kind === 'ClusterRoleBinding') {
    // OpenShift's references have no API group, so only valid groups are used.
    const apiGroup = 'rbac.authorization.k8s.io';
    const binding = object as { roleRef?: object; subjects?: object[] };
    binding.roleRef = { apiGroup, kind: 'ClusterRole', name: 'view' };
    const [user, group] = ['User', 'Group'].map((each) => ({ apiGroup, kind: each, name: 'a' }));
    const account = { kind: 'ServiceAccount', name: 'a', namespace: 'ns' };
    // Subjects in the order in which a conversion through `userNames` and `groupNames` returns them.
    binding.subjects = [user, account, group].filter((each) => each !== undefined && random() < 0.7) as object[];
  }
  if (kind.kind === 'Ingress') {
    const walk = (value: JsonValue | undefined): void => {
      if (typeof value !== 'object' || value === null) return;
      if (!Array.isArray(value) && typeof value['service'] === 'object') {
        value['service'] = { name: 'web', port: random() < 0.5 ? { name: 'http' } : { number: 80 } };
      }
      if (!Array.isArray(value) && Array.isArray(value['paths'])) {
        for (const path of value['paths'] as JsonObject[]) {
          path['pathType'] ??= 'Prefix';
          path['backend'] ??= {};
        }
      }
      for (const each of Object.values(value)) walk(each);
    };
    walk(parts.spec as JsonObject);
  }
}

/**
 * Version v1 of autoscalers has one metric in a field and the other metrics in an annotation, so the order of the
 * metrics is lost, as in upstream.
 */
function comparable(object: KubeObject): unknown {
  const { spec } = object as { spec?: { metrics?: { type: string }[] } };
  if (spec?.metrics === undefined) return object;
  const metrics = [...spec.metrics].sort((a, b) => (a.type < b.type ? -1 : 1));
  return { ...object, spec: { ...spec, metrics } };
}

function alike(actual: KubeObject, expected: KubeObject, message: string): void {
  if (!semanticEqual(comparable(actual), comparable(expected))) assert.deepEqual(actual, expected, message);
}

const schemaFor = (kind: KindDefinition, alias: KindAlias): ObjectNode => {
  const schema = schemaOf({ group: alias.group, version: alias.version, kind: servedAs(kind, alias).kind });
  assert.ok(schema);
  return schema;
};

for (const kind of builtinKinds) {
  for (const alias of kind.aliases ?? []) {
    test(`${kind.kind}: a conversion to ${alias.group}/${alias.version} and back preserves all fields`, () => {
      const stored = schemaOfType(kind.schemaName);
      assert.ok(stored);
      const served = schemaFor(kind, alias);
      for (let seed = 1; seed <= RUNS; seed++) {
        const random = randomOf(seed);
        const object = randomDocument(stored, random) as KubeObject;
        repair(kind, object, random);
        kind.setDefaults?.(object);
        const shown = alias.convertFrom(structuredClone(object));
        assert.deepEqual(
          pruneAndCheck(served, structuredClone(shown) as JsonObject & KubeObject),
          CLEAN,
          `seed ${seed}`,
        );
        alike(alias.convertTo(structuredClone(shown)), object, `seed ${seed}`);
      }
    });

    // Random references of OpenShift's bindings are not valid subjects; projects.test.ts covers valid ones.
    if (alias.group === 'authorization.openshift.io') continue;

    test(`${kind.kind}: a converted ${alias.group}/${alias.version} object is valid and does not change in further conversions`, () => {
      const stored = schemaOfType(kind.schemaName);
      assert.ok(stored);
      const served = schemaFor(kind, alias);
      for (let seed = 1; seed <= RUNS; seed++) {
        const given = randomDocument(served, randomOf(seed)) as KubeObject;
        const object = alias.convertTo(structuredClone(given));
        assert.deepEqual(
          pruneAndCheck(stored, structuredClone(object) as JsonObject & KubeObject),
          CLEAN,
          `seed ${seed}`,
        );
        alike(alias.convertTo(alias.convertFrom(structuredClone(object))), object, `seed ${seed}`);
      }
    });
  }
}

const aliasOf = (kind: string, group: string, version: string): KindAlias => {
  const alias = kindNamed(kind).aliases?.find((each) => each.group === group && each.version === version);
  assert.ok(alias, `${kind} ${group}/${version}`);
  return alias;
};

test('converts v1beta1 ingresses like upstream', () => {
  const alias = aliasOf('Ingress', 'extensions', 'v1beta1');
  const spec = {
    backend: { serviceName: 'web', servicePort: 80 },
    rules: [{ http: { paths: [{ path: '/a', backend: { serviceName: 'api', servicePort: 'http' } }] } }],
  };
  const stored = alias.convertTo({ metadata: { name: 'x' }, spec } as KubeObject) as KubeObject & { spec: unknown };
  assert.deepEqual(stored.spec, {
    defaultBackend: { service: { name: 'web', port: { number: 80 } } },
    rules: [
      {
        http: {
          paths: [
            {
              path: '/a',
              pathType: 'ImplementationSpecific',
              backend: { service: { name: 'api', port: { name: 'http' } } },
            },
          ],
        },
      },
    ],
  });
});

test('stores fields that autoscalers do not have in v1 in annotations', () => {
  const alias = aliasOf('HorizontalPodAutoscaler', 'autoscaling', 'v1');
  const shown = alias.convertFrom(defaulted('HorizontalPodAutoscaler')) as unknown as {
    spec: Record<string, JsonValue>;
    metadata: { annotations: Record<string, string> };
  };
  assert.equal(shown.spec['targetCPUUtilizationPercentage'], 50);
  assert.equal(shown.spec['metrics'], undefined);
  assert.deepEqual(JSON.parse(shown.metadata.annotations['autoscaling.alpha.kubernetes.io/metrics'] ?? ''), [
    { type: 'Pods', pods: { metricName: 'hits', targetAverageValue: '1k' } },
    {
      type: 'External',
      external: { metricName: 'queue', metricSelector: { matchLabels: { q: 'a' } }, targetValue: '30' },
    },
  ]);
  const hostile = alias.convertTo({
    metadata: {
      annotations: {
        'autoscaling.alpha.kubernetes.io/metrics': '[{"type":7}]',
        'autoscaling.alpha.kubernetes.io/behavior': '{"scaleUp":{"policies":{"__proto__":{"polluted":1}}}}',
        'autoscaling.alpha.kubernetes.io/conditions': 'no json',
      },
    },
    spec: {},
  } as unknown as KubeObject);
  assert.deepEqual(hostile, { metadata: {}, spec: {} });
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

test('an empty selector of a disruption budget selects no pod in v1beta1 and every pod in v1', () => {
  const alias = aliasOf('PodDisruptionBudget', 'policy', 'v1beta1');
  const selectorOf = (object: KubeObject) => (object as unknown as { spec: { selector: unknown } }).spec.selector;
  const budget = (selector: object) => ({ spec: { selector } }) as unknown as KubeObject;
  const key = 'pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match';
  assert.deepEqual(selectorOf(alias.convertTo(budget({}))), { matchExpressions: [{ key, operator: 'Exists' }] });
  assert.deepEqual(selectorOf(alias.convertFrom(budget({}) as never)), {
    matchExpressions: [{ key, operator: 'DoesNotExist' }],
  });
});

test('converts the topology map of v1beta1 slices', () => {
  const alias = aliasOf('EndpointSlice', 'discovery.k8s.io', 'v1beta1');
  const endpoint = { addresses: ['10.0.0.1'], nodeName: 'n1', zone: 'z' };
  assert.deepEqual((alias.convertFrom({ endpoints: [endpoint] } as never) as unknown as JsonObject)['endpoints'], [
    {
      addresses: ['10.0.0.1'],
      nodeName: 'n1',
      topology: { 'topology.kubernetes.io/zone': 'z', 'kubernetes.io/hostname': 'n1' },
    },
  ]);
});

test('allows duplicate names and missing review versions in v1beta1 webhooks', () => {
  const kind = kindNamed('ValidatingWebhookConfiguration');
  const alias = aliasOf('ValidatingWebhookConfiguration', 'admissionregistration.k8s.io', 'v1beta1');
  const hook = { name: 'a.b.c', clientConfig: { url: 'https://x.test/' }, admissionReviewVersions: [] };
  const made = () =>
    alias.convertTo({ metadata: { name: 'x' }, webhooks: [{ ...hook }, { ...hook }] } as unknown as KubeObject);
  const [older, newer] = [made(), made()];
  noteVersion(older, 'v1beta1');
  const [webhook] = (older as unknown as { webhooks: { admissionReviewVersions: string[] }[] }).webhooks;
  assert.deepEqual(webhook?.admissionReviewVersions, ['v1beta1']);
  const refusals = (object: KubeObject, old?: KubeObject): string[] =>
    (kind.strategy.validate?.(object, old) ?? []).map(({ field, message }) => `${field}: ${message}`);
  assert.deepEqual(refusals(older), []);
  assert.deepEqual(refusals(newer), ['webhooks[1].name: Duplicate value: "a.b.c"']);
  assert.deepEqual(refusals(newer, older), []);
});
