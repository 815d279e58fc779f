export { createCertificateJudge } from './certificates.ts';
export { proxyFactory } from './proxy.ts';
