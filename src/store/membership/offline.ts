/** Operations on a store that no process serves. */

export { endOf, type Restored, recoverAlone, restoreAs, type StoreEnd } from '../recovery/quorum-loss.ts';
export { contentOf, type Foreign, importInto } from '../replication/maintenance/live-content.ts';
