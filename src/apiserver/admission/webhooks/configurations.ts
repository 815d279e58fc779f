/**
 * The configured webhooks, compiled on each change of a configuration and indexed by group, resource and operation: a
 * kind without webhooks costs one look-up.
 */

import type { MutatingWebhook, MutatingWebhookConfiguration } from '../../../api/generated/admissionregistration/v1.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { Kinds, ServedKind } from '../../pipeline/kinds.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import type { WebhookClient } from '../../webhooks/caller.ts';
import { type Condition, compileConditions } from '../expressions.ts';
import { compileMatch, type MatchSpec, matchRules } from '../matching.ts';

export interface Hook {
  readonly configuration: string;
  readonly name: string;
  readonly client: WebhookClient;
  readonly match: MatchSpec;
  readonly conditions: readonly Condition[];
  readonly ignoresFailure: boolean;
  readonly timeoutMs: number;
  /** The AdmissionReview version that is sent: the first supported version in the webhook's list. */
  readonly reviewVersion: string;
  readonly allowsDryRun: boolean;
  readonly reinvoked: boolean;
}

/** A webhook that a request concerns, and the version in which the webhook sees the request. */
export interface MatchingWebhook {
  readonly hook: Hook;
  /** Position of the webhook among all configured webhooks. */
  readonly index: number;
  readonly as: ServedKind;
}

const REVIEW_VERSIONS = ['v1', 'v1beta1'];
const DEFAULT_TIMEOUT_SECONDS = 10;
const NONE: readonly MatchingWebhook[] = [];

export class Configurations {
  readonly #cache: () => KindCache;
  readonly #kinds: () => Kinds;
  readonly #compiled = new WeakMap<CachedObject, readonly Hook[]>();
  #hooks: readonly Hook[] = [];
  #seen = -1;
  #kindsSeen = -1;
  #matching = new WeakMap<ServedKind, Map<string, readonly MatchingWebhook[]>>();

  constructor(cache: () => KindCache, kinds: () => Kinds) {
    this.#cache = cache;
    this.#kinds = kinds;
  }

  /** Webhooks in calling order: by the name of their configuration, then by their position in it. */
  matching(request: AdmissionRequest): readonly MatchingWebhook[] {
    this.#refresh();
    if (this.#hooks.length === 0) return NONE;
    const kinds = this.#kinds();
    if (kinds.generation !== this.#kindsSeen) {
      this.#kindsSeen = kinds.generation;
      this.#matching = new WeakMap();
    }
    let ofKind = this.#matching.get(request.kind);
    if (ofKind === undefined) {
      ofKind = new Map();
      this.#matching.set(request.kind, ofKind);
    }
    const key = `${request.operation} ${request.subresource}`;
    let found = ofKind.get(key);
    if (found === undefined) {
      found = this.#hooks.flatMap((hook, index) => {
        const as = matchRules(hook.match, request, kinds);
        return as === undefined ? [] : [{ hook, index, as }];
      });
      ofKind.set(key, found);
    }
    return found;
  }

  #refresh(): void {
    const cache = this.#cache();
    if (cache.lastChange === this.#seen) return;
    this.#seen = cache.lastChange;
    this.#matching = new WeakMap();
    const configurations = [...cache.list(undefined)].sort((a, b) => (a.name < b.name ? -1 : 1));
    this.#hooks = configurations.flatMap((object) => {
      let hooks = this.#compiled.get(object);
      if (hooks === undefined) {
        hooks = (object.parse<MutatingWebhookConfiguration>().webhooks ?? []).map((each) =>
          compileHook(object.name, each),
        );
        this.#compiled.set(object, hooks);
      }
      return hooks;
    });
  }
}

function compileHook(configuration: string, webhook: MutatingWebhook): Hook {
  const effects: string = webhook.sideEffects ?? '';
  return {
    configuration,
    name: webhook.name,
    client: webhook.clientConfig as WebhookClient,
    match: compileMatch(webhook),
    conditions: compileConditions(webhook.matchConditions),
    ignoresFailure: webhook.failurePolicy === 'Ignore',
    timeoutMs: (webhook.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
    reviewVersion: (webhook.admissionReviewVersions ?? []).find((each) => REVIEW_VERSIONS.includes(each)) ?? 'v1',
    allowsDryRun: effects === 'None' || effects === 'NoneOnDryRun',
    reinvoked: webhook.reinvocationPolicy === 'IfNeeded',
  };
}
