/** The policies with their bindings, indexed by the requests they may match. */

import type { AdmissionRequest } from '../../../pipeline/admission.ts';
import type { Kinds, ServedKind } from '../../../pipeline/kinds.ts';
import type { Metrics } from '../../../server/metrics.ts';
import type { CachedObject } from '../../../watch-cache/cached-object.ts';
import type { KindCache } from '../../../watch-cache/kind-cache.ts';
import type { AccessSource } from '../../authorizer.ts';
import { mayMatch, type NamespaceSource } from '../../matching.ts';
import { type Binding, compileBinding } from './bindings.ts';
import type { Policy } from './composition.ts';

export interface PolicySources {
  policies(): KindCache;
  bindings(): KindCache;
  kinds(): Kinds;
  readonly namespaces: NamespaceSource;
  readonly access: AccessSource;
  readonly metrics: Metrics;
  nowMs(): number;
}

export interface Bound<P extends Policy> {
  readonly policy: P;
  readonly bindings: readonly Binding[];
}

/** Compiles a policy once per change, and finds the policies once per kind, operation and subresource. */
export class BoundPolicies<P extends Policy> {
  readonly #sources: PolicySources;
  readonly #compile: (object: CachedObject) => P;
  readonly #policies = new WeakMap<CachedObject, P>();
  readonly #bindings = new WeakMap<CachedObject, Binding>();
  #bound: readonly Bound<P>[] = [];
  #seen = '';
  #matching = new WeakMap<ServedKind, Map<string, readonly Bound<P>[]>>();

  constructor(sources: PolicySources, compile: (object: CachedObject) => P) {
    this.#sources = sources;
    this.#compile = compile;
  }

  /** Policies that may match the request, sorted by name, with their bindings sorted by name. */
  matching(request: AdmissionRequest): readonly Bound<P>[] {
    const policies = this.#sources.policies();
    const bindings = this.#sources.bindings();
    if (policies.size === 0 || bindings.size === 0) return [];
    const kinds = this.#sources.kinds();
    const state = `${policies.lastChange} ${bindings.lastChange} ${kinds.generation}`;
    if (state !== this.#seen) {
      this.#seen = state;
      this.#matching = new WeakMap();
      this.#bound = this.#bind(policies, bindings);
    }
    let ofKind = this.#matching.get(request.kind);
    if (ofKind === undefined) {
      ofKind = new Map();
      this.#matching.set(request.kind, ofKind);
    }
    const key = `${request.operation} ${request.subresource}`;
    let found = ofKind.get(key);
    if (found === undefined) {
      found = this.#bound.filter(({ policy }) => mayMatch(policy.match, request, kinds));
      ofKind.set(key, found);
    }
    return found;
  }

  #bind(policies: KindCache, bindings: KindCache): Bound<P>[] {
    const compiled = byName(bindings.list(undefined)).map((object) =>
      remembered(this.#bindings, object, () => compileBinding(object.parse())),
    );
    return byName(policies.list(undefined)).flatMap((object) => {
      const own = compiled.filter(({ policyName }) => policyName === object.name);
      if (own.length === 0) return [];
      return [{ policy: remembered(this.#policies, object, () => this.#compile(object)), bindings: own }];
    });
  }
}

function byName(objects: readonly CachedObject[]): CachedObject[] {
  return [...objects].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function remembered<T>(known: WeakMap<CachedObject, T>, object: CachedObject, make: () => T): T {
  let value = known.get(object);
  if (value === undefined) {
    value = make();
    known.set(object, value);
  }
  return value;
}
