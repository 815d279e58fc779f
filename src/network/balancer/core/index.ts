export { addressesToSave, type Backend, BackendPool, type Health, type Source } from './pool.ts';
export type { Finding } from './port.ts';
export { isRemote, parseTarget, type Target, targetOfUrl, targetText } from './target.ts';
