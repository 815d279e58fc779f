export {
  createOperandFiles,
  type Effect,
  type Input,
  keptFiles,
  keptState,
  type OperandDirectory,
  replace,
} from './operand-files.ts';
