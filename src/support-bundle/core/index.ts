export { indexPage } from './index-page.ts';
export { createKnownValues, type KnownValues, REMOVED } from './known-values.ts';
export { safePath, uniquePaths } from './names.ts';
export { environmentRedactor, logRedactor } from './redact-document.ts';
export { redactObject, secretsIn } from './redact-object.ts';
