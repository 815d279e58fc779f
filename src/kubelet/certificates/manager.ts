/**
 * Keeps one of the kubelet's certificates valid: requests a new one when it is missing, lacks a name or address of the
 * Node, or is due for renewal. Source: k8s.io/client-go/util/certificate (nextRotationDeadline).
 */

import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { whyRenew } from '../../base/time/certificate-life.ts';
import type { Clock } from '../../base/time/clock.ts';
import { sleep } from '../../base/time/sleep.ts';
import type { ApiClient } from '../../client/types.ts';
import type { CertificateFiles, CertificateNames, CurrentCertificate } from './port.ts';
import { requestSignature, type SignatureOrder } from './request.ts';

export interface CertificateManagerOptions {
  readonly signerName: SignatureOrder['signerName'];
  readonly files: CertificateFiles;
  readonly client: ApiClient;
  /** Required names of the certificate. Undefined while they are unknown, because the Node is not registered. */
  readonly names: () => Promise<CertificateNames | undefined>;
  /** Called when a new certificate is on disk. */
  readonly onRenewed: () => void;
  readonly clock: Clock;
  /** Current time for decisions about certificates. */
  readonly nowMs: () => number;
  readonly log: Log;
}

const NOT_KNOWN_MS = 500;
const RETRY_MS = 5_000;
/** Interval between checks of names and remaining lifetime, because the clock and the host's address may change. */
const CHECK_MS = 30_000;

export class CertificateManager {
  readonly #options: CertificateManagerOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  /** Ends the pause before the next check. */
  #wake = new AbortController();

  constructor(options: CertificateManagerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /**
   * Checks the certificate immediately. Called after a change of the trusted authorities, because the issuer of the
   * certificate may soon be removed.
   */
  checkNow(): void {
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let trouble = '';
    while (!signal.aborted) {
      let delayMs = CHECK_MS;
      this.#wake = new AbortController();
      try {
        delayMs = (await this.#check()) ? CHECK_MS : NOT_KNOWN_MS;
        trouble = '';
      } catch (error) {
        if (signal.aborted) return;
        const message = messageOf(error);
        if (message !== trouble)
          this.#options.log.warn('certificate not renewed; retrying', {
            signer: this.#options.signerName,
            error: message,
          });
        trouble = message;
        delayMs = RETRY_MS;
      }
      await sleep(this.#options.clock, delayMs, AbortSignal.any([signal, this.#wake.signal])).catch(
        ignore('an aborted wait continues with the loop, which checks the signal'),
      );
    }
  }

  /** Returns false when the names are not known yet. */
  async #check(): Promise<boolean> {
    const { files, names: namesOf, signerName, client, clock, nowMs, log, onRenewed } = this.#options;
    const names = await namesOf();
    if (names === undefined) return false;
    const current = await files.current();
    const why = whyRequest(current, names, nowMs());
    if (why === undefined) return true;
    const request = await files.request(names);
    const certificate = await requestSignature(
      { signerName, ...request },
      {
        client,
        clock,
        signal: this.#stopping.signal,
        onWaiting: (name) =>
          log.info('certificate signing request waits for its approval', { name, signer: signerName }),
      },
    );
    await files.save(certificate, clock.nowMs());
    log.info('certificate renewed', { signer: signerName, reason: why });
    onRenewed();
    return true;
  }
}

/** Reason for a new request. Undefined when the certificate is valid. */
export function whyRequest(
  current: CurrentCertificate | undefined,
  names: CertificateNames,
  nowMs: number,
): string | undefined {
  if (current === undefined) return 'new';
  const missing = [
    ...names.dns.filter((name) => !current.dns.includes(name)),
    ...names.ips.filter((ip) => !current.ips.includes(ip)),
  ];
  if (missing.length > 0) return `lacks ${missing.join(', ')}`;
  if (!current.isOfSigner) return 'issued by another authority';
  // The cluster's signer determines the maximum lifetime.
  return whyRenew(current, current.notAfterMs - current.notBeforeMs, nowMs);
}
