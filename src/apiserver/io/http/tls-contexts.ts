/** TLS contexts of a listener's certificates. */
import { createSecureContext, type SecureContext } from 'node:tls';
import type { NamedCertificate, TlsMaterial } from '../../port.ts';

/** TLS context of the listener itself or of one of its named certificates. */
export const contextOf = (
  tls: TlsMaterial,
  { certificate, key }: Pick<NamedCertificate, 'certificate' | 'key'> = tls,
) => ({
  cert: certificate,
  key,
  ca: [...tls.clientAuthorities],
  minVersion: tls.minVersion ?? ('TLSv1.2' as const),
  ...(tls.ciphers === undefined ? {} : { ciphers: tls.ciphers }),
  ...(tls.curves === undefined ? {} : { ecdhCurve: tls.curves }),
});

/** Returns a function that selects a certificate by server name. An exact name precedes a wildcard match. */
export function namedContexts(tls: TlsMaterial): (name: string) => SecureContext | undefined {
  const contexts = new Map<string, SecureContext>();
  for (const named of tls.named ?? []) {
    const context = createSecureContext(contextOf(tls, named));
    for (const name of named.names) if (!contexts.has(name)) contexts.set(name, context);
  }
  return (serverName) => {
    const name = serverName.toLowerCase();
    return contexts.get(name) ?? contexts.get(name.replace(/^[^.]*/, '*'));
  };
}
