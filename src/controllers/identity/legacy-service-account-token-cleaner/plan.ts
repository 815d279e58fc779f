/**
 * Cleans up unused service account tokens that releases before 1.24 stored in secrets: invalid after a year without
 * use, deleted after another year. Source: KEP-2799;
 * k8s.io/kubernetes/pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go.
 */

import type { Pod, Secret, ServiceAccount } from '../../../api/generated/core/v1.ts';
import { dateText } from '../../../base/time/timestamps.ts';

export const TRACKING = {
  namespace: 'kube-system',
  name: 'kube-apiserver-legacy-service-account-token-tracking',
} as const;
export const TOKEN_SECRET_TYPE = 'kubernetes.io/service-account-token';
export const LAST_USED = 'kubernetes.io/legacy-token-last-used';
export const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';
export const CLEAN_UP_MS = 365 * 24 * 3_600_000;
const ACCOUNT_NAME = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';

export interface TokenSnapshot {
  /** Day since which uses are recorded; undefined if unknown. */
  readonly since: string | undefined;
  readonly pods: readonly Pod[];
  account(namespace: string, name: string): ServiceAccount | undefined;
}

export type TokenPlan =
  | { readonly kind: 'keep' }
  /** `day`: value of the label INVALID_SINCE. */
  | { readonly kind: 'invalidate'; readonly day: string }
  | { readonly kind: 'delete' };

const KEEP: TokenPlan = { kind: 'keep' };

export function planLegacyToken(secret: Secret, { since, pods, account }: TokenSnapshot, nowMs: number): TokenPlan {
  const { metadata, type } = secret;
  const limitMs = nowMs - CLEAN_UP_MS;
  const trackedMs = Date.parse(since ?? '');
  if (type !== TOKEN_SECRET_TYPE || Number.isNaN(trackedMs) || trackedMs > limitMs) return KEEP;
  if (Date.parse(metadata?.creationTimestamp ?? '') > limitMs) return KEEP;
  const { name = '', namespace = '', labels = {}, annotations = {} } = metadata ?? {};
  const owner = account(namespace, annotations[ACCOUNT_NAME] ?? '');
  // Accounts list only generated tokens. Tokens that were created manually are kept.
  if (owner === undefined || owner.metadata?.uid !== annotations[ACCOUNT_UID]) return KEEP;
  if (owner.secrets?.some((each) => each.name === name) !== true) return KEEP;
  if (pods.some((pod) => mounts(pod, namespace, name))) return KEEP;
  const usedMs = labels[LAST_USED] === undefined ? trackedMs : Date.parse(labels[LAST_USED]);
  if (Number.isNaN(usedMs) || usedMs > limitMs) return KEEP;
  const invalidMs = Date.parse(labels[INVALID_SINCE] ?? '');
  if (Number.isNaN(invalidMs) || invalidMs < usedMs) return { kind: 'invalidate', day: dateText(nowMs) };
  return invalidMs > limitMs ? KEEP : { kind: 'delete' };
}

function mounts({ metadata, spec }: Pod, namespace: string, secret: string): boolean {
  if (metadata?.namespace !== namespace) return false;
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  return (
    spec?.volumes?.some(
      (volume) =>
        volume.secret?.secretName === secret ||
        volume.projected?.sources?.some((source) => source.secret?.name === secret) === true,
    ) === true ||
    containers.some(
      ({ env, envFrom }) =>
        env?.some(({ valueFrom }) => valueFrom?.secretKeyRef?.name === secret) === true ||
        envFrom?.some(({ secretRef }) => secretRef?.name === secret) === true,
    )
  );
}
