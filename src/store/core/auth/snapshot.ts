/** Binary encoding of the whole auth state for snapshots. Field numbers are persistent: never change one, only add. */

import { Reader, WireError, Writer } from '../../../wire/protobuf/protobuf.ts';
import { type AuthPermission, decodePermission, writePermission } from '../messages/auth.ts';
import type { Role, User } from './types.ts';

export interface AuthSnapshot {
  readonly enabled: boolean;
  readonly revision: number;
  readonly users: readonly User[];
  readonly roles: readonly Role[];
}

export function encodeSnapshot(state: AuthSnapshot): Uint8Array {
  const out = new Writer().bool(1, state.enabled).int(2, state.revision);
  for (const user of state.users) {
    const mark = out.begin(3);
    out.string(1, user.name).string(2, user.passwordHash).bool(3, user.noPassword);
    for (const role of user.roles) out.string(4, role);
    out.end(mark);
  }
  for (const role of state.roles) {
    const mark = out.begin(4);
    out.string(1, role.name);
    for (const permission of role.permissions) writePermission(out, 2, permission);
    out.end(mark);
  }
  return out.finish();
}

/** Throws WireError for input that `encodeSnapshot` does not produce. */
export function decodeSnapshot(bytes: Uint8Array): AuthSnapshot {
  const reader = new Reader(bytes);
  const users: User[] = [];
  const roles: Role[] = [];
  let enabled = false;
  let revision = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) enabled = reader.bool();
    else if (field === 2) revision = reader.int();
    else if (field === 3) users.push(decodeUser(reader.bytes()));
    else if (field === 4) roles.push(decodeRole(reader.bytes()));
    else throw new WireError(`auth state with unknown field ${field}`);
  }
  return { enabled, revision, users, roles };
}

function decodeUser(bytes: Uint8Array): User {
  const reader = new Reader(bytes);
  const roles: string[] = [];
  let name = '';
  let passwordHash = '';
  let noPassword = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.string();
    else if (field === 2) passwordHash = reader.string();
    else if (field === 3) noPassword = reader.bool();
    else if (field === 4) roles.push(reader.string());
    else throw new WireError(`user with unknown field ${field}`);
  }
  return { name, passwordHash, noPassword, roles };
}

function decodeRole(bytes: Uint8Array): Role {
  const reader = new Reader(bytes);
  const permissions: AuthPermission[] = [];
  let name = '';
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.string();
    else if (field === 2) permissions.push(decodePermission(reader.bytes()));
    else throw new WireError(`role with unknown field ${field}`);
  }
  return { name, permissions };
}
