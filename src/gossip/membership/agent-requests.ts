/** Validates requests to the agent. Every error names the field and the fix. */
import { CodedError } from '../../base/errors.ts';
import { isStoreMemberId } from '../core/index.ts';
import type { KeyAction, StoreFacts } from './agent-port.ts';

const MAX_PEERS = 64;
const KEY_ACTIONS: readonly KeyAction[] = ['list', 'install', 'use', 'remove'];
const KEY_LENGTHS = [16, 24, 32];

export function storeFactsOf(params: unknown): StoreFacts {
  const fields = fieldsOf(params, ['memberId', 'leader', 'appliedIndex', 'fsyncMs']);
  const id = (name: string): string => {
    const value = fields[name];
    if (typeof value !== 'string' || !isStoreMemberId(value)) refuse(name, 'give 16 lower-case hexadecimal digits');
    return value;
  };
  const number = (name: string): number => {
    const value = fields[name];
    if (typeof value !== 'number' || !(value >= 0 && value <= Number.MAX_SAFE_INTEGER))
      refuse(name, 'give a number from 0');
    return value;
  };
  const appliedIndex = number('appliedIndex');
  return {
    memberId: id('memberId'),
    ...(fields['leader'] === undefined ? {} : { leader: id('leader') }),
    appliedIndex,
    fsyncMs: number('fsyncMs'),
  };
}

export function peersOf(params: unknown): readonly string[] {
  const { peers } = fieldsOf(params, ['peers']);
  if (!Array.isArray(peers) || peers.length === 0 || peers.length > MAX_PEERS)
    refuse('peers', `give a list of 1 to ${MAX_PEERS} addresses such as 10.0.0.2:7946`);
  for (const peer of peers)
    if (typeof peer !== 'string' || peer === '' || peer.length > 300)
      refuse('peers', 'give addresses such as 10.0.0.2:7946');
  return peers as readonly string[];
}

export function keyRequest(params: unknown): { readonly action: KeyAction; readonly key: Uint8Array | undefined } {
  const fields = fieldsOf(params, ['action', 'key']);
  const action = KEY_ACTIONS.find((each) => each === fields['action']);
  if (action === undefined) return refuse('action', `give one of ${KEY_ACTIONS.join(', ')}`);
  const text = fields['key'];
  if (action === 'list') return { action, key: undefined };
  const key = typeof text === 'string' ? Buffer.from(text, 'base64') : new Uint8Array();
  if (!KEY_LENGTHS.includes(key.length)) refuse('key', 'give 16, 24 or 32 bytes in base64');
  return { action, key };
}

function fieldsOf(params: unknown, known: readonly string[]): Readonly<Record<string, unknown>> {
  if (typeof params !== 'object' || params === null || Array.isArray(params)) return refuse('params', 'give an object');
  for (const name of Object.keys(params))
    if (!known.includes(name)) refuse(name, `unknown field; known fields are ${known.join(', ')}`);
  return Object.fromEntries(Object.entries(params));
}

function refuse(field: string, fix: string): never {
  throw new CodedError('bad-request', `${field}: ${fix}`);
}
