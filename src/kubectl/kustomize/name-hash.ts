/** Suffix for names of config maps and secrets from their content. Source: sigs.k8s.io/kustomize/api/hasher. */
import { sha256Hex } from '../../wire/digest.ts';
import { goJson } from '../core/encode.ts';
import type { AnyObject } from '../core/objects.ts';

/** Characters that are replaced, as in kustomize, so that a hash does not form words. */
const REPLACED: Readonly<Record<string, string>> = { 0: 'g', 1: 'h', 3: 'k', a: 'm', e: 't' };

/** Suffix of ten characters, computed from kind, name and content. */
export function nameHash(object: AnyObject): string {
  const { kind = '', metadata, data = '', binaryData, immutable, type = '', stringData } = object;
  const content = {
    kind,
    name: metadata?.name ?? '',
    data,
    ...(kind === 'Secret' ? { type } : {}),
    ...(kind === 'Secret' && stringData !== undefined ? { stringData } : {}),
    ...(binaryData === undefined ? {} : { binaryData }),
    ...(immutable === undefined ? {} : { immutable }),
  };
  const hex = sha256Hex(goJson(content)).slice(0, 10);
  return [...hex].map((char) => REPLACED[char] ?? char).join('');
}
