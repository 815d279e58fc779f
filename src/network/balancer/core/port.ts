/** Result of a probe. */
export type Finding =
  /** `/readyz` returned 200, or rejects anonymous requests. */
  | 'ready'
  /** `/readyz` reported a failed check. */
  | 'unready'
  /** `/readyz` reported that the server is shutting down. */
  | 'stopping'
  /** The connection was accepted, but no response arrived in time. */
  | 'silent'
  /** Connection refused, no route, or no handshake in time. */
  | 'unreachable'
  /** The certificate was not issued by this cluster. */
  | 'untrusted';
