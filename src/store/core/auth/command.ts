/** Binary encoding of auth commands in the log. Field numbers and kinds are persistent: never change one, only add. */

import { Reader, WireError, Writer } from '../../../wire/protobuf/protobuf.ts';
import { decodePermission, writePermission } from '../messages/auth.ts';
import type { AuthCommand } from './types.ts';

const KIND = {
  enable: 1,
  disable: 2,
  'user-add': 3,
  'user-delete': 4,
  'user-change-password': 5,
  'user-grant-role': 6,
  'user-revoke-role': 7,
  'role-add': 8,
  'role-delete': 9,
  'role-grant-permission': 10,
  'role-revoke-permission': 11,
  'token-issue': 12,
} as const satisfies Record<AuthCommand['kind'], number>;

/** A command with an ID by which its proposer recognizes it. */
export interface AuthProposal {
  readonly id: bigint;
  readonly command: AuthCommand;
}

export function encodeProposal({ id, command }: AuthProposal): Uint8Array {
  const out = new Writer(256).int(1, KIND[command.kind]).big(2, id);
  if ('name' in command) out.string(3, command.name);
  if ('role' in command) out.string(4, command.role);
  if ('passwordHash' in command) out.string(5, command.passwordHash);
  if ('noPassword' in command) out.bool(6, command.noPassword);
  if ('permission' in command && command.permission !== undefined) writePermission(out, 7, command.permission);
  if ('token' in command) out.string(8, command.token);
  if ('key' in command) writePermission(out, 7, { type: 0, key: command.key, end: command.end });
  return out.finish();
}

/** Throws WireError for input that `encodeProposal` does not produce. */
export function decodeProposal(bytes: Uint8Array): AuthProposal {
  const reader = new Reader(bytes);
  let kind = 0;
  let id = 0n;
  let name = '';
  let role = '';
  let passwordHash = '';
  let noPassword = false;
  let token = '';
  let permission: ReturnType<typeof decodePermission> | undefined;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) kind = reader.int();
    else if (field === 2) id = reader.big();
    else if (field === 3) name = reader.string();
    else if (field === 4) role = reader.string();
    else if (field === 5) passwordHash = reader.string();
    else if (field === 6) noPassword = reader.bool();
    else if (field === 7) permission = decodePermission(reader.bytes());
    else if (field === 8) token = reader.string();
    else throw new WireError(`auth command with unknown field ${field}`);
  }
  const command = ((): AuthCommand => {
    switch (kind) {
      case KIND.enable:
        return { kind: 'enable' };
      case KIND.disable:
        return { kind: 'disable' };
      case KIND['user-add']:
        return { kind: 'user-add', name, passwordHash, noPassword };
      case KIND['user-delete']:
        return { kind: 'user-delete', name };
      case KIND['user-change-password']:
        return { kind: 'user-change-password', name, passwordHash };
      case KIND['user-grant-role']:
        return { kind: 'user-grant-role', name, role };
      case KIND['user-revoke-role']:
        return { kind: 'user-revoke-role', name, role };
      case KIND['role-add']:
        return { kind: 'role-add', role };
      case KIND['role-delete']:
        return { kind: 'role-delete', role };
      case KIND['role-grant-permission']:
        return { kind: 'role-grant-permission', role, permission };
      case KIND['role-revoke-permission']:
        return { kind: 'role-revoke-permission', role, key: permission?.key ?? '', end: permission?.end ?? '' };
      case KIND['token-issue']:
        return { kind: 'token-issue', name, token };
      default:
        throw new WireError(`auth command of unknown kind ${kind}`);
    }
  })();
  return { id, command };
}
