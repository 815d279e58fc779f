import type { EtcdAdmin, EtcdMember } from '../../../host/store/administration.ts';
import type { Flag, FlagValues } from '../../command.ts';
import { OUTPUT_FLAG } from '../../printers.ts';
import { keepAliveDuring, STORE_FLAGS, storeAccess } from '../../store-flags.ts';

export const FLAGS: Readonly<Record<string, Flag>> = { output: OUTPUT_FLAG, ...STORE_FLAGS };

export function titleOf({ name, id }: EtcdMember): string {
  return name === '' ? id : `${name} (${id})`;
}

export async function findMember(admin: EtcdAdmin, wanted: string): Promise<EtcdMember> {
  const { memberNamed } = await import('../../../host/store/administration.ts');
  return memberNamed(await admin.members(), wanted);
}

export async function withStore(flags: FlagValues, use: (admin: EtcdAdmin) => Promise<number>): Promise<number> {
  const admin = (await storeAccess(flags)).open();
  try {
    return await keepAliveDuring(use(admin));
  } finally {
    admin.close();
  }
}
