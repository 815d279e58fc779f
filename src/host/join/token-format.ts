/**
 * Format `id.secret` of tokens. The id and the first 16 characters of the secret are a bootstrap token of Kubernetes,
 * which the cluster stores. A token for masters has 32 more characters, which the cluster does not store. They encrypt
 * the keys that a master receives.
 */
import { CodedError } from '../../base/errors.ts';
import { ROLES, type Role } from '../config/bootstrap.ts';

const ID_LENGTH = 6;
const STORED_LENGTH = 16;
const SEAL_LENGTH = 32;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';
const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16}|[a-z0-9]{48})$/;

export interface Token {
  readonly id: string;
  readonly secret: string;
  /** First 16 characters of the secret, which the cluster stores. */
  readonly stored: string;
  /** Bearer token for requests to the API server. */
  readonly bearer: string;
  /** Whether the token can decrypt the keys of a master. */
  readonly sealing: boolean;
  readonly text: string;
}

/** Parses a token. `field`: name of the text's source, for the message. Throws CodedError 'bad-token'. */
export function parseToken(text: string, field: string): Token {
  const [, id, secret] = TOKEN.exec(text) ?? [];
  if (id === undefined || secret === undefined) {
    throw new CodedError('bad-token', `${field}: is not a token; copy the complete text from "hyperedge token create"`);
  }
  const stored = secret.slice(0, STORED_LENGTH);
  return { id, secret, stored, bearer: `${id}.${stored}`, sealing: secret.length > STORED_LENGTH, text };
}

/** Creates a token. `sealing`: whether it can decrypt the keys of a master. */
export function newToken(sealing: boolean, bytes: (length: number) => Uint8Array): Token {
  const id = randomText(ID_LENGTH, bytes);
  return parseToken(`${id}.${randomText(STORED_LENGTH + (sealing ? SEAL_LENGTH : 0), bytes)}`, 'token');
}

/**
 * Random characters of the alphabet. Bytes at or above the largest multiple of the alphabet's size are dropped, so that
 * all characters are equally likely.
 */
function randomText(length: number, bytes: (length: number) => Uint8Array): string {
  const limit = 256 - (256 % ALPHABET.length);
  let text = '';
  while (text.length < length) {
    for (const byte of bytes(length * 2)) {
      if (byte < limit && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}

const GROUP_PREFIX = 'system:bootstrappers:hyperedge:';

/** The groups that represent the roles of a token. */
export function groupsOf(roles: readonly Role[]): string[] {
  return roles.map((role) => GROUP_PREFIX + role);
}

/** Roles in a user's groups. A token without role groups, such as one of kubeadm, is for nodes. */
export function rolesOf(groups: readonly string[]): Role[] {
  const roles = ROLES.filter((role) => groups.includes(GROUP_PREFIX + role));
  return roles.length === 0 ? ['node'] : roles;
}

/**
 * Parses a comma-separated list of roles. `field`: name of the text's source, for the message. Throws CodedError
 * 'bad-roles'.
 */
export function parseRoles(text: string, field: string): Role[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !ROLES.some((role) => role === name));
  if (unknown !== undefined)
    throw new CodedError('bad-roles', `${field}: "${unknown}" is not a role; give some of ${ROLES.join(',')}`);
  const roles = ROLES.filter((role) => names.includes(role));
  if (!roles.includes('node'))
    throw new CodedError(
      'bad-roles',
      `${field}: a host that joins runs pods; add node: ${[...roles, 'node'].join(',')}`,
    );
  return roles;
}
