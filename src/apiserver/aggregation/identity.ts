/** Front-proxy headers with the user's identity. Source: k8s.io/client-go/transport SetAuthProxyHeaders. */

import type { UserInfo } from '../../api/registry/definition.ts';
import type { OutgoingHttpHeaders } from '../port.ts';

/** Identity of this server in its own discovery requests and probes. */
export const AGGREGATOR: UserInfo = { name: 'system:kube-aggregator', groups: ['system:masters'] };

/**
 * Characters allowed in a header name (RFC 9110 §5.6.2), except the percent sign, which escapes all other characters.
 */
const PLAIN = /^[!#$&'*+\-.^_`|~0-9A-Za-z]$/;

export function identityHeaders({ name, uid, groups, extra = {} }: UserInfo): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { 'X-Remote-User': headerText(name) };
  if (uid !== undefined && uid !== '') headers['X-Remote-Uid'] = headerText(uid);
  if (groups.length > 0) headers['X-Remote-Group'] = groups.map(headerText);
  for (const [key, values] of Object.entries(extra)) {
    if (values.length > 0) headers[`X-Remote-Extra-${escapedKey(key)}`] = values.map(headerText);
  }
  return headers;
}

/** Node writes header values as latin1, so each byte of the UTF-8 form becomes one character. */
function headerText(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

function escapedKey(key: string): string {
  let escaped = '';
  for (const byte of Buffer.from(key, 'utf8')) {
    const character = String.fromCharCode(byte);
    escaped += PLAIN.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return escaped;
}
