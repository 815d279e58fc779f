export { createCertificateVerifier } from './certificates.ts';
export { proxyFactory } from './proxy.ts';
