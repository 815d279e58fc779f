/** What can be done with a store that no process serves. */
export { type Content, contentOf, type Foreign, importInto } from './content.ts';
export { endOf, type NewCluster, type Restored, recoverAlone, restoreAs, type StoreEnd } from './recovery.ts';
