/**
 * Where an address of a server leads, and who has to be there. Source: etcd client/pkg/transport/unix_listener.go, for
 * what follows `unix://`.
 */

/** Whether TLS is spoken there. */
export function isSecure(endpoint: URL | undefined): boolean {
  return endpoint?.protocol === 'https:' || endpoint?.protocol === 'unixs:';
}

/**
 * A host and a port, or the path of a socket: a whole one, or one below where the process was started, as in
 * `unix://localhost:2380`.
 */
export function targetOf(endpoint: URL): { readonly host: string; readonly port: number } | { readonly path: string } {
  const { protocol, port } = endpoint;
  if (protocol === 'unix:' || protocol === 'unixs:')
    return { path: decodeURIComponent(`${endpoint.host}${endpoint.pathname}`) };
  return { host: hostOf(endpoint), port: Number(port === '' ? (protocol === 'http:' ? 80 : 443) : port) };
}

/** The name or address that the server's certificate has to be for: of a socket with a whole path, localhost. */
export function hostOf({ hostname }: URL): string {
  return hostname === '' ? 'localhost' : hostname.replaceAll(/[[\]]/g, '');
}
