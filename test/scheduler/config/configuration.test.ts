import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readSchedulerConfiguration } from '../../../src/scheduler/config/configuration.ts';

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-scheduler-config-'));
});
after(() => rm(directory, { recursive: true, force: true }));

const HEAD = 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n';

async function read(text: string) {
  const file = join(directory, 'scheduler.yaml');
  await writeFile(file, HEAD + text);
  return readSchedulerConfiguration(file);
}

test('reads profiles that enable, disable and weight plug-ins, and overrides default arguments', async () => {
  const { profiles } = await read(`percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
profiles:
- schedulerName: one
  plugins:
    multiPoint: {disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 7}]}
    filter: {disabled: [{name: NodePorts}]}
    score: {disabled: [{name: TaintToleration}]}
    postFilter: {disabled: [{name: '*'}]}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/x]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]
  - {name: DynamicResources, args: {bindingTimeout: 1m30s}}
  - {name: VolumeBinding, args: {kind: VolumeBindingArgs, bindTimeoutSeconds: 20}}
- schedulerName: two
  plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}]}}
`);
  const [one, two] = profiles;
  assert.equal(one?.scores.get('NodeAffinity'), 7);
  assert.equal(one?.scores.has('ImageLocality'), false);
  assert.equal(one?.scores.has('TaintToleration'), false);
  assert.equal(one?.filters.includes('TaintToleration'), true);
  assert.equal(one?.filters.includes('NodePorts'), false);
  assert.equal(one?.preempts, false);
  assert.equal(one?.percentageOfNodesToScore, 30);
  assert.deepEqual(one?.args.ignoredResources, ['example.com/x']);
  assert.deepEqual(one?.args.scoringStrategy.resources, [{ name: 'cpu', weight: 3 }]);
  assert.equal(one?.args.defaultConstraints?.[0]?.topologyKey, 'rack');
  assert.deepEqual([one?.args.bindingTimeoutMs, two?.args.bindingTimeoutMs], [90_000, 600_000]);
  assert.deepEqual([one?.args.bindTimeoutSeconds, two?.args.bindTimeoutSeconds], [20, 600]);
  assert.deepEqual([...(two?.scores ?? [])], [['NodeResourcesFit', 1]]);
  assert.equal(two?.preempts, true);
});

test('reads extenders with defaults, durations and managed resources', async () => {
  const { extenders, profiles } = await read(`extenders:
- urlPrefix: http://127.0.0.1:8888/
  filterVerb: filter
  httpTimeout: 1m500ms
  managedResources: [{name: example.com/board, ignoredByScheduler: true}]
`);
  assert.equal(extenders[0]?.urlPrefix, 'http://127.0.0.1:8888');
  assert.equal(extenders[0]?.timeoutMs, 60_500);
  assert.equal(extenders[0]?.ignorable, false);
  assert.deepEqual(profiles[0]?.args.ignoredResources, ['example.com/board']);
});

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['profile: []\n', /scheduler\.yaml:3: profile: unknown field/],
  ['profiles:\n- schedulerNam: x\n', /:4: profiles\[0\]\.schedulerNam: unknown field/],
  [
    'profiles:\n- plugins: {score: {enabled: [{name: Nope}]}}\n',
    /score\.enabled\[0\]\.name: plug-in "Nope" is unknown/,
  ],
  ['profiles:\n- plugins: {preBind: {disabled: [{name: VolumeBinding}]}}\n', /plugins\.preBind: is not supported/],
  ['profiles:\n- plugins: {multiPoint: {disabled: [{name: DefaultBinder}]}}\n', /"DefaultBinder" cannot be disabled/],
  ['profiles:\n- pluginConfig: [{name: NodeAffinity, args: {added: {}}}]\n', /args\.added: unknown field/],
  [
    'profiles:\n- pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 999ms}}]\n',
    /bindingTimeout must be at least 1 second/,
  ],
  [
    'profiles:\n- pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: -1}}]\n',
    /args\.bindTimeoutSeconds: must be/,
  ],
  ['profiles:\n- schedulerName: a\n- schedulerName: a\n', /schedulerName "a" is given twice/],
  ['extenders:\n- urlPrefix: http://x\n  prioritizeVerb: p\n', /extenders\[0\]: weight is missing/],
  ['extenders:\n- urlPrefix: http://x\n  httpTimeout: 5\n', /httpTimeout: must be a string/],
];

for (const [text, expected] of REFUSED) {
  test(`rejects the configuration ${expected.source}`, () => assert.rejects(read(text), expected));
}
