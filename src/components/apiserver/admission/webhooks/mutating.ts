/**
 * Webhooks that change objects: one after the other, and once more when a later one changed what an earlier one wants to see.
 * Source: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go.
 */
import type { JsonObject, JsonValue } from '../../../../api/meta/object.ts';
import { ApiError } from '../../../../api/meta/status.ts';
import { jsonEqual } from '../../../../api/structural/schema.ts';
import { messageOf } from '../../../../base/errors.ts';
import { jsonPatch } from '../../../../core/patch/index.ts';
import type { Kinds } from '../../rest/kinds.ts';
import type { KindCache } from '../../watchcache/kind-cache.ts';
import { exchangeObject, targetOf } from '../exchange.ts';
import type { AdmissionPlugin, AdmissionRequest, Mutation } from '../index.ts';
import { isExempt } from '../matching.ts';
import { describeRequest } from '../review.ts';
import type { HookCaller } from './call.ts';
import { type Concerned, Configurations } from './configurations.ts';

export function mutatingWebhooks(caller: HookCaller, cache: () => KindCache, kinds: () => Kinds): AdmissionPlugin {
  const configurations = new Configurations(cache, kinds);
  return {
    name: 'MutatingAdmissionWebhook',
    takesBodies: true,
    mutate(request, mutation) {
      const concerned = configurations.concerned(request);
      if (concerned.length === 0 || isExempt(request)) return;
      return callInOrder(caller, concerned, request, mutation);
    },
  };
}

async function callInOrder(
  caller: HookCaller,
  concerned: readonly Concerned[],
  request: AdmissionRequest,
  mutation: Mutation,
): Promise<void> {
  for (const each of concerned) {
    if (mutation.again && !mutation.due.has(each.hook)) continue;
    const verdict = await caller.ask(each, request, 'admit');
    if (verdict === undefined) continue;
    const changed = verdict.patch !== undefined && (await applyPatch(each, request, verdict.patch));
    if (changed) {
      mutation.changed = true;
      // Those that were called before see what became of the object; this one has just had its say.
      for (const hook of mutation.seen) mutation.due.add(hook);
      mutation.due.delete(each.hook);
    }
    if (each.hook.reinvoked) mutation.seen.add(each.hook);
  }
}

const failure = (error: unknown): ApiError =>
  new ApiError('InternalError', `Internal error occurred: ${messageOf(error)}`);

/** Lays a patch over the request's object, in place. Returns whether that changed anything. */
async function applyPatch({ hook, as }: Concerned, request: AdmissionRequest, patch: JsonValue): Promise<boolean> {
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
    if (jsonEqual(shown, patched)) return false;
    await exchangeObject(request, as, patched, 'Ignore');
    return true;
  } catch (error) {
    throw failure(error);
  }
}
