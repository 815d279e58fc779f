/** Static tokens, one per line: `token,user,uid,"group1,group2"`. Source: kube-apiserver's --token-auth-file. */

import type { UserInfo } from '../../api/registry/definition.ts';
import { sha256Base64 } from '../../wire/digest.ts';

/** Looks up tokens by digest, so that the duration does not reveal how much of a guessed token was right. */
export function createTokenFileAuthenticator(text: string) {
  const users = new Map<string, UserInfo>();
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const fields = splitCsv(line);
    const [token, name, uid, groups] = fields;
    if (token === undefined || token === '' || name === undefined || name === '') {
      throw new Error(`static token file, line ${index + 1}: expected token,user,uid,"groups"`);
    }
    users.set(sha256Base64(token), {
      name,
      ...(uid === undefined || uid === '' ? {} : { uid }),
      groups: [
        ...(groups ?? '')
          .split(',')
          .map((each) => each.trim())
          .filter((each) => each !== ''),
        'system:authenticated',
      ],
    });
  }
  const memo = new Map<string, UserInfo>();
  return {
    authenticate(token: string): UserInfo | undefined {
      const known = memo.get(token);
      if (known !== undefined) return known;
      const user = users.get(sha256Base64(token));
      // Only existing tokens are cached, so the memo cannot become larger than the file.
      if (user !== undefined) memo.set(token, user);
      return user;
    },
  };
}

function splitCsv(line: string): string[] {
  const fields: string[] = [];
  let field = '';
  let quoted = false;
  for (const character of line.trim()) {
    if (character === '"') quoted = !quoted;
    else if (character === ',' && !quoted) {
      fields.push(field.trim());
      field = '';
    } else field += character;
  }
  fields.push(field.trim());
  return fields;
}
