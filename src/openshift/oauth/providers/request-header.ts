/**
 * Accepts logins from an authenticating proxy. The proxy presents a client certificate and sends the user name in a
 * header. Source: openshift/oauth-server pkg/authenticator/request/headerrequest.
 */

import { type HttpCall, header } from '../http.ts';
import type { LoginPorts } from '../port.ts';
import type { IdentityProvider, LoginIdentity } from '../types.ts';
import { firstValue } from './htpasswd.ts';

/**
 * Identity in a request of the proxy; undefined if the request is not from the proxy. The certificate must be issued by
 * an authority of the provider. TLS has verified it, so its authority must also be a client authority of the server.
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
 * URL at which a client reaches the proxy, which forwards the request back to this server. `${url}` and `${query}` in
 * the template are replaced by those of this request.
 */
export function proxyUrl(template: string, call: HttpCall): string {
  const query = call.query.toString();
  const url = `${call.origin ?? ''}${call.path}?${query}`;
  return template.replaceAll(/\$\{(url|query)\}/g, (_, name) => (name === 'url' ? encodeURIComponent(url) : query));
}
