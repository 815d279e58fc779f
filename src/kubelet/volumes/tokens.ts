import type { Pod, ServiceAccount } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { type Decoded, isValid, number, object, text } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { LastKnown } from '../../client/informers/last-known.ts';
import type { ApiClient } from '../../client/types.ts';

export interface IssuedToken {
  readonly token: string;
  /** Wall-clock time. */
  readonly expiresAtMs: number;
}

interface Token extends IssuedToken {
  readonly issuedAtMs: number;
  /** Monotonic time at which the token was issued. */
  readonly issuedMs: number;
  /** Lifetime set by the issuer, independent of this host's clock. */
  readonly lifetimeMs: number;
  /** Monotonic time before which renewal is not retried, because the API server was unreachable. */
  readonly retryMs?: number;
}

/** Saved token that survives a restart of the process. */
const KEPT = object({ key: text, token: text, issuedAtMs: number, expiresAtMs: number });
type KeptToken = Decoded<typeof KEPT>;

interface TokenAnswer {
  readonly status?: { readonly token?: string; readonly expirationTimestamp?: string };
}

const MAX_AGE_MS = 24 * 3600_000;
/** Interval between renewal attempts while the API server is unreachable. */
const RETRY_MS = 10_000;
const SET = 'tokens';

/**
 * Service account tokens bound to pods, renewed after 80 % of their lifetime or after a day. Source:
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

  /** Like `token`, with the expiry time. */
  async issued(pod: Pod, audience: string, expirationSeconds: number): Promise<IssuedToken> {
    const { uid = '', name = '', namespace = 'default' } = pod.metadata ?? {};
    const account = pod.spec?.serviceAccountName ?? 'default';
    const key = `${uid}\n${account}\n${audience}\n${expirationSeconds}`;
    this.remembered ??= this.remember();
    await this.remembered;
    const known = this.cache.get(key);
    const [nowMs, monotonicMs] = [this.clock.nowMs(), this.clock.monotonicMs()];
    if (known !== undefined && renewalInMs(known, nowMs, monotonicMs) > 0) return known;
    if (this.client === undefined)
      throw new Error('the API server is not available yet to issue a service account token');
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
        issuedMs: monotonicMs,
        lifetimeMs: lifetimeOf(token) ?? expirationSeconds * 1000,
        expiresAtMs: Number.isNaN(expires) ? nowMs + expirationSeconds * 1000 : expires,
      };
      this.cache.set(key, issued);
      this.save();
      return issued;
    } catch (error) {
      if (known === undefined) throw error;
      // A token that has not expired is still used if its renewal fails. An expired token is used only while the API
      // server is unreachable: it grants no access, but a pod of a disconnected host could not start without a token.
      if (nowMs >= known.expiresAtMs && !isApiError(error, 'ServiceUnavailable')) throw error;
      if (nowMs >= known.expiresAtMs && known.retryMs === undefined)
        this.log.warn('expired token kept: API server unreachable', { pod: `${namespace}/${name}` });
      this.log.v(4, 'token not renewed', { pod: `${namespace}/${name}`, error: messageOf(error) });
      this.cache.set(key, { ...known, retryMs: monotonicMs + RETRY_MS });
      return known;
    }
  }

  /** Time until the next token of the pod is due for renewal. Undefined when the pod has no token. */
  renewalInMs(uid: Uid): number | undefined {
    const [nowMs, monotonicMs] = [this.clock.nowMs(), this.clock.monotonicMs()];
    const left = [...this.cache].flatMap(([key, token]) =>
      key.startsWith(`${uid}\n`) ? [renewalInMs(token, nowMs, monotonicMs)] : [],
    );
    return left.length === 0 ? undefined : Math.min(...left);
  }

  forget(uid: Uid): void {
    for (const key of this.cache.keys()) {
      if (key.startsWith(`${uid}\n`)) this.cache.delete(key);
    }
    this.save();
  }

  /** Keeps the tokens of these pods and deletes the tokens of other pods. */
  retain(uids: ReadonlySet<Uid>): void {
    for (const key of this.cache.keys()) if (!uids.has(toUid(key.split('\n')[0]))) this.cache.delete(key);
    this.save();
  }

  private async remember(): Promise<void> {
    for (const record of (await this.lastKnown?.read(SET)) ?? []) {
      if (!isValid(KEPT, record) || this.cache.has(record.key)) continue;
      const { key, token, issuedAtMs, expiresAtMs } = record;
      const lifetimeMs = lifetimeOf(token) ?? expiresAtMs - issuedAtMs;
      const ageMs = Math.max(0, this.clock.nowMs() - issuedAtMs);
      const issuedMs = this.clock.monotonicMs() - ageMs;
      this.cache.set(key, { token, issuedAtMs, issuedMs, lifetimeMs, expiresAtMs });
    }
  }

  private save(): void {
    // Saved tokens of an earlier process must be read before they are replaced.
    this.remembered ??= this.remember();
    void this.remembered.then(() => {
      const content = (): readonly KeptToken[] =>
        [...this.cache].map(([key, { token, issuedAtMs, expiresAtMs }]) => ({ key, token, issuedAtMs, expiresAtMs }));
      this.lastKnown?.keep(SET, content, 'soon');
    });
  }
}

/**
 * Time until renewal. It is computed twice, with the monotonic clock and with the host's clock, and the shorter result
 * is used. The result by the monotonic clock stays correct when the host's clock is set back. The result by the host's
 * clock covers a jump forward, after which the API server may reject the token as expired.
 */
function renewalInMs(token: Token, nowMs: number, monotonicMs: number): number {
  if (token.retryMs !== undefined) return token.retryMs - monotonicMs;
  const age = Math.min(0.8 * token.lifetimeMs, MAX_AGE_MS);
  const end = token.expiresAtMs - 0.2 * token.lifetimeMs;
  return Math.min(token.issuedMs + age - monotonicMs, end - nowMs);
}

/** Lifetime by the token's `iat` and `exp` claims. Undefined if the token is not a JSON web token with both claims. */
function lifetimeOf(token: string): number | undefined {
  try {
    const [, payload = ''] = token.split('.');
    const claims: unknown = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    const { iat, exp } = claims as { readonly iat?: unknown; readonly exp?: unknown };
    return typeof iat === 'number' && typeof exp === 'number' ? (exp - iat) * 1000 : undefined;
  } catch {
    return undefined;
  }
}
