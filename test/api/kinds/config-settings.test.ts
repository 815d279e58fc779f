/** Checks that every field of config.openshift.io either takes effect or is rejected by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configPackage } from '../../../src/api/schema/openshift/config.ts';
import { configKinds } from '../../../src/openshift/operators/kinds/config/index.ts';
import { SETTINGS, validateSettings } from '../../../src/openshift/operators/kinds/config/settings.ts';

const PREFIX = 'com.github.openshift.api.config.v1.';

interface Leaf {
  /** Field path below `spec`. */
  readonly path: string;
  /** A spec with only this field. */
  readonly spec: object;
  /** Field path in errors. */
  readonly field: string;
}

/** Non-empty value of a field whose type is given in the notation of the schema table, such as `[]string`. */
function sample(type: string): unknown {
  if (type.startsWith('[]')) return [sample(type.slice(2))];
  if (type.startsWith('{}')) return { a: sample(type.slice(2)) };
  if (type === 'boolean') return true;
  if (/^int/.test(type)) return 7;
  return type === 'any' ? { a: 'b' } : 'x';
}

function leaves(typeName: string): Leaf[] {
  const fields = configPackage.types[typeName]?.f ?? {};
  return Object.entries(fields).flatMap(([name, compact]): Leaf[] => {
    const isList = compact.startsWith('[]');
    const type = isList ? compact.slice(2) : compact;
    const below = type.startsWith('#') ? leaves(type.slice(1).replace(/^config\./, PREFIX)) : [];
    const wrap = (value: unknown) => ({ [name]: isList ? [value] : value });
    if (below.length === 0) return [{ path: name, spec: { [name]: sample(compact) }, field: name }];
    return below.map(({ path, spec, field }) => ({
      path: `${name}.${path}`,
      spec: wrap(spec),
      field: `${name}${isList ? '[0]' : ''}.${field}`,
    }));
  });
}

const ruleOf = (kind: string, path: string): unknown =>
  Object.entries(SETTINGS[kind] ?? {}).find(([field]) => path === field || path.startsWith(`${field}.`))?.[1];

test('every kind of config.openshift.io has rules for its settings', () => {
  assert.deepEqual(Object.keys(SETTINGS).sort(), configKinds.map(({ kind }) => kind).sort());
});

for (const { kind } of configKinds)
  test(`supports every field of ${kind} or rejects the field by name`, () => {
    const all = leaves(`${PREFIX}${kind}Spec`);
    if (kind !== 'ClusterOperator') assert.ok(all.length > 0);
    for (const { path, spec: positive, field } of all) {
      // The only supported value is the sample itself.
      const spec = path === 'disableAllDefaultSources' ? { [path]: false } : positive;
      const errors = validateSettings(kind, spec, undefined);
      const rule = ruleOf(kind, path);
      if (rule === 'honoured' || rule === 'described') {
        assert.deepEqual(errors, [], path);
        continue;
      }
      const [error] = errors;
      assert.ok(error !== undefined, `${path} is accepted without an effect`);
      assert.ok(`spec.${field}`.startsWith(error.field), `${error.field} instead of ${field}`);
      assert.deepEqual(validateSettings(kind, spec, spec), [], 'what an object has may stay');
    }
  });

test('errors name the field, the supported values and the configuration file of a setting', () => {
  const of = (kind: string, spec: object, old?: object) =>
    validateSettings(kind, spec, old).map(({ field, message }) => `${field}: ${message}`);
  assert.deepEqual(of('FeatureGate', { featureSet: 'TechPreviewNoUpgrade' }), [
    'spec.featureSet: Forbidden: is not supported by this cluster',
  ]);
  assert.match(
    of('APIServer', { audit: { profile: 'AllRequestBodies' } })[0] ?? '',
    /^spec.audit.profile: Unsupported value: "AllRequestBodies": .*"Default".* use auditConfig/,
  );
  assert.match(of('Scheduler', { profile: 'NoScoring' })[0] ?? '', /^spec.profile: Unsupported value/);
  assert.match(
    of('Proxy', { httpProxy: 'http://proxy.lab:3128' })[0] ?? '',
    /^spec.httpProxy: Forbidden.*use proxy in/,
  );
  assert.match(
    of('Image', { registrySources: { blockedRegistries: ['x'] } })[0] ?? '',
    /^spec.registrySources.*use registries/,
  );
  const github = { name: 'gh', type: 'GitHub', github: { clientID: 'x' } };
  assert.deepEqual(
    validateSettings('OAuth', { identityProviders: [{ name: 'a', type: 'HTPasswd' }, github] }, undefined).map(
      ({ field }) => field,
    ),
    ['spec.identityProviders[1].type', 'spec.identityProviders[1].github'],
  );
  assert.match(
    of('DNS', { baseDomain: 'b' }, { baseDomain: 'a' })[0] ?? '',
    /describes the cluster and cannot be changed/,
  );
  assert.deepEqual(of('Proxy', { httpProxy: '', trustedCA: { name: '' } }), []);
});
