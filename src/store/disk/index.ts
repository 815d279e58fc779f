export { lastIntactRevision, snapshotRevision, summarizeSnapshot } from './file-queries.ts';
export { checkKind } from './snapshot-kind.ts';
export { createSqliteLog } from './sqlite-log.ts';
