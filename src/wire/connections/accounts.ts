/**
 * Per-address accounting of connections. Credits refill, so penalties decay. An address
 * without credits is delayed and never banned, so that valid clients behind the same NAT or load balancer are still
 * served.
 */
import { peerNetwork } from '../../base/addresses/addresses.ts';
import { Bucket } from './bucket.ts';

/** Handshakes that an address may start at once. They are refunded when the client authenticates. */
const CREDITS = 100;
/** Refill rate. A TLS handshake costs the event loop about a millisecond. */
const CREDITS_PER_SECOND = 500;
/** Maximum debt of an address; it delays the next handshake by at most 0.2 seconds. */
const MAX_DEBT = 100;
/** Maximum number of addresses with an account. */
const MAX_ACCOUNTS = 4096;
export class Account<Member> {
  readonly key: string;
  /** Connections whose handshake has not started, oldest first. */
  readonly queued = new Set<Member>();
  /** Unauthenticated connections whose handshake has started, oldest first. */
  readonly unauthenticated = new Set<Member>();
  /** Authenticated connections, oldest first. */
  readonly authenticated = new Set<Member>();
  readonly credits: Bucket;

  constructor(key: string, nowMs: number) {
    this.key = key;
    this.credits = new Bucket(CREDITS, CREDITS_PER_SECOND, nowMs, MAX_DEBT);
  }

  get vacant(): boolean {
    return this.unauthenticated.size + this.queued.size + this.authenticated.size === 0;
  }

  forgettable(nowMs: number): boolean {
    return this.vacant && this.credits.full(nowMs);
  }
}

export class Accounts<Member> {
  readonly #accounts = new Map<string, Account<Member>>();

  get size(): number {
    return this.#accounts.size;
  }

  of(address: string, nowMs: number): Account<Member> {
    const key = peerNetwork(address);
    let account = this.#accounts.get(key);
    if (account !== undefined) return account;
    if (this.#accounts.size >= MAX_ACCOUNTS) this.#forgetOldest();
    account = new Account(key, nowMs);
    this.#accounts.set(key, account);
    return account;
  }

  /** The account with the most connections in this state. */
  heaviest(kind: 'queued' | 'unauthenticated' | 'authenticated'): Account<Member> | undefined {
    let found: Account<Member> | undefined;
    for (const each of this.#accounts.values()) if (each[kind].size > (found?.[kind].size ?? 0)) found = each;
    return found;
  }

  forgetSettled(nowMs: number): void {
    for (const each of this.#accounts.values()) if (each.forgettable(nowMs)) this.#accounts.delete(each.key);
  }

  #forgetOldest(): void {
    for (const each of this.#accounts.values()) {
      if (!each.vacant) continue;
      this.#accounts.delete(each.key);
      return;
    }
  }
}
