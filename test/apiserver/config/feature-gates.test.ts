import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiUsageProblem, ApiValues, readApiArguments } from '../../../src/apiserver/config/index.ts';
import { checkFeatureGates } from '../../../src/host/config/feature-gates/index.ts';

const check = (...argv: string[]): void => {
  const values = new ApiValues((path) => path);
  readApiArguments(
    argv.map((each) => `--feature-gates=${each}`),
    values,
  );
  checkFeatureGates(values);
};

describe('--feature-gates', () => {
  it('accepts the gates of kube-apiserver 1.36 and the group gates AllAlpha and AllBeta', () => {
    check();
    check('');
    check('WatchList=true,APIServerIdentity=T', 'StorageVersionAPI=1');
    check('kube:WatchList=true', 'kube:WatchList=false');
    check('SidecarContainers=true');
    for (const all of ['AllAlpha=true', 'AllAlpha=false', 'AllBeta=true', 'AllAlpha=true,AllBeta=true']) check(all);
  });

  it('rejects gates with the messages of kube-apiserver', () => {
    const cases: [string, string][] = [
      ['Nope=true', 'unrecognized feature gate: Nope'],
      ['WatchList=true,Nope=false', 'unrecognized feature gate: Nope'],
      ['constructor=true', 'unrecognized feature gate: constructor'],
      ['AppArmor=true', 'unrecognized feature gate: AppArmor'],
      ['allalpha=true', 'unrecognized feature gate: allalpha'],
      ['=true', 'unrecognized feature gate: '],
      ['SidecarContainers=false', 'cannot set feature gate SidecarContainers to false, feature is locked to true'],
      ['WatchList', 'missing bool value for WatchList'],
      ['WatchList=x', 'invalid value of WatchList=x, err: strconv.ParseBool: parsing "x": invalid syntax'],
      ['other:WatchList=true', 'component not registered: other'],
      [
        'kube:WatchList=true,APIServerIdentity=true',
        'set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use',
      ],
      [
        'GangScheduling=true',
        'GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]',
      ],
      [
        'AllBeta=true,APIServerIdentity=false',
        'UnknownVersionInteroperabilityProxy is enabled, but depends on features that are disabled: [APIServerIdentity]',
      ],
    ];
    for (const [given, problem] of cases)
      assert.throws(() => check(given), new ApiUsageProblem(`--feature-gates: ${problem}`), given);
  });

  it('reports every locked feature gate at once', () => {
    assert.throws(() => check('SidecarContainers=false,APIServerTracing=false'), {
      message:
        '--feature-gates: [cannot set feature gate SidecarContainers to false, feature is locked to true, ' +
        'cannot set feature gate APIServerTracing to false, feature is locked to true]',
    });
  });
});
