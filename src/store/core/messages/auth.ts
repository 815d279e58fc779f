/**
 * Encoding of `etcdserverpb.Auth` requests and responses. Keys are latin1 strings (see wire/protobuf/protobuf.ts). A
 * range end of '' selects the single key, '\0' all keys from the key on. Source: etcd v3 rpc.proto and auth.proto.
 */
import { Reader, type Writer } from '../../../wire/protobuf/protobuf.ts';

export const PermissionType = { read: 0, write: 1, readwrite: 2 } as const;

export interface AuthPermission {
  readonly type: number;
  readonly key: string;
  readonly end: string;
}

/** Request with a user or role name and at most one further string. */
export interface NamedRequest {
  readonly name: string;
  /** Password or role name. */
  readonly second: string;
}

export function decodeNamedRequest(bytes: Uint8Array): NamedRequest {
  const reader = new Reader(bytes);
  let name = '';
  let second = '';
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.string();
    else if (field === 2) second = reader.string();
    else reader.skip();
  }
  return { name, second };
}

export interface UserAddRequest {
  readonly name: string;
  readonly password: string;
  readonly noPassword: boolean;
}

export function decodeUserAddRequest(bytes: Uint8Array): UserAddRequest {
  const reader = new Reader(bytes);
  let name = '';
  let password = '';
  let noPassword = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.string();
    else if (field === 2) password = reader.string();
    else if (field === 3) noPassword = decodeOptions(reader.bytes());
    else reader.skip();
  }
  return { name, password, noPassword };
}

function decodeOptions(bytes: Uint8Array): boolean {
  const reader = new Reader(bytes);
  let noPassword = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) noPassword = reader.bool();
    else reader.skip();
  }
  return noPassword;
}

export interface RoleGrantPermissionRequest {
  readonly name: string;
  readonly permission: AuthPermission | undefined;
}

export function decodeRoleGrantPermissionRequest(bytes: Uint8Array): RoleGrantPermissionRequest {
  const reader = new Reader(bytes);
  let name = '';
  let permission: AuthPermission | undefined;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.string();
    else if (field === 2) permission = decodePermission(reader.bytes());
    else reader.skip();
  }
  return { name, permission };
}

export interface RoleRevokePermissionRequest {
  readonly role: string;
  readonly key: string;
  readonly end: string;
}

export function decodeRoleRevokePermissionRequest(bytes: Uint8Array): RoleRevokePermissionRequest {
  const reader = new Reader(bytes);
  let role = '';
  let key = '';
  let end = '';
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) role = reader.string();
    else if (field === 2) key = reader.latin1();
    else if (field === 3) end = reader.latin1();
    else reader.skip();
  }
  return { role, key, end };
}

export function decodePermission(bytes: Uint8Array): AuthPermission {
  const reader = new Reader(bytes);
  let type = 0;
  let key = '';
  let end = '';
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) type = reader.int();
    else if (field === 2) key = reader.latin1();
    else if (field === 3) end = reader.latin1();
    else reader.skip();
  }
  return { type, key, end };
}

export function writePermission(writer: Writer, field: number, permission: AuthPermission): Writer {
  const mark = writer.begin(field);
  return writer.int(1, permission.type).latin1(2, permission.key).latin1(3, permission.end).end(mark);
}
