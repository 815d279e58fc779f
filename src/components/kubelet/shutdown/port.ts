/** What the kubelet needs of the login manager to end its pods before the machine is switched off. */

export interface ShutdownLock {
  /** The machine may go down. */
  release(): void;
}

export interface ShutdownSignals {
  close(): void;
  /** Resolves when no more signals come: the login manager or its bus was lost. */
  readonly lost: Promise<void>;
}

/** Source: org.freedesktop.login1(5); https://systemd.io/INHIBITOR_LOCKS. Calls throw CodedError 'systemd'. */
export interface LoginManager {
  /** How long a lock may delay a shutdown now. */
  maxDelayMs(): Promise<number>;
  /** Allows locks of this length, for this boot and later ones. */
  raiseMaxDelay(ms: number): Promise<void>;
  /** Delays shutdowns until it is released or this process ends. */
  lock(): Promise<ShutdownLock>;
  /** Calls back with true when a shutdown begins and with false when it was cancelled. */
  follow(listener: (begins: boolean) => void): Promise<ShutdownSignals>;
}
