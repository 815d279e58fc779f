/**
 * What `v3lockpb.Lock` and `v3electionpb.Election` do on behalf of their callers, as accesses to keys: etcd's servers of both go
 * through its own client with the caller's token. Source: etcd client/v3/concurrency/{mutex,election}.go.
 */
import { Reader } from '../../api/etcd/wire.ts';
import type { Caller } from '../../core/etcdauth/types.ts';

export interface SessionAccess {
  read(caller: Caller | undefined, key: string, end?: string): void;
  write(caller: Caller | undefined, key: string, end?: string): void;
  useLease(caller: Caller | undefined, id: bigint): void;
}

type Checks = Readonly<Record<string, (caller: Caller | undefined, message: Uint8Array) => void>>;

export function checkLock(access: SessionAccess): Checks {
  return {
    '/v3lockpb.Lock/Lock': (caller, message) => queue(access, caller, message),
    '/v3lockpb.Lock/Unlock': (caller, message) => access.write(caller, nameAndLease(message).name),
  };
}

export function checkElection(access: SessionAccess): Checks {
  const reads = (caller: Caller | undefined, message: Uint8Array): void => {
    const { name } = nameAndLease(message);
    access.read(caller, `${name}/`, afterQueue(name));
  };
  const holds = (caller: Caller | undefined, message: Uint8Array): void => {
    const key = leaderKey(message);
    access.read(caller, key);
    access.write(caller, key);
  };
  return {
    '/v3electionpb.Election/Campaign': (caller, message) => queue(access, caller, message),
    '/v3electionpb.Election/Leader': reads,
    '/v3electionpb.Election/Observe': reads,
    '/v3electionpb.Election/Proclaim': holds,
    '/v3electionpb.Election/Resign': holds,
  };
}

/** Those who want the lock stand under `name/`, each with a key that ends in its lease, and watch who is before them. */
function queue(access: SessionAccess, caller: Caller | undefined, message: Uint8Array): void {
  const { name, lease } = nameAndLease(message);
  access.read(caller, `${name}/`, afterQueue(name));
  if (lease === 0n) access.write(caller, `${name}/`, afterQueue(name));
  else {
    access.write(caller, `${name}/${BigInt.asUintN(64, lease).toString(16)}`);
    access.useLease(caller, lease);
  }
}

/** The end of the prefix `name/`. */
function afterQueue(name: string): string {
  return `${name}0`;
}

function nameAndLease(message: Uint8Array): { readonly name: string; readonly lease: bigint } {
  const reader = new Reader(message);
  let name = '';
  let lease = 0n;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.latin1();
    else if (field === 2) lease = reader.big();
    else reader.skip();
  }
  return { name, lease };
}

/** The key of the `LeaderKey` that is field 1 of the message. */
function leaderKey(message: Uint8Array): string {
  const reader = new Reader(message);
  let key = '';
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) {
      const leader = new Reader(reader.bytes());
      for (let inner = leader.field(); inner !== 0; inner = leader.field()) {
        if (inner === 2) key = leader.latin1();
        else leader.skip();
      }
    } else reader.skip();
  }
  return key;
}
