import type { WireKeyValue } from '../../../src/store/core/messages/kv.ts';
import { type Checkers, type Shown, Violation } from './checkers.ts';

/** Request and response of a client. */
export interface Operation {
  readonly what: 'put' | 'delete' | 'guarded' | 'read';
  readonly key: string;
  /** Unique value of a put. */
  readonly value: string;
  readonly relaxed: boolean;
  /** For guarded writes: required mod revision of the key; 0 if it must not exist. */
  readonly guard: number;
  /** For reads: revision to read at; 0 for the current one. */
  readonly at: number;
  readonly serializable: boolean;
  /** Highest revision that any client had received when the request was sent. */
  readonly floor: number;
  /** Time at which the request was sent. */
  readonly requestedMs: number;
  outcome: 'open' | 'unknown' | 'refused' | 'done';
  revision: number;
  succeeded: boolean;
  deleted: number;
  found: readonly WireKeyValue[];
}

/** State of all keys at each revision, reconstructed from the visible history. */
class States {
  readonly #byKey = new Map<string, Array<{ readonly revision: number; readonly event: Shown }>>();

  constructor(checkers: Checkers) {
    for (const [revision, events] of [...checkers.history].sort(([a], [b]) => a - b))
      for (const event of events) {
        const versions = this.#byKey.get(event.key);
        if (versions === undefined) this.#byKey.set(event.key, [{ revision, event }]);
        else versions.push({ revision, event });
      }
  }

  at(key: string, revision: number): { readonly revision: number; readonly event: Shown } | undefined {
    const found = this.#byKey.get(key)?.findLast((version) => version.revision <= revision);
    return found === undefined || found.event.deleted ? undefined : found;
  }
}

/** Checks that the responses are consistent with the revisions in their order. */
export function checkOperations(operations: readonly Operation[], checkers: Checkers): void {
  const puts = new Map<string, number[]>();
  for (const [revision, events] of checkers.history)
    for (const { value, deleted } of events) {
      if (deleted) continue;
      const at = puts.get(value);
      if (at === undefined) puts.set(value, [revision]);
      else at.push(revision);
    }
  const states = new States(checkers);
  for (const operation of operations) {
    if (operation.what !== 'read' && operation.what !== 'delete')
      checkWritten(operation, puts.get(operation.value) ?? [], checkers);
    if (operation.outcome !== 'done') continue;
    // The request was answered before a power failure that lost the state it saw.
    if (checkers.mayBeLost(operation.revision, true)) continue;
    if (operation.what === 'delete') checkDelete(operation, states, checkers);
    else if (operation.what === 'guarded') checkGuard(operation, states);
    else if (operation.what === 'read') checkRead(operation, states);
  }
}

function checkWritten(operation: Operation, at: readonly number[], checkers: Checkers): void {
  const { value, outcome, revision, what, succeeded } = operation;
  if (at.length > 1) throw new Violation('linearizability', `${value} was written twice: ${at.join()}`);
  if (outcome === 'refused' && at.length > 0)
    throw new Violation('linearizability', `the write of ${value} was rejected, and it is stored at ${at.join()}`);
  if (outcome !== 'done' || (what === 'guarded' && !succeeded)) return;
  if (at[0] !== revision && !checkers.mayBeLost(revision, operation.relaxed))
    throw new Violation(
      'durability',
      `${value} was acknowledged at revision ${revision} and is ${at[0] === undefined ? 'lost' : `stored at ${at[0]}`}`,
    );
}

function checkDelete({ key, revision, deleted }: Operation, states: States, { history }: Checkers): void {
  if (deleted > 0) {
    if (history.get(revision)?.some((event) => event.key === key && event.deleted)) return;
    throw new Violation('durability', `the deletion of ${key} was acknowledged at revision ${revision} and is lost`);
  }
  if (states.at(key, revision) !== undefined)
    throw new Violation(
      'linearizability',
      `a deletion did not find ${key} at revision ${revision}, but the key exists`,
    );
}

function checkGuard({ key, guard, revision, succeeded, found }: Operation, states: States): void {
  const before = states.at(key, succeeded ? revision - 1 : revision);
  if (((before?.revision ?? 0) === guard) !== succeeded)
    throw new Violation(
      'linearizability',
      `${key} was last written at ${before?.revision} before revision ${revision}, and the guard ${guard} evaluated to ${succeeded}`,
    );
  if (!succeeded) compare(found[0], before, `${key} at ${revision}`);
}

function checkRead({ key, at, revision, found, serializable }: Operation, states: States): void {
  const seen = at > 0 ? at : revision;
  compare(found[0], states.at(key, seen), `${serializable ? 'serializable ' : ''}read of ${key} at ${seen}`);
}

function compare(found: WireKeyValue | undefined, is: ReturnType<States['at']>, what: string): void {
  if (found === undefined && is === undefined) return;
  const same =
    found !== undefined &&
    is !== undefined &&
    found.modRevision === is.revision &&
    found.value.toString('latin1') === is.event.value &&
    found.version === is.event.version &&
    found.createRevision === is.event.create &&
    found.lease === is.event.lease;
  if (!same)
    throw new Violation(
      'linearizability',
      `${what} returned ${found === undefined ? 'nothing' : `${found.value} of ${found.modRevision}`}, but the store has ${is?.event.value} of ${is?.revision}`,
    );
}
