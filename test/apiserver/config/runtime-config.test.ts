import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiUsageProblem, ApiValues, readApiArguments } from '../../../src/apiserver/config/index.ts';
import { runtimeConfigOf } from '../../../src/apiserver/config/runtime-config.ts';

const read = (...argv: string[]) => {
  const values = new ApiValues((path) => path);
  readApiArguments(
    argv.map((each) => `--runtime-config=${each}`),
    values,
  );
  const { runtimeConfig, warnings } = runtimeConfigOf(values);
  return { settings: Object.fromEntries(runtimeConfig), warnings };
};

describe('--runtime-config', () => {
  it('reads comma-separated and repeated pairs; the last value is used, and a name without value means true', () => {
    assert.deepEqual(read().settings, {});
    assert.deepEqual(read('api/v1').settings, { 'api/v1': true });
    assert.deepEqual(read('api/all=true, batch/v1 = false,', 'apps/v1/deployments=F', 'batch/v1=1').settings, {
      'api/all': true,
      'batch/v1': true,
      'apps/v1/deployments': false,
    });
    assert.deepEqual(read('api/legacy=false').settings, {});
    assert.deepEqual(read('api/all=false', 'v1').settings, { 'api/all': false, v1: true });
  });

  it('rejects invalid values, and values that disable every API', () => {
    const cases: [string, RegExp][] = [
      ['api/all=maybe', /api\/all=maybe is not accepted; give api\/all=true or api\/all=false/],
      ['api/beta', /api\/beta= is not accepted/],
      ['apps/v1=si', /apps\/v1=si is not accepted/],
      ['apps', /"apps" is not accepted; give api\/all/],
      ['a/b/c/d=true', /"a\/b\/c\/d" is not accepted/],
      ['apps/v1/Deployments=true', /lower case and plural/],
      ['apps/v9=true', /group version apps\/v9 that has not been registered; remove the entry/],
      ['apps/v1/pods=true', /apps\/v1\/pods does not exist/],
      ['scheduling.k8s.io/v1alpha1=true', /scheduling.k8s.io\/v1alpha1 that has not been registered/],
      ['resource.k8s.io/v1alpha9=true', /resource.k8s.io\/v1alpha9 that has not been registered/],
      ['resource.k8s.io/v1alpha9=false', /group version resource\.k8s\.io\/v1alpha9 that has not been registered/],
      ['v2/pods=false', /unknown api groups v2/],
      ['no.such.group/v1=false', /unknown api groups no\.such\.group/],
      ['api/all=false', /disables all APIs/],
    ];
    for (const [given, problem] of cases) {
      assert.throws(() => read(given), problem, given);
      assert.throws(() => read(given), ApiUsageProblem, given);
    }
  });

  it('accepts API versions that kube-apiserver no longer serves, with a warning', () => {
    assert.deepEqual(read('apps/v1beta2=true,resource.k8s.io/v1alpha3=true').warnings, [
      '--runtime-config: apps/v1beta2 does not exist; the setting has no effect',
      '--runtime-config: resource.k8s.io/v1alpha3 does not exist; the setting has no effect',
    ]);
    for (const name of ['scheduling.k8s.io/v1alpha2', 'imagepolicy.k8s.io/v1alpha1', 'admission.k8s.io/v1beta1'])
      assert.deepEqual(read(name).warnings, [`--runtime-config: ${name} does not exist; the setting has no effect`]);
  });

  it('ignores a missing resource of a registered version with a warning', () => {
    assert.deepEqual(read('apps/v1/pods=false', 'api/beta=false'), {
      settings: { 'api/beta': false },
      warnings: ['--runtime-config: apps/v1/pods does not exist; the setting has no effect'],
    });
  });
});
