/** Failure tolerance of this cluster's store, for `hyperedge status`. */

import { ownsStore } from '../certificates/issue-certificates.ts';
import type { Settings } from '../config/settings.ts';
import { etcdAccess } from '../store/access.ts';

export interface StoreLayout {
  readonly voters: number;
  readonly learners: number;
  /** Number of members that can fail without loss of the quorum. */
  readonly survives: number;
  /** Advice to add masters; absent if the layout needs none. */
  readonly advice?: string;
}

const MEMBERS_MS = 2_000;

export function layoutOf(voters: number, learners: number): StoreLayout {
  const survives = Math.max(0, Math.ceil(voters / 2) - 1);
  const missing = learners % 2 === 1 || voters % 2 === 0 ? 1 : 2;
  const layout = { voters, learners, survives };
  if (voters >= 3 && voters % 2 === 1 && learners === 0) return layout;
  const more = missing === 1 ? 'another master' : 'two more masters';
  const after = Math.ceil((voters + learners + missing) / 2) - 1;
  return { ...layout, advice: `join ${more} to survive the loss of ${after === 1 ? 'one' : after}` };
}

/** Returns undefined if this host has no member of the store or if the store does not answer. */
export async function storeLayout(settings: Settings): Promise<StoreLayout | undefined> {
  if (!ownsStore(settings)) return undefined;
  try {
    const admin = (await etcdAccess({ root: settings.root })).open();
    try {
      const members = await admin.localMembers(MEMBERS_MS);
      const learners = members.filter(({ learner }) => learner).length;
      return layoutOf(members.length - learners, learners);
    } finally {
      admin.close();
    }
  } catch {
    // Other fields of the status report a store that does not answer.
    return undefined;
  }
}

/**
 * Text such as `store: 1 voter, 1 learner; survives the loss of no member; join another master to survive the loss of
 * one`.
 */
export function layoutLine({ voters, learners, survives, advice }: StoreLayout): string {
  const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
  const members = learners === 0 ? count(voters, 'voter') : `${count(voters, 'voter')}, ${count(learners, 'learner')}`;
  const loss = survives === 0 ? 'no member' : count(survives, 'member');
  return `store: ${members}; survives the loss of ${loss}${advice === undefined ? '' : `; ${advice}`}`;
}
