/** What can be done with a store that no process serves. */
export { contentOf, type Foreign, importInto } from './content.ts';
export { type Restored, restoreAs } from './recovery.ts';
