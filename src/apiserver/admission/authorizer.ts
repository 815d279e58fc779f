/**
 * The `authorizer` variable of expressions: permissions of the requesting user or a service account. Each check is
 * cached for the request. Source: k8s.io/apiserver/pkg/admission/plugin/authorizer (the caching authorizer).
 */

import {
  type AccessAnswer,
  type AccessChecker,
  type AccessRequest,
  authorizerValue,
  resourceCheckValue,
} from '../../api/cel/library/authorizer.ts';
import type { Value } from '../../api/cel/values.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { selectorsOf } from '../authorization/selectors.ts';
import type { Action, Decision } from '../core/authorization/types.ts';
import type { AdmissionRequest } from '../pipeline/admission.ts';
import { runSteps } from '../server/event-loop.ts';

/** Source of authorization decisions. A decision is asynchronous if it requires an authorization webhook. */
export interface AccessSource {
  authorize(user: UserInfo, action: Action): Decision | Promise<Decision>;
}

/** Thrown by an evaluation that needs a pending authorization decision. The evaluation is repeated after `arrived`. */
class PendingAnswer extends Error {
  readonly arrived: Promise<void>;
  constructor(arrived: Promise<void>) {
    super('the answer is not there yet');
    this.arrived = arrived;
  }
}

/** Rethrows a `PendingAnswer`. Call it first in every catch block around an evaluation. */
export function rethrowPending(error: unknown): void {
  if (error instanceof PendingAnswer) throw error;
}

/**
 * Evaluates expressions, yielding to the event loop, and repeats the evaluation after each awaited decision; so
 * `evaluate` must have no side effects.
 */
export async function evaluateWithDecisions<T>(evaluate: () => Iterator<undefined, T>): Promise<T> {
  for (;;) {
    try {
      return await runSteps(evaluate());
    } catch (error) {
      if (!(error instanceof PendingAnswer)) throw error;
      await error.arrived;
    }
  }
}

/** Resolves the variables `authorizer` and `authorizer.requestResource` of one request; undefined for other names. */
export function authorizerOf(request: AdmissionRequest, source: AccessSource): (name: string) => Value | undefined {
  const checkAccess = checkerOf(request.user, source);
  return (name) => {
    if (name === 'authorizer') return authorizerValue(checkAccess);
    if (name !== 'authorizer.requestResource') return undefined;
    return resourceCheckValue(checkAccess, {
      group: request.kind.group,
      resource: request.kind.plural,
      subresource: request.subresource,
      namespace: request.namespace,
      name: request.name,
    });
  };
}

function checkerOf(user: UserInfo, source: AccessSource): AccessChecker {
  const known = new Map<string, AccessAnswer>();
  return (question) => {
    const key = JSON.stringify(question);
    const answer = known.get(key);
    if (answer !== undefined) return answer;
    const decision = source.authorize(subjectOf(user, question), actionOf(question));
    if (decision instanceof Promise)
      throw new PendingAnswer(decision.then((result) => void known.set(key, answerOf(result))));
    const found = answerOf(decision);
    known.set(key, found);
    return found;
  };
}

const answerOf = ({ allowed, reason, error = '' }: Decision): AccessAnswer => ({ allowed, reason, error });

function subjectOf(user: UserInfo, { account }: AccessRequest): UserInfo {
  if (account === undefined) return user;
  const { namespace, name } = account;
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  };
}

function actionOf(question: AccessRequest): Action {
  const { verb, path, fieldSelector, labelSelector } = question;
  if (path !== undefined) return { verb, path };
  return {
    verb,
    group: question.group ?? '',
    resource: question.resource ?? '',
    subresource: question.subresource ?? '',
    namespace: question.namespace ?? '',
    name: question.name ?? '',
    ...selectorsOf(verb, fieldSelector, labelSelector),
  };
}
