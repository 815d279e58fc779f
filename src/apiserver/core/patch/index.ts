/** Patch types, server-side apply and field ownership. This folder performs no I/O. */
export {
  type ApplyOptions,
  applyServerSide,
  applySteps,
  checkConfiguration,
  managedFieldsAfter,
  managedFieldsSteps,
  trackUpdate,
  type UpdateOptions,
} from './apply.ts';
export { mergeConfiguration } from './configuration.ts';
export { isFailedTest, reasonOf } from './errors.ts';
export { jsonPatch } from './json-patch.ts';
export { faultOfManagedFields } from './managed-fields.ts';
export { mergePatch } from './merge-patch.ts';
export type { Versions } from './other-versions.ts';
export { ownersAfterScale, ownersOfScale } from './scale-owners.ts';
export { strategicMergePatch } from './strategic.ts';
