import type { Pod, ServiceAccount } from 'kubernetes-types/core/v1';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { Clock } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { LastKnown } from '../../../client/last-known.ts';
import type { ApiClient } from '../../../client/types.ts';

export interface IssuedToken {
  readonly token: string;
  /** Wall-clock time. */
  readonly expiresAtMs: number;
}

interface Token extends IssuedToken {
  readonly issuedAtMs: number;
  /** Not renewed before, since the API server is away; wall-clock time. */
  readonly retryAtMs?: number;
}

/** As it outlives the process. */
interface KeptToken {
  readonly key: string;
  readonly token: string;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
}

interface TokenAnswer {
  readonly status?: { readonly token?: string; readonly expirationTimestamp?: string };
}

const MAX_AGE_MS = 24 * 3600_000;
/** Between two tries to renew a token while the API server is away. */
const RETRY_MS = 10_000;
const SET = 'tokens';

/**
 * Service-account tokens bound to pods, renewed at 80 % of their life or after a day. Source:
 * pkg/kubelet/token/token_manager.go.
 */
export class TokenSource {
  private client: ApiClient | undefined;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly lastKnown: LastKnown | undefined;
  private readonly cache = new Map<string, Token>();
  private remembered: Promise<void> | undefined;

  constructor(options: { readonly clock: Clock; readonly log: Log; readonly lastKnown?: LastKnown | undefined }) {
    this.clock = options.clock;
    this.log = options.log;
    this.lastKnown = options.lastKnown;
  }

  connect(client: ApiClient): void {
    this.client = client;
  }

  async token(pod: Pod, audience: string, expirationSeconds: number): Promise<string> {
    return (await this.issued(pod, audience, expirationSeconds)).token;
  }

  /** As `token`, with the time of its end. */
  async issued(pod: Pod, audience: string, expirationSeconds: number): Promise<IssuedToken> {
    const { uid = '', name = '', namespace = 'default' } = pod.metadata ?? {};
    const account = pod.spec?.serviceAccountName ?? 'default';
    const key = `${uid}\n${account}\n${audience}\n${expirationSeconds}`;
    this.remembered ??= this.remember();
    await this.remembered;
    const known = this.cache.get(key);
    const nowMs = this.clock.nowMs();
    if (known !== undefined && nowMs < renewalOf(known)) return known;
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
      const issued = {
        token,
        issuedAtMs: nowMs,
        expiresAtMs: Number.isNaN(expires) ? nowMs + expirationSeconds * 1000 : expires,
      };
      this.cache.set(key, issued);
      this.save();
      return issued;
    } catch (error) {
      if (known === undefined) throw error;
      // A token that still holds is better than none while the API server is away. One that has expired opens nothing,
      // but without it the pod of a host that is cut off could not start.
      if (nowMs >= known.expiresAtMs && !isApiError(error, 'ServiceUnavailable')) throw error;
      if (nowMs >= known.expiresAtMs && known.retryAtMs === undefined)
        this.log.warn('expired token kept: no API server in reach', { pod: `${namespace}/${name}` });
      this.log.v(4, 'token not renewed', { pod: `${namespace}/${name}`, error: messageOf(error) });
      this.cache.set(key, { ...known, retryAtMs: nowMs + RETRY_MS });
      return known;
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
    this.save();
  }

  /** The pods of this node: tokens of others are forgotten. */
  retain(uids: ReadonlySet<string>): void {
    for (const key of this.cache.keys()) if (!uids.has(key.split('\n')[0] ?? '')) this.cache.delete(key);
    this.save();
  }

  private async remember(): Promise<void> {
    for (const record of (await this.lastKnown?.read(SET)) ?? []) {
      const { key, token, issuedAtMs, expiresAtMs } = record as unknown as KeptToken;
      if (!this.cache.has(key)) this.cache.set(key, { token, issuedAtMs, expiresAtMs });
    }
  }

  private save(): void {
    // What an earlier process kept is not replaced before it has been read.
    this.remembered ??= this.remember();
    void this.remembered.then(() => {
      const content = (): readonly KeptToken[] =>
        [...this.cache].map(([key, { token, issuedAtMs, expiresAtMs }]) => ({ key, token, issuedAtMs, expiresAtMs }));
      this.lastKnown?.keep(SET, content, 'soon');
    });
  }
}

const renewalOf = (token: Token): number =>
  token.retryAtMs ??
  Math.min(token.issuedAtMs + 0.8 * (token.expiresAtMs - token.issuedAtMs), token.issuedAtMs + MAX_AGE_MS);
