/**
 * Queries the user's rights, for controls that are disabled with a reason. Answers are kept for a minute; equal queries
 * that are pending share one request. The server checks every action again.
 */

import type { ResourceType } from '../../../api/meta/object.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { Api } from './api.ts';

export interface AccessRequest {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

export interface AccessDecision {
  readonly allowed: boolean;
  /** Sentence for the user that explains why the action is not allowed. */
  readonly reason: string;
}

const MAX_ANSWERS = 1_000;
const FRESH_MS = 60_000;

interface Review {
  readonly status?: { readonly allowed?: boolean; readonly reason?: string; readonly evaluationError?: string };
}

export class Access {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #answers = new BoundedMap<string, { readonly decision: Promise<AccessDecision>; readonly untilMs: number }>(
    MAX_ANSWERS,
  );

  constructor(api: Api, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  check(question: AccessRequest): Promise<AccessDecision> {
    const { verb, group, resource, subresource = '', namespace = '', name = '' } = question;
    const key = JSON.stringify([verb, group, resource, subresource, namespace, name]);
    const known = this.#answers.get(key);
    if (known !== undefined && known.untilMs > this.#clock.monotonicMs()) return known.decision;
    const decision = this.#review({ verb, group, resource, subresource, namespace, name });
    this.#answers.set(key, { decision, untilMs: this.#clock.monotonicMs() + FRESH_MS });
    return decision;
  }

  /** Discards all answers. Called for another user or after a change of roles. */
  clear(): void {
    this.#answers.clear();
  }

  async #review(attributes: Required<AccessRequest>): Promise<AccessDecision> {
    try {
      const review = await this.#api.json<Review>('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        method: 'POST',
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          spec: { resourceAttributes: attributes },
        },
      });
      if (review.status?.allowed === true) return { allowed: true, reason: '' };
      return { allowed: false, reason: refusal(attributes, review.status?.reason ?? '') };
    } catch (error) {
      this.#answers.clear();
      return { allowed: false, reason: `Your rights could not be checked: ${messageOf(error)}` };
    }
  }
}

export function questionOf(
  verb: string,
  type: ResourceType,
  namespace?: string,
  options: { readonly name?: string; readonly subresource?: string } = {},
): AccessRequest {
  return { verb, group: type.group, resource: type.plural, namespace: type.namespaced ? namespace : '', ...options };
}

function refusal(question: Required<AccessRequest>, detail: string): string {
  const { verb, group, resource, subresource, namespace } = question;
  const kind = `${resource}${group === '' ? '' : `.${group}`}${subresource === '' ? '' : `/${subresource}`}`;
  const place = namespace === '' ? 'in the cluster' : `in namespace ${namespace}`;
  return `You may not ${verb} ${kind} ${place}. A role that allows it can be bound to you.${detail === '' ? '' : ` (${detail})`}`;
}
