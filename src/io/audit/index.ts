/** The audit log's file. */
export { openAuditLog } from './log-file.ts';
