/**
 * Random clusters and pods. A slow, simple oracle decides for each node separately whether the pod may run there. The
 * scheduler must bind to one of those nodes if and only if there is one.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Pod, PodAffinityTerm } from '../../../src/api/generated/core/v1.ts';
import { boundTo, cluster, decide, node, pod } from './cluster-objects.ts';

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

const ZONE = 'zone';

function mayRunOn(wanted: Pod, target: Node, nodes: readonly Node[], pods: readonly Pod[]): boolean {
  const on = (each: Node): Pod[] => pods.filter((other) => other.spec?.nodeName === each.metadata?.name);
  const cpu = (each: Pod): number =>
    Number.parseInt(String(each.spec?.containers[0]?.resources?.requests?.['cpu'] ?? '0'), 10);
  const used = on(target).reduce((sum, other) => sum + cpu(other), 0);
  if (used + cpu(wanted) > Number(target.status?.allocatable?.['cpu']) * 1000 && cpu(wanted) > 0) return false;
  for (const taint of target.spec?.taints ?? []) {
    if (!(wanted.spec?.tolerations ?? []).some((toleration) => toleration.key === taint.key)) return false;
  }
  for (const [key, value] of Object.entries(wanted.spec?.nodeSelector ?? {})) {
    if (target.metadata?.labels?.[key] !== value) return false;
  }
  const selects = (term: PodAffinityTerm, other: Pod): boolean =>
    Object.entries(term.labelSelector?.matchLabels ?? {}).every(
      ([key, value]) => other.metadata?.labels?.[key] === value,
    );
  const inDomain = (key: string): Pod[] => {
    const domain = target.metadata?.labels?.[key];
    if (domain === undefined) return [];
    return nodes.filter((each) => each.metadata?.labels?.[key] === domain).flatMap(on);
  };
  for (const term of wanted.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
    if (inDomain(term.topologyKey).some((other) => selects(term, other))) return false;
  }
  for (const term of wanted.spec?.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
    if (target.metadata?.labels?.[term.topologyKey] === undefined) return false;
    const anywhere = nodes
      .filter((each) => each.metadata?.labels?.[term.topologyKey] !== undefined)
      .flatMap(on)
      .some((other) => selects(term, other));
    if (!anywhere && selects(term, wanted)) continue;
    if (!inDomain(term.topologyKey).some((other) => selects(term, other))) return false;
  }
  for (const holder of nodes) {
    for (const other of on(holder)) {
      for (const term of other.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
        const domain = holder.metadata?.labels?.[term.topologyKey];
        if (domain !== undefined && target.metadata?.labels?.[term.topologyKey] === domain && selects(term, wanted))
          return false;
      }
    }
  }
  for (const constraint of wanted.spec?.topologySpreadConstraints ?? []) {
    const matches = (other: Pod): boolean =>
      other.metadata?.labels?.['app'] === constraint.labelSelector?.matchLabels?.['app'];
    const own = target.metadata?.labels?.[constraint.topologyKey];
    if (own === undefined) return false;
    const eligible = nodes.filter(
      (each) =>
        each.metadata?.labels?.[constraint.topologyKey] !== undefined &&
        Object.entries(wanted.spec?.nodeSelector ?? {}).every(([key, value]) => each.metadata?.labels?.[key] === value),
    );
    const counts = new Map<string, number>();
    for (const each of eligible) {
      const domain = each.metadata?.labels?.[constraint.topologyKey] ?? '';
      counts.set(domain, (counts.get(domain) ?? 0) + on(each).filter(matches).length);
    }
    if ((counts.get(own) ?? 0) + Number(matches(wanted)) - Math.min(...counts.values()) > constraint.maxSkew)
      return false;
  }
  return true;
}

function randomPod(random: () => number, nodes: readonly Node[] | undefined): Pod {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const term: PodAffinityTerm = {
    topologyKey: pick(['kubernetes.io/hostname', ZONE]),
    labelSelector: { matchLabels: { app: pick(['a', 'b']) } },
  };
  const affinity: NonNullable<Pod['spec']>['affinity'] = {};
  if (random() < 0.2) affinity.podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  if (random() < 0.2) affinity.podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  return pod({
    cpu: `${Math.floor(random() * 5) * 500}m`,
    labels: { app: pick(['a', 'b', 'c']) },
    ...(nodes === undefined ? {} : { node: pick(nodes).metadata?.name ?? '' }),
    spec: {
      affinity,
      ...(random() < 0.3 ? { nodeSelector: { disk: 'ssd' } } : {}),
      ...(random() < 0.5 ? { tolerations: [{ key: 'k', operator: 'Exists' }] } : {}),
      ...(random() < 0.3
        ? {
            topologySpreadConstraints: [
              {
                maxSkew: 1 + Math.floor(random() * 2),
                topologyKey: ZONE,
                whenUnsatisfiable: 'DoNotSchedule',
                labelSelector: { matchLabels: { app: 'a' } },
              },
            ],
          }
        : {}),
    },
  });
}

test('binds a pod exactly if the oracle allows a node, and only to an allowed node', () => {
  let bound = 0;
  let refused = 0;
  for (let seed = 1; seed <= 3_000; seed++) {
    const random = seeded(seed);
    const nodes = Array.from({ length: 1 + Math.floor(random() * 5) }, (_, index) =>
      node(`n${index}`, {
        cpu: String(2 + Math.floor(random() * 4)),
        labels: {
          ...(random() < 0.8 ? { [ZONE]: random() < 0.5 ? 'x' : 'y' } : {}),
          ...(random() < 0.6 ? { disk: 'ssd' } : {}),
        },
        ...(random() < 0.3 ? { taints: [{ key: 'k', effect: 'NoSchedule' }] } : {}),
      }),
    );
    const pods = Array.from({ length: Math.floor(random() * 8) }, () => randomPod(random, nodes));
    const wanted = randomPod(random, undefined);
    const allowed = nodes.filter((each) => mayRunOn(wanted, each, nodes, pods)).map((each) => each.metadata?.name);
    const decision = decide(wanted, cluster(nodes, pods), { random });
    const chosen = boundTo(decision);
    if (chosen === undefined) {
      refused++;
      assert.deepEqual(allowed, [], `seed ${seed}`);
    } else {
      bound++;
      assert.ok(allowed.includes(chosen), `seed ${seed}: ${chosen} of ${allowed.join()}`);
    }
  }
  assert.ok(bound > 500 && refused > 500, `the draw must try both outcomes: ${bound} ${refused}`);
});
