/** Revisions of the control plane. */
export { HostRevisions, type RevisionsApi } from './host-revisions.ts';
export { OPERANDS, type Operand, type OperandFiles, type OperandProcess } from './port.ts';
