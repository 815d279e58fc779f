import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { servedKinds } from '../../src/api/discovery/index.ts';
import { builtinKinds } from '../../src/api/registry/index.ts';
import { switchVersions } from '../../src/api/registry/runtime-config.ts';

const everything = namesOf();
const betas = namesOf(['api/beta', true]).filter((name) => /\/v\d+beta\d+\//.test(name));

/** Served resources as `group/version/plural`. */
function namesOf(...settings: [string, boolean][]): string[] {
  return servedKinds(switchVersions(builtinKinds, new Map(settings)))
    .map(({ group, version, kind }) => `${group}/${version}/${kind.plural}`)
    .sort();
}

const without = (pattern: RegExp): string[] => everything.filter((name) => !pattern.test(name));
const only = (pattern: RegExp): string[] => everything.filter((name) => pattern.test(name));

describe('--runtime-config', () => {
  it('serves every API if none is disabled, or if all are enabled again', () => {
    assert.deepEqual(namesOf(['api/alpha', true], ['apps/v1', true]), everything);
    assert.ok(only(/beta/).length > 10 && only(/alpha/).length > 0);
  });

  it('serves beta APIs that upstream disables by default only if they are enabled', () => {
    const migrations = 'storagemigration.k8s.io/v1beta1/storageversionmigrations';
    const rules = 'resource.k8s.io/v1beta2/devicetaintrules';
    assert.ok(!everything.includes(migrations) && !everything.includes(rules));
    for (const setting of ['api/all', 'api/beta']) {
      const more = namesOf([setting, true]).filter((name) => !everything.includes(name));
      assert.deepEqual(more, [rules, migrations]);
    }
    assert.deepEqual(namesOf(['storagemigration.k8s.io/v1beta1', true]), [...everything, migrations].sort());
    assert.deepEqual(namesOf(['resource.k8s.io/v1beta2/devicetaintrules', true]), [...everything, rules].sort());
  });

  it('enables and disables APIs by stability level', () => {
    assert.deepEqual(namesOf(['api/beta', false]), without(/\/v\d+beta\d+\//));
    assert.deepEqual(namesOf(['api/alpha', false]), without(/\/v\d+alpha\d+\//));
    assert.deepEqual(namesOf(['api/ga', false]), only(/\/v\d+(?:beta|alpha)\d+\//));
  });

  it('gives precedence to the more specific setting, independent of the order', () => {
    assert.deepEqual(namesOf(['api/beta', true], ['api/all', false]), betas);
    assert.deepEqual(namesOf(['apps/v1', true], ['api/all', false]), only(/^apps\/v1\//));
    assert.deepEqual(namesOf(['apps/v1', false], ['api/ga', true]), without(/^apps\/v1\//));
    assert.deepEqual(namesOf(['apps/v1/deployments', false]), without(/^apps\/v1\/deployments$/));
    assert.deepEqual(
      namesOf(['apps/v1/deployments', true], ['apps/v1', false]),
      without(/^apps\/v1\/(?!deployments$)/),
    );
  });

  it('accepts the spellings v1, /v1 and api/v1 for the core group', () => {
    for (const name of ['v1', '/v1', 'api/v1']) assert.deepEqual(namesOf([name, false]), without(/^\/v1\//));
    assert.deepEqual(namesOf(['api/v1/pods', false]), without(/^\/v1\/pods$/));
  });

  it('disables versions of a kind separately, including the storage version', () => {
    assert.deepEqual(namesOf(['autoscaling/v2', false]), without(/^autoscaling\/v2\//));
  });
});
