/**
 * Mutating webhooks. They run in sequence. Webhooks with reinvocation run again if a later webhook changed the object.
 * Source: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go.
 */

import { jsonEqual } from '../../../api/meta/equality.ts';
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { jsonPatch } from '../../core/patch/index.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { Kinds } from '../../pipeline/kinds.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import type { AdmissionPlugin, Mutation } from '../admission.ts';
import { exchangeObject, targetOf } from '../exchange.ts';
import { isExempt } from '../matching.ts';
import { describeRequest } from '../review.ts';
import { annotations, type WebhookAnnotations } from './annotations.ts';
import { Configurations, type MatchingWebhook } from './configurations.ts';
import type { HookCaller } from './hook-caller.ts';

export function mutatingWebhooks(caller: HookCaller, cache: () => KindCache, kinds: () => Kinds): AdmissionPlugin {
  const configurations = new Configurations(cache, kinds);
  return {
    name: 'MutatingAdmissionWebhook',
    takesBodies: true,
    mutate(request, mutation) {
      const concerned = configurations.matching(request);
      if (concerned.length === 0 || isExempt(request)) return;
      return callInOrder(caller, concerned, request, mutation);
    },
  };
}

async function callInOrder(
  caller: HookCaller,
  concerned: readonly MatchingWebhook[],
  request: AdmissionRequest,
  mutation: Mutation,
): Promise<void> {
  await request.noteOwners?.();
  for (const each of concerned) {
    if (mutation.again && !mutation.due.has(each.hook)) continue;
    const outcome = await call(caller, each, request, mutation);
    if (outcome === undefined) continue;
    if (outcome.changed) {
      mutation.changed = true;
      // Earlier webhooks with reinvocation must run again. The webhook that made the change need not.
      for (const hook of mutation.seen) mutation.due.add(hook);
      mutation.due.delete(each.hook);
    }
    if (each.hook.reinvoked) mutation.seen.add(each.hook);
  }
}

/**
 * Calls a webhook and reports whether it changed the object. Undefined: the webhook was not called, or its failure is
 * ignored.
 */
async function call(
  caller: HookCaller,
  each: MatchingWebhook,
  request: AdmissionRequest,
  mutation: Mutation,
): Promise<{ readonly changed: boolean } | undefined> {
  const notes = annotations('mutation', each, request, mutation.again ? 1 : 0);
  let isCalled = false;
  let changed = false;
  const called = (): void => {
    isCalled = true;
  };
  try {
    const decision = await caller.call(each, request, 'admit', { called, failedOpen: notes.failedOpen });
    if (decision === undefined) return undefined;
    changed = decision.patch !== undefined && (await applyPatch(each, request, decision.patch, notes));
    return { changed };
  } finally {
    if (isCalled) notes.mutated(changed);
  }
}

const failure = (error: unknown): ApiError =>
  new ApiError('InternalError', `Internal error occurred: ${messageOf(error)}`);

/** Applies a patch to the request's object in place. Returns whether the object changed. */
async function applyPatch(
  { hook, as }: MatchingWebhook,
  request: AdmissionRequest,
  patch: JsonValue,
  notes: WebhookAnnotations,
): Promise<boolean> {
  if (Array.isArray(patch) && patch.length === 0) return false;
  const target = targetOf(request);
  if (target === undefined) {
    throw failure(
      `admission webhook ${JSON.stringify(hook.name)} attempted to modify the object, which is not supported for this operation`,
    );
  }
  try {
    const shown = (await describeRequest(request, as, ''))['object'] as JsonObject;
    const patched = jsonPatch(shown, patch);
    notes.patched(patch);
    if (jsonEqual(shown, patched)) return false;
    await exchangeObject(request, as, patched, 'Ignore');
    return true;
  } catch (error) {
    throw failure(error);
  }
}
