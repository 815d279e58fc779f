/** The host's own default certificate, reloaded periodically because an administrator may replace its files. */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { Certificate } from './core/port.ts';
import type { CertificateVerifier } from './port.ts';

const PERIOD_MS = 10_000;

export interface OwnCertificateOptions {
  /** Reads the certificate; undefined if the host has no certificate of its own. */
  readonly read: (() => Promise<Certificate>) | undefined;
  readonly verify: CertificateVerifier;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when a different certificate is used from now on. */
  changed(): void;
}

export class OwnCertificate {
  readonly #options: OwnCertificateOptions;
  #timer: Timer | undefined;
  #stopped = false;
  #problem = '';
  /** Certificate in use. It is not replaced by a new certificate that is invalid. */
  current: Certificate | undefined;

  constructor(options: OwnCertificateOptions) {
    this.#options = options;
  }

  /** Starts to read the certificate periodically. Resolves after the first attempt, even if it failed. */
  async start(): Promise<void> {
    const { read, verify, clock, log, changed } = this.#options;
    if (read === undefined) return;
    try {
      const found = await read();
      const problem = verify(found);
      if (problem !== undefined) throw new Error(problem);
      this.#problem = '';
      if (found.certificate !== this.current?.certificate || found.key !== this.current.key) {
        this.current = found;
        log.info('default certificate of the host loaded');
        changed();
      }
    } catch (error) {
      const message = messageOf(error);
      if (message !== this.#problem)
        log.warn('router.defaultCertificate not usable; serving the previous one', { error: message });
      this.#problem = message;
    }
    if (!this.#stopped) this.#timer = clock.setTimer(PERIOD_MS, () => void this.start());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }
}
