/** Makes a store smaller: removes its history, returns free pages and clears the NOSPACE alarm. */
import { CodedError } from '../../base/errors.ts';
import type { StoreAccess } from './port.ts';

export interface CompactedMember {
  readonly name: string;
  readonly beforeBytes: number;
  readonly afterBytes: number;
}

/** Time limit of a defragmentation. A large database takes minutes on an SD card. */
const DEFRAGMENT_MS = 10 * 60_000;

/** Throws CodedError 'unavailable' or 'refused' of the store. */
export async function compactStore(
  access: StoreAccess,
): Promise<{ readonly revision: number; readonly members: readonly CompactedMember[] }> {
  const admin = access.open();
  try {
    const { revision } = await admin.status();
    await admin.compact(revision).catch((error: unknown) => {
      // The API server may just have removed the history itself.
      if (!(error instanceof CodedError) || !/has been compacted/.test(error.message)) throw error;
    });
    const members: CompactedMember[] = [];
    // The members are defragmented one after the other, so that a majority always serves.
    for (const { name, clientUrls } of await admin.members()) {
      if (clientUrls.length === 0) continue;
      const member = access.open(clientUrls);
      try {
        const before = await member.status();
        await member.defragment(DEFRAGMENT_MS);
        members.push({ name, beforeBytes: before.dbBytes, afterBytes: (await member.status()).dbBytes });
      } finally {
        member.close();
      }
    }
    await admin.clearNoSpace();
    return { revision, members };
  } finally {
    admin.close();
  }
}
