import { type FlagValues, stringFlag } from '../../command.ts';

export async function requestAgent<T>(flags: FlagValues, method: string, params: unknown): Promise<T> {
  const { requestAgent } = await import('../../../host/network/ring.ts');
  return requestAgent<T>(stringFlag(flags, 'root'), method, params);
}
