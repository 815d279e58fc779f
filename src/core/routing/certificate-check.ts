/** Pairs of certificate and key in secrets; what judges those of routes and listeners. */
import type { Secret } from 'kubernetes-types/core/v1';
import type { Route } from '../../api/kinds/routes/types.ts';
import { decodeBase64 } from '../../api/validation/base64.ts';
import type { Certificate } from './port.ts';

/** Finds what is wrong with a certificate: one sentence that names field and fix; undefined: nothing. */
export type CertificateCheck = (tls: NonNullable<NonNullable<Route['spec']>['tls']>) => string | undefined;

/** Of a secret of type `kubernetes.io/tls`; undefined: it has no pair. */
export function certificateOf(secret: Secret | undefined): Certificate | undefined {
  const text = (key: string): string => {
    const value = secret?.data?.[key];
    return value === undefined ? '' : (decodeBase64(value) ?? '');
  };
  const [certificate, key] = [text('tls.crt'), text('tls.key')];
  return certificate === '' || key === '' ? undefined : { certificate, key };
}
