/** Compares the incremental counts with a full recount over random histories of a cluster. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { type PodInfo, podInfoOf, termSelects } from '../../../src/api/podspec/scheduling/pod-info.ts';
import { toNodeName, toUid } from '../../../src/base/brand.ts';
import { labelSelectorOf } from '../../../src/base/selector.ts';
import { Cluster, type ClusterView } from '../../../src/scheduler/core/cluster.ts';
import { selectionInNamespace, selectionOfTerms } from '../../../src/scheduler/core/pod-selection.ts';
import { viewWith } from '../../../src/scheduler/core/trial-view.ts';
import { generator as seeded } from '../../support/random.ts';
import { node, pod, view } from './cluster-objects.ts';

const ZONE = 'zone';
const KEYS = ['kubernetes.io/hostname', ZONE];

function draws(random: () => number) {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const term = () => ({
    topologyKey: pick(KEYS),
    labelSelector: { matchLabels: { app: pick(['a', 'b']) } },
    ...(random() < 0.3 ? { namespaceSelector: { matchLabels: { team: 'x' } } } : {}),
  });
  const makePod = (): Pod =>
    pod({
      namespace: pick(['ns', 'other']),
      labels: { app: pick(['a', 'b', 'c']), ...(random() < 0.5 ? { tier: 'web' } : {}) },
      spec: {
        affinity: {
          ...(random() < 0.3 ? { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term()] } } : {}),
          ...(random() < 0.3 ? { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term()] } } : {}),
        },
        volumes: [{ name: 'v', persistentVolumeClaim: { claimName: pick(['c1', 'c2']) } }],
      },
    });
  const makeNode = (name: string) => node(name, { labels: random() < 0.8 ? { [ZONE]: pick(['x', 'y']) } : {} });
  return { pick, term, makePod, makeNode };
}

/** Recounts every figure from all pods. */
function compare(of: ClusterView, wanted: PodInfo, seed: number): void {
  const everyPod = of.nodes.flatMap((each) => [...each.pods.values()].map((info) => ({ node: each, info })));
  const selections = [
    selectionInNamespace('ns', [labelSelectorOf({ matchLabels: { app: 'a' } })]),
    selectionInNamespace('ns', [labelSelectorOf({ matchExpressions: [{ key: 'tier', operator: 'Exists' }] })]),
    selectionInNamespace('other', [
      labelSelectorOf({ matchExpressions: [{ key: 'app', operator: 'In', values: ['a', 'c'] }] }),
    ]),
    ...(wanted.affinity.length > 0 ? [selectionOfTerms(wanted.affinity, of.namespaceLabels)] : []),
    ...wanted.antiAffinity.map((each) => selectionOfTerms([each], of.namespaceLabels)),
  ];
  for (const selection of selections) {
    const counted = of.counts.selected(selection);
    const selected = everyPod.filter(({ info }) => selection.selects(info));
    for (const each of of.nodes) {
      assert.equal(
        counted.on(each),
        selected.filter((one) => one.node === each).length,
        `seed ${seed} ${selection.key}`,
      );
      for (const key of KEYS) {
        const value = each.label(key);
        if (value === undefined) continue;
        const expected = selected.filter((one) => one.node.label(key) === value).length;
        assert.equal(counted.inDomain(key, value), expected, `seed ${seed} ${selection.key} ${key}`);
      }
    }
    for (const key of KEYS) {
      assert.equal(counted.withKey(key), selected.filter((one) => one.node.label(key) !== undefined).length);
    }
  }
  for (const claim of ['ns/c1', 'ns/c2', 'other/c1']) {
    assert.equal(of.counts.usersOf(claim), everyPod.filter(({ info }) => info.claims.includes(claim)).length);
  }
  for (const each of of.nodes) {
    const refusing = everyPod.filter(({ info, node: holder }) =>
      info.antiAffinity.some(
        (term) =>
          termSelects(term, wanted, of.namespaceLabels) &&
          each.label(term.topologyKey) !== undefined &&
          holder.label(term.topologyKey) === each.label(term.topologyKey),
      ),
    ).length;
    let grouped = 0;
    for (const { kind, term, inDomain } of of.counts.groups()) {
      const value = each.label(term.topologyKey);
      if (kind === 'anti' && value !== undefined && termSelects(term, wanted, of.namespaceLabels))
        grouped += inDomain(value);
    }
    assert.equal(grouped, refusing, `seed ${seed}: pods that refuse on ${each.name}`);
  }
}

test('incremental pod counts equal a full count while nodes, pods, labels and namespaces change', () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = seeded(seed);
    const { pick, makePod, makeNode } = draws(random);
    const made = new Cluster();
    let teams: Record<string, string> = { ns: 'x', other: 'y' };
    const labels = { namespaceLabels: (namespace: string) => ({ team: teams[namespace] ?? '' }) };
    const names = ['n0', 'n1', 'n2', 'n3'];
    const placed: Pod[] = [];
    for (let step = 0; step < 60; step++) {
      const action = random();
      if (action < 0.25) made.setNode(makeNode(pick(names)));
      else if (action < 0.3) made.removeNode(toNodeName(pick(names)));
      else if (action < 0.35) {
        teams = { ns: pick(['x', 'y']), other: pick(['x', 'y']) };
        made.namespaceChanged();
      } else if (action < 0.55 && placed.length > 0) {
        const [gone] = placed.splice(Math.floor(random() * placed.length), 1);
        made.removePod(toUid(gone?.metadata?.uid));
      } else if (action < 0.65 && placed.length > 0) {
        const index = Math.floor(random() * placed.length);
        const old = placed[index] as Pod;
        const changed = { ...old, metadata: { ...old.metadata, labels: { app: pick(['a', 'b', 'c']) } } };
        placed[index] = changed;
        made.setPod(changed);
      } else if (action < 0.8) made.assume(podInfoOf(makePod()), toNodeName(pick(names)));
      else {
        const each = makePod();
        const bound: Pod = { ...each, spec: { ...each.spec, containers: [], nodeName: pick(names) } };
        placed.push(bound);
        made.setPod(bound);
      }
      compare(view(made, labels), podInfoOf(makePod()), seed);
    }
  }
});

test('a trial with assumed pods counts the same as if the node had these pods', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seeded(seed);
    const { pick, makePod, makeNode } = draws(random);
    const names = ['n0', 'n1', 'n2'];
    const made = new Cluster();
    for (const name of names) made.setNode(makeNode(name));
    for (let count = 0; count < 12; count++) made.assume(podInfoOf(makePod()), toNodeName(pick(names)));
    const target = made.node(toNodeName(pick(names)));
    assert.ok(target !== undefined);
    const trial = target.copy();
    for (const uid of [...trial.pods.keys()]) if (random() < 0.5) trial.remove(uid);
    if (random() < 0.7) trial.add(podInfoOf(makePod()));
    const labels = { namespaceLabels: () => ({ team: 'x' }) };
    compare(viewWith(view(made, labels), target, trial), podInfoOf(makePod()), seed);
  }
});
