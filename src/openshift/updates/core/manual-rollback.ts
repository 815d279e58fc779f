/**
 * Rollback that an administrator requests on the host, for a release that was confirmed and failed later. It needs no
 * API server: the record on disk names the former release, and its executable is kept beside the current one.
 */
import { UNSTATED_STORE_LEVEL } from '../../../api/releases/manifest.ts';
import { CodedError } from '../../../base/errors.ts';
import type { SwitchRecord } from './port.ts';

export interface RollbackFacts {
  readonly record: SwitchRecord | undefined;
  /** Version to which the link points; undefined if the executable is a regular file. */
  readonly link: string | undefined;
  /** Whether the executable of the former release is kept. */
  readonly hasExecutable: boolean;
  /** Facts about the store member of this host. Undefined if the host has no store member. */
  readonly store: StoreFacts | undefined;
}

export interface StoreFacts {
  /** Level of the log; undefined if the member does not respond. */
  readonly level: number | undefined;
  /** Number of members; undefined if the member does not respond. */
  readonly members: number | undefined;
  /** Snapshot that was saved before the update; undefined if it is missing. */
  readonly snapshot: { readonly name: string; readonly takenAt: string } | undefined;
}

/**
 * Returns the record that starts the rollback. `restoreStore`: if the former release cannot read the store, it may
 * replace the store with the snapshot, which loses later changes. Throws CodedError 'refused' with the reason and a
 * remedy.
 */
export function planManualRollback(facts: RollbackFacts, restoreStore: boolean): SwitchRecord {
  const { record, link, store } = facts;
  if (record === undefined || record.from === record.to)
    throw refused('this host has no record of a former release; run the install command of the release that you need');
  const { from, to } = record;
  const isBack = link === from && (record.phase === 'failed' || record.phase === 'rollingBack');
  if (isBack && !restoreStore)
    throw refused(`this host already runs ${from} again; run hyperedge status, or add --restore-store for its store`);
  if (link !== to && !isBack)
    throw refused(`the link to the executable names ${link ?? 'no release'}, but the last update was to ${to}`);
  if (!facts.hasExecutable)
    throw refused(`the executable of ${from} is missing; run the install command of that release`);
  if (store !== undefined) checkStore(record, store, restoreStore);
  const { snapshot: _, ...kept } = record;
  const message = `rolled back from ${to} to ${from} on the host`;
  const planned: SwitchRecord = { ...kept, phase: 'rollingBack', message };
  // If the store has other members, the former release copies their data instead of the snapshot, so no data is lost.
  const mayReplace = restoreStore || (store?.members ?? 1) > 1;
  return mayReplace && store?.snapshot !== undefined ? { ...planned, snapshot: store.snapshot.name } : planned;
}

function checkStore({ from, readableLevel }: SwitchRecord, store: StoreFacts, restoreStore: boolean): void {
  const { level, members = 1, snapshot } = store;
  const readable = readableLevel ?? UNSTATED_STORE_LEVEL;
  const isReadable = level !== undefined && level <= readable;
  const limit = `release ${from} reads stores up to level ${readable}, and the store has level ${level}`;
  if (members > 1 && level !== undefined && !isReadable)
    throw refused(`${limit}; the store has ${members} members, so install a newer release on each master instead`);
  if (!restoreStore) {
    if (level === undefined || isReadable) return;
    const loss = snapshot === undefined ? '' : ` of ${snapshot.takenAt}; all later changes are lost`;
    throw refused(`${limit}; add --restore-store to restore the snapshot${loss}`);
  }
  if (members > 1)
    throw refused(`--restore-store: the store has ${members} members, from which this host gets the data`);
  if (snapshot === undefined)
    throw refused(
      '--restore-store: the snapshot of the update is missing; restore another one with hyperedge snapshot restore',
    );
}

const refused = (message: string): CodedError => new CodedError('refused', message);
