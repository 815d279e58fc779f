/**
 * Usage tracking of legacy service account tokens: when tracking began and when each token was last used. The token
 * cleaner needs both. Source: k8s.io/kubernetes/pkg/controlplane/controller/legacytokentracking,
 * pkg/serviceaccount/legacy.go; KEP-2799.
 */

import type { ConfigMap } from '../../api/generated/core/v1.ts';
import { messageOf } from '../../base/errors.ts';
import { dateText } from '../../base/time/timestamps.ts';
import type { ServerContext, WriteContext } from '../rest/context.ts';
import { updateObject } from '../rest/writes/update.ts';
import { ensureObject, ownRequest } from './index.ts';

type LegacyTokensContext = WriteContext & Pick<ServerContext, 'log'>;

const NAME = 'kube-apiserver-legacy-service-account-token-tracking';
const NAMESPACE = 'kube-system';
const LAST_USED = 'kubernetes.io/legacy-token-last-used';

/** Records the day on which tracking began, if it is not recorded yet. */
export async function ensureTokenTracking(context: LegacyTokensContext): Promise<void> {
  const since = { since: dateText(context.clock.nowMs()) };
  const map: ConfigMap = { metadata: { name: NAME, namespace: NAMESPACE }, data: since };
  await ensureObject(context, 'configmaps', '', map, (stored) => {
    const { data } = stored as ConfigMap;
    return /^\d{4}-\d\d-\d\d$/.test(data?.['since'] ?? '') ? undefined : { ...stored, data: { ...data, ...since } };
  });
}

/** Records the day of a token's last use in the background, with at most one write per token at a time. */
export class TokenUses {
  readonly #underWay = new Set<string>();

  /** Extends the inactivity limit of an OAuth access token. */
  noteOAuth(context: LegacyTokensContext, name: string, seconds: number): void {
    if (this.#underWay.has(name)) return;
    this.#underWay.add(name);
    const request = ownRequest(context, 'oauthaccesstokens', 'oauth.openshift.io', '', name);
    updateObject(context, request, {
      strategy: request.kind.definition.strategy,
      next: (current) => ({ ...current, inactivityTimeoutSeconds: seconds }) as typeof current,
    })
      .catch((error: unknown) =>
        context.log.warn('cannot extend the inactivity limit of an OAuth token', { error: messageOf(error) }),
      )
      .finally(() => this.#underWay.delete(name));
  }

  note(context: LegacyTokensContext, namespace: string, name: string, day: string): void {
    const key = `${namespace}/${name}`;
    if (this.#underWay.has(key)) return;
    this.#underWay.add(key);
    const request = ownRequest(context, 'secrets', '', namespace, name);
    updateObject(context, request, {
      strategy: request.kind.definition.strategy,
      next: (current) => ({
        ...current,
        metadata: { ...current.metadata, labels: { ...current.metadata?.labels, [LAST_USED]: day } },
      }),
    })
      .catch((error: unknown) =>
        context.log.warn('cannot record the use of a legacy token', { secret: key, error: messageOf(error) }),
      )
      .finally(() => this.#underWay.delete(key));
  }
}
