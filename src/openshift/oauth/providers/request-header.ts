/**
 * Logins verified by an authenticating proxy, which presents a certificate and sends the user in a header. Source:
 * openshift/oauth-server pkg/authenticator/request/headerrequest.
 */

import { type HttpCall, header } from '../http.ts';
import type { LoginPorts } from '../port.ts';
import type { IdentityProvider, LoginIdentity } from '../types.ts';
import { firstValue } from './htpasswd.ts';

/**
 * Returns undefined for a request that is not from the proxy. TLS verifies the certificate, so its issuer must be one
 * of the server's client authorities and one of the provider's.
 */
export function fromProxy(
  call: HttpCall,
  { name, requestHeader = {} }: IdentityProvider,
  ca: string | undefined,
  ports: Pick<LoginPorts, 'issuedBy'>,
): LoginIdentity | undefined {
  const [certificate] = call.connection.peerChain ?? [];
  if (certificate === undefined || ca === undefined) return undefined;
  const { issued, commonName } = ports.issuedBy(certificate, ca);
  const { clientCommonNames = [], headers = [] } = requestHeader;
  if (!issued || (clientCommonNames.length > 0 && !clientCommonNames.includes(commonName))) return undefined;
  const read = (names: readonly string[] = []): string => firstValue(names, (each) => header(call, each.toLowerCase()));
  const id = read(headers);
  if (id === '') return undefined;
  const email = read(requestHeader.emailHeaders);
  const preferred = read(requestHeader.preferredUsernameHeaders);
  return {
    provider: name,
    id,
    preferredUserName: preferred === '' ? id : preferred,
    fullName: read(requestHeader.nameHeaders),
    extra: email === '' ? {} : { email },
  };
}

/**
 * URL to which clients are redirected to return through the proxy. `${url}` and `${query}` are replaced by those of
 * this request.
 */
export function proxyUrl(template: string, call: HttpCall): string {
  const query = call.query.toString();
  const url = `${call.origin ?? ''}${call.path}?${query}`;
  return template.replaceAll(/\$\{(url|query)\}/g, (_, name) => (name === 'url' ? encodeURIComponent(url) : query));
}
