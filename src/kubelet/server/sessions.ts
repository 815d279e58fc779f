/** Session limits per container or pod: each session costs the host a process, a file or a socket. */
const LIMITS = {
  exec: { most: 16, what: 'exec sessions of the container' },
  attach: { most: 16, what: 'attached clients of the container' },
  log: { most: 64, what: 'readers of the log of the container' },
  portForward: { most: 32, what: 'port-forward sessions of the pod' },
  connection: { most: 64, what: 'forwarded connections of the pod' },
} as const;

export type SessionKind = keyof typeof LIMITS;

/** The message contains the session kind, the limit and a fix. */
export class TooManySessions extends Error {
  constructor(kind: SessionKind) {
    const { most, what } = LIMITS[kind];
    super(`too many ${what}: the limit is ${most}; close one and try again`);
    this.name = 'TooManySessions';
  }
}

export class Sessions {
  private readonly counts = new Map<string, number>();

  /**
   * Registers a session. `owner`: ID of the container or of the pod's sandbox. Returns a function that ends the
   * registration. Throws TooManySessions.
   */
  open(kind: SessionKind, owner: string): () => void {
    const key = `${kind}/${owner}`;
    const count = this.counts.get(key) ?? 0;
    if (count >= LIMITS[kind].most) throw new TooManySessions(kind);
    this.counts.set(key, count + 1);
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      const left = (this.counts.get(key) ?? 1) - 1;
      if (left > 0) this.counts.set(key, left);
      else this.counts.delete(key);
    };
  }

  /** Runs `session` within the limit. */
  async run<T>(kind: SessionKind, owner: string, session: () => Promise<T>): Promise<T> {
    const close = this.open(kind, owner);
    try {
      return await session();
    } finally {
      close();
    }
  }
}
