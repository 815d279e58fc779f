/**
 * Audit annotations of webhooks. Source:
 * https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#mutating-webhook-auditing-annotations
 */

import type { JsonValue } from '../../../api/meta/object.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { MatchingWebhook } from './configurations.ts';

export interface WebhookAnnotations {
  failedOpen(): void;
  /** Records that a mutating webhook was called, and whether it changed the object. */
  mutated(changed: boolean): void;
  patched(patch: JsonValue): void;
}

export function annotations(
  type: 'validating' | 'mutation',
  { hook, index }: MatchingWebhook,
  { annotate }: AdmissionRequest,
  round = 0,
): WebhookAnnotations {
  const place = `webhook.admission.k8s.io/round_${round}_index_${index}`;
  const subject = { configuration: hook.configuration, webhook: hook.name };
  return {
    failedOpen: () => annotate?.(`failed-open.${type}.${place}`, hook.name),
    mutated: (changed) => annotate?.(`${type}.${place}`, JSON.stringify({ ...subject, mutated: changed })),
    // A patch may contain parts of the body, so it is recorded only at audit level Request and above.
    patched: (patch) =>
      annotate?.(`patch.${place}`, JSON.stringify({ ...subject, patch, patchType: 'JSONPatch' }), 'Request'),
  };
}
