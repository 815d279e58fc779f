/**
 * Connection target and expected certificate name of an endpoint URL. For `unix://` see etcd
 * client/pkg/transport/unix_listener.go.
 */

export function isSecure(endpoint: URL | undefined): boolean {
  return endpoint?.protocol === 'https:' || endpoint?.protocol === 'unixs:';
}

/**
 * A host and port, or the path of a socket. The path is absolute or relative to the working directory, as in
 * `unix://localhost:2380`.
 */
export function targetOf(endpoint: URL): { readonly host: string; readonly port: number } | { readonly path: string } {
  const { protocol, port } = endpoint;
  if (protocol === 'unix:' || protocol === 'unixs:')
    return { path: decodeURIComponent(`${endpoint.host}${endpoint.pathname}`) };
  return { host: hostOf(endpoint), port: Number(port === '' ? (protocol === 'http:' ? 80 : 443) : port) };
}

/** Name or address that the server's certificate must be valid for; localhost for a socket with an absolute path. */
export function hostOf({ hostname }: URL): string {
  return hostname === '' ? 'localhost' : hostname.replaceAll(/[[\]]/g, '');
}
