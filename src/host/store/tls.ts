/** The certificates of `hyperedge etcd`: from files that are reloaded on change, or self-signed. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { createSelfSigned, isRevoked, lifetimeFrom, parseRevocationList } from '../../pki/index.ts';
import type { EtcdTlsLimits, EtcdTlsSettings } from '../../store/config/index.ts';
import type { TlsMaterials, TlsSource } from '../../wire/grpc/index.ts';
import { checkSecret } from '../config/files.ts';

export interface TlsFilesOptions {
  readonly tls: EtcdTlsSettings;
  readonly limits: EtcdTlsLimits;
  /** Whether a key that other users can read or write is rejected instead of logged. */
  readonly strictKeys: boolean;
  /** Whether certificates that are valid for clients only are rejected. */
  readonly membersOnly?: boolean;
  readonly nowMs: () => number;
  readonly log: Log;
}

/** Interval between checks for changed files. */
const CHECK_MS = 1000;

/** Opens the certificates. Returns undefined if TLS is disabled. Throws CodedErrors with the file and the fix. */
export async function openTlsFiles(options: TlsFilesOptions): Promise<TlsSource | undefined> {
  const { certFile, keyFile } = options.tls;
  if (certFile === undefined || keyFile === undefined) return undefined;
  const files = new TlsFiles(options, certFile, keyFile);
  await files.load();
  return files;
}

class TlsFiles implements TlsSource {
  readonly #options: TlsFilesOptions;
  readonly #certFile: string;
  readonly #keyFile: string;
  readonly #paths: readonly string[];
  #materials: TlsMaterials | undefined;
  #seen = '';
  #checkedMs = 0;
  #checking: Promise<TlsMaterials> | undefined;

  constructor(options: TlsFilesOptions, certFile: string, keyFile: string) {
    this.#options = options;
    this.#certFile = certFile;
    this.#keyFile = keyFile;
    const { trustedCaFile, crlFile } = options.tls;
    this.#paths = [certFile, keyFile, trustedCaFile, crlFile].filter((path) => path !== undefined);
  }

  async load(): Promise<void> {
    this.#seen = await this.#state();
    this.#materials = await this.#read();
    this.#checkedMs = this.#options.nowMs();
  }

