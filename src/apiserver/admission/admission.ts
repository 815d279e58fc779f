/** The admission chain: an ordered list of plug-ins that mutate or reject a write. */

import { jsonEqual } from '../../api/meta/equality.ts';
import type { JsonValue } from '../../api/meta/object.ts';
import type { Admission, AdmissionRequest } from '../pipeline/admission.ts';
import type { ServedKind } from '../pipeline/kinds.ts';

/**
 * State of the mutating phase of one request. A change by a webhook or policy causes a second pass over all plug-ins.
 */
export class Mutation {
  /** True in the second pass. */
  again = false;
  /** A webhook or mutating policy has changed the object, so that a second pass is needed. */
  changed = false;
  /** `seen`: webhooks and policies with reinvocation that have run. `due`: the part of `seen` that must run again. */
  readonly seen = new Set<unknown>();
  readonly due = new Set<unknown>();
  /** Copy of the object after the last webhook. Undefined when no comparison is needed. */
  #left: unknown;

  repeat({ object }: AdmissionRequest): void {
    this.again = true;
    if (this.seen.size > 0 && object !== undefined) this.#left = structuredClone(object);
  }

  /**
   * Called before the webhooks of the second pass. Marks all `seen` webhooks and policies as due if a built-in plug-in
   * has changed the object since `repeat`.
   */
  compare({ object }: AdmissionRequest): void {
    const left = this.#left;
    if (left === undefined) return;
    this.#left = undefined;
    if (!jsonEqual(left as JsonValue, object)) for (const each of this.seen) this.due.add(each);
  }
}

export interface AdmissionPlugin {
  readonly name: string;
  /**
   * Resources that the plug-in handles, including their subresources (`pods`, `ingresses.networking.k8s.io`). The
   * plug-in is not called for other resources. Absent: all resources.
   */
  readonly resources?: readonly string[];
  /** True if the plug-in also handles requests that have a body but no stored object (`bodyOnly`). */
  readonly takesBodies?: boolean;
  /** May change `request.object`. Throws an `ApiError` to reject the request. */
  mutate?(request: AdmissionRequest, mutation: Mutation): void | Promise<void>;
  /** Receives the object as it will be stored. Throws an `ApiError` to reject the request. */
  validate?(request: AdmissionRequest): void | Promise<void>;
}

export type AdmissionStep = 'admit' | 'validate';

export interface PluginTimes {
  nowMs(): number;
  /** Records one call and returns the current time, which is the start time of the next call. */
  took(
    plugin: AdmissionPlugin,
    step: AdmissionStep,
    request: AdmissionRequest,
    outcome: 'rejected' | 'admitted',
    sinceMs: number,
  ): number;
}

const UNTIMED: PluginTimes = { nowMs: () => 0, took: () => 0 };

/** Plug-ins that handle a kind, in their configured order. */
interface HandlingPlugins {
  readonly mutating: readonly AdmissionPlugin[];
  readonly validating: readonly AdmissionPlugin[];
}

export function createAdmission(plugins: readonly AdmissionPlugin[], times: PluginTimes = UNTIMED): Admission {
  const handles = (plugin: AdmissionPlugin, request: AdmissionRequest): boolean =>
    request.bodyOnly !== true || plugin.takesBodies === true;
  const byKind = new WeakMap<ServedKind, HandlingPlugins>();
  const pluginsFor = ({ kind }: AdmissionRequest): HandlingPlugins => {
    let concerned = byKind.get(kind);
    if (concerned === undefined) {
      const { group } = kind.definition;
      const resource = group === '' ? kind.plural : `${kind.plural}.${group}`;
      const applicable = plugins.filter(({ resources }) => resources === undefined || resources.includes(resource));
      concerned = {
        mutating: applicable.filter((plugin) => plugin.mutate !== undefined),
        validating: applicable.filter((plugin) => plugin.validate !== undefined),
      };
      byKind.set(kind, concerned);
    }
    return concerned;
  };
  /** Runs one plug-in and returns its end time. Mutates when `mutation` is given, otherwise validates. */
  const timed = (
    plugin: AdmissionPlugin,
    step: AdmissionStep,
    request: AdmissionRequest,
    sinceMs: number,
    mutation?: Mutation,
  ): number | Promise<number> => {
    let pending: void | Promise<void>;
    try {
      pending = mutation === undefined ? plugin.validate?.(request) : plugin.mutate?.(request, mutation);
    } catch (error) {
      times.took(plugin, step, request, 'rejected', sinceMs);
      throw error;
    }
    return pending === undefined
      ? times.took(plugin, step, request, 'admitted', sinceMs)
      : awaited(pending, plugin, step, request, sinceMs);
  };
  const awaited = async (
    pending: Promise<void>,
    plugin: AdmissionPlugin,
    step: AdmissionStep,
    request: AdmissionRequest,
    sinceMs: number,
  ): Promise<number> => {
    try {
      await pending;
    } catch (error) {
      times.took(plugin, step, request, 'rejected', sinceMs);
      throw error;
    }
    return times.took(plugin, step, request, 'admitted', sinceMs);
  };
  const mutateFrom = (first: number, request: AdmissionRequest, mutation: Mutation): void | Promise<void> => {
    const { mutating } = pluginsFor(request);
    let at = first;
    let sinceMs = times.nowMs();
    for (;;) {
      for (; at < mutating.length; at++) {
        const plugin = mutating[at] as AdmissionPlugin;
        if (!handles(plugin, request)) continue;
        if (plugin.takesBodies === true) mutation.compare(request);
        const pending = timed(plugin, 'admit', request, sinceMs, mutation);
        if (typeof pending !== 'number') {
          const next = at + 1;
          return pending.then(() => mutateFrom(next, request, mutation));
        }
        sinceMs = pending;
      }
      if (mutation.again || !mutation.changed) return;
      mutation.repeat(request);
      at = 0;
    }
  };
  const validateFrom = (first: number, request: AdmissionRequest): void | Promise<void> => {
    const { validating } = pluginsFor(request);
    let sinceMs = times.nowMs();
    for (let at = first; at < validating.length; at++) {
      const plugin = validating[at] as AdmissionPlugin;
      if (!handles(plugin, request)) continue;
      const pending = timed(plugin, 'validate', request, sinceMs);
      if (typeof pending !== 'number') {
        const next = at + 1;
        return pending.then(() => validateFrom(next, request));
      }
      sinceMs = pending;
    }
  };
  return {
    mutate: (request) => mutateFrom(0, request, new Mutation()),
    validate: (request) => validateFrom(0, request),
  };
}
