/**
 * Uses of a rig in its status, newest first. A use is open while its claim holds the rig. The history is derived from
 * the status of the claims, so it also includes changes that the controller has not observed. If the end of a use was
 * not observed, the use ends at the time at which the controller notices it.
 */
import { omitUndefined } from '../../base/json/omit-fields.ts';
import { timeMs } from '../../base/time/timestamps.ts';
import { type ClaimPhase, HISTORY_LIMITS, type Rig, type RigClaim, type RigUse } from '../kinds/rig-types.ts';

/** Fields of a claim's planned outcome that the history needs. */
export interface ClaimDecision {
  readonly phase: ClaimPhase;
  readonly rig?: string;
  readonly grantedAt?: string;
}

export interface HistoryContext {
  /** Timestamp for uses that end. */
  readonly now: string;
  /** Node that has all fixtures of the rig; undefined if there is no such node. */
  readonly node: string | undefined;
}

export function historyOf(
  rig: Rig,
  claims: ReadonlyMap<string, RigClaim>,
  decisions: ReadonlyMap<string, ClaimDecision>,
  { now, node }: HistoryContext,
): readonly RigUse[] {
  const name = rig.metadata?.name ?? '';
  const known = new Map<string, RigUse>();
  for (const use of rig.status?.history ?? []) if (!known.has(use.uid ?? '')) known.set(use.uid ?? '', use);
  const uses: RigUse[] = [];
  for (const [key, claim] of claims) {
    const decision = decisions.get(key);
    const uid = claim.metadata?.uid ?? '';
    const use = known.get(uid);
    if (decision === undefined || (decision.rig !== name && use === undefined)) continue;
    known.delete(uid);
    const next = useOf(claim, decision, name, use, { now, node });
    if (next !== undefined) uses.push(next);
  }
  for (const use of known.values()) uses.push(use.endedAt === undefined ? ended(use, 'Deleted', now) : use);
  return uses.sort(byTime).slice(0, HISTORY_LIMITS.entries);
}

/** Returns undefined if the claim has never held the rig, for example because its grant was not written. */
function useOf(
  claim: RigClaim,
  { phase, rig, grantedAt }: ClaimDecision,
  name: string,
  use: RigUse | undefined,
  { now, node }: HistoryContext,
): RigUse | undefined {
  if (rig !== name || grantedAt === undefined) return use?.endedAt === undefined ? undefined : use;
  if (phase === 'Granted') return opened(claim, grantedAt, use?.node ?? node);
  if (use?.endedAt !== undefined) return use;
  // If the use was not recorded while it was open, its node is unknown.
  return ended(
    use ?? opened(claim, grantedAt, undefined),
    phase === 'Expired' ? 'Expired' : 'Released',
    endOf(claim) ?? now,
  );
}

function opened({ metadata, status }: RigClaim, grantedAt: string, node: string | undefined): RigUse {
  const { namespace = '', name = '', uid = '' } = metadata ?? {};
  const requester = status?.requester?.slice(0, HISTORY_LIMITS.characters).toWellFormed();
  return {
    namespace,
    name,
    uid,
    ...omitUndefined({ requester, node }),
    grantedAt,
  };
}

const ended = (use: RigUse, reason: RigUse['reason'] & string, endedAt: string): RigUse => ({
  ...use,
  endedAt,
  reason,
});

/** Time at which the claim's use ended according to its status; undefined if the status shows no end. */
function endOf({ status }: RigClaim): string | undefined {
  if (status?.phase !== 'Expired' && status?.phase !== 'Released') return undefined;
  return status.conditions?.find(({ type, status: is }) => type === 'Granted' && is === 'False')?.lastTransitionTime as
    | string
    | undefined;
}

function byTime(a: RigUse, b: RigUse): number {
  const [first, second] = [timeMs(a.grantedAt), timeMs(b.grantedAt)];
  if (first !== second) return second - first;
  return (a.uid ?? '') < (b.uid ?? '') ? -1 : 1;
}
