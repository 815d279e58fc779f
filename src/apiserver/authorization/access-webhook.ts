/** Authorization webhook. Source: k8s.io/apiserver/plugin/pkg/authorizer/webhook. */

import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { omitEmpty, omitUndefined } from '../../base/json/omit-fields.ts';
import type { Log } from '../../base/log.ts';
import { type Action, type Decision, isPathAction, type SelectorTerm } from '../core/authorization/types.ts';
import { callRemoteWithRetry, type RemoteDeps, type RemoteEndpoint } from '../webhooks/remote.ts';
import type { AccessMetrics, Outcome } from './access-metrics.ts';
import type { AccessConditions } from './conditions.ts';

export interface AccessWebhook {
  readonly endpoint: RemoteEndpoint;
  readonly version: 'v1' | 'v1beta1';
  readonly timeoutMs?: number;
  /** Cache lifetimes of positive and negative responses. */
  readonly allowedMs: number;
  readonly deniedMs: number;
  /** Match conditions. Undefined: the webhook is called for every request. */
  readonly conditions?: AccessConditions;
  /** Decision when the webhook does not respond or a condition cannot be evaluated. Default: no opinion. */
  readonly failurePolicy?: 'NoOpinion' | 'Deny';
}

const NO_OPINION: Decision = { allowed: false, reason: '' };
const TIMEOUT_MS = 10_000;
const MAX_KEPT = 8192;
/** Requests with longer keys are not cached, so that clients with invented names cannot fill the memory. */
const MAX_KEY = 10_000;
/** Maximum length of a reason, which is cached and shown to the client. */
const MAX_REASON = 1024;

interface WebhookDeps extends RemoteDeps {
  readonly log: Log;
  readonly metrics: AccessMetrics;
}

export class AccessWebhookClient {
  readonly #webhook: AccessWebhook;
  readonly #deps: WebhookDeps;
  readonly #name: string;
  readonly #kept = new BoundedMap<string, { readonly opinion: Decision; readonly untilMs: number }>(MAX_KEPT);

  constructor(name: string, webhook: AccessWebhook, deps: WebhookDeps) {
    this.#name = name;
    this.#webhook = webhook;
    this.#deps = deps;
  }

  /** Synchronous for cached decisions and for requests that do not match the conditions. */
  authorize(user: UserInfo, action: Action): Decision | Promise<Decision> {
    const spec = specOf(user, action);
    const localDecision = this.#decideUnmatched(spec);
    if (localDecision !== undefined) return localDecision;
    const key = JSON.stringify(spec);
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.untilMs > this.#deps.clock.monotonicMs()) return kept.opinion;
    return this.#review(spec).then(
      (opinion) => {
        const { allowedMs, deniedMs } = this.#webhook;
        if (key.length <= MAX_KEY) this.#keep(key, opinion, opinion.allowed ? allowedMs : deniedMs);
        return opinion;
      },
      (error: unknown) => {
        this.#deps.log.warn('authorization webhook failed', { error: messageOf(error) });
        if (this.#webhook.failurePolicy !== 'Deny') this.#deps.metrics.failedOpen(this.#name, outcomeOf(error));
        return this.#failed(error);
      },
    );
  }

  /** Decision for a request that does not match the conditions; undefined if the webhook must be called. */
  #decideUnmatched(spec: JsonObject): Decision | undefined {
    const { conditions } = this.#webhook;
    if (conditions === undefined) return undefined;
    const { clock, log, metrics } = this.#deps;
    const beganMs = clock.monotonicMs();
    const took = (): number => (clock.monotonicMs() - beganMs) / 1000;
    try {
      const holds = conditions.hold(spec);
      metrics.conditions(this.#name, holds ? 'hold' : 'exclude', took());
      return holds ? undefined : NO_OPINION;
    } catch (error) {
      metrics.conditions(this.#name, 'fail', took());
      log.warn('cannot evaluate the match conditions of an authorization webhook', { error: messageOf(error) });
      return this.#failed(error);
    }
  }

  #failed(error: unknown): Decision {
    const failed = { allowed: false, reason: '', error: messageOf(error) };
    return this.#webhook.failurePolicy === 'Deny' ? { ...failed, denied: true } : failed;
  }

  #keep(key: string, opinion: Decision, ms: number): void {
    this.#kept.set(key, { opinion, untilMs: this.#deps.clock.monotonicMs() + ms });
  }

  async #review(spec: JsonObject): Promise<Decision> {
    const { endpoint, version, timeoutMs } = this.#webhook;
    const { groups, ...rest } = spec;
    const question = {
      apiVersion: `authorization.k8s.io/${version}`,
      kind: 'SubjectAccessReview',
      metadata: { creationTimestamp: null },
      spec: version === 'v1' ? spec : { ...rest, group: groups ?? [] },
      status: { allowed: false },
    };
    const tried = (failure: unknown, ms: number): void =>
      this.#deps.metrics.webhookCalled(this.#name, failure === undefined ? 'success' : outcomeOf(failure), ms / 1000);
    const answer = await callRemoteWithRetry(this.#deps, endpoint, timeoutMs ?? TIMEOUT_MS, question, tried);
    const status = objectOf(objectOf(answer)?.['status']);
    if (status === undefined) throw new Error('the answer has no status');
    const allowed = status['allowed'] === true;
    const denied = status['denied'] === true;
    if (allowed && denied) throw new Error('the answer both allows and denies');
    const { reason } = status;
    return {
      allowed,
      reason: typeof reason === 'string' ? reason.slice(0, MAX_REASON) : '',
      ...(denied ? { denied } : {}),
    };
  }
}

const outcomeOf = (error: unknown): Outcome =>
  error instanceof CodedError && error.code === 'timeout' ? 'timeout' : 'error';

const objectOf = (value: JsonValue | undefined): JsonObject | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;

function specOf(user: UserInfo, action: Action): JsonObject {
  const extra = Object.entries(user.extra ?? {});
  return {
    ...(isPathAction(action)
      ? { nonResourceAttributes: { path: action.path, verb: action.verb } }
      : {
          resourceAttributes: omitEmpty({
            namespace: action.namespace,
            verb: action.verb,
            group: action.group,
            version: action.version ?? '*',
            resource: action.resource,
            subresource: action.subresource,
            name: action.name,
            fieldSelector: action.fields && requirementsOf(action.fields),
            labelSelector: action.labels && requirementsOf(action.labels),
          }),
        }),
    user: user.name,
    groups: [...user.groups],
    ...omitUndefined({ uid: user.uid }),
    ...omitEmpty({ extra: Object.fromEntries(extra.map(([key, values]) => [key, [...values]])) }),
  };
}

function requirementsOf(terms: readonly SelectorTerm[]): JsonObject {
  return {
    requirements: terms.map(({ key, operator, values }) => ({
      key,
      operator,
      ...(values.length === 0 ? {} : { values: [...values] }),
    })),
  };
}
