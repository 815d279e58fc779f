export type { Input } from './input-files.ts';
export {
  createOperandFiles,
  type Effect,
  keptFiles,
  keptState,
  type OperandDirectory,
  replace,
} from './operand-files.ts';
