/** Continue token of a paged list, in upstream's format, so that other API servers accept it. */

import { ApiError } from '../../../api/meta/status.ts';
import { decodeJson, fields } from '../../../base/decode.ts';

export interface ContinueToken {
  /**
   * Revision of the first page. Undefined: continue at the current revision (after the first page's revision was
   * compacted).
   */
  readonly revision: number | undefined;
  /** First key of the page, inclusive: `namespace/name`, or the name for cluster-scoped kinds. */
  readonly start: string;
}

export function encodeContinue(token: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: token.revision ?? -1, start: token.start })).toString(
    'base64url',
  );
}

export function decodeContinue(text: string): ContinueToken {
  try {
    if (text.length > 4096) throw new Error('too long');
    const json = Buffer.from(text, 'base64url').toString('utf8');
    const { v, rv, start } = decodeJson(fields, json, 'continue key');
    if (v !== 'meta.k8s.io/v1' || typeof start !== 'string' || typeof rv !== 'number' || !Number.isSafeInteger(rv)) {
      throw new Error('not a token of this API');
    }
    if (rv === 0 || start.includes('..')) throw new Error('invalid token');
    return { revision: rv < 0 ? undefined : rv, start };
  } catch {
    throw new ApiError('BadRequest', 'continue key is not valid: encoding error');
  }
}
