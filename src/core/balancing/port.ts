/** What a probe found. */
export type Finding =
  /** `/readyz` answered 200, or does not allow anonymous requests. */
  | 'ready'
  /** `/readyz` answered that a check fails. */
  | 'unready'
  /** `/readyz` answered that the server shuts down. */
  | 'stopping'
  /** The kernel accepted the connection; no answer came in time. */
  | 'silent'
  /** Refused, no route, or no handshake in time. */
  | 'unreachable'
  /** Its certificate is not one of this cluster. */
  | 'untrusted';
