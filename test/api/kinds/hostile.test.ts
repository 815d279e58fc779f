import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failuresOf, invalid } from '../../../src/api/meta/field-error.ts';
import { validateObjectMeta } from '../../../src/api/meta/validation.ts';
import { at, context, created, type Document, kindNamed } from './samples.ts';

const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Updates a kind with a large list in both objects; quadratic work would take minutes. */
function updateOf(kind: string, change: (document: Document) => void): number {
  const definition = kindNamed(kind);
  const old = created(kind, change);
  const now = structuredClone(old);
  const started = performance.now();
  definition.strategy.prepareForUpdate?.(now, old, context);
  definition.strategy.validateUpdate?.(now, old);
  for (const column of definition.columns) column.cell(now, context.nowMs);
  return performance.now() - started;
}

test('validates objects with large lists in linear time', () => {
  const cases: [string, (document: Document) => void][] = [
    [
      'Pod',
      (d) => {
        at(d, 'spec')['tolerations'] = many(60_000, (index) => ({ key: `k${index}`, operator: 'Exists' }));
      },
    ],
    [
      'Pod',
      (d) => {
        at(d, 'spec')['readinessGates'] = many(60_000, (index) => ({ conditionType: `g${index}` }));
      },
    ],
    [
      'Pod',
      (d) => {
        at(d, 'spec', 'containers', 0)['env'] = many(60_000, () => ({ name: 'A' }));
      },
    ],
    [
      'Service',
      (d) => {
        Object.assign(at(d, 'spec'), {
          type: 'NodePort',
          ports: many(60_000, (index) => ({ port: index + 1, name: `p${index}` })),
        });
      },
    ],
    [
      'Node',
      (d) => {
        at(d, 'spec')['taints'] = many(60_000, (index) => ({ key: `k${index}`, effect: 'NoSchedule' }));
      },
    ],
  ];
  for (const [kind, change] of cases) {
    const elapsed = updateOf(kind, change);
    assert.ok(elapsed < 3000, `${kind}: ${elapsed} ms`);
  }
});

test('limits the size of the response for many invalid items', () => {
  const ownerReferences = many(20_000, (index) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    name: `p${index}`,
    uid: `u${index}`,
    controller: true,
  }));
  const errors = validateObjectMeta({ name: 'A', namespace: 'ns', ownerReferences }, kindNamed('Pod'));
  assert.equal(errors.filter((each) => each.field === 'metadata.ownerReferences').length, 1);
  const pod = created('Pod', (d) => {
    at(d, 'spec')['tolerations'] = many(20_000, () => ({ key: '-', operator: 'x'.repeat(100) }));
  });
  const failure = invalid({ group: '', kind: 'Pod' }, 'x', kindNamed('Pod').strategy.validate?.(pod) ?? []);
  assert.ok(JSON.stringify(failure.toStatus()).length < 200_000);
  assert.equal(failure.details?.causes?.length, 128);
});

test('limits the number of warnings, and each warning names its field', () => {
  const warnings = kindNamed('Pod').strategy.warnings;
  assert.deepEqual(
    warnings?.(
      created('Pod', (d) => {
        at(d, 'spec', 'containers', 0)['env'] = [{ name: 'A' }, { name: 'A' }];
        delete at(d, 'spec')['topologySpreadConstraints'];
      }),
      undefined,
    ),
    ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
  );
  const flood = created('Pod', (d) => {
    at(d, 'spec', 'containers', 0)['env'] = many(1000, () => ({ name: 'A' }));
  });
  assert.equal(warnings?.(flood, undefined).length, 32);
});

test('validates quotas with many scopes and resources in little time, and limits their resources', () => {
  const named = (count: number): Record<string, string> =>
    Object.fromEntries(many(count, (index) => [`count/r${index}`, '1']));
  const specs = [
    { scopes: many(60_000, (index) => `s${index}`), hard: named(40_000) },
    {
      scopeSelector: {
        matchExpressions: many(20_000, () => ({ scopeName: 'PriorityClass', operator: 'In', values: ['a'] })),
      },
      hard: named(2_000),
    },
    { scopeSelector: { matchExpressions: many(20_000, () => ({ scopeName: 'x' })) }, hard: { pods: '1' } },
  ];
  for (const [index, spec] of specs.entries()) {
    const quota = created('ResourceQuota', (d) => {
      d['spec'] = spec;
    });
    const started = performance.now();
    const errors = failuresOf(() => kindNamed('ResourceQuota').strategy.validate?.(quota, undefined) ?? []);
    invalid({ group: '', kind: 'ResourceQuota' }, 'x', errors);
    // An implementation that compares each scope with each resource and serializes all scopes for each error takes
    // longer.
    assert.ok(performance.now() - started < 1000, `${index}: ${performance.now() - started} ms`);
  }
  const errorsOf = (count: number): string[] => {
    const quota = created('ResourceQuota', (d) => {
      d['spec'] = { hard: named(count) };
    });
    return (kindNamed('ResourceQuota').strategy.validate?.(quota, undefined) ?? []).map(({ message }) => message);
  };
  assert.deepEqual(errorsOf(2_000), []);
  assert.deepEqual(errorsOf(40_000), ['Too many: 40000: must have at most 2000 items']);
});
