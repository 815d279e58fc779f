import type { Flag } from '../../command.ts';

export const CONFIG_FLAG: Flag = {
  type: 'string',
  value: 'FILE',
  help: 'bootstrap file (default /etc/origin/bootstrap.yaml)',
};
