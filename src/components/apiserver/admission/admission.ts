/** The admission chain: an ordered list of plug-ins that mutate or reject a write. */

import type { JsonValue } from '../../../api/meta/object.ts';
import { jsonEqual } from '../../../api/structural/schema.ts';
import type { Admission, AdmissionRequest } from '../pipeline/admission.ts';
import type { ServedKind } from '../pipeline/kinds.ts';

/** One mutating pass, with reinvocation when a webhook changed what earlier plug-ins saw. */
export class Mutation {
  /** True in the second pass. */
  again = false;
  /** Something that came from outside has changed the object: everybody looks at it once more. */
  changed = false;
  /** Webhooks that saw the object and want to see it again when others change it, and those of them that have to. */
  readonly seen = new Set<unknown>();
  readonly due = new Set<unknown>();
  /** The object after the last webhook; undefined: no reinvocation check is needed. */
  #left: unknown;

  /** All plug-ins see the object a second time. */
  repeat({ object }: AdmissionRequest): void {
    this.again = true;
    if (this.seen.size > 0 && object !== undefined) this.#left = structuredClone(object);
  }

  /** Before anybody from outside is asked: they see again what plug-ins of this server have changed since. */
  compare({ object }: AdmissionRequest): void {
    const left = this.#left;
    if (left === undefined) return;
    this.#left = undefined;
    if (!jsonEqual(left as JsonValue, object as unknown as JsonValue)) for (const each of this.seen) this.due.add(each);
  }
}

export interface AdmissionPlugin {
  readonly name: string;
  /**
   * What it has anything to do with (`pods`, `ingresses.networking.k8s.io`), sub-resources included; absent:
   * everything. It is not asked about anything else.
   */
  readonly resources?: readonly string[];
  /** Takes requests that are about a body alone. */
  readonly takesBodies?: boolean;
  /** May change `request.object`; throws an `ApiError` to refuse. */
  mutate?(request: AdmissionRequest, mutation: Mutation): void | Promise<void>;
  /** Sees the object as it will be stored; throws an `ApiError` to refuse. */
  validate?(request: AdmissionRequest): void | Promise<void>;
}

export type AdmissionStep = 'admit' | 'validate';

/** Observes the duration of each plug-in. */
export interface PluginTimes {
  nowMs(): number;
  /** Returns the time it is now: when the next one begins. */
  took(
    plugin: AdmissionPlugin,
    step: AdmissionStep,
    request: AdmissionRequest,
    rejected: boolean,
    sinceMs: number,
  ): number;
}

const UNTIMED: PluginTimes = { nowMs: () => 0, took: () => 0 };

/** The plug-ins that are asked about a kind, in their order. */
interface Concerned {
  readonly mutating: readonly AdmissionPlugin[];
  readonly validating: readonly AdmissionPlugin[];
}

export function createAdmission(plugins: readonly AdmissionPlugin[], times: PluginTimes = UNTIMED): Admission {
  const concerns = (plugin: AdmissionPlugin, request: AdmissionRequest): boolean =>
    request.bodyOnly !== true || plugin.takesBodies === true;
  const byKind = new WeakMap<ServedKind, Concerned>();
  const concernedBy = ({ kind }: AdmissionRequest): Concerned => {
    let concerned = byKind.get(kind);
    if (concerned === undefined) {
      const { group } = kind.definition;
      const resource = group === '' ? kind.plural : `${kind.plural}.${group}`;
      const asked = plugins.filter(({ resources }) => resources === undefined || resources.includes(resource));
      concerned = {
        mutating: asked.filter((plugin) => plugin.mutate !== undefined),
        validating: asked.filter((plugin) => plugin.validate !== undefined),
      };
      byKind.set(kind, concerned);
    }
    return concerned;
  };
  /** When it had done; a promise where it has to wait. A plug-in that changes objects is given the `mutation`. */
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
      times.took(plugin, step, request, true, sinceMs);
      throw error;
    }
    return pending === undefined
      ? times.took(plugin, step, request, false, sinceMs)
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
      times.took(plugin, step, request, true, sinceMs);
      throw error;
    }
    return times.took(plugin, step, request, false, sinceMs);
  };
  const mutateFrom = (first: number, request: AdmissionRequest, mutation: Mutation): void | Promise<void> => {
    const { mutating } = concernedBy(request);
    let at = first;
    let sinceMs = times.nowMs();
    for (;;) {
      for (; at < mutating.length; at++) {
        const plugin = mutating[at] as AdmissionPlugin;
        if (!concerns(plugin, request)) continue;
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
    const { validating } = concernedBy(request);
    let sinceMs = times.nowMs();
    for (let at = first; at < validating.length; at++) {
      const plugin = validating[at] as AdmissionPlugin;
      if (!concerns(plugin, request)) continue;
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