  current(): Promise<TlsMaterials> {
    const now = this.#options.nowMs();
    if (this.#checking === undefined && this.#materials !== undefined && Math.abs(now - this.#checkedMs) < CHECK_MS) {
      return Promise.resolve(this.#materials);
    }
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
      this.#checkedMs = this.#options.nowMs();
    });
    return this.#checking;
  }

  /**
   * Reloads changed files. While they are replaced, certificate and key may not match; the previous pair remains in use
   * until they match.
   */
  async #check(): Promise<TlsMaterials> {
    const before = this.#materials as TlsMaterials;
    const state = await this.#state();
    if (state === this.#seen) return before;
    try {
      this.#materials = await this.#read();
      this.#seen = state;
      this.#options.log.info('certificates reloaded', { file: this.#certFile });
      return this.#materials;
    } catch (error) {
      this.#options.log.warn('certificates not reloaded; using the previous ones', {
        cause: messageOf(error),
      });
      return before;
    }
  }

  async #state(): Promise<string> {
    const states = this.#paths.map(async (path) => {
      const found = await stat(path).catch(() => undefined);
      return found === undefined ? '-' : `${found.ino}/${found.size}/${found.mtimeMs}/${found.ctimeMs}`;
    });
    return (await Promise.all(states)).join(' ');
  }

  async #read(): Promise<TlsMaterials> {
    const { tls, limits, membersOnly = false } = this.#options;
    const [cert, key, ca, crl] = await Promise.all([
      read(this.#certFile),
      this.#readKey(),
      tls.trustedCaFile === undefined ? undefined : read(tls.trustedCaFile),
      tls.crlFile === undefined ? undefined : read(tls.crlFile),
    ]);
    checkPair(this.#certFile, cert, this.#keyFile, key);
    if (tls.trustedCaFile !== undefined && ca !== undefined) certificateOf(tls.trustedCaFile, ca);
    const revoked = tls.crlFile === undefined || crl === undefined ? undefined : revokedBy(tls.crlFile, crl);
    return {
      cert,
      key,
      minVersion: limits.minVersion,
      maxVersion: limits.maxVersion,
      ...(limits.ciphers === undefined ? {} : { ciphers: limits.ciphers }),
      ...(tls.requireCertificate
        ? { ca: ca ?? getCACertificates('system'), refusal: refusalBy(tls, revoked, membersOnly) }
        : {}),
    };
  }

  async #readKey(): Promise<Buffer> {
    const { strictKeys, log } = this.#options;
    await checkSecret(this.#keyFile, this.#certFile, strictKeys ? undefined : (problem) => log.warn(problem));
    return read(this.#keyFile);
  }
}

async function read(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new CodedError('unreadable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function certificateOf(path: string, pem: Buffer): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new CodedError('bad-config', `${path} holds no certificate in PEM form`, { cause: error });
  }
}

function checkPair(certFile: string, cert: Buffer, keyFile: string, key: Buffer): void {
  const certificate = certificateOf(certFile, cert);
  let fits: boolean;
  try {
    fits = certificate.checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    throw new CodedError('bad-config', `${keyFile} holds no private key in PEM form`, { cause: error });
  }
  if (!fits) throw new CodedError('bad-config', `${keyFile} is not the key of ${certFile}; name a matching pair`);
}

function revokedBy(path: string, bytes: Buffer): ReadonlySet<bigint> {
  try {
    return parseRevocationList(bytes);
  } catch (error) {
    throw new CodedError('bad-config', `${path} holds no certificate revocation list`, { cause: error });
  }
}

/** Extended key usage "server authentication" (RFC 5280 §4.2.1.12). */
const SERVER_AUTHENTICATION = '1.3.6.1.5.5.7.3.1';

function refusalBy(
  { allowedHostnames, allowedCommonNames }: EtcdTlsSettings,
  revoked: ReadonlySet<bigint> | undefined,
  membersOnly: boolean,
): (certificate: X509Certificate) => string | undefined {
  return (certificate) => {
    if (revoked !== undefined && isRevoked(certificate, revoked)) return 'the certificate is revoked';
    // Node's type is a list, but the value is undefined if the certificate has no such extension. Without it, every
    // usage is allowed.
    const usages: readonly string[] | undefined = certificate.keyUsage;
    if (membersOnly && usages !== undefined && !usages.includes(SERVER_AUTHENTICATION))
      return 'the certificate is for clients only, not for a member';
    if (allowedHostnames.length > 0 && !allowedHostnames.some((name) => isFor(certificate, name))) {
      return `the certificate has none of the host names ${allowedHostnames.join(', ')}`;
    }
    const common = /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? '';
    return allowedCommonNames.length === 0 || allowedCommonNames.includes(common)
      ? undefined
      : `the certificate’s common name is not one of ${allowedCommonNames.join(', ')}`;
  };
}

/** Whether the certificate is valid for a host name. As in Go, only subject alternative names are checked. */
function isFor(certificate: X509Certificate, name: string): boolean {
  return isIP(name) === 0
    ? certificate.checkHost(name, { subject: 'never' }) !== undefined
    : certificate.checkIP(name) !== undefined;
}

/** Days before the expiry at which a self-signed certificate is replaced. */
const RENEW_DAYS = 30;

/**
 * With automatic TLS and without a configured certificate, returns the settings with a self-signed certificate in
 * `directory`, which is created or renewed if necessary. Other settings are returned unchanged.
 */
export async function withOwnCertificate<T extends EtcdTlsSettings>(
  tls: T,
  directory: string,
  hosts: readonly string[],
  years: number,
  nowMs: number,
): Promise<T> {
  if (!tls.automatic || tls.certFile !== undefined) return tls;
  const certFile = join(directory, 'cert.pem');
  const keyFile = join(directory, 'key.pem');
  if (!(await isGood(certFile, keyFile, nowMs))) {
    const made = await createSelfSigned(
      'hyperedge etcd',
      { dns: hosts.filter((host) => isIP(host) === 0), ips: hosts.filter((host) => isIP(host) !== 0) },
      lifetimeFrom(nowMs, years * 365),
    );
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await writeFile(keyFile, made.keyPem, { mode: 0o600 });
      await writeFile(certFile, made.certPem, { mode: 0o644 });
    } catch (error) {
      throw new CodedError('unwritable', `--auto-tls: cannot write the certificate: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }
  return { ...tls, certFile, keyFile };
}

async function isGood(certFile: string, keyFile: string, nowMs: number): Promise<boolean> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
    checkPair(certFile, cert, keyFile, key);
    return new X509Certificate(cert).validToDate.getTime() - nowMs > RENEW_DAYS * 24 * 3_600_000;
  } catch {
    return false;
  }
}
