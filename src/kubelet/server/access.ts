/**
 * Authentication and authorization of requests to the kubelet. Source: kubelet authentication/authorization (webhook
 * mode), KEP-2862 subresources.
 */

import { BoundedMap } from '../../base/bounded-map.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { type Identity, reviewAccess, reviewToken } from '../../client/reviews.ts';
import type { ApiClient } from '../../client/types.ts';
import { sha256Base64 } from '../../wire/digest.ts';
import type { PeerSubject } from './port.ts';

export type Caller = Identity;

interface Cached<T> {
  readonly value: T;
  readonly untilMs: number;
}

/** Upstream's cache lifetimes. */
const TOKEN_TTL_MS = 120_000;
const ALLOWED_TTL_MS = 300_000;
const DENIED_TTL_MS = 30_000;
const MAX_CACHED = 4096;

export class Access {
  private readonly nodeName: NodeName;
  private readonly clock: Clock;
  private readonly log: Log;
  private client: ApiClient | undefined;
  private readonly tokens = new BoundedMap<string, Cached<Caller>>(MAX_CACHED);
  private readonly decisions = new BoundedMap<string, Cached<boolean>>(MAX_CACHED);

  constructor(options: { readonly nodeName: NodeName; readonly clock: Clock; readonly log: Log }) {
    this.nodeName = options.nodeName;
    this.clock = options.clock;
    this.log = options.log;
  }

  connect(client: ApiClient): void {
    this.client = client;
  }

  /** Returns undefined for an unauthenticated request, which is answered with 401. */
  async authenticate(
    authorization: string | undefined,
    certificate: PeerSubject | undefined,
  ): Promise<Caller | undefined> {
    if (certificate !== undefined) {
      const { commonName: name, organizations } = certificate;
      return { name, groups: [...organizations, 'system:authenticated'] };
    }
    const token = authorization === undefined ? undefined : /^Bearer +([^\s]+)$/i.exec(authorization)?.[1];
    return token === undefined ? undefined : this.reviewToken(token);
  }

  private async reviewToken(token: string): Promise<Caller | undefined> {
    const key = sha256Base64(token);
    const known = this.fresh(this.tokens, key);
    if (known !== undefined) return known;
    if (this.client === undefined) return undefined;
    try {
      const caller = await reviewToken(this.client, token);
      if (caller === undefined) return undefined;
      this.keep(this.tokens, key, caller, TOKEN_TTL_MS);
      return caller;
    } catch (error) {
      this.log.warn('TokenReview failed', { error: messageOf(error) });
      return undefined;
    }
  }

  /** Allows the request if any of the node subresources is permitted. Denies it on errors. */
  async authorize(caller: Caller, verb: string, subresources: readonly string[]): Promise<boolean> {
    for (const subresource of subresources) {
      if (await this.reviewAccess(caller, verb, subresource)) return true;
    }
    return false;
  }

  private async reviewAccess(caller: Caller, verb: string, subresource: string): Promise<boolean> {
    const key = JSON.stringify([caller.name, caller.uid, caller.groups, caller.extra, verb, subresource]);
    const known = this.fresh(this.decisions, key);
    if (known !== undefined) return known;
    if (this.client === undefined) return false;
    try {
      const allowed = await reviewAccess(this.client, caller, {
        resourceAttributes: { verb, version: 'v1', resource: 'nodes', subresource, name: this.nodeName },
      });
      this.keep(this.decisions, key, allowed, allowed ? ALLOWED_TTL_MS : DENIED_TTL_MS);
      return allowed;
    } catch (error) {
      this.log.warn('SubjectAccessReview failed', { user: caller.name, error: messageOf(error) });
      return false;
    }
  }

  private fresh<T>(cache: BoundedMap<string, Cached<T>>, key: string): T | undefined {
    const entry = cache.get(key);
    if (entry === undefined) return undefined;
    if (entry.untilMs > this.clock.monotonicMs()) return entry.value;
    cache.delete(key);
    return undefined;
  }

  private keep<T>(cache: BoundedMap<string, Cached<T>>, key: string, value: T, ttlMs: number): void {
    cache.set(key, { value, untilMs: this.clock.monotonicMs() + ttlMs });
  }
}
