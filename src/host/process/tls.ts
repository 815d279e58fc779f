import tls from 'node:tls';

/**
 * Excludes finite-field Diffie-Hellman from the TLS connections of this process. The server chooses the group, and a
 * handshake with a group of 8,192 bits occupies the event loop for 0.3 s. Tenants operate the servers of probes, routes
 * and proxied services. Servers without elliptic curves are not supported.
 */
export function excludeSlowKeyExchanges(): void {
  const names = tls.DEFAULT_CIPHERS.split(':').filter((name) => !name.startsWith('DHE-') && name !== '!DHE');
  tls.DEFAULT_CIPHERS = [...names, '!DHE'].join(':');
}
