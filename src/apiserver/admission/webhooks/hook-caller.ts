/**
 * Calls one webhook: match conditions, the request, and the failure policy. Source:
 * k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go and the two dispatchers.
 */

import type { JsonObject } from '../../../api/meta/object.ts';
import { ApiError, errors } from '../../../api/meta/status.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { Metrics } from '../../server/metrics.ts';
import type { WebhookCaller, WebhookClient } from '../../webhooks/caller.ts';
import type { WebhookIdentities } from '../../webhooks/identities.ts';
import { type AccessSource, authorizerOf, evaluateWithDecisions } from '../authorizer.ts';
import { conditionsHold, documentsOf, variablesOf } from '../expressions.ts';
import { type NamespaceSource, selectsRequest } from '../matching.ts';
import { describeRequest } from '../review.ts';
import { forbid } from '../subject.ts';
import type { Hook, MatchingWebhook } from './configurations.ts';
import { HookMetrics, type HookType } from './metrics.ts';
import { readAnswer, refusalOf, type WebhookDecision } from './review-response.ts';

interface HookCallerDeps {
  readonly caller: Pick<WebhookCaller, 'post'>;
  readonly namespaces: NamespaceSource;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly access: AccessSource;
  readonly identities: Readonly<Record<HookType, WebhookIdentities | undefined>>;
  newUid(): string;
  nowMs(): number;
}

/** Events of the calls of one webhook, for the audit log. */
interface CallEvents {
  called?(): void;
  failedOpen(): void;
}

class CallError extends Error {
  readonly isLate: boolean;

  constructor(message: string, isLate: boolean, cause: unknown) {
    super(message, { cause });
    this.isLate = isLate;
  }
}

const timeoutError = (): ApiError => new ApiError('Timeout', 'request did not complete within requested timeout');

export class HookCaller {
  readonly #deps: HookCallerDeps;
  readonly #metrics: HookMetrics;

  constructor(deps: HookCallerDeps) {
    this.#deps = deps;
    this.#metrics = new HookMetrics(deps.metrics);
  }

  /**
   * Calls a webhook and returns its decision if it allows the request. Undefined: the webhook was not called, or it
   * failed and its failure is ignored. Throws an ApiError when the request is rejected.
   */
  async call(
    { hook, as }: MatchingWebhook,
    request: AdmissionRequest,
    type: HookType,
    events: CallEvents,
  ): Promise<WebhookDecision | undefined> {
    if (!(await selectsRequest(hook.match, request, this.#deps.namespaces))) return undefined;
    const described = await describeRequest(request, as, this.#deps.newUid());
    if (!(await this.#conditionsHold(hook, request, described))) return undefined;
    events.called?.();
    if (request.dryRun && !hook.allowsDryRun) {
      throw errors.badRequest(`admission webhook ${JSON.stringify(hook.name)} does not support dry run`);
    }
    const began = this.#deps.nowMs();
    const done = (code: number, rejected: string | undefined): void => {
      const seconds = (this.#deps.nowMs() - began) / 1000;
      this.#metrics.record({ hook: hook.name, type, operation: request.operation, code, rejected, seconds });
    };
    const leftMs = this.#left(request);
    const timeoutMs = Math.min(hook.timeoutMs, leftMs);
    let decision: WebhookDecision;
    try {
      decision = await this.#call(hook, described, type, timeoutMs);
    } catch (error) {
      // A request that has reached its deadline fails even if failures of the webhook are ignored.
      if (error instanceof CallError && error.isLate && leftMs <= hook.timeoutMs) throw timeoutError();
      const failure = `failed calling webhook ${JSON.stringify(hook.name)}: ${messageOf(error)}`;
      done(500, hook.ignoresFailure ? undefined : 'calling_webhook_error');
      if (!hook.ignoresFailure) throw new ApiError('InternalError', `Internal error occurred: ${failure}`);
      this.#metrics.failedOpen(hook.name, type);
      events.failedOpen();
      this.#deps.log.warn('webhook failed open: failurePolicy Ignore', { webhook: hook.name, error: failure });
      return undefined;
    }
    for (const warning of decision.warnings) request.warnings.push(warning);
    for (const [key, value] of decision.annotations) request.annotate?.(`${hook.name}/${key}`, value);
    if (!decision.allowed) {
      const refusal = refusalOf(hook.name, decision.result);
      done(refusal.httpCode, 'no_error');
      throw refusal;
    }
    done(200, undefined);
    return decision;
  }

  /** Time until the request's deadline, in milliseconds. Throws 'Timeout' after the deadline. */
  #left({ deadlineMs = Number.POSITIVE_INFINITY }: AdmissionRequest): number {
    const leftMs = deadlineMs - this.#deps.nowMs();
    if (leftMs <= 0) throw timeoutError();
    return leftMs;
  }

  async #conditionsHold(hook: Hook, request: AdmissionRequest, described: JsonObject): Promise<boolean> {
    if (hook.conditions.length === 0) return true;
    try {
      const variables = variablesOf(documentsOf(described), authorizerOf(request, this.#deps.access));
      return await evaluateWithDecisions(() => conditionsHold(hook.conditions, variables));
    } catch (error) {
      // A webhook with failurePolicy Ignore is skipped if its match conditions cannot be evaluated.
      if (hook.ignoresFailure) return false;
      throw forbid(request, messageOf(error));
    }
  }

  async #call(hook: Hook, described: JsonObject, type: HookType, timeoutMs: number): Promise<WebhookDecision> {
    const uid = String(described['uid']);
    const apiVersion = `admission.k8s.io/${hook.reviewVersion}`;
    const query = `timeout=${Math.ceil(timeoutMs / 1000)}s`;
    let answer: Awaited<ReturnType<WebhookCaller['post']>>;
    try {
      const review = { kind: 'AdmissionReview', apiVersion, request: described };
      answer = await this.#deps.caller.post(hook.client, review, timeoutMs, {
        query,
        identities: this.#deps.identities[type],
      });
    } catch (error) {
      const late = error instanceof CodedError && error.code === 'timeout';
      const why = late ? 'context deadline exceeded' : messageOf(error);
      throw new CallError(`failed to call webhook: Post "${addressOf(hook.client)}?${query}": ${why}`, late, error);
    }
    try {
      return readAnswer(answer, uid, hook.reviewVersion, type === 'admit');
    } catch (error) {
      throw new Error(`received invalid webhook response: ${messageOf(error)}`, { cause: error });
    }
  }
}

function addressOf({ url, service }: WebhookClient): string {
  if (url !== undefined) return url;
  if (service === undefined) return '';
  return `https://${service.name}.${service.namespace}.svc:${service.port ?? 443}${service.path ?? '/'}`;
}
