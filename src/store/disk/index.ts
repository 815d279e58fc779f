export { lastIntactRevision, snapshotPosition, summarizeSnapshot } from './file-queries.ts';
export { checkKind } from './snapshot-kind.ts';
export { createSqliteLog } from './sqlite-log.ts';
