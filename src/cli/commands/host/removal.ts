import { type Flag, type Invocation, integerFlag, stringFlag } from '../../command.ts';

export const DEFAULT_DRAIN_S = 60;

export const PURGE_FLAG: Flag = {
  type: 'boolean',
  help: 'remove the data instead of moving it to /var/lib/hyperedge-kept',
};

export const optionsOf = ({ flags, out }: Invocation) => ({
  root: stringFlag(flags, 'root'),
  purge: flags['purge'] === true,
  keepData: flags['keep-data'] === true,
  force: flags['force'] === true,
  drainTimeoutMs: (integerFlag(flags, 'drain-timeout', 0, 3600) ?? DEFAULT_DRAIN_S) * 1000,
  write: out.stdout,
  quiet: flags['quiet'] === true,
});
