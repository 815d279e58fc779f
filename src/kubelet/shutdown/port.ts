/** Port for the login manager, which lets the kubelet end its pods before the machine is switched off. */

export interface ShutdownLock {
  /** Allows the shutdown to continue. */
  release(): void;
}

export interface ShutdownSignals {
  close(): void;
  /** Resolves when no more signals arrive, because the login manager or its bus was lost. */
  readonly lost: Promise<void>;
}

export interface LoginManager {
  /** Current limit for the delay of a shutdown lock. */
  maxDelayMs(): Promise<number>;
  /** Allows locks of this length, for this boot and later ones. */
  raiseMaxDelay(ms: number): Promise<void>;
  /** Delays shutdowns until the lock is released or this process ends. */
  lock(): Promise<ShutdownLock>;
  /** Calls the listener with true when a shutdown begins and with false when it is cancelled. */
  follow(listener: (begins: boolean) => void): Promise<ShutdownSignals>;
}
