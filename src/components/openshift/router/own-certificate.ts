/** The host's own default certificate, read again and again: an administrator exchanges its files. */
import type { Clock, Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Certificate } from '../../../core/routing/port.ts';
import type { CertificateJudge } from './port.ts';

const PERIOD_MS = 10_000;

export interface OwnCertificateOptions {
  /** Undefined: the host has none. */
  readonly read: (() => Promise<Certificate>) | undefined;
  readonly judge: CertificateJudge;
  readonly clock: Clock;
  readonly log: Log;
  /** Another pair is in service. */
  changed(): void;
}

export class OwnCertificate {
  readonly #options: OwnCertificateOptions;
  #timer: Timer | undefined;
  #stopped = false;
  #problem = '';
  /** A pair that cannot be used leaves the former in service. */
  current: Certificate | undefined;

  constructor(options: OwnCertificateOptions) {
    this.#options = options;
  }

  /** Resolves after the first attempt, whatever came of it. */
  async start(): Promise<void> {
    const { read, judge, clock, log, changed } = this.#options;
    if (read === undefined) return;
    try {
      const found = await read();
      const problem = judge(found);
      if (problem !== undefined) throw new Error(problem);
      this.#problem = '';
      if (found.certificate !== this.current?.certificate || found.key !== this.current.key) {
        this.current = found;
        log.info('default certificate of the host in service');
        changed();
      }
    } catch (error) {
      const message = messageOf(error);
      if (message !== this.#problem)
        log.warn('router.defaultCertificate not usable; the former is served', { error: message });
      this.#problem = message;
    }
    if (!this.#stopped) this.#timer = clock.setTimer(PERIOD_MS, () => void this.start());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }
}
