/** The default certificate of routes, and the validation of routes' certificates, for the controllers. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { RouterFacts } from '../../network/router/controllers/ingress-router-port.ts';
import { createCertificateVerifier } from '../../network/router/io/index.ts';
import type { OpenShiftSettings } from '../../openshift/oauth/config/login-config.ts';
import {
  issue,
  type KeyPair,
  lifetimeFrom,
  type loadAuthority,
  masterFiles,
  readSecretIfPresent,
} from '../../pki/index.ts';
import { systemClock as clock } from '../process/process.ts';

const LIFETIME_DAYS = 730;
const RENEW_BEFORE_MS = 90 * 24 * 3_600_000;

/**
 * `installed`: returns the certificate and key that the installation created; a pair that does not match is ignored.
 * `names`: host names of the cluster's API, which routes must not use.
 */
export function routerFacts(
  {
    domain,
    wildcardRoutes,
    clusterDomain = 'cluster.local',
    hasConsole = false,
  }: Pick<OpenShiftSettings, 'domain' | 'wildcardRoutes'> & {
    readonly clusterDomain?: string | undefined;
    readonly hasConsole?: boolean;
  },
  authority: ReturnType<typeof loadAuthority>,
  installed: () => Promise<KeyPair | undefined> = async () => undefined,
  names: readonly string[] = [],
): RouterFacts {
  const needsRenewal = (pem: string, dns: readonly string[]): boolean => {
    try {
      const certificate = new X509Certificate(pem);
      const names = (certificate.subjectAltName ?? '').split(', ');
      return (
        !dns.every((name) => names.includes(`DNS:${name}`)) ||
        !certificate.checkIssued(authority.certificate) ||
        certificate.validToDate.getTime() - clock.nowMs() < RENEW_BEFORE_MS
      );
    } catch {
      return true;
    }
  };
  return {
    domain,
    wildcardRoutes: wildcardRoutes === true,
    names,
    clusterDomain,
    hasConsole,
    verify: createCertificateVerifier(),
    issue: async (dns) => {
      const present = await installed().catch(() => undefined);
      const { certPem, keyPem } =
        present !== undefined && !needsRenewal(present.certPem, dns)
          ? present
          : await issue(authority, {
              subject: { commonName: dns[0] ?? domain },
              usages: ['server'],
              names: { dns, ips: [] },
              validity: lifetimeFrom(clock.nowMs(), LIFETIME_DAYS),
            });
      return { certPem: `${certPem.trim()}\n${authority.certPem}`, keyPem };
    },
    needsRenewal,
  };
}

/**
 * The certificate and key that the installation created in the directory of the master's certificates; undefined if
 * they are missing.
 */
export async function installedPair(directory: string): Promise<KeyPair | undefined> {
  const { cert, key } = masterFiles('/').router;
  const keyPem = await readSecretIfPresent(join(directory, basename(key)));
  return keyPem === undefined
    ? undefined
    : { certPem: await readFile(join(directory, basename(cert)), 'utf8'), keyPem };
}
