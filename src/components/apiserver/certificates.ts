/** What the server proves itself with and whose certificates it believes, as configuration and as TLS want it. */
import type { ApiServerConfig, CertificateSettings } from './config.ts';
import type { TlsMaterial } from './port.ts';

export function certificatesOf({ serving, clientCa, requestHeader }: ApiServerConfig): CertificateSettings {
  return {
    serving,
    ...(clientCa === undefined ? {} : { clientCa }),
    ...(requestHeader === undefined ? {} : { proxyCa: requestHeader.ca }),
  };
}

export function tlsOf({ tls }: ApiServerConfig, { serving, clientCa, proxyCa }: CertificateSettings): TlsMaterial {
  return {
    ...tls,
    certificate: serving.certificate,
    key: serving.key,
    clientAuthorities: [clientCa, proxyCa].filter((each) => each !== undefined),
  };
}
