export { conditionsOf } from './conditions.ts';
export type { EtcdFact, HostFact, LeaseFact, PoolFact, Probed, ProbeFacts, StorageFact } from './facts.ts';
export { OPERATOR_NAMES, type OperatorState, operatorStates } from './operators.ts';
export { statusDiff } from './status-diff.ts';
