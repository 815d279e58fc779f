import { parseBoolean } from '../../wire/go-flag-values.ts';
import type { FlagName } from './flags.ts';
import { rejectValue, type Values } from './values.ts';

/** A feature gate, with the former flag that it replaces if that flag has an effect here. */
interface Gate {
  readonly before?: FlagName;
  /** Reason why the gate has no effect. */
  readonly why?: string;
}

const COMPARED: Gate = { why: 'members always compare their stores' };
const CHECKPOINTS: Gate = { why: 'lease checkpoints are always enabled' };

/** Feature gates of etcd 3.6. */
const GATES: Readonly<Record<string, Gate>> = {
  InitialCorruptCheck: { before: 'experimental-initial-corrupt-check' },
  CompactHashCheck: COMPARED,
  LeaseCheckpoint: CHECKPOINTS,
  LeaseCheckpointPersist: CHECKPOINTS,
  StopGRPCServiceOnDefrag: { why: 'defragmentation does not block requests' },
  TxnModeWriteWithSharedBuffer: { why: 'the store is SQLite' },
  SetMemberLocalAddr: { why: 'the kernel selects the local address' },
  AllAlpha: { why: 'groups of gates are not supported; name the single gates' },
  AllBeta: { why: 'groups of gates are not supported; name the single gates' },
};

/** Feature gates that the user has set, by name. Throws EtcdUsageProblem for a gate that etcd does not have. */
export function readGates(values: Values, warnings: string[]): ReadonlyMap<string, boolean> {
  const label = values.label('feature-gates');
  const gates = new Map<string, boolean>();
  for (const each of values.list('feature-gates')) {
    const [name = '', text, more] = each.split('=').map((part) => part.trim());
    const gate = Object.hasOwn(GATES, name) ? GATES[name] : undefined;
    if (gate === undefined)
      rejectValue(`${label}: "${name}" is not a feature gate; use one of ${Object.keys(GATES).join(', ')}`);
    const open = text === undefined || more !== undefined ? undefined : parseBoolean(text);
    if (open === undefined) rejectValue(`${label}: "${each}" is not accepted; write ${name}=true or ${name}=false`);
    if (gate.before !== undefined && values.has(gate.before))
      rejectValue(`${label}: ${name} and ${values.label(gate.before)} are both given; omit the flag`);
    if (gate.why !== undefined) warnings.push(`${label}: ${name} has no effect: ${gate.why}`);
    gates.set(name, open);
  }
  return gates;
}
