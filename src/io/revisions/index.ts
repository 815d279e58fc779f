export { createOperandFiles, type Effect, type OperandDirectory } from './operand-files.ts';
