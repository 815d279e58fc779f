import type { Pod, ServiceAccount } from 'kubernetes-types/core/v1';
import { resources } from '../../../api/resources.ts';
import type { Clock } from '../../../base/clock.ts';
import type { ApiClient } from '../../../client/types.ts';

interface Token {
  readonly token: string;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
}

interface TokenAnswer {
  readonly status?: { readonly token?: string; readonly expirationTimestamp?: string };
}

const MAX_AGE_MS = 24 * 3600_000;

/**
 * Service-account tokens bound to pods, renewed at 80 % of their life or after a day. Source:
 * pkg/kubelet/token/token_manager.go.
 */
export class TokenSource {
  private client: ApiClient | undefined;
  private readonly clock: Clock;
  private readonly cache = new Map<string, Token>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  connect(client: ApiClient): void {
    this.client = client;
  }

  async token(pod: Pod, audience: string, expirationSeconds: number): Promise<string> {
    const { uid = '', name = '', namespace = 'default' } = pod.metadata ?? {};
    const account = pod.spec?.serviceAccountName ?? 'default';
    const key = `${uid}\n${account}\n${audience}\n${expirationSeconds}`;
    const known = this.cache.get(key);
    const nowMs = this.clock.nowMs();
    if (known !== undefined && nowMs < renewalOf(known)) return known.token;
    if (this.client === undefined) throw new Error('no API server yet to issue a service-account token');
    try {
      const answer = await this.client
        .resource<ServiceAccount>(resources.serviceAccounts)
        .createSubresource<TokenAnswer>(account, namespace, 'token', {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          spec: {
            audiences: audience === '' ? [] : [audience],
            expirationSeconds,
            boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name, uid },
          },
        });
      const token = answer.status?.token;
      if (token === undefined) throw new Error(`no token in the answer for service account ${namespace}/${account}`);
      const expires = Date.parse(answer.status?.expirationTimestamp ?? '');
      this.cache.set(key, {
        token,
        issuedAtMs: nowMs,
        expiresAtMs: Number.isNaN(expires) ? nowMs + expirationSeconds * 1000 : expires,
      });
      return token;
    } catch (error) {
      // A token that still holds is better than none while the API server is away.
      if (known !== undefined && nowMs < known.expiresAtMs) return known.token;
      throw error;
    }
  }

  /** When the next of the pod's tokens is due; undefined without any. */
  renewalAtMs(uid: string): number | undefined {
    let next: number | undefined;
    for (const [key, token] of this.cache) {
      if (key.startsWith(`${uid}\n`)) next = Math.min(next ?? Number.POSITIVE_INFINITY, renewalOf(token));
    }
    return next;
  }

  forget(uid: string): void {
    for (const key of this.cache.keys()) {
      if (key.startsWith(`${uid}\n`)) this.cache.delete(key);
    }
  }
}

const renewalOf = (token: Token): number =>
  Math.min(token.issuedAtMs + 0.8 * (token.expiresAtMs - token.issuedAtMs), token.issuedAtMs + MAX_AGE_MS);
