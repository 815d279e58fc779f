/**
 * Calls the configured extenders. Upstream's types have no JSON tags, so requests use the names of the Go fields.
 * Responses are read without regard to case, as Go does. Source: pkg/scheduler/extender.go.
 */

import type { PodInfo } from '../api/podspec/scheduling/pod-info.ts';
import { toUid } from '../base/brand.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Rejection, reject, rejectUnresolvable } from './core/filters/filter.ts';
import type { NodeInfo } from './core/node-info.ts';
import { byImportance, type PreemptionCandidate } from './core/preemption.ts';
import type { FoundNodes } from './core/schedule.ts';
import type { ExtenderCaller, ExtenderSettings } from './extender-port.ts';

/** Factor from the scores of extenders (0 to 10) to the scores of nodes (0 to 100). */
const SCORE_SCALE = 10;
const MAX_EXTENDER_SCORE = 10;

export class Extenders {
  readonly #settings: readonly ExtenderSettings[];
  readonly #caller: ExtenderCaller;
  readonly #log: Log;

  constructor(settings: readonly ExtenderSettings[], caller: ExtenderCaller, log: Log) {
    this.#settings = settings;
    this.#caller = caller;
    this.#log = log;
  }

  /** Whether any extender handles the pod. */
  isInterested(pod: PodInfo): boolean {
    return this.#settings.some((extender) => isInterested(extender, pod));
  }

  /** Removes nodes that extenders reject. Throws an Error if an extender fails that is not ignorable. */
  async filter(pod: PodInfo, found: FoundNodes): Promise<FoundNodes> {
    let { feasible } = found;
    const rejections = new Map(found.rejections);
    for (const extender of this.#settings) {
      if (feasible.length === 0) break;
      const { filterVerb } = extender;
      if (filterVerb === undefined || !isInterested(extender, pod)) continue;
      const nodes = feasible;
      const body = { Pod: pod.pod, ...nodesFor(extender, nodes) };
      const result = await this.#send(extender, filterVerb, body, (answer) =>
        readFilterResult(answer, extender, nodes),
      );
      if (result === undefined) continue;
      const { kept, refused } = result;
      for (const [name, rejection] of refused) rejections.set(name, rejection);
      feasible = nodes.filter(({ name }) => kept.has(name) && !refused.has(name));
      for (const { name } of nodes) {
        if (kept.has(name) || rejections.has(name)) continue;
        rejections.set(name, reject('Extender', 'node(s) were filtered out by an extender'));
      }
    }
    return { feasible, rejections };
  }

  /** Additional score of each node. An extender that fails adds no scores. */
  async prioritize(pod: PodInfo, nodes: readonly NodeInfo[]): Promise<Map<string, number>> {
    const scores = new Map<string, number>();
    const responses = this.#settings.map(async (extender) => {
      const { prioritizeVerb, weight } = extender;
      if (prioritizeVerb === undefined || !isInterested(extender, pod)) return;
      try {
        const answer = await this.#post(extender, prioritizeVerb, { Pod: pod.pod, ...nodesFor(extender, nodes) });
        for (const { host, score } of readPriorities(answer)) {
          scores.set(host, (scores.get(host) ?? 0) + score * SCORE_SCALE * weight);
        }
      } catch (error) {
        this.#log.warn('scores of extender not used', { extender: extender.urlPrefix, error: messageOf(error) });
      }
    });
    await Promise.all(responses);
    return scores;
  }

  /** Candidates that all extenders accept. Throws an Error if an extender fails that is not ignorable. */
  async preempt(pod: PodInfo, candidates: readonly PreemptionCandidate[]): Promise<readonly PreemptionCandidate[]> {
    let left = candidates;
    for (const extender of this.#settings) {
      const { preemptVerb } = extender;
      if (preemptVerb === undefined || left.length === 0 || !isInterested(extender, pod)) continue;
      const sent = left;
      const body = { Pod: pod.pod, ...victimsFor(extender, sent) };
      left = (await this.#send(extender, preemptVerb, body, (answer) => readVictims(answer, extender, sent))) ?? sent;
    }
    return left;
  }

  /** Returns a function that binds the pod through an extender; undefined if the API server must bind it. */
  binder(pod: PodInfo): ((node: string) => Promise<void>) | undefined {
    const extender = this.#settings.find((each) => each.bindVerb !== undefined && isInterested(each, pod));
    const verb = extender?.bindVerb;
    if (extender === undefined || verb === undefined) return undefined;
    return async (node) => {
      const { name: podName = '', namespace: podNamespace = '' } = pod.pod.metadata ?? {};
      await this.#post(extender, verb, {
        PodName: podName,
        PodNamespace: podNamespace,
        PodUID: pod.uid,
        Node: node,
      });
    };
  }

  /** Sends a request. Returns undefined if an ignorable extender has failed or its response is invalid. */
  async #send<T>(
    extender: ExtenderSettings,
    verb: string,
    body: unknown,
    read: (answer: unknown) => T,
  ): Promise<T | undefined> {
    try {
      return read(await this.#post(extender, verb, body));
    } catch (error) {
      if (!extender.ignorable) throw error;
      this.#log.warn('extender failed and is ignored', { extender: extender.urlPrefix, error: messageOf(error) });
      return undefined;
    }
  }

  async #post(extender: ExtenderSettings, verb: string, body: unknown): Promise<unknown> {
    const answer = await this.#caller.post(extender, verb, body);
    const error = fieldOf(answer, 'Error');
    if (typeof error === 'string' && error !== '') throw new Error(`extender ${extender.urlPrefix}/${verb}: ${error}`);
    return answer;
  }
}

