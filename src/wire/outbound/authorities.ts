/**
 * Certificate authorities for servers outside the cluster: the authorities built into Node.js and the authorities of
 * the system. The system's file is read again when it changes, so that an authority installed with
 * `update-ca-certificates` is used without a restart.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { getCACertificates, rootCertificates } from 'node:tls';

/** Files in which distributions keep all trusted certificates: Debian, Fedora, SUSE. */
const FILES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/ca-bundle.pem',
];
const MAX_BYTES = 16 * 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

export class SystemAuthorities {
  readonly #files: readonly string[];
  #stamp = '';
  #known: readonly string[] | undefined;

  /** @param files The first file that exists is used. */
  constructor(files: readonly string[] = FILES) {
    this.#files = files;
  }

  /** PEM of each trusted authority. */
  all(): readonly string[] {
    for (const file of this.#files) {
      try {
        const { mtimeMs, size, ino } = statSync(file);
        const stamp = `${file} ${mtimeMs} ${size} ${ino}`;
        if (this.#known !== undefined && stamp === this.#stamp) return this.#known;
        if (size > MAX_BYTES) continue;
        const found = certificatesIn(readFileSync(file, 'utf8'));
        this.#stamp = stamp;
        this.#known = [...new Set([...rootCertificates, ...found])];
        return this.#known;
      } catch {
        // The distribution keeps its certificates elsewhere.
      }
    }
    this.#known ??= [...new Set([...rootCertificates, ...ofOpenSsl()])];
    return this.#known;
  }
}

/**
 * Authorities in OpenSSL's default places. Node prints a warning to stderr if they do not exist, as on a host without
 * the package ca-certificates.
 */
function ofOpenSsl(): readonly string[] {
  const { SSL_CERT_FILE: file = '/etc/ssl/cert.pem', SSL_CERT_DIR: directory = '/etc/ssl/certs' } = process.env;
  return existsSync(file) || existsSync(directory) ? getCACertificates('system') : [];
}

/** Certificates of a PEM text. Other content is ignored. */
export const certificatesIn = (pem: string): string[] => pem.match(CERTIFICATE) ?? [];
