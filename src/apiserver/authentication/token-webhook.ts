/** Token authentication webhook. Source: k8s.io/apiserver/plugin/pkg/authenticator/token/webhook. */

import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { sha256Base64 } from '../../wire/digest.ts';
import { callRemoteWithRetry, type RemoteDeps, type RemoteEndpoint } from '../webhooks/remote.ts';
import type { TokenIdentity } from './service-accounts.ts';

export interface TokenWebhook {
  readonly endpoint: RemoteEndpoint;
  readonly version: 'v1' | 'v1beta1';
  /** Cache lifetime of a response in milliseconds. */
  readonly cacheMs: number;
}

const TIMEOUT_MS = 10_000;
const MAX_KEPT = 4096;
/** Maximum total length of a user's names. Identities are cached and sent with every request, so their size matters. */
const MAX_IDENTITY = 64 * 1024;

interface Kept {
  readonly identity: TokenIdentity | undefined;
  readonly untilMs: number;
}

export class TokenWebhookClient {
  readonly #webhook: TokenWebhook;
  readonly #deps: RemoteDeps;
  readonly #defaultAudiences: readonly string[];
  readonly #kept = new BoundedMap<string, Kept>(MAX_KEPT);
  readonly #pending = new Map<string, Promise<TokenIdentity | undefined>>();

  constructor(webhook: TokenWebhook, deps: RemoteDeps, defaultAudiences: readonly string[]) {
    this.#webhook = webhook;
    this.#deps = deps;
    this.#defaultAudiences = defaultAudiences;
  }

  /** Synchronous while a response is cached. Rejects when the webhook cannot be reached. */
  authenticate(
    token: string,
    audiences: readonly string[] | undefined,
  ): TokenIdentity | undefined | Promise<TokenIdentity | undefined> {
    // The cache key is a hash, so that memory does not contain the tokens themselves.
    const key = sha256Base64(JSON.stringify([token, audiences ?? null]));
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.untilMs > this.#deps.clock.monotonicMs()) return kept.identity;
    let pending = this.#pending.get(key);
    if (pending === undefined) {
      pending = this.#review(token, audiences)
        .then((identity) => {
          this.#keep(key, identity);
          return identity;
        })
        .finally(() => this.#pending.delete(key));
      this.#pending.set(key, pending);
    }
    return pending;
  }

  #keep(key: string, identity: TokenIdentity | undefined): void {
    this.#kept.set(key, { identity, untilMs: this.#deps.clock.monotonicMs() + this.#webhook.cacheMs });
  }

  async #review(token: string, audiences: readonly string[] | undefined): Promise<TokenIdentity | undefined> {
    const { endpoint, version } = this.#webhook;
    const wanted = audiences ?? this.#defaultAudiences;
    const answer = await callRemoteWithRetry(this.#deps, endpoint, TIMEOUT_MS, {
      apiVersion: `authentication.k8s.io/${version}`,
      kind: 'TokenReview',
      metadata: { creationTimestamp: null },
      spec: { token, audiences: [...wanted] },
      status: { user: {} },
    });
    const status = objectOf(objectOf(answer)?.['status']);
    if (status?.['authenticated'] !== true) return undefined;
    const user = userOf(objectOf(status['user']));
    if (user === undefined) return undefined;
    const reported = stringsOf(status['audiences']);
    // A webhook that returns no audiences is assumed to support only the audiences of this API server.
    const granted = (reported.length === 0 ? this.#defaultAudiences : reported).filter((each) => wanted.includes(each));
    return granted.length === 0 ? undefined : { user, audiences: granted };
  }
}

const objectOf = (value: JsonValue | undefined): JsonObject | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;

const stringsOf = (value: JsonValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];

function userOf(user: JsonObject | undefined): UserInfo | undefined {
  const name = user?.['username'];
  if (user === undefined || typeof name !== 'string' || name === '') return undefined;
  const extra = new Map(Object.entries(objectOf(user['extra']) ?? {}).map(([key, values]) => [key, stringsOf(values)]));
  const groups = new Set([...stringsOf(user['groups']), 'system:authenticated']);
  const size = JSON.stringify([name, user['uid'] ?? '', [...groups], [...extra]]).length;
  if (size > MAX_IDENTITY)
    throw new Error(`status.user: has ${size} characters of names, more than ${MAX_IDENTITY}; remove groups or extra`);
  return {
    name,
    ...(typeof user['uid'] === 'string' && user['uid'] !== '' ? { uid: user['uid'] } : {}),
    groups: [...groups],
    ...(extra.size === 0 ? {} : { extra: Object.fromEntries(extra) }),
  };
}
