/** What can be done with a store that no process serves. */
export { contentOf, type Foreign, importInto } from './content.ts';
export { endOf, type Restored, recoverAlone, restoreAs, type StoreEnd } from './recovery.ts';
