/** Certificates and keys in secrets, and the check for certificates of routes and listeners. */
import type { Secret } from '../../../api/generated/core/v1.ts';
import { decodeBase64 } from '../../../api/validation/base64.ts';
import type { Route } from '../kinds/routes/types.ts';
import type { Certificate } from './port.ts';

/** Checks a certificate. Returns an error that names the field and a fix; undefined if it is valid. */
export type CertificateCheck = (tls: NonNullable<NonNullable<Route['spec']>['tls']>) => string | undefined;

/** Certificate and key of a secret of type `kubernetes.io/tls`; undefined if it has none. */
export function certificateOf(secret: Secret | undefined): Certificate | undefined {
  const text = (key: string): string => {
    const value = secret?.data?.[key];
    return value === undefined ? '' : (decodeBase64(value) ?? '');
  };
  const [certificate, key] = [text('tls.crt'), text('tls.key')];
  return certificate === '' || key === '' ? undefined : { certificate, key };
}
