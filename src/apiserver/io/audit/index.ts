export { openAuditLog } from './log-file.ts';
