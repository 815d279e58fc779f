import { type FlagValues, stringFlag, UsageError } from '../../command.ts';

export const load = () => import('../../../host/openshift/release-bundles.ts');

export function required(flags: FlagValues, name: string): string {
  const value = stringFlag(flags, name);
  if (value === undefined) throw new UsageError(`--${name}: is required`);
  return value;
}