function isInterested({ managedResources }: ExtenderSettings, pod: PodInfo): boolean {
  return managedResources.length === 0 || managedResources.some((name) => (pod.requests.get(name) ?? 0) > 0);
}

function nodesFor({ nodeCacheCapable }: ExtenderSettings, nodes: readonly NodeInfo[]): object {
  return nodeCacheCapable
    ? { NodeNames: nodes.map(({ name }) => name) }
    : { Nodes: { apiVersion: 'v1', kind: 'NodeList', items: nodes.map(({ node }) => node) } };
}

function victimsFor({ nodeCacheCapable }: ExtenderSettings, candidates: readonly PreemptionCandidate[]): object {
  const entries = candidates.map(({ node, victims, violations }) => [
    node.name,
    {
      Pods: victims.map(({ uid, pod }) => (nodeCacheCapable ? { UID: uid } : pod)),
      NumPDBViolations: violations,
    },
  ]);
  return { [nodeCacheCapable ? 'NodeNameToMetaVictims' : 'NodeNameToVictims']: Object.fromEntries(entries) };
}

function readFilterResult(
  answer: unknown,
  { nodeCacheCapable }: ExtenderSettings,
  nodes: readonly NodeInfo[],
): { readonly kept: ReadonlySet<string>; readonly refused: ReadonlyMap<string, Rejection> } {
  const sent = fieldOf(answer, 'Nodes') ?? undefined;
  const names = nodeCacheCapable
    ? fieldOf(answer, 'NodeNames')
    : sent && list(record(sent)['items']).map((node) => record(record(node)['metadata'])['name']);
  // A response without nodes accepts all nodes that were sent, except those that it lists as failed.
  const kept = new Set(Array.isArray(names) ? names.map(String) : nodes.map(({ name }) => name));
  const refused = new Map<string, Rejection>();
  const reasonsByNode = (field: string): [string, unknown][] => Object.entries(record(fieldOf(answer, field)));
  for (const [name, reason] of reasonsByNode('FailedNodes')) refused.set(name, reject('Extender', String(reason)));
  for (const [name, reason] of reasonsByNode('FailedAndUnresolvableNodes'))
    refused.set(name, rejectUnresolvable('Extender', String(reason)));
  return { kept, refused };
}

/** Candidates that the extender accepts, with the victims of its response. */
function readVictims(
  answer: unknown,
  { urlPrefix }: ExtenderSettings,
  candidates: readonly PreemptionCandidate[],
): readonly PreemptionCandidate[] {
  const byNode = record(fieldOf(answer, 'NodeNameToMetaVictims'));
  return candidates.flatMap((candidate) => {
    const { name, pods } = candidate.node;
    if (!Object.hasOwn(byNode, name)) return [];
    const victims = list(fieldOf(byNode[name], 'Pods')).map((each) => {
      const uid = toUid(String(fieldOf(each, 'UID')));
      const victim = pods.get(uid);
      if (victim === undefined) throw new Error(`extender ${urlPrefix}: pod (UID: ${uid}) is not on node "${name}"`);
      return victim;
    });
    if (victims.length === 0) throw new Error(`extender ${urlPrefix}: expected at least one victim pod on "${name}"`);
    const violations = Number(fieldOf(byNode[name], 'NumPDBViolations') ?? 0) || 0;
    return [{ ...candidate, victims: victims.sort(byImportance), violations }];
  });
}

function readPriorities(answer: unknown): { readonly host: string; readonly score: number }[] {
  return list(answer).map((each) => {
    const [host, score] = [fieldOf(each, 'Host'), fieldOf(each, 'Score')];
    if (typeof host !== 'string' || typeof score !== 'number') throw new Error('host and score are expected');
    return { host, score: Math.min(MAX_EXTENDER_SCORE, Math.max(0, score)) };
  });
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}

/** Field of a Go object. The case of its name is ignored. */
function fieldOf(value: unknown, name: string): unknown {
  const fields = record(value);
  if (Object.hasOwn(fields, name)) return fields[name];
  const key = Object.keys(fields).find((each) => each.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : fields[key];
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
