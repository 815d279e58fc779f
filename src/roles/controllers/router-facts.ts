/** The default certificate of routes, and the judge of theirs, for the controllers. */
import { X509Certificate } from 'node:crypto';
import type { RouterFacts } from '../../components/controllers/ingress-router-port.ts';
import { issue, lifetimeFrom, type loadAuthority } from '../../io/pki/index.ts';
import { createCertificateJudge } from '../../io/routing/index.ts';
import { systemClock as clock } from '../process.ts';

const LIFETIME_DAYS = 730;
const RENEW_BEFORE_MS = 90 * 24 * 3_600_000;

export function routerFacts(domain: string, authority: ReturnType<typeof loadAuthority>): RouterFacts {
  return {
    domain,
    judge: createCertificateJudge(),
    issue: (dns) =>
      issue(authority, {
        subject: { commonName: dns[0] ?? domain },
        usages: ['server'],
        names: { dns, ips: [] },
        validity: lifetimeFrom(clock.nowMs(), LIFETIME_DAYS),
      }).then(({ certPem, keyPem }) => ({ certPem: `${certPem.trim()}\n${authority.certPem}`, keyPem })),
    needsRenewal: (pem, dns) => {
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
    },
  };
}
